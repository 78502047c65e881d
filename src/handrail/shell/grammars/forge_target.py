"""What gh and glab are asked for: a number, a name, OWNER/REPO, or an address on the two public forges."""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect

TARGET = re.compile(r"(?:https://(?:github|gitlab)\.com/[A-Za-z0-9_./#-]+|#?[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)?)\Z")


def read(text: str) -> tuple[Effect, ...]:
    if not TARGET.match(text):
        raise UnclearError(f"{text!r} may name another host")
    return ()
