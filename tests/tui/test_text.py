"""Text in columns."""

from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from handrail.tui.text import clip, columns, wrap

TEXT = st.text(st.sampled_from("ab c\td日本é\u0301\u200bW-"), max_size=80)
JOINED = (
    "a",
    " ",
    "漢",
    "e\u0301",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
    "👩\u200d👩\u200d👧",
    "👍🏽",
    "🇩🇪",
    "\u1112\u1161\u11ab",
)


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    assert [columns(text) for text in ("abc", "日本", "e\u0301", "")] == [3, 4, 1, 0]
    assert clip("日本語日本語", 8) == "日本..."
    assert clip("two\nlines", 20) == "two lines"
    assert wrap("one two three", 10, "  ") == ["one two", "  three"]
    assert wrap("abcdefghijklmnop", 10) == ["abcdefghij", "klmnop"]


@given(TEXT, st.integers(10, 40))
def test_a_clipped_line_fits_and_wrapped_lines_lose_nothing(text: str, width: int) -> None:
    assert columns(clip(text, width)) <= width
    lines = wrap(text, width)
    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.lists(st.sampled_from(JOINED), max_size=40).map("".join), st.integers(10, 40))
def test_what_terminals_join_into_one_character_never_makes_a_line_too_wide(text: str, width: int) -> None:
    assert wcswidth(clip(text, width)) <= width
    assert all(wcswidth(line) <= width for line in wrap(text, width))
