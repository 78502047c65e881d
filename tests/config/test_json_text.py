"""The parser that knows places: it agrees with the standard library and says where something is wrong."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.config.json_paths import column_of, format_path, line_of
from handrail.config.json_text import JsonNode, scan
from handrail.errors import JsonTextError

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
INDENTS: Any = st.sampled_from([None, 0, 1, 2, 4, "\t"])


@given(VALUES, INDENTS, st.booleans())
def test_every_value_is_read_as_the_standard_library_reads_it(value: Any, indent: Any, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)

    assert scan(text).value == json.loads(text) == value


@given(VALUES, INDENTS)
def test_every_part_stands_where_it_says(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent)

    def check(node: JsonNode) -> None:
        assert json.loads(text[node.start : node.end]) == node.value
        for member in node.members:
            assert text.startswith(json.dumps(member.key), member.start)
            check(member.node)
        for item in node.items:
            check(item)

    check(scan(text))


@given(st.text(st.sampled_from('{}[]",:\\u01e-.+ \n\tatruefalsn/#'), max_size=30))
def test_any_text_is_read_or_refused_as_the_standard_library_does(text: str) -> None:
    def refuse(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    def constant(_word: str) -> Any:
        raise ValueError

    try:
        expected = json.loads(text, object_pairs_hook=refuse, parse_constant=constant)
    except ValueError:
        with pytest.raises(JsonTextError):
            scan(text)
    else:
        assert re.search(r"\de\+?\d{3}", text) or scan(text).value == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        pytest.param("", 1, 1, "the file is empty", id="nothing"),
        pytest.param('{\n  "a": 1,\n}', 3, 1, "a comma before }", id="a trailing comma in an object"),
        pytest.param("[1,\n]", 2, 1, "a comma before ]", id="a trailing comma in a list"),
        pytest.param('{\n  // why\n  "a": 1}', 2, 3, "comments are not allowed", id="a comment"),
        pytest.param('{"a": 1 /* b */}', 1, 9, "comments are not allowed", id="a comment behind a value"),
        pytest.param('{"a": NaN}', 1, 7, "a value is expected here, not 'NaN}'", id="NaN"),
        pytest.param('{"a": 1e999}', 1, 7, "too large", id="an endless number"),
        pytest.param('{"a": ' + "1" * 5000 + "}", 1, 7, "too long", id="a number of five thousand digits"),
        pytest.param("{'a': 1}", 1, 2, "a key in double quotes", id="single quotes"),
        pytest.param('{"a" 1}', 1, 6, "a colon must follow the key 'a'", id="no colon"),
        pytest.param('{"a": 1\n "b": 2}', 2, 2, "a comma or } is expected here", id="no comma"),
        pytest.param('{"a": "x\n"}', 1, 7, "not closed on its line", id="a text over two lines"),
        pytest.param('{"a": "\\x"}', 1, 7, "an escape that JSON does not know", id="a foreign escape"),
        pytest.param('{"a": 1, "b": 2, "a": 3}', 1, 18, "the key 'a' appears here a second time", id="a key twice"),
        pytest.param("{} {}", 1, 4, "more text after the end", id="two values"),
        pytest.param('{"a": [', 1, 8, "the file ends before ]", id="an end in the middle"),
        pytest.param("[" * 70 + "]" * 70, 1, 65, "nested deeper than 64", id="a deep nest"),
        pytest.param("<<<<<<< HEAD\n{}", 1, 1, "a value is expected here, not '<<<<<<< HEAD'", id="a merge conflict"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(JsonTextError) as caught:
        scan(text)

    assert says in caught.value.message
    assert (line_of(text, caught.value.offset), column_of(text, caught.value.offset)) == (line, column)


def test_a_path_leads_to_the_line_of_its_key_or_of_the_nearest_thing_above() -> None:
    text = '{\n "permissions": {\n  "allow": [\n   "a",\n   "b"\n  ]\n }\n}'
    root = scan(text)

    def line(*path: str | int) -> int:
        return line_of(text, root.starts(path))

    assert [line(), line("permissions"), line("permissions", "allow"), line("permissions", "allow", 1)] == [1, 2, 3, 5]
    assert [line("permissions", "deny"), line("permissions", "allow", 7), line("none")] == [2, 3, 1]
    assert format_path(("permissions", "allow", 1)) == "permissions.allow[1]"
    assert root.find(("permissions", "allow", 7)) is None
