"""Wildcards match what an expression would, and never take long."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.permissions.shell import plain_cut, quoted_cut
from handrail.permissions.wildcards import WORD_END, WildcardPattern, parse_wildcards
from tests.permissions.world import World

TEXTS = st.text(f"ab{WORD_END}", max_size=8)


@given(TEXTS, st.lists(TEXTS, max_size=4), st.booleans(), st.text(f"ab{WORD_END}", max_size=16))
def test_a_pattern_matches_what_the_expression_matches(literal: str, rest: list[str], tail: bool, text: str) -> None:
    body = ".*".join(map(re.escape, [literal, *rest])) + (f"(?:{WORD_END}.*)?" if tail else "")

    assert WildcardPattern(literal, tuple(rest), tail).matches(text) == bool(re.fullmatch(body, text, re.DOTALL))


@given(st.text("ab* \t\n\x1f\x85\u2003:()", max_size=12))
def test_texts_without_quotes_are_cut_as_all_others(spec: str) -> None:
    assert plain_cut(spec) == quoted_cut(spec)


@pytest.mark.parametrize("spec", ["*a" * 40 + "*b", "* a" * 40 + " b *", "a*" * 40 + "b"])
def test_many_wildcards_of_a_hostile_project_hold_nobody_up(tmp_path: Path, spec: str) -> None:
    world = World(tmp_path, rules={"deny": [f"Bash({spec})"]})

    assert world.bash("a " * 4_000) == "ask"
    assert not parse_wildcards("*a" * 40 + "*b").matches("a" * 20_000)
