"""
Pretty formats of git (git-log(1), PRETTY FORMATS): built-in names and literal format strings.

UnclearError: `%G...`, which checks signatures with the configured program, and a bare word that is not a built-in name,
since it can be a `pretty.<name>` of the configuration that holds one.
"""

import re

from handrail.shell.gate import UnclearError
from handrail.shell.model import Effect

BUILT_IN = frozenset("oneline short medium full fuller reference email mboxrd raw".split())


def read(text: str) -> tuple[Effect, ...]:
    body = text.partition(":")[2] if text.startswith(("format:", "tformat:")) else text
    if body == text and "%" not in text and text not in BUILT_IN:
        raise UnclearError(f"{text!r} is not a built-in format")
    if re.search("%[-+ ]?G", body.replace("%%", "")):
        raise UnclearError("%G checks signatures with the configured program")
    return ()
