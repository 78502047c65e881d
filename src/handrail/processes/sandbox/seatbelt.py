"""
Seatbelt: a plan as a profile for `sandbox-exec` of macOS.

The last rule that fits decides, and the marks of a plan come parents first, so they can be written down as they are.
"""

from handrail.processes.sandbox.plan import NetworkReach, PathAccess, Plan

PROGRAM = "/usr/bin/sandbox-exec"

HEAD = """\
(version 1)
(deny default)
(allow process-exec* process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow pseudo-tty)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.trustd.agent"))
(allow file-ioctl (regex #"^/dev/tty.*"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (regex #"^/dev/fd/"))
(allow file-read-metadata)"""


def profile(plan: Plan) -> str:
    """The profile that enforces the plan; guarded names stay as they are, whether or not they exist."""
    lines = [HEAD]
    for path, access in plan.marks:
        lines += rules(path, access)
    lines += rules(plan.tmp, PathAccess.WRITE)
    # renaming a folder would take what is protected in it to another name
    lines += [f"(deny file-write-unlink (literal {quote(path)}))" for path in (*plan.pinned, *plan.guarded)]
    if plan.reach is NetworkReach.HOST:
        lines += ["(allow network*)", "(allow system-socket)"]
    return "\n".join(lines) + "\n"


def rules(path: str, access: PathAccess) -> list[str]:
    where = f"(subpath {quote(path)})"
    match access:
        case PathAccess.WRITE:
            return [f"(allow file-read* file-write* {where})"]
        case PathAccess.READ:
            return [f"(allow file-read* {where})", f"(deny file-write* {where})"]
        case _:
            return [f"(deny file-read* file-write* {where})"]


def quote(path: str) -> str:
    """The path as a string of the profile's language."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def wrap(plan: Plan, argv: list[str]) -> list[str]:
    """The command, confined."""
    return [PROGRAM, "-p", profile(plan), *argv]
