"""Cards show what others named, and nothing in them steers a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.tools.cards import Card


def test_names_that_would_steer_a_terminal_are_shown_as_what_they_are() -> None:
    card = Card(
        title="Read \x1b]0;evil\x07\udcff\u202e.txt", detail="2\nlines\tof", body="one\r\n\ttwo\x1b[2J\nthree\udc80"
    )

    assert card.title == r"Read \x1b]0;evil\x07\udcff\u202e.txt"
    assert card.detail == r"2\nlines of"
    assert card.body == "one\n\ttwo\\x1b[2J\nthree\\udc80"


def test_what_is_harmless_stays() -> None:
    assert Card("Größe \u3042 \U0001f600", "\xa0wide", "a\n\tb") == Card(
        "Größe \u3042 \U0001f600", "\xa0wide", "a\n\tb"
    )
    assert Card("Größe \u3042 \U0001f600", "\xa0wide").title == "Größe \u3042 \U0001f600"


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_shown(text: str) -> None:
    card = Card(text, text, text)

    for part in (card.title, card.detail, card.body):
        part.encode()
        assert "\x1b" not in part
    assert "\n" not in card.title + card.detail
