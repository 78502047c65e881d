"""
Questions in the place above the input line: a title, what it is about, and choices with numbers.

One after another; a question that is taken back disappears. What is typed while a question comes up is never its
answer: it belongs to the input line until no key was pressed for a moment.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from handrail.conversation.plain import plain
from handrail.records import record
from handrail.tui.interactive.paint import Theme, paint
from handrail.tui.text import clip, wrap

QUIET = 0.4
"""Seconds without a key until a question takes the keys."""
QUIET_AFTER_REPLY = 0.8
"""The same for a question that follows the answer to another: longer than it takes until a key that is held repeats."""
MAX_CHOICES = 9
"""How many choices are shown at once."""
ROWS, MIN_BODY = 9, 6
SQUEEZES = ((ROWS, 3), (ROWS, 1), (1, 1), (1, 0))
"""How many rows the label and the detail of a choice take: less and less, until what is asked about has its room."""

ABOUT_ROWS = 10
"""How many lines about the selected choice are shown at the most."""


@record
class DialogChoice:
    """One answer. With `edit`, choosing it first opens this text for editing; `label` may say more in `detail`."""

    value: str
    label: str
    detail: str = ""
    edit: str | None = None
    edits_on_tab: bool = False
    """The text is only opened with Tab; Enter takes the choice as it is."""
    takes_words: bool = False
    """Letters that are typed begin its text, so that words are never lost or taken for a yes."""
    toggles: bool = False
    """Choosing it marks it, or takes the mark away, and answers nothing yet."""
    word: str = ""
    """`yes` or `no`: it, or its first letter, stands for the choice."""


@record
class DialogQuestion:
    """What is asked. `body` gives the lines about it in a width and a number of rows."""

    title: str
    choices: tuple[DialogChoice, ...]
    body: Callable[[int, int], Sequence[str]] = lambda _width, _rows: ()
    searchable: bool = False
    """Typing narrows the choices down, instead of choosing by number."""
    hint: str = ""
    hasty: bool = False
    """The person asked for it, so it takes the keys at once."""
    selected: int = 0
    """The choice that is selected at first."""
    about: Callable[[str], Sequence[str]] | None = None
    """Lines about the selected choice, by its value; asked for with every frame. The last ones count."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """Letters that answer with the selected choice, each with the text of that reply."""
    marked: tuple[str, ...] = ()
    """The values of the choices that are marked at first."""


@record
class DialogReply:
    """The value of the choice that was taken, the text that was typed or changed for it, and what was marked."""

    value: str
    text: str = ""
    marked: tuple[str, ...] = ()


@dataclass(eq=False)
class OpenQuestion:
    """A question with where the person stands in it."""

    question: DialogQuestion
    answer: "asyncio.Future[DialogReply | None]"
    selected: int = 0
    search: str = ""
    typed: str = ""
    """Letters that may become the word of a choice."""
    editing: bool = False
    began_words: bool = False
    """Whether the text that is edited began with a letter, and not by choosing to write one."""
    armed: bool = False
    since: float = 0.0
    shown: list[DialogChoice] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.marked = list(self.question.marked)
        self.shown = list(self.question.choices)
        self.selected = min(self.question.selected, max(len(self.shown) - 1, 0))

    @property
    def choice(self) -> DialogChoice | None:
        """The choice that is selected; None if the search leaves none."""
        return self.shown[self.selected] if self.shown else None

    @property
    def is_mistyped(self) -> bool:
        """Whether letters were typed that are no answer; Enter must not take another choice for them."""
        return bool(self.typed) and not any(each.word.startswith(self.typed) for each in self.shown)

    def type(self, letters: str) -> None:
        """Select the choice whose word begins with these letters; without letters, what was selected at first."""
        if self.typed and not letters:
            self.selected = min(self.question.selected, max(len(self.shown) - 1, 0))
        self.typed = letters
        for at, each in enumerate(self.shown):
            if letters and each.word.startswith(letters):
                self.selected = at

    def move(self, by: int) -> None:
        """Select another choice."""
        self.typed = ""
        if self.shown:
            self.selected = (self.selected + by) % len(self.shown)

    def toggle(self, value: str) -> None:
        """Mark a choice, or take its mark away."""
        if value in self.marked:
            self.marked.remove(value)
        else:
            self.marked.append(value)

    def narrow(self, search: str) -> None:
        """Show the choices that contain all words of the search."""
        words = search.lower().split()
        self.search = search
        self.shown = [
            each
            for each in self.question.choices
            if all(word in f"{each.label} {each.detail}".lower() for word in words)
        ]
        self.selected = 0


class Questions:
    """The questions that wait, the first of them on the screen."""

    def __init__(self, clock: Callable[[], float], on_change: Callable[[], None]) -> None:
        self._clock = clock
        self._on_change = on_change
        self._waiting: list[OpenQuestion] = []
        self._replied = -math.inf

    @property
    def current(self) -> OpenQuestion | None:
        """The question on the screen."""
        return self._waiting[0] if self._waiting else None

    @property
    def count(self) -> int:
        """How many wait, with that on the screen."""
        return len(self._waiting)

    async def ask(self, question: DialogQuestion) -> DialogReply | None:
        """The person's answer; None = the question was left. Cancelling takes it back."""
        future: asyncio.Future[DialogReply | None] = asyncio.get_running_loop().create_future()
        waiting = OpenQuestion(question, future)
        # what the person asked for is not held up by what the model asks for
        self._waiting.insert(1 if question.hasty and self._waiting else len(self._waiting), waiting)
        self._begin_current()
        try:
            return await future
        finally:
            self._waiting.remove(waiting)
            self._begin_current()

    def _begin_current(self) -> None:
        if (current := self.current) is not None and not current.since:
            current.since = self._clock()
            current.armed = current.question.hasty
        self._on_change()

    def arm(self, last_key: float) -> float:
        """Let the question take the keys if none was pressed for a moment; else the seconds to wait for that."""
        current = self.current
        if current is None or current.armed:
            return 0.0
        quiet = QUIET if current.since > self._replied + QUIET_AFTER_REPLY else QUIET_AFTER_REPLY
        left = quiet - (self._clock() - max(current.since, last_key))
        if left > 0:
            return left
        current.armed = True
        self._on_change()
        return 0.0

    def reply(self, reply: DialogReply | None) -> None:
        """Answer the question on the screen."""
        if (current := self.current) is not None and not current.answer.done():
            self._replied = self._clock()
            current.answer.set_result(reply)

    def leave_all(self) -> None:
        """No question is answered any more."""
        for waiting in self._waiting:
            if not waiting.answer.done():
                waiting.answer.set_result(None)


