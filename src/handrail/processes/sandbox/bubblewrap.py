"""
Bubblewrap: a plan as the arguments of `bwrap`.

The command gets namespaces of its own for users, processes, IPC and (unless the plan says otherwise) the network, no
capability, a minimal /dev, its own /proc, and a view of the files in which each mark of the plan is a mount. What is
mounted on cannot be renamed or removed, so a protected folder cannot be moved out of the way.
"""

import stat
from collections.abc import Callable, Iterator

from handrail.errors import SandboxError
from handrail.processes.sandbox.plan import NetworkReach, PathAccess, Plan, is_covered, parent

Look = Callable[[str], int]
"""The file type of a path, links not followed; 0 when there is nothing."""

NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
CLOSED = ("--cap-drop", "ALL", "--die-with-parent", "--new-session")
# Empty folders in memory, which cost less than a bind: one that cannot be opened, one that searches walk through.
HIDE, OCCUPY = ("--perms", "0111", "--tmpfs"), ("--perms", "0555", "--tmpfs")
# The kernel's own settings belong to root, and root without any capability may still write them.
WITHOUT_SYSCTL = ("--ro-bind", "/proc/sys", "/proc/sys")
RELAY_SOCKET, RELAY_PROGRAM = "/run/handrail-proxy", "/run/handrail-relay.py"


def arguments(
    plan: Plan,
    look: Look,
    *,
    occupied: frozenset[str] = frozenset(),
    as_root: bool = False,
    disable_userns: bool = True,
    proxy: str = "",
) -> list[str]:
    """
    The options of `bwrap` for a plan. `occupied` are the empty folders that stand for guarded paths which are missing.

    Raises:
        SandboxError: something that must be protected is a link, and a link cannot be kept from being replaced.
    """
    options = [*NAMESPACES, *CLOSED]
    if disable_userns:
        options.append("--disable-userns")
    if plan.reach is not NetworkReach.HOST:
        options.append("--unshare-net")
    # bwrap reads the table of mounts for every bind, so what only makes it longer comes last
    last = ["--dev", "/dev", "--proc", "/proc", *(WITHOUT_SYSCTL if as_root else ())]
    for path, access in plan.marks:
        mounts = [*OCCUPY, path] if path in occupied else mount(plan, path, access, look(path))
        if "--tmpfs" in mounts and path not in plan.parents:
            last += mounts
        else:
            options += mounts
    options += last
    if plan.reach is NetworkReach.PROXY and proxy:
        options += ["--ro-bind", proxy, RELAY_SOCKET]
    return options


def mount(plan: Plan, path: str, access: PathAccess, kind: int) -> list[str]:
    """The mount for one mark, if there is anything to mount on."""
    if kind == stat.S_IFLNK:
        return mount_link(plan, path, access)
    if kind == 0:
        return []
    match access:
        case PathAccess.WRITE:
            return ["--bind", path, path]
        case PathAccess.READ:
            return ["--ro-bind", path, path]
        case PathAccess.PRIVATE if path == "/tmp":  # noqa: S108 - the name as the command sees it
            return ["--bind", plan.tmp, path]
        case PathAccess.PRIVATE:
            return ["--tmpfs", path]
        case _ if kind == stat.S_IFDIR:
            return [*HIDE, path]
        case _:
            return ["--ro-bind", "/dev/null", path]  # a device on a mount without devices cannot be opened


def mount_link(plan: Plan, path: str, access: PathAccess) -> list[str]:
    """A link needs no mount unless it could be replaced; where it leads has marks of its own."""
    if path in plan.guarded or path in plan.pinned:
        raise SandboxError(
            f"{path!r} is a link, and the sandbox cannot keep a link from being replaced. "
            "Put the real file or folder there, or turn the sandbox off."
        )
    # In a private folder the link is not there, so what it leads to can take its place.
    shown = access is PathAccess.READ and plan.access(parent(path)) in (PathAccess.PRIVATE, PathAccess.HIDDEN)
    return ["--ro-bind-try", path, path] if shown else []


def missing(plan: Plan, look: Look) -> Iterator[str]:
    """The names that must be kept occupied: guarded paths, or the folders on the way to them, that are not there."""
    found: list[str] = []
    for path in sorted({*plan.guarded, *plan.pinned}):
        if not is_covered(path, found) and look(path) == 0:
            found.append(path)
            yield path
