"""
Files with the name of a secret that a search leaves out, so that it needs no question.

`grep -r key .` beside a `.env` searches everything else. The file is left out by the search itself, which is told so
when it starts (`builtin/bash/left_out.py`); where that is not sure to work, the user is asked: on a line that does more
than read and may rename the file, in what links lead to, and where something else than the shell starts the search.
"""

import posixpath
from collections.abc import Iterator
from fnmatch import fnmatchcase

from handrail.files.credentials import ENDINGS, NAMES
from handrail.lazy import lazy_pattern
from handrail.permissions.file_access import FileAccess, FileEffect
from handrail.permissions.implied_paths import has_objection
from handrail.permissions.policy import Policy
from handrail.shell.model import PieceKind, Segment, Word
from handrail.shell.secrets import SECRET_PATTERNS, secret_name

SEARCHES = frozenset(("grep", "rg"))
# What a shell does itself. Behind any other wrapper another program starts the search.
SHELL_CONSTRUCTS = frozenset(("for", "while", "if", "case", "group", "subshell", "$(...)", "<(...)"))
ANY_SECRET = "all files with the name of a secret"  # noqa: S105 - words for people
# Where what is in them cannot be looked at.
CREDENTIAL_PATTERNS = (*sorted(NAMES), *(f"*{end}" for end in ENDINGS), ".git/", "*.git/", ".bundle/", ".cargo/")
PLAIN_NAME = lazy_pattern(r"[A-Za-z0-9_.@+-]+\Z")  # a name that is no pattern


def can_leave_out(segment: Segment, policy: Policy) -> bool:
    """Whether a search can be told to leave files out: the shell of the line starts it, and it reads more options."""
    return (
        segment.entry in SEARCHES
        and segment.argv[0].literal == segment.entry
        and SHELL_CONSTRUCTS.issuperset(segment.path)
        and all(is_written(word) for word in segment.argv)
        and policy.mode != "bypassPermissions"
    )


def is_written(word: Word) -> bool:
    """Whether a word stands on the line as it is, and neither ends the options nor could."""
    return all(piece.kind is PieceKind.LITERAL for piece in word.pieces) and word.literal != "--"


def leave_out(file: FileAccess, top: str, policy: Policy) -> FileAccess:
    """The access to a file below a folder that is searched: none, if it can be left out by its name."""
    name = name_to_leave_out(file, top)
    if not file.secret or not name or has_objection(file, policy):
        return file
    return file._replace(doubt="", secret="", clear=True, left_out=name)


def leave_out_all(part: int) -> Iterator[FileAccess]:
    """What a search leaves out in a folder that holds too much to look at: every name that a secret can have."""
    for pattern in (*SECRET_PATTERNS, *CREDENTIAL_PATTERNS):
        yield FileAccess(None, FileEffect.BELOW, ANY_SECRET, part, clear=True, left_out=pattern)


def lies_in_left_out(top: str) -> bool:
    """Whether a folder is, or lies in, one that is left out by its name: a search that begins there meets no name."""
    names = top.casefold().split("/")
    folders = [each[:-1] for each in (*SECRET_PATTERNS, *CREDENTIAL_PATTERNS) if each.endswith("/")]
    return any(fnmatchcase(name, folder) for name in names for folder in folders)


def name_to_leave_out(file: FileAccess, top: str) -> str:
    """The name of the file or, with a slash behind it, of the folder that makes it a secret; empty if there is none."""
    if file.place is None or file.place.absolute != file.place.real:
        return ""  # what a link leads to is found by another name
    names = posixpath.relpath(file.place.real, top).split("/")
    at = next((at for at, name in enumerate(names) if secret_name(name) and PLAIN_NAME.match(name)), None)
    if at is None and file.place.credentials:  # `config` is left out with its folder, which has a name of its own
        at = next((at for at, name in enumerate(names) if name.startswith(".") or at == len(names) - 1), None)
        at = at if at is not None and PLAIN_NAME.match(names[at]) else None
    if at is None:
        return ""
    return names[at] if at == len(names) - 1 else f"{names[at]}/"
