"""
Checkers for small languages inside words: closed grammars that answer with effects, or raise UnclearError.

A name is that of a module here and of a function in it (`git.pretty`). The function takes the text of one word, or
all operands where they are the language. No effect at all means: it computes and prints, nothing else.
"""

from importlib import import_module
from typing import Any

from handrail.shell.model import Effect


def read(name: str, given: Any) -> tuple[Effect, ...]:
    """What the text or the words of a language do."""
    module, _, function = name.partition(".")
    effects: tuple[Effect, ...] = getattr(import_module(f"handrail.shell.grammars.{module}"), function)(given)
    return effects
