"""
Decides what a sandboxed command may read, write and reach, the same for every method that enforces it.

    HIDDEN   not there, or empty and closed        PRIVATE   an empty place of its own, gone afterwards
    READ     as it is, but nothing changes         WRITE     as it is

A plan is a list of marks, parents before children; the deepest mark above a path says what the path is.

    own state > hidden or shown, the deeper one (settings' denyRead wins a tie)     then, for what is shown:
    protected or denyWrite > working folders and allowWrite > read-only
"""

from collections.abc import Callable, Iterable
from enum import Enum

from handrail.errors import SandboxError
from handrail.processes.sandbox.paths import SECRETS, SYSTEM, SYSTEM_SHOWN, TEMPORARY, TOOLCHAINS
from handrail.processes.sandbox.settings import Domain, SandboxSettings
from handrail.records import record


class PathAccess(Enum):
    """What a command may do with a path."""

    HIDDEN = "hidden"
    PRIVATE = "private"
    READ = "read"
    WRITE = "write"


class NetworkReach(Enum):
    """What a command may do with the network."""

    OFF = "off"
    PROXY = "proxy"
    HOST = "host"


@record
class Protected:
    """Names that may not be written, because what they hold runs or decides later without a question."""

    project: tuple[str, ...]
    """Directly in a folder that can be written."""
    home: tuple[str, ...]
    """Below the home folder."""
    if_there: tuple[str, ...] = ()
    """In a folder that can be written, where they exist; the last step may be a pattern."""


@record
class PlanInputs:
    """Where the command will run. All paths are real ones."""

    home: str
    working_dirs: tuple[str, ...]
    tmp: str
    """A folder of this session alone, which the command sees as its temporary folder."""
    protected: Protected
    own: tuple[str, ...] = ()
    """State and configuration of handrail itself: never visible."""
    shown: tuple[str, ...] = ()
    """Needed by the sandbox itself, for example the interpreter of the relay."""
    git_writable: tuple[str, ...] = ()
    """Git folders outside the working folders that belong to them (linked worktrees)."""
    git_guarded: tuple[str, ...] = ()
    """In git folders: what git runs or follows."""
    found: tuple[str, ...] = ()
    """Protected files that exist, beside those that are always guarded."""
    real: Callable[[str], str] = str
    """Follows links, so that what a hidden name leads to is hidden too."""


@record
class Plan:
    """The access to each path. `guarded` paths stay as they are, also if missing; `pinned` folders cannot be moved."""

    marks: tuple[tuple[str, PathAccess], ...]
    guarded: tuple[str, ...]
    pinned: tuple[str, ...]
    tmp: str
    reach: NetworkReach
    allowed: tuple[Domain, ...] = ()
    denied: tuple[Domain, ...] = ()
    parents: frozenset[str] = frozenset()
    """The folders above marks."""

    def access(self, path: str) -> PathAccess:
        """What a command may do with this real path."""
        table = dict(self.marks)
        return next(table[folder] for folder in upwards(path) if folder in table)

    @property
    def writable(self) -> tuple[str, ...]:
        """The folders that can be written, for people to read."""
        return tuple(path for path, access in self.marks if access is PathAccess.WRITE and path not in self.pinned)


def make_plan(settings: SandboxSettings, around: PlanInputs) -> Plan:
    """What a command may do. Raises SandboxError if settings or folders allow no sandbox that protects anything."""
    refuse(settings, around)
    rules = _Rules(settings, around)
    marks = tuple(rules.marks())
    return Plan(
        marks=marks,
        guarded=tuple(sorted(rules.guarded)),
        pinned=tuple(sorted(rules.pinned)),
        tmp=around.tmp,
        reach=reach(settings),
        allowed=settings.network.allowed,
        denied=settings.network.denied,
        parents=frozenset(folder for path, _ in marks for folder in upwards(path)[1:]),
    )


