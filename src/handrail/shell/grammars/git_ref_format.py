"""
Formats and sort keys of git branch, tag and for-each-ref (git-for-each-ref(1), FIELD NAMES).

A closed list of fields: `%(signature)` and its kin check signatures with the configured program.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect

FIELDS = frozenset(
    """
    refname objecttype objectsize objectname deltabase upstream push symref flag worktreepath HEAD tree parent
    numparent object type tag author authorname authoremail authordate committer committername committeremail
    committerdate tagger taggername taggeremail taggerdate creator creatordate subject body trailers contents raw
    color align end if then else ahead-behind is-base describe version v
    """.split()
)
FIELD = re.compile(r"%\(\*?([A-Za-z-]+)((?::[^()]*)?)\)")
KEY = re.compile(r"-?(?:(?:version|v):)?\*?([A-Za-z-]+)(?::[A-Za-z0-9:=,_-]*)?\Z")


def read(text: str) -> tuple[Effect, ...]:
    """A text with fields is a format; without, it must be a sort key."""
    names = [found.group(1) for found in FIELD.finditer(text)]
    key = KEY.match(text)
    if "%(" in FIELD.sub("", text):
        raise UnclearError("a field that is not read")
    if "%(" not in text:
        if key is None:
            raise UnclearError(f"{text!r} is no known field")
        names = [key.group(1)]
    for name in names:
        if name not in FIELDS:
            raise UnclearError(f"the field {name!r} is not listed")
    return ()
