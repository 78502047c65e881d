"""Questions on a terminal: nothing of the call is hidden, and only a clear yes is one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.tools.cards import FormChoice, FormField
from handrail.tui.question import (
    MAX_LINES,
    PermissionQuestion,
    TypedReply,
    field_lines,
    question_lines,
    read_choice,
    read_reply,
)
from handrail.tui.text import columns


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        ("y\n", TypedReply("yes")),
        (" YES \n", TypedReply("yes")),
        ("n\n", TypedReply("no")),
        ("no use make instead\n", TypedReply("no", "use make instead")),
        ("a\n", TypedReply("always")),
        ("always\n", TypedReply("always")),
        ("\n", None),
        ("y then n\n", None),
        ("yy\n", None),
        ("a b\n", None),
        ("t\n", TypedReply("agent")),
        ("s\n", TypedReply("session")),
        ("this agent\n", None),
    ],
)
def test_only_what_is_meant_counts(typed: str, reply: TypedReply | None) -> None:
    assert read_reply(typed, offers_always=True, offers_agent=True) == reply
    if reply is not None and reply.choice in ("agent", "session"):
        assert read_reply(typed, offers_always=True) is None


@given(st.text(max_size=8), st.booleans())
def test_whatever_is_typed_nothing_but_the_words_for_it_allows_a_call(
    typed: str, offered: bool
) -> None:  # Hypothesis gives it by position
    reply = read_reply(typed, offers_always=offered)

    if reply is not None and reply.choice != "no":
        assert typed.strip().lower() in ({"y", "yes", "a", "always"} if offered else {"y", "yes"})


@given(st.text(max_size=400), st.integers(40, 120))
def test_a_question_fits_cannot_steer_the_terminal_and_tells_what_it_left_out(text: str, width: int) -> None:
    question = PermissionQuestion(f"{text} needs your permission", {"text": text, "more": [1, text]}, f"why {text}")

    (short, is_short_cut), (whole, is_whole_cut) = (
        question_lines(question, width, whole=each) for each in (False, True)
    )

    assert all(columns(line) <= width and "\x1b" not in line and "\r" not in line for line in (*short, *whole))
    assert all(
        line.startswith("  ") for line in (*short[1:], *whole[1:])
    )  # nothing in a call can pass for our own words
    assert is_short_cut == any("more lines; v shows them" in line for line in short) == (len(short) < len(whole))
    assert not is_whole_cut


def test_a_long_call_is_shown_in_part_and_whole_when_asked() -> None:
    question = PermissionQuestion("Tool", {"command": "\n".join(map(str, range(100)))}, "why", always="Rule (in file)")

    short, is_cut = question_lines(question, 80)
    assert is_cut
    assert len(short) == 1 + MAX_LINES + 2
    assert short[-3:] == ["      (+89 more lines; v shows them)", "  why: why", "  always: Rule (in file)"]
    assert len(question_lines(question, 80, whole=True)[0]) == 103


COLOURS = FormField(
    "Which colours?", "Colours", (FormChoice("red", "like fire"), FormChoice("blue", preview="sea\nsky"))
)


@pytest.mark.parametrize(
    ("typed", "several", "answers"),
    [
        ("1\n", False, ("red",)),
        ("1, 2\n", True, ("red", "blue")),
        ("2 2\n", True, ("blue",)),
        ("1 2\n", False, ("1 2",)),
        ("3\n", False, ("3",)),
        ("like grass\n", True, ("like grass",)),
        ("\n", False, ()),
    ],
)
def test_answers_are_chosen_by_number_or_typed(typed: str, several: bool, answers: tuple[str, ...]) -> None:
    assert read_choice(typed, replace(COLOURS, several=several)) == answers


@given(st.text(max_size=200), st.integers(40, 120))
def test_a_form_and_a_plan_fit_and_cannot_pass_for_our_own_words(text: str, width: int) -> None:
    form = field_lines(FormField(text, "", (FormChoice(text, text, text), FormChoice("b"))), width)
    plan = question_lines(PermissionQuestion("The plan", {}, "why", document=text or "x"), width, whole=True)[0]

    assert all(columns(line) <= width and "\x1b" not in line and "\r" not in line for line in (*form, *plan))
    assert all(line.startswith("  ") for line in (*form[1:], *plan[1:]))
