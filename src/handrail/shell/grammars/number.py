"""A value that must be a whole number, for programs that do not take any other word for the value."""

from handrail.shell.gate import UnclearError
from handrail.shell.model import Effect


def read(text: str) -> tuple[Effect, ...]:
    if not (text.isascii() and text.isdecimal()):
        raise UnclearError(f"{text!r} is no number")
    return ()
