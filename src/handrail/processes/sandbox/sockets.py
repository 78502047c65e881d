"""The sockets in the file system that a sandboxed command could connect to, although they are not allowed."""

import os
import stat
from collections.abc import Callable, Iterable

from handrail.lazy import lazy_pattern
from handrail.processes.sandbox.plan import PathAccess, Plan, is_covered

ROW = lazy_pattern(r"(?:\S+ ){6} *\d+ (?P<path>/.*)")
TABLE = "/proc/net/unix"
VISIBLE = (PathAccess.READ, PathAccess.WRITE)


def bound_sockets(table: Iterable[str]) -> list[str]:
    """The paths in the kernel's table of sockets; abstract names and relative paths are left out."""
    found = (ROW.fullmatch(line.rstrip("\n")) for line in table)
    return sorted({row["path"] for row in found if row})


def sockets_to_hide(plan: Plan, allowed: tuple[str, ...], real: Callable[[str], str] = os.path.realpath) -> list[str]:
    """The sockets of other programs that the plan shows and that are not allowed."""
    try:
        with open(TABLE, encoding="utf-8", errors="surrogateescape") as table:  # noqa: PTH123
            bound = bound_sockets(table)
    except OSError:
        return []
    free = tuple(map(real, allowed))
    paths = dict.fromkeys(map(real, bound))
    return [path for path in paths if plan.access(path) in VISIBLE and not is_covered(path, free) and is_socket(path)]


def is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
