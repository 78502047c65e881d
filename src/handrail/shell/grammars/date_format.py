"""The operand of date: an output format. Any other operand is a new time for the clock."""

from handrail.shell.model import Does, Effect, literal_word


def read(text: str) -> tuple[Effect, ...]:
    return () if text.startswith("+") else (Effect(Does.STATE, literal_word(text), "sets the clock"),)
