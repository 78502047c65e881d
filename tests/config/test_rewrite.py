"""Rewriting changes what was asked for and nothing else, in the manner of the file."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.config.json_text import JsonNode, scan
from handrail.config.rewrite import add_items, remove_items, remove_key, set_value
from handrail.errors import SettingsError

NAMES = st.sampled_from(["a", "b", "c", "ü", 'q"'])
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5).filter(str.isprintable)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=10
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
BLANKS = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", "  \n "])


@st.composite
def formatted(draw: st.DrawFn, values: Any) -> str:
    """A value as it may be written without taste."""

    def blank() -> str:
        return draw(BLANKS)

    def write(value: Any) -> str:
        match value:
            case dict():
                parts = [f"{blank()}{json.dumps(k)}{blank()}:{blank()}{write(v)}{blank()}" for k, v in value.items()]
                return "{" + (",".join(parts) or blank()) + "}"
            case list():
                return "[" + (",".join(f"{blank()}{write(item)}{blank()}" for item in value) or blank()) + "]"
            case _:
                return json.dumps(value, ensure_ascii=draw(st.booleans()))

    return blank() + write(draw(values)) + blank()


def expected_after(value: Any, path: list[str], new: Any) -> Any:
    if not path:
        return new
    return {**value, path[0]: expected_after(value.get(path[0], {}), path[1:], new)}


def others(text: str, path: tuple[str, ...]) -> list[str]:
    """The raw texts of everything that lies beside a path, key and value."""
    found: list[str] = []

    def walk(node: JsonNode, way: tuple[str, ...]) -> None:
        for member in node.members:
            if way and member.key == way[0]:
                walk(member.node, way[1:])
            elif way:
                found.append(text[member.start : member.node.end])

    walk(scan(text), path)
    return found


@given(formatted(OBJECTS), st.lists(NAMES, min_size=1, max_size=3), VALUES)
def test_setting_a_value_changes_that_value_alone(text: str, path: list[str], new: Any) -> None:
    above = [
        before := scan(text).value,
        *(node.value for n in range(1, len(path)) if (node := scan(text).find(path[:n]))),
    ]
    if not all(isinstance(value, dict) for value in above):
        with pytest.raises(SettingsError, match="is not an object"):
            set_value(text, path, new)
        return

    changed = set_value(text, path, new)

    assert scan(changed).value == expected_after(before, path, new)
    assert others(changed, tuple(path)) == others(text, tuple(path))


@given(formatted(OBJECTS), st.lists(NAMES, min_size=1, max_size=2))
def test_removing_a_key_removes_it_alone(text: str, path: list[str]) -> None:
    parent = scan(text).find(path[:-1])
    there = parent is not None and parent.find(path[-1:]) is not None

    changed = remove_key(text, path)

    assert scan(changed).find(path) is None
    assert others(changed, tuple(path)) == others(text, tuple(path))
    assert there or changed == text


ITEMS = st.lists(st.sampled_from(["x", "y", "z", "w"]), max_size=4, unique=True)


@given(formatted(st.fixed_dictionaries({"p": st.fixed_dictionaries({"l": ITEMS, "m": VALUES}), "q": VALUES})), ITEMS)
def test_adding_and_removing_items_touches_nothing_else(text: str, items: list[str]) -> None:
    before = scan(text).value["p"]["l"]

    added = add_items(text, ("p", "l"), items)

    assert scan(added).value["p"]["l"] == [*before, *(item for item in items if item not in before)]
    assert others(added, ("p", "l")) == others(text, ("p", "l"))
    removed = remove_items(added, ("p", "l"), lambda item: item in items)
    assert scan(removed).value["p"]["l"] == [item for item in before if item not in items]
    assert others(removed, ("p", "l")) == others(text, ("p", "l"))


def test_a_file_keeps_its_manner() -> None:
    text = '{\r\n\t"permissions": {\r\n\t\t"allow": [\r\n\t\t\t"Read"\r\n\t\t]\r\n\t},\r\n\t"env": {"A": "1"}\r\n}\r\n'

    text = add_items(text, ("permissions", "allow"), ["Glob", "Read"])
    text = add_items(text, ("permissions", "deny"), ["Bash(rm *)"])
    text = set_value(text, ("env", "B"), "ü")

    assert text == (
        '{\r\n\t"permissions": {\r\n\t\t"allow": [\r\n\t\t\t"Read",\r\n\t\t\t"Glob"\r\n\t\t],\r\n'
        '\t\t"deny": [\r\n\t\t\t"Bash(rm *)"\r\n\t\t]\r\n\t},\r\n\t"env": {"A": "1", "B": "ü"}\r\n}\r\n'
    )


def test_a_file_on_one_line_stays_on_one_line() -> None:
    assert set_value('{"a":1}', ("b", "c"), [1]) == '{"a":1, "b": {"c": [1]}}'
    assert set_value("{}\n", ("a",), 1) == '{\n  "a": 1\n}\n'


def test_a_value_that_is_no_object_is_not_walked_into() -> None:
    with pytest.raises(SettingsError, match="a is not an object, so 'b' cannot be set in it"):
        set_value('{"a": 1}', ("a", "b"), 2)
    with pytest.raises(SettingsError, match=r"a\.b is not a list"):
        add_items('{"a": {"b": {}}}', ("a", "b"), ["x"])
