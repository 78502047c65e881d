"""
Words of `export`, `declare`, `local`, `readonly` (bash 5.2): NAME=VALUE with names and values that change no program.

Everything else is a change: an option (-i evaluates, -n points to another variable), a name alone, a subscript.
"""

from handrail.shell.model import Does, Effect, Word
from handrail.shell.scope import harmless_setting


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    return tuple(effect for word in words if (effect := setting(word)))


def setting(word: Word) -> Effect | None:
    name, equals, _ = word.prefix.partition("=")
    if equals and harmless_setting(name, word.cut(len(name) + 1)):
        return None
    return Effect(Does.STATE, word, "changes a variable, which may change what programs do")
