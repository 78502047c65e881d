"""Names of manual pages and sections. With a slash in it, man takes the word for a file and formats that."""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect

NAME = re.compile(r"[A-Za-z0-9_.,:+@\[{ ^$*?|()-]+")


def read(text: str) -> tuple[Effect, ...]:
    if not NAME.fullmatch(text):
        raise UnclearError(f"{text!r} may be a file that is formatted")
    return ()
