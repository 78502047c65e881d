"""
The name in `git config NAME` (git-config(1)): a section and a key with a dot between, or a pattern of names.

A word without a dot may be a sub-command of newer versions (edit starts the editor), unless it names a section.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect

SECTIONS = frozenset(
    "advice alias branch color commit core credential diff fetch filter gc gpg grep http i18n init log merge pager "
    "protocol pull push rebase remote rerere safe status submodule tag url user".split()
)


def read(text: str) -> tuple[Effect, ...]:
    if re.match(r"[A-Za-z-]*\Z", text) and text not in SECTIONS:
        raise UnclearError(f"{text!r} is no name of a setting")
    return ()
