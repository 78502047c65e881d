"""The supervisor of this process: started with the first command, it provides the reapers."""

import atexit
import os
import socket
import sys
import threading
from array import array
from collections.abc import Iterable, Sequence
from fcntl import F_DUPFD_CLOEXEC, fcntl
from pathlib import Path

NOTHING = -1
LEGACY = 3
"""The descriptor of the supervisor under which it finds what is to be swept when we are gone."""
SOURCE = (
    "import sys; sys.path.append(sys.argv[1]); from handrail.processes.supervisor_main import supervise; supervise(0)"
)
ROOT = str(Path(__file__).parents[2])
HELD_SIGNALS = (1, 2, 3, 15)
"""What a terminal, or a command's `kill $PPID`, may send. It does not concern the reapers, and is blocked in them."""
KEPT_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH")
"""What the interpreter itself may need to start."""


class Supervisor:
    """Hands jobs to reapers; starts again after it was killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._legacy = NOTHING
        self._remembered: set[str] = set()
        self.pid = 0

    def start(self) -> None:
        """Start it before a command needs it."""
        with self._lock:
            self._ready()

    def submit(self, kind: bytes, fds: Sequence[int]) -> None:
        """Hand a job and its descriptors to the next reaper."""
        handed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))]
        with self._lock:
            self._ready().sendmsg([kind], handed)

    def remember(self, paths: Iterable[str]) -> None:
        """Have it sweep these placeholders when this process and all commands have ended, however that happens."""
        with self._lock:
            new = [path for path in paths if path not in self._remembered]
            if new and sys.platform == "linux":
                self._remembered.update(new)
                os.write(self._legacy_file(), b"".join(os.fsencode(path) + b"\0" for path in new))

    def _legacy_file(self) -> int:
        """A file in memory with what is to be swept, which the supervisor shares."""
        if self._legacy == NOTHING:
            file = os.memfd_create("handrail")
            self._legacy = fcntl(file, F_DUPFD_CLOEXEC, LEGACY + 1)  # never one of those that the supervisor gets
            os.close(file)
        return self._legacy

    def close(self) -> None:
        """Close the connection. It ends when its reapers have ended."""
        with self._lock:
            if self._control is not None:
                self._control.close()
                self._control = None

    def abandon(self) -> None:
        """In a process that was forked: the supervisor belongs to the parent."""
        self._lock = threading.Lock()
        if self._control:
            self._control.close()
        if self._legacy != NOTHING:
            os.close(self._legacy)
        self._control, self._legacy, self._remembered, self.pid = None, NOTHING, set(), 0

    def _ready(self) -> socket.socket:
        if self._control is not None and _has_ended(self.pid):
            self._control.close()
            self._control = None
        if self._control is None:
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    legacy = self._legacy_file() if sys.platform == "linux" else NOTHING
                    self.pid = _start(theirs.fileno(), legacy)
            except OSError:
                ours.close()
                raise
            self._control = ours
        return self._control


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True  # its status was collected elsewhere


def _start(control: int, legacy: int) -> int:
    if not sys.executable:
        raise OSError("commands cannot be run: this Python does not know its own program (sys.executable is empty)")
    env = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    handed = [] if legacy == NOTHING else [(os.POSIX_SPAWN_DUP2, legacy, LEGACY)]
    nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", "-c", SOURCE, ROOT],
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, control, 0), *nowhere, *handed],
        setsid=True,
        setsigmask=HELD_SIGNALS,
    )


SUPERVISOR = Supervisor()
atexit.register(SUPERVISOR.close)
os.register_at_fork(after_in_child=SUPERVISOR.abandon)
