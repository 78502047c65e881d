"""
Finds the processes that a process started, and kills them.

The reaper imports this and has to start fast, so only the cheapest modules are imported here.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SIGKILL, SIGTERM = 9, 15
SIGSTOP, SIGCONT = (17, 19) if sys.platform == "darwin" else (19, 18)
ROUNDS = 100
"""How often new processes are looked for before the kill; the next sweep finds those that fork faster."""


def descendants(root: int) -> list[int]:
    """The processes below `root`, each after its parent."""
    listed = children_of if _kernel_lists_children() else _table()
    found = [root]
    for pid in found:  # it grows while it is walked
        found += listed(pid)
    return found[1:]


def kill_below(root: int) -> None:
    """
    Kill all descendants of a process.

    They are stopped first, from the top, until no new one turns up: what is stopped cannot fork.
    """
    frozen: dict[int, None] = {}
    for _ in range(ROUNDS):
        new = [pid for pid in descendants(root) if pid not in frozen]
        if not new:
            break
        send(new, SIGSTOP)
        frozen.update(dict.fromkeys(new))
    send(frozen, SIGKILL)


def send(pids: "Iterable[int]", *signals: int) -> None:
    """Send signals to processes, some of which may be gone, or belong to another user by now."""
    for pid in pids:
        try:
            for number in signals:
                os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def children_of(pid: int) -> list[int]:
    """The children of all threads of a process; none if it is gone, since they have another parent then."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  # pathlib is slow to import
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    except OSError:
        return found
    return found


def tracer_of(pid: int) -> int:
    """The process that holds this one with the means of a debugger; 0 if there is none."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
            fields = file.read().partition(b"TracerPid:")[2].split(None, 1)
    except OSError:
        return 0
    return int(fields[0]) if fields else 0


def _kernel_lists_children() -> bool:
    me = os.getpid()
    return os.path.exists(f"/proc/{me}/task/{me}/children")  # noqa: PTH110


def _table() -> "Callable[[int], list[int]]":
    """The children of each process from one listing of all, where the kernel has no list of children."""
    below: dict[int, list[int]] = {}
    with os.popen("/bin/ps -A -o pid= -o ppid=") as listing:  # noqa: S605  # a constant
        for line in listing:
            pid, parent = map(int, line.split())
            below.setdefault(parent, []).append(pid)
    return lambda pid: below.get(pid, [])
