"""Operands of bat: files that are read. `cache` is a sub-command, which builds or clears its cache."""

from handrail.shell.model import Does, Effect, Word


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    return tuple(
        Effect(Does.STATE, word, "is a sub-command that changes bat's cache")
        if word.literal == "cache"
        else Effect(Does.READS, word, "reads this")
        for word in words
    )
