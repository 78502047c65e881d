"""Operands of cp, mv, ln, install and rsync: the last one is written, the others are read."""

from handrail.shell.model import Does, Effect, Word


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    effects = [Effect(Does.READS, word, "copied from here") for word in words[:-1]]
    return (*effects, *(Effect(Does.WRITES, word, "writes here") for word in words[-1:]))
