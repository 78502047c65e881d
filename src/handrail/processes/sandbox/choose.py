"""
Finds out which sandbox methods work here, by trying each once per process.

    bubblewrap   when `bwrap` is installed and may make its namespaces
    landlock     when the kernel offers Landlock and seccomp for this kind of machine
    seatbelt     on macOS
"""

import platform
import shutil
import subprocess
from enum import Enum
from functools import cache
from pathlib import Path

from handrail.processes.sandbox import landlock, seatbelt
from handrail.processes.sandbox.bubblewrap import CLOSED, NAMESPACES
from handrail.processes.sandbox.seccomp import ARCHITECTURES
from handrail.records import record

# Not PATH: a folder that the sandboxed command can write may be on it.
SYSTEM_FOLDERS = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin:/home/linuxbrew/.linuxbrew/bin"


class Method(Enum):
    """How a plan is enforced."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    SEATBELT = "seatbelt"


PROTECTS = {
    Method.BUBBLEWRAP: "Commands write only to the working folders and a temporary folder of their own, do not see "
    "your home folder, keys, sockets or other processes, and have no network but the allowed domains.",
    Method.LANDLOCK: "Commands write only below the working folders and to a temporary folder of their own, cannot "
    "read your home folder, keys or other processes' memory, and have no network at all.",
    Method.SEATBELT: "Commands write only to the working folders and a temporary folder of their own, cannot read "
    "your home folder or keys, and have no network.",
}
"""What each method protects, in a sentence for users."""

EVERYWHERE = (
    "What a command writes in a working folder can run later: scripts, Makefiles, programs in .venv/bin.",
    "Names are protected at the top of a working folder, not below; planted git repositories are renamed afterwards.",
    "A bug in the kernel can open a way out; memory, processor time and disk space are not limited.",
)
LIMITS = {
    Method.BUBBLEWRAP: ("A domain that is allowed can be used to send data out.",),
    Method.LANDLOCK: (
        "Nothing new can be made directly in a working folder or in .git, so commits do not work.",
        "Allowed domains cannot be reached. Names and command lines of other processes can be seen.",
        "Modes, owners and times of your files outside can be changed (chmod, touch), their content cannot.",
        "Processes that a command leaves behind are found by handrail, not ended by the kernel.",
    ),
    Method.SEATBELT: ("Allowed domains cannot be reached. The profile has not been tried on every version of macOS.",),
}
"""What each method does not protect, beside what none does."""


@record
class MethodTrial:
    """One method and whether it works here; `reason` says why not, or what was found."""

    method: Method
    works: bool
    reason: str
    program: str = ""


@cache
def try_methods() -> tuple[MethodTrial, ...]:
    """Every method, the best first. Costs a few milliseconds, once."""
    system = platform.system()
    if system == "Darwin":
        return (_seatbelt(),)
    if system == "Linux":
        return _bubblewrap(shutil.which("bwrap", path=SYSTEM_FOLDERS)), _landlock()
    return ()


def best() -> MethodTrial | None:
    """The best method that works here."""
    return next((each for each in try_methods() if each.works), None)


def _bubblewrap(program: str | None) -> MethodTrial:
    if program is None:
        return MethodTrial(Method.BUBBLEWRAP, False, "bwrap is not installed (package bubblewrap)")
    unknown = platform.machine() not in ARCHITECTURES
    trial = [*NAMESPACES, *CLOSED, *(["--disable-userns"] if unknown else []), "--unshare-net", "--ro-bind", "/", "/"]
    trial += ["--dev", "/dev", "--proc", "/proc", "--perms", "0111", "--tmpfs", "/run", "--", "/bin/true"]
    try:
        done = subprocess.run(  # noqa: S603 - arguments of our own
            [program, *trial], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return MethodTrial(Method.BUBBLEWRAP, False, f"{program} could not be run: {error}", program)
    if done.returncode == 0:
        return MethodTrial(Method.BUBBLEWRAP, True, "namespaces, mounts and a seccomp filter", program)
    message = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
    return MethodTrial(Method.BUBBLEWRAP, False, f"{program} does not work here: {message[0]}", program)


def _landlock() -> MethodTrial:
    found = landlock.version()
    if found < landlock.OLDEST:
        return MethodTrial(
            Method.LANDLOCK, False, f"the kernel has Landlock version {found}, needed is {landlock.OLDEST}"
        )
    if platform.machine() not in ARCHITECTURES:
        return MethodTrial(Method.LANDLOCK, False, f"no seccomp filter is known for {platform.machine()}")
    return MethodTrial(Method.LANDLOCK, True, f"Landlock version {found} and a seccomp filter")


def _seatbelt() -> MethodTrial:
    if Path(seatbelt.PROGRAM).exists():
        return MethodTrial(Method.SEATBELT, True, "sandbox-exec with a generated profile", seatbelt.PROGRAM)
    return MethodTrial(Method.SEATBELT, False, f"{seatbelt.PROGRAM} is missing")
