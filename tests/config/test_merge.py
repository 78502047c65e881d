"""How values of several sources become one: the laws, and one example for each kind of key."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.config.merge import merge_values

NAMES = st.sampled_from(["model", "env", "permissions", "allow", "deny", "fallbackModel", "hooks", "other"])
LEAVES = st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "b"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
SOURCES = st.dictionaries(NAMES, VALUES, max_size=4)


@given(SOURCES, SOURCES, SOURCES)
def test_it_does_not_matter_how_sources_are_grouped(a: Any, b: Any, c: Any) -> None:
    together = merge_values([a, b, c])

    if kinds_agree(a, b, c):
        assert together == merge_values([merge_values([a, b]), c]) == merge_values([a, merge_values([b, c])])


def kinds_agree(*values: Any) -> bool:
    """Whether the same key holds the same kind of value everywhere, as checked files do."""
    objects = [value for value in values if isinstance(value, dict)]
    if len({type(value) if isinstance(value, dict | list) else None for value in values}) > 1:
        return False
    names = {name for value in objects for name in value}
    return all(kinds_agree(*(value[name] for value in objects if name in value)) for name in names)


@given(SOURCES)
def test_a_source_twice_is_a_source_once(a: Any) -> None:
    assert merge_values([a, a]) == merge_values([a])


@given(SOURCES)
def test_an_empty_source_changes_nothing(a: Any) -> None:
    assert merge_values([a, {}]) == merge_values([{}, a]) == merge_values([a])


@given(SOURCES, SOURCES)
def test_merging_leaves_its_sources_alone(a: Any, b: Any) -> None:
    before = repr((a, b))

    merge_values([a, b])

    assert repr((a, b)) == before


@given(st.lists(st.lists(st.text(max_size=3), max_size=4), max_size=4))
def test_no_source_can_take_a_rule_of_another_away(rules: list[list[str]]) -> None:
    sources = [{"permissions": {"deny": texts}} for texts in rules]

    kept = merge_values(sources).get("permissions", {}).get("deny", [])

    assert set(kept) == {text for texts in rules for text in texts}
    assert len(kept) == len(set(kept))


@pytest.mark.proves("G20")
def test_each_kind_of_key_has_its_rule() -> None:
    high = {
        "model": "a",
        "env": {"X": "high", "Y": "1"},
        "permissions": {"allow": ["Read", "Glob"], "defaultMode": "plan"},
        "fallbackModel": ["one"],
        "hooks": {"Stop": [{"hooks": [1]}], "PreToolUse": [{"hooks": [2]}]},
        "statusLine": {"type": "command"},
    }
    low = {
        "model": "b",
        "language": "de",
        "env": {"X": "low", "Z": "2"},
        "permissions": {"allow": ["Glob", "Sleep"], "deny": ["Bash"], "defaultMode": "default"},
        "fallbackModel": ["two", "one"],
        "hooks": {"Stop": [{"hooks": [1]}, {"hooks": [3]}]},
        "statusLine": {"command": "x"},
    }

    assert merge_values([high, low]) == {
        "model": "a",
        "language": "de",
        "env": {"X": "high", "Y": "1", "Z": "2"},
        "permissions": {"allow": ["Read", "Glob", "Sleep"], "deny": ["Bash"], "defaultMode": "plan"},
        "fallbackModel": ["one"],
        "hooks": {"Stop": [{"hooks": [1]}, {"hooks": [3]}], "PreToolUse": [{"hooks": [2]}]},
        "statusLine": {"type": "command"},
    }


def test_true_and_one_are_two_things() -> None:
    assert merge_values([{"other": [True, 1, 1.0, [1], [True]]}]) == {"other": [True, 1, 1.0, [1], [True]]}
