"""
Checkers for small languages inside words: closed grammars that answer with effects, or raise UnclearError.

A module `<name>` offers `read(text: str) -> tuple[Effect, ...]` for a program text, or
`read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]` for a language made of all operands.
No effect at all means: it computes and prints, nothing else.
"""

from collections.abc import Callable
from importlib import import_module

from handrail.shell.model import Effect, Word


def read_text(name: str, text: str) -> tuple[Effect, ...]:
    read: Callable[[str], tuple[Effect, ...]] = import_module(f"handrail.shell.grammars.{name}").read
    return read(text)


def read_words(name: str, words: tuple[Word, ...]) -> tuple[Effect, ...]:
    read: Callable[[tuple[Word, ...]], tuple[Effect, ...]] = import_module(f"handrail.shell.grammars.{name}").read_words
    return read(words)
