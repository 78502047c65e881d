"""Text in columns."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.tui.text import clip, columns, wrap

TEXT = st.text(st.sampled_from("ab c\td日本é\u0301\u200bW-"), max_size=80)


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
