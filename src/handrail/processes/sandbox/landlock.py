"""
Landlock with seccomp: the fallback where bubblewrap cannot work.

Landlock only adds rights, folder by folder, for everything below. So a folder with something hidden in it is not
granted as a whole but child by child, and in a folder with something protected in it no new entries can be made: the
working folder's own top, and the top of `.git`. That is narrower than bubblewrap, never wider. Sockets are refused
altogether, because Landlock does not look at sockets in the file system, and so are changes of extended attributes.
It does not look at modes, owners and times either: a command can change those of the user's files anywhere.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from handrail.processes.sandbox.plan import PathAccess, Plan, upwards
from handrail.processes.sandbox.seccomp import seccomp_filter

OLDEST = 3
"""The first version that watches over truncation."""
CREATE_RULESET, VERSION = 444, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL_DEV = (1 << bit for bit in (0, 1, 2, 3, 14, 15))
ALL_OF_VERSION_3 = (1 << 15) - 1
MAKE_DEVICES = 1 << 6 | 1 << 11
FOR_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
READING = EXECUTE | READ_FILE | READ_DIR
WRITING = (ALL_OF_VERSION_3 & ~MAKE_DEVICES) | READING
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "fd", "stdin", "stdout", "stderr")

Children = Callable[[str], list[str]]
"""The paths directly in a folder, links left out; nothing for a file or what cannot be listed."""


@cache
def version() -> int:
    """What the kernel offers; 0 for none."""
    if sys.platform != "linux":
        return 0
    answer: int = ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, VERSION)
    return max(answer, 0)


def granted_paths(plan: Plan, wanted: frozenset[PathAccess], children: Children) -> Iterator[str]:
    """The highest paths below which everything is wanted."""
    marks = dict(plan.marks)
    below: dict[str, set[PathAccess]] = {}
    for path, access in plan.marks:
        for folder in upwards(path)[1:]:
            below.setdefault(folder, set()).add(access)
    todo = [("/", marks["/"])]
    while todo:
        path, access = todo.pop()
        inside = below.get(path, set())
        if access in wanted and inside <= wanted:
            yield path
        elif access in wanted or inside & wanted:
            todo += [(child, marks.get(child, access)) for child in children(path) if child != "/dev"]


def rules(plan: Plan, children: Children) -> list[tuple[str, int]]:
    """Which rights are given on which paths."""
    shown = frozenset((PathAccess.READ, PathAccess.WRITE))
    reading = [(path, READING) for path in granted_paths(plan, shown, children)]
    writing = [(path, WRITING) for path in granted_paths(plan, frozenset((PathAccess.WRITE,)), children)]
    devices = [(f"/dev/{name}", READ_FILE | WRITE_FILE | READ_DIR | IOCTL_DEV) for name in DEVICES]
    return [*reading, *writing, *devices, (plan.tmp, WRITING)]


def orders(plan: Plan, children: Children) -> dict[str, Any]:
    """What `processes.restrict` has to do, as plain data."""
    program = seccomp_filter((), attributes=False)
    assert program is not None, "this kind of machine was not chosen for Landlock"
    handled = ALL_OF_VERSION_3 | (IOCTL_DEV if version() >= 5 else 0)
    return {
        "version": version(),
        "handled": handled,
        "for_files": FOR_FILES,
        "rules": [(os.fsencode(path), rights & handled) for path, rights in rules(plan, children)],
        "filter": program,
    }
