"""Confines the commands of a session: `CommandSandbox.wrap` turns an argument vector into one that is confined."""

import asyncio
import glob
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from handrail.errors import SandboxError
from handrail.lazy import lazy
from handrail.processes.sandbox import bubblewrap, landlock, seatbelt
from handrail.processes.sandbox.choose import Method, MethodTrial, best, try_methods
from handrail.processes.sandbox.domains import Public
from handrail.processes.sandbox.explain import explain
from handrail.processes.sandbox.git import git_folders
from handrail.processes.sandbox.hold_back import PlantGuard
from handrail.processes.sandbox.paths import DROPPED_VARIABLES, SYSTEM
from handrail.processes.sandbox.placeholders import Placeholders, real_kind
from handrail.processes.sandbox.placement import standing
from handrail.processes.sandbox.plan import NetworkReach, PathAccess, Plan, PlanInputs, Protected, make_plan
from handrail.processes.sandbox.seccomp import IN_OWN_NETWORK, seccomp_filter
from handrail.processes.sandbox.settings import SandboxSettings
from handrail.processes.sandbox.sockets import sockets_to_hide
from handrail.processes.sandbox_contract import Restrictions, Standing, WrappedCommand

if TYPE_CHECKING:
    from handrail.processes.sandbox import proxy
else:
    proxy = lazy("handrail.processes.sandbox.proxy")  # few sandboxes allow domains

RELAY_PORT = 3128
RELAY = Path(__file__).with_name("relay.py")

INTERPRETER: str = getattr(sys, "_base_executable", sys.executable)
"""Not the one of a virtual environment, which may lie in a folder that commands can write."""

Start: TypeAlias = tuple[list[str], tuple[int, ...], Restrictions]
_plan = lru_cache(maxsize=8)(make_plan)


