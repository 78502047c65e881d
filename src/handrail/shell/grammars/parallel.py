"""Operands of GNU parallel: a command, then what it is run with, behind `:::` or from standard input."""

import shlex

from handrail.shell.listing import FED, PLACE, fill
from handrail.shell.model import Does, Effect, Word, literal_word

INPUTS = (":::", "::::", ":::+", "::::+")


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    end = next((at for at, word in enumerate(words) if word.literal in INPUTS), len(words))
    given = [word for word in words[end:] if word.literal not in INPUTS]
    command = [part for word in words[:end] for part in parts(word)]
    if not command:  # the commands themselves come in
        return tuple(Effect(Does.STARTS, word, "is run", child=tuple(parts(word))) for word in given)
    if not any("{}" in str(word) for word in command):
        command.append(literal_word(PLACE))
    child = tuple(fill(word, "{}", PLACE if given else FED) for word in command)
    return (Effect(Does.STARTS, words[0], "is run with each input", child=child, arguments=tuple(given)),)


def parts(word: Word) -> list[Word]:
    """The words of a text for a shell, taken as one command."""
    try:
        texts = shlex.split(word.literal or "")
    except ValueError:
        texts = []
    return [literal_word(text, word.start, word.end) for text in texts] or [word]
