"""
The name in `git config NAME` (git-config(1)): a section and a key with a dot between.

A word without a dot may be a sub-command of newer versions (edit starts the editor).
"""

import re

from handrail.shell.gate import UnclearError
from handrail.shell.model import Effect


def read(text: str) -> tuple[Effect, ...]:
    # Any name, or any pattern for --get-regexp, but never a bare word.
    if re.match(r"[A-Za-z-]*\Z", text):
        raise UnclearError(f"{text!r} is no name of a setting")
    return ()
