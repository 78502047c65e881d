"""Which names a matcher fits, in bounded time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.hooks.matcher import Matcher, parse_matcher


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("", "Bash", True),
        ("*", "mcp__a__b", True),
        ("Bash", "Bash", True),
        ("bash", "Bash", False),
        ("Bash", "BashOutput", False),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        (" Edit | Write ", "Edit", True),
        ("Edit|Write", "NotebookEdit", False),
        ("Ba.*", "Bash", True),
        ("Edit.*", "NotebookEdit", True),
        ("^Edit.*", "NotebookEdit", False),
        ("mcp__memory", "mcp__memory__read", False),
        ("mcp__memory__.*", "mcp__memory__read", True),
        ("^(?!mcp__)", "mcp__memory__read", False),
        ("^(?!mcp__)", "Bash", True),
        (r"(.)\1", "Bash", False),
        (r"(.)\1", "Glob/ee", True),
        ("Task", "Agent", True),
    ],
)
def test_names_lists_and_expressions(text: str, name: str, expected: bool) -> None:
    matcher = parse_matcher(text)

    assert isinstance(matcher, Matcher)
    assert matcher.matches(name) is expected


@pytest.mark.parametrize("text", ["(", "(?!", "[z-a]", "|", " , "])
def test_a_matcher_that_cannot_be_understood_says_so(text: str) -> None:
    assert isinstance(parse_matcher(text), str)


@pytest.mark.parametrize(
    "text", ["(a+)+$", "a{1000}{1000}{1000}", "(a|a)*$", "(a*)*b$", r"^(?=a)((a|a?)+)+\2$", "(?=a)(a|aa)+$"]
)
def test_no_expression_hangs(text: str) -> None:
    """Each would keep a backtracking engine busy for longer than a user waits."""
    matcher = parse_matcher(text)

    assert isinstance(matcher, Matcher)
    assert matcher.matches("a" * 900 + "!") in (True, False)


def test_an_expression_that_runs_out_of_steps_counts_as_found() -> None:
    matcher = parse_matcher(r"^(?=a)((a|a?)+)+\2$")

    assert isinstance(matcher, Matcher)
    assert matcher.matches("a" * 900 + "!")
    assert not matcher.matches("b")


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_a_matcher_or_a_problem(text: str, name: str) -> None:
    matcher = parse_matcher(text)

    assert matcher.matches(name) in (True, False) if isinstance(matcher, Matcher) else matcher