class CommandSandbox:
    """
    Confines the commands of one session.

    `state` is a folder of the session alone; the commands get a temporary folder in it that lives as long as the
    session. `public` says of an address whether it leads to the public internet. Use it from any thread.
    """

    def __init__(
        self,
        settings: SandboxSettings,
        *,
        home: str,
        working_dirs: Callable[[], tuple[str, ...]],
        state: Path,
        protected: Protected,
        own: tuple[str, ...] = (),
        public: Public = lambda _address: False,
        method: MethodTrial | None = None,
    ) -> None:
        self.settings = settings
        self._home, self._working_dirs, self._protected, self._own = home, working_dirs, protected, own
        self._tmp = state / "tmp"
        self._public = public
        self._method = method
        self._obstacle: str | None = None
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._placeholders = Placeholders()
        self._plants = PlantGuard()
        self._proxy: proxy.Proxy | None = None

    @property
    def method(self) -> MethodTrial:
        """How commands are confined here. Raises SandboxError if nothing that could confine them works here."""
        found = self._method or best()
        if found is None:
            raise SandboxError(f"{self.obstacle()}. `handrail doctor` says more; sandbox.enabled = false turns it off.")
        return found

    def obstacle(self) -> str:
        """Why nothing could confine commands here; empty if something can. Tries it out the first time."""
        if self._method or best():
            return ""
        reasons = "; ".join(each.reason for each in try_methods()) or f"{sys.platform} is not supported"
        return f"the sandbox is enabled, but none works here: {reasons}"

    async def standing(self, commands: Sequence[Sequence[str]] | None, *, wants_out: bool = False) -> Standing:
        """Where a command line runs, and whether consent is needed for that."""
        if self._obstacle is None and self.settings.enabled:
            self._obstacle = await asyncio.to_thread(self.obstacle)
        return standing(self.settings, commands, wants_out=wants_out, obstacle=self._obstacle or "")

    def plan(self) -> Plan:
        """What commands may do at present; made again when the working folders or their git folders have changed."""
        folders, roots = self._working_dirs(), self._roots()
        git = git_folders(roots)
        around = PlanInputs(
            home=self._home,
            working_dirs=folders,
            tmp=str(self._tmp),
            protected=self._protected,
            own=self._own,
            shown=(sys.base_prefix,),
            git_writable=git.writable,
            git_guarded=git.guarded,
            found=tuple(path for root in roots for path in existing(root, self._protected.if_there)),
            real=os.path.realpath,
        )
        return _plan(self.settings, around)

    def _roots(self) -> tuple[str, ...]:
        return (*self._working_dirs(), *self.settings.filesystem.allow_write)

    def _unguarded_files(self) -> frozenset[str]:
        """The protected files that exist and could have been made by a command."""
        return frozenset(path for root in self._roots() for path in existing(root, self._protected.if_there))

    def wrap(self, argv: list[str], cwd: str) -> WrappedCommand:
        """The command, confined. Raises SandboxError if it cannot be confined, and must not be run."""
        method, plan = self.method, self.plan()
        if plan.access(os.path.realpath(cwd)) in (PathAccess.HIDDEN, PathAccess.PRIVATE):
            raise SandboxError(f"{cwd!r} is not visible in the sandbox. Run the command in a working folder.")
        self._tmp.mkdir(0o700, parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.callback(self._plants.begin(self._roots(), self._unguarded_files))
            command, fds, restrictions = self._confine(method, plan, argv, stack)
            return WrappedCommand(command, environment(plan, method.method), fds, restrictions, stack.pop_all())

    def _confine(self, method: MethodTrial, plan: Plan, argv: list[str], stack: ExitStack) -> Start:
        match method.method:
            case Method.BUBBLEWRAP:
                return _bubblewrap(
                    method.program,
                    plan,
                    argv,
                    stack,
                    placeholders=self._placeholders,
                    proxy=self.proxy(plan),
                    sockets=sockets_to_hide(plan, self.settings.network.unix_sockets),
                )
            case Method.LANDLOCK:
                return argv, (), landlock.orders(plan, children)
            case Method.SEATBELT:
                return seatbelt.wrap(plan, argv), (), None

    def explain(self, output: str, code: int) -> str:
        """What a command planted, and what the sandbox had to do with a failure; nothing if there is neither."""
        refused = self._proxy.refusals() if self._proxy else ()
        can_leave = self.settings.allow_unsandboxed
        why = explain(output, code, self.plan(), self.method.method, can_leave=can_leave, refused=refused)
        return " ".join(filter(None, (self._plants.reports(), why)))

    def close(self) -> None:
        """End the proxy and free the names that were kept occupied. The session's folder is left to the session."""
        self._stack.close()
        self._placeholders.close()

    def proxy(self, plan: Plan) -> str:
        """The socket of the proxy, which runs from now on if it is needed."""
        if plan.reach is not NetworkReach.PROXY:
            return ""
        with self._lock:
            if self._proxy is None:
                self._proxy = proxy.Proxy(plan.allowed, plan.denied, self._public)
                self._stack.callback(self._proxy.close)
            return self._proxy.path


def existing(root: str, names: tuple[str, ...]) -> Iterator[str]:
    """The files in a folder that have one of the names, links left out: what they lead to is judged by itself."""
    for name in names:
        path = f"{root}/{name}"
        found = glob.glob(glob.escape(root) + f"/{name}", include_hidden=True) if "*" in name else (path,)  # noqa: PTH207
        yield from (each for each in found if real_kind(each) not in (0, stat.S_IFLNK))


def environment(plan: Plan, method: Method) -> dict[str, str | None]:
    """What changes in the environment of a confined command."""
    changes: dict[str, str | None] = dict.fromkeys(DROPPED_VARIABLES)
    changes["TMPDIR"] = "/tmp" if method is Method.BUBBLEWRAP else plan.tmp  # noqa: S108 - the name inside
    if plan.reach is NetworkReach.PROXY and method is Method.BUBBLEWRAP:
        address = f"http://127.0.0.1:{RELAY_PORT}"
        changes |= {name: address for each in ("http_proxy", "https_proxy") for name in (each, each.upper())}
        changes |= dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")
    return changes


def readable_kind(path: str) -> int:
    """The file type of a path, links not followed; 0 when there is nothing, or a file that only root can open."""
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0
    return 0 if kind == stat.S_IFREG and path in SYSTEM and not os.access(path, os.R_OK) else kind


def children(path: str) -> list[str]:
    """What lies directly in a folder, links left out."""
    found: list[str] = []
    with suppress(OSError), os.scandir(path) as entries:
        found = [entry.path for entry in entries if not entry.is_symlink()]
    return found


def _in_memory(content: bytes, stack: ExitStack) -> int:
    """A descriptor from which the content can be read once."""
    file = os.memfd_create("handrail")
    stack.callback(os.close, file)
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _bubblewrap(
    program: str,
    plan: Plan,
    argv: list[str],
    stack: ExitStack,
    *,
    placeholders: Placeholders,
    proxy: str,
    sockets: Sequence[str],
) -> Start:
    folders = placeholders.take(bubblewrap.missing(plan, real_kind))
    stack.callback(placeholders.release)
    rules = seccomp_filter(IN_OWN_NETWORK)
    options = bubblewrap.arguments(
        plan, readable_kind, occupied=folders, as_root=os.geteuid() == 0, disable_userns=rules is None, proxy=proxy
    )
    for path in sockets:
        options += ["--ro-bind", "/dev/null", path]
    fds: list[int] = []
    if rules is not None:
        fds.append(_in_memory(rules, stack))
        options += ["--seccomp", str(fds[0])]
    if proxy:
        options += ["--ro-bind", str(RELAY), bubblewrap.RELAY_PROGRAM]
        relay = [INTERPRETER, "-ISE", bubblewrap.RELAY_PROGRAM, bubblewrap.RELAY_SOCKET, str(RELAY_PORT)]
        argv = [*relay, *argv]
    fds.append(_in_memory(os.fsencode("\0".join((*options, ""))), stack))
    return [program, "--args", str(fds[-1]), "--", *argv], tuple(fds), None