def refuse(settings: SandboxSettings, around: PlanInputs) -> None:
    if settings.broken:
        raise SandboxError("The sandbox settings are not understood: " + " ".join(settings.problems))
    for folder in around.working_dirs:
        if folder == "/":
            raise SandboxError("A sandbox of the working folder '/' would protect nothing. Start in a project folder.")
        if is_covered(folder, around.own):
            raise SandboxError(f"The working folder {folder!r} belongs to handrail itself. Start in another one.")


def reach(settings: SandboxSettings) -> NetworkReach:
    """Denied domains narrow, so they cannot stand beside an unfiltered network."""
    if settings.network.host and not settings.network.denied:
        return NetworkReach.HOST
    return NetworkReach.PROXY if settings.network.allowed else NetworkReach.OFF


class _Rules:
    """The settings and the surroundings as sets of paths, and what follows from them for one path."""

    def __init__(self, settings: SandboxSettings, around: PlanInputs) -> None:
        files, home, real = settings.filesystem, around.home, around.real
        self.own = frozenset(map(real, around.own))
        self.denied = frozenset(map(real, files.deny_read))
        self.writable = frozenset(map(real, (*around.working_dirs, *files.allow_write, *around.git_writable))) - {"/"}
        explicit = {*self.writable, *map(real, (*files.allow_read, *settings.network.unix_sockets))}
        self.private = frozenset(map(real, (home, *TEMPORARY))) - explicit
        secrets = map(real, (*SYSTEM, *(f"{home}/{name}" for name in SECRETS)))
        self.hidden = (frozenset(secrets) | self.private) - explicit
        defaults = {*SYSTEM_SHOWN, *around.shown, *(f"{home}/{name}" for name in TOOLCHAINS)}
        self.shown = frozenset(explicit | defaults)
        protected = {f"{root}/{name}" for root in self.writable for name in around.protected.project}
        protected |= {f"{home}/{name}" for name in around.protected.home}
        self.closed = frozenset(
            (*protected, *around.git_guarded, *around.found, *files.deny_write, *map(real, files.deny_write))
        )
        self.guarded = {path for path in self.closed if self.access(parent(path)) is PathAccess.WRITE}
        self.pinned = {
            folder
            for path in self.guarded
            for folder in upwards(path)
            if folder != path
            and self.access(folder) is PathAccess.WRITE
            and self.access(parent(folder)) is PathAccess.WRITE
        }

    def access(self, path: str) -> PathAccess:
        above = upwards(path)
        if not self.own.isdisjoint(above):
            return PathAccess.HIDDEN
        denied, hidden = deepest(above, self.denied), deepest(above, self.hidden)
        shown, root = deepest(above, self.shown), deepest(above, self.writable)
        if len(denied) >= max(len(shown), 1):
            return PathAccess.HIDDEN
        if len(hidden) > len(shown):
            return PathAccess.PRIVATE if hidden in self.private else PathAccess.HIDDEN
        writes = len(root) > max(len(hidden), len(denied)) and self.closed.isdisjoint(above)
        return PathAccess.WRITE if writes else PathAccess.READ

    def marks(self) -> Iterable[tuple[str, PathAccess]]:
        """Only where something changes, or where a mount keeps a name from being moved away."""
        kept: dict[str, PathAccess] = {}
        places = {"/", *self.own, *self.denied, *self.hidden, *self.shown, *self.closed, *self.writable, *self.pinned}
        for path in sorted(places, key=lambda each: each.split("/") if each != "/" else []):
            access = self.access(path)
            above = next((kept[folder] for folder in upwards(path) if folder in kept), None)
            absent = access is PathAccess.HIDDEN and above is PathAccess.PRIVATE
            if (access is not above and not absent) or path in self.pinned:
                kept[path] = access
                yield path, access


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def upwards(path: str) -> list[str]:
    """The path and every folder above it, the root last."""
    found = [path]
    while path != "/":
        path = parent(path)
        found.append(path)
    return found


def is_covered(path: str, folders: Iterable[str]) -> bool:
    """Whether the path is one of the folders or lies in one."""
    above = set(upwards(path))
    return any(folder in above for folder in folders)


def deepest(above: list[str], among: frozenset[str]) -> str:
    return next((folder for folder in above if folder in among), "")
