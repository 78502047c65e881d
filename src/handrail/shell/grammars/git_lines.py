"""
The value of `git log -L` (git-log(1)): `START,END:FILE` or `:FUNCTION:FILE`.

Expressions in it may hold colons, so what stands behind any colon counts as the file.
"""

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, literal_word


def read(text: str) -> tuple[Effect, ...]:
    parts = text.split(":")
    if len(parts) == 1:
        raise UnclearError("lines of no file")
    files = (":".join(parts[at:]) for at in range(1, len(parts)))
    return tuple(Effect(Does.READS, literal_word(file), "shows lines of this") for file in files if file)