def question_lines(asked: OpenQuestion, count: int, width: int, height: int, theme: Theme) -> tuple[list[str], int]:
    """The question drawn in at most so many rows, and the row of the selected choice."""
    question = asked.question
    more = f" (1 of {count})" if count > 1 else ""
    title = _rows(plain(question.title) + more, width, max(height // 3, 1))
    head = [paint(clip("-" * width, width), theme.dim), *(paint(row, theme.selected) for row in title)]
    hint = [paint(row, theme.dim) for row in _rows(_hint(asked), width, max(height // 6, 1), "  ")]
    wanted = min(len(question.body(width, height)), MIN_BODY)  # what is asked about must be seen
    choices, selected = _fit_choices(asked, width, theme, height - len(head) - len(hint) - wanted)
    room = max(height - len(head) - len(choices) - len(hint), 0)
    body = list(question.body(width, room))
    if len(body) > room:
        more = f"  (+{len(body) - room + 1} more lines, Ctrl+O shows them)"
        body = [*body[: max(room - 1, 0)], paint(clip(more, width), theme.warning)][:room]
    if question.about is not None and asked.choice is not None and room > len(body):
        newest = list(question.about(asked.choice.value))[-min(room - len(body), ABOUT_ROWS) :]
        body += [paint(clip(plain(row), width), theme.dim) for row in newest]
    return [*head, *body, *choices, *hint], len(head) + len(body) + selected


def _rows(text: str, width: int, most: int, indent: str = "") -> list[str]:
    """The text wrapped into so many rows at the most; the last one shows that something was cut."""
    rows = wrap(text, width, indent)
    if len(rows) > most:
        rows = [*rows[: most - 1], f"{rows[most - 1]} {rows[most].strip()}"]
    return [clip(row, width) for row in rows]


def _fit_choices(asked: OpenQuestion, width: int, theme: Theme, most: int) -> tuple[list[str], int]:
    """The choices in so many rows, if that can be, and the row of the selected one."""
    for label_rows, detail_rows in SQUEEZES:
        lines, selected = _choice_lines(asked, width, theme, label_rows, detail_rows)
        if len(lines) <= most:
            return lines, selected
    return _choice_lines(asked, width, theme, *SQUEEZES[-1])


def _choice_lines(
    asked: OpenQuestion, width: int, theme: Theme, label_rows: int, detail_rows: int
) -> tuple[list[str], int]:
    first = max(0, min(asked.selected - MAX_CHOICES // 2, len(asked.shown) - MAX_CHOICES))
    lines: list[str] = []
    selected = 0
    if asked.question.searchable:
        lines.append(clip(f"  search: {plain(asked.search)}", width))
    for at, choice in list(enumerate(asked.shown))[first : first + MAX_CHOICES]:
        number = "" if asked.question.searchable else f"{at + 1}. "
        mark = f"[{'x' if choice.value in asked.marked else ' '}] " if choice.toggles else ""
        head = f"{'>' if at == asked.selected else ' '} {number}{mark}{plain(choice.label)}"
        if at == asked.selected:
            selected = len(lines)
        colour = theme.selected if at == asked.selected else ""
        rows = _rows(head, width, ROWS if at == asked.selected else label_rows, "     ")
        lines += [paint(row, colour) for row in rows]
        if choice.detail and detail_rows:
            rows = _rows(f"     {plain(choice.detail)}", width, detail_rows, "     ")
            lines += [paint(row, theme.dim) for row in rows]
    if not asked.shown:
        lines.append(paint(clip("  nothing fits", width), theme.dim))
    return lines, selected


def _hint(asked: OpenQuestion) -> str:
    if not asked.armed:
        return "  just a moment: what you type still goes to the input line"
    if asked.editing:
        return "  Enter confirms, Esc goes back"
    if asked.is_mistyped:
        return f"  {plain(asked.typed)!r} is no answer. Type a number from 1 to {len(asked.shown)}, or use the arrows."
    if asked.question.hint:
        return f"  {asked.question.hint}"
    keys = "type to search, arrows, Enter" if asked.question.searchable else "a number, or arrows and Enter"
    if asked.choice and asked.choice.toggles:
        keys += ", marks"
    takes_words = any(choice.takes_words for choice in asked.shown)
    if words := [choice.word[0] for choice in asked.shown if choice.word]:
        keys += f", {' or '.join(words)}"
    if takes_words:
        keys += ", or your own words"
    tab = ", Tab edits" if asked.choice and asked.choice.edits_on_tab else ""
    return f"  {keys}{tab}, Esc {'says no' if takes_words else 'leaves'}"
