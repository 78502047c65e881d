"""Positions: UTF-16 units and characters, and names in lines."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import LspError
from handrail.lsp.positions import CodePosition, find_name, from_utf16, split_text, to_utf16
from handrail.lsp.problems import CodeProblem, new_problems
from handrail.lsp.questions import find_positions
from handrail.lsp.server import path_of, uri_of
from handrail.tools.code_questions import CodeQuestion

LINES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=()), max_size=30)


@given(LINES, st.integers(0, 40))
def test_a_character_is_found_again_by_its_utf16_units(line: str, at: int) -> None:
    at = min(at, len(line))

    assert from_utf16(line, to_utf16(line, at)) == at
    assert to_utf16(line, len(line)) == len(line.encode("utf-16-le", "surrogatepass")) // 2


@given(LINES, st.integers(-5, 10**12))
def test_any_number_of_a_server_is_a_place_in_the_line(line: str, units: int) -> None:
    assert 0 <= from_utf16(line, units) <= len(line)


def test_the_second_half_of_a_pair_is_its_character() -> None:
    assert [from_utf16("a😀b", units) for units in range(6)] == [0, 1, 1, 2, 3, 3]


def test_lines_end_where_the_protocol_says_and_nowhere_else() -> None:
    assert split_text("a\nb\r\nc\rd\x0ce\u2028f\n") == ["a", "b", "c", "d\x0ce\u2028f", ""]


@given(st.text(st.characters(exclude_characters="\0"), max_size=30))
def test_a_path_is_found_again_by_its_address(name: str) -> None:
    path = f"/folder/{name.strip('/.') or 'x'}".replace("//", "/").replace("/./", "/").replace("/../", "/")
    if "/../" not in f"{path}/" and "/./" not in f"{path}/" and "//" not in path:
        assert path_of(uri_of(path)) == path


@pytest.mark.parametrize("uri", ["", None, 7, "http://x/y", "file://host/etc/passwd", "file:relative", "file:///a%00b"])
def test_what_is_no_file_of_this_machine_has_no_path(uri: object) -> None:
    assert path_of(uri) == ""


TEXT = ["# total of it", "class Cart:", "    def total(self): ...", "    subtotal = total_2 = total", "π = x.total"]


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        pytest.param("total", 3, [(3, 25)], id="not inside longer names"),
        pytest.param("total", None, [(0, 2), (2, 8), (3, 25), (4, 6)], id="on all lines"),
        pytest.param("π", None, [(4, 0)], id="letters of any alphabet"),
        pytest.param("total", 99, [], id="beyond the end"),
        pytest.param("=", 4, [(4, 2)], id="a sign"),
        pytest.param("a.*b(", None, [], id="not as a pattern"),
    ],
)
def test_names_are_found_as_whole_words(name: str, line: int | None, expected: list[tuple[int, int]]) -> None:
    assert find_name(TEXT, name, line) == [CodePosition(*each) for each in expected]


DECLARED = [("Cart", CodePosition(1, 6)), ("Cart.total", CodePosition(2, 8))]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param({"symbol": "total"}, (2, 8), id="what the file declares goes before a comment"),
        pytest.param({"symbol": "Cart.total()"}, (2, 8), id="a dotted name"),
        pytest.param({"symbol": "x.total", "line": 5}, (4, 6), id="a dotted name on a line"),
        pytest.param({"line": 2, "column": 7}, (1, 6), id="line and column"),
        pytest.param({"line": 2, "column": 700}, (1, 11), id="a column beyond the end"),
        pytest.param({"symbol": "total", "line": 1, "column": 1}, (0, 2), id="all three"),
        pytest.param(
            {"symbol": "total", "line": 2}, "does not stand on line 2 of '', but on 1, 3, 4, 5.", id="elsewhere"
        ),
        pytest.param({"symbol": "nothing"}, "does not stand in", id="nowhere"),
        pytest.param({"line": 2}, "Give symbol", id="a line alone"),
        pytest.param({"symbol": "total", "line": 6}, "has 5 lines", id="a line that is not there"),
    ],
)
def test_a_question_points_at_a_name_or_says_where_it_stands(
    question: dict[str, object], expected: tuple[int, int] | str
) -> None:
    asked = CodeQuestion("hover", **question)  # type: ignore[arg-type]  # a table
    if isinstance(expected, str):
        with pytest.raises(LspError, match=expected):
            find_positions(asked, TEXT, DECLARED)
    else:
        assert find_positions(asked, TEXT, DECLARED)[0] == CodePosition(*expected)


PROBLEMS = st.lists(
    st.builds(CodeProblem, st.integers(1, 4), st.integers(0, 4), st.integers(0, 9), st.sampled_from("ab")), max_size=8
)


@given(PROBLEMS, PROBLEMS, st.integers(0, 3))
def test_exactly_what_was_added_is_new_also_when_lines_move(
    before: list[CodeProblem], added: list[CodeProblem], moved: int
) -> None:
    old = [f"line {number}" for number in range(5)]
    new = ["inserted"] * moved + old
    after = [CodeProblem(p.severity, p.line + moved, p.character, p.message) for p in (*before, *added)]

    found = new_problems(before, old, after, new)

    assert Counter((p.severity, p.line, p.message) for p in found) == Counter(
        (p.severity, p.line + moved, p.message) for p in added
    )
    assert new_problems(before, old, after[: len(before)], new) == ()
