"""
The first word after `git reflog` when it is no listed sub-command: the name of a ref (git-reflog(1)).

A word of small letters and dashes could be a sub-command of this or a newer git (expire, delete, drop, write), so
only common branch names of that kind are taken for refs.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect

BRANCHES = frozenset("main master develop dev trunk staging stash".split())
SUBCOMMAND = re.compile(r"[a-z-]*\Z")


def read(text: str) -> tuple[Effect, ...]:
    if SUBCOMMAND.match(text) and text not in BRANCHES:
        raise UnclearError(f"{text!r} may be a sub-command that changes the reflog")
    return ()
