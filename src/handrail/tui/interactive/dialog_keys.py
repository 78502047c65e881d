"""The keys of a question: numbers and arrows choose, letters search, Tab and Enter edit and take."""

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Filter
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from handrail.tui.interactive.dialog import DialogReply, OpenQuestion, Questions

DIGITS = frozenset("123456789")


class DialogKeys:
    """Moves through the question on the screen. `edit` holds the text that a choice lets the person change."""

    def __init__(self, questions: Questions, edit: Buffer, on_change: Callable[[], None]) -> None:
        self._questions = questions
        self._edit = edit
        self._on_change = on_change

    def bindings(self, choosing: Filter, editing: Filter) -> KeyBindings:
        """The bindings, for when the choices and for when the edited text have the keys."""
        bindings = KeyBindings()
        add = bindings.add
        add("up", filter=choosing)(lambda _event: self._move(-1))
        add("down", filter=choosing)(lambda _event: self._move(1))
        add("enter", filter=choosing)(lambda _event: self._choose())
        add("tab", filter=choosing)(lambda _event: self._choose(tab=True))
        add("backspace", filter=choosing)(lambda _event: self._on_key(""))
        add(Keys.Any, filter=choosing)(lambda event: self._on_key(event.data, goes_on=_goes_on(event)))
        add("enter", filter=editing)(lambda _event: self._take_edit())
        return bindings

    def paste(self, text: str) -> bool:
        """
        Take what is pasted while the choices have the keys; False = no question has them.

        It searches, or begins an answer in words, or is no answer; it never chooses.
        """
        current = self._questions.current
        if current is None or current.editing or not current.armed:
            return False
        line = " ".join(text.split())
        if current.question.searchable:
            current.narrow(current.search + line)
        elif line and not self._begin_words(current, text):
            current.type(current.typed + line.lower())
        self._on_change()
        return True

    def go_back(self) -> bool:
        """Leave the edited text, or the question; False = no question has the keys."""
        current = self._questions.current
        if current is None or not current.armed:
            return False
        if current.editing:
            current.editing = False
            self._on_change()
        else:
            self._questions.reply(None)
        return True

    def _move(self, by: int) -> None:
        if (current := self._questions.current) is not None:
            current.move(by)

    def _choose(self, *, tab: bool = False) -> None:
        """Take the selected choice, or open its text for editing."""
        current = self._questions.current
        choice = current.choice if current else None
        if current is None or choice is None or current.is_mistyped:
            return
        if choice.toggles:
            current.toggle(choice.value)
        elif choice.edit is not None and (tab or not choice.edits_on_tab):
            current.editing, current.began_words = True, False
            self._edit.text = choice.edit
            self._edit.cursor_position = len(choice.edit)
            self._on_change()
        elif not tab:
            self._questions.reply(DialogReply(choice.value, choice.edit or "", tuple(current.marked)))

    def _take_edit(self) -> None:
        current = self._questions.current
        if current is None or current.choice is None:
            return
        current.editing = False
        text = self._edit.text
        if current.began_words and (at := _choice_of(text.strip().lower(), current)) is not None:
            current.selected = at
            self._choose()
        else:
            self._questions.reply(DialogReply(current.choice.value, text, tuple(current.marked)))

    def _on_key(self, key: str, *, goes_on: bool = False) -> None:
        """
        A number takes a choice, a letter answers with it or begins an answer in words; in a list it searches.

        `goes_on`: a letter came with it, so that a number may begin words: `2nd thoughts, no`.
        """
        current = self._questions.current
        if current is None:
            return
        if current.question.searchable:
            current.narrow(current.search + key if key else current.search[:-1])
        elif key in current.question.letters and current.choice is not None:
            self._questions.reply(DialogReply(current.choice.value, current.question.letters[key]))
        elif key == " " and current.choice is not None and current.choice.toggles:
            self._choose()
        elif key in DIGITS and int(key) <= len(current.shown) and not (goes_on and self._takes_words(current)):
            current.type("")
            current.selected = int(key) - 1
            self._choose()
        elif not key:
            current.type(current.typed[:-1])
        elif key.isprintable() and key.strip() and not self._begin_words(current, key):
            current.type(current.typed + key.lower())

    def _takes_words(self, current: OpenQuestion) -> bool:
        return any(choice.takes_words for choice in current.shown)

    def _begin_words(self, current: OpenQuestion, key: str) -> bool:
        """Open the text of the choice that takes words; False if there is none."""
        for at, choice in enumerate(current.shown):
            if choice.takes_words:
                current.selected = at
                self._choose()
                current.began_words = True
                self._edit.insert_text(key)
                return True
        return False


def _goes_on(event: KeyPressEvent) -> bool:
    """Whether a letter or a blank follows that was read in the same piece."""
    following = event.key_processor.input_queue
    text = following[0].data if following else ""
    return len(text) == 1 and text.isprintable() and text not in DIGITS


def _choice_of(text: str, current: OpenQuestion) -> int | None:
    """The number of the choice whose word a text is; a text that says more is for the model."""
    return next((at for at, each in enumerate(current.shown) if each.word and text in (each.word, each.word[0])), None)
