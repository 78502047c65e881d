"""
Confines itself with Landlock and seccomp, then becomes the command. Run as a script: `launcher.py FD COMMAND...`.

Whatever cannot be done as ordered ends it before the command starts.
"""

import ctypes
import json
import os
import stat
import struct
import sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
DEATH_SIGNAL, SECCOMP, DROP_BOUND, NO_NEW_PRIVILEGES = 1, 22, 24, 38
PATH_BENEATH, FILTER_MODE, KILL = 1, 2, 9
SCOPES = 0b11  # abstract sockets and signals
NETWORK = 0b11  # TCP bind and connect

LIBC = ctypes.CDLL(None, use_errno=True)


def checked(answer: int, doing: str) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{doing}: {os.strerror(number)}")
    return answer


def restrict(orders: dict[str, object]) -> None:
    version, handled = int(str(orders["version"])), int(str(orders["handled"]))
    attributes = struct.pack("=QQQ", handled, NETWORK, SCOPES)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    ruleset = checked(LIBC.syscall(CREATE_RULESET, attributes, len(attributes), 0), "landlock_create_ruleset")
    wanted = orders["rules"]
    assert isinstance(wanted, list)
    for path, rights in wanted:
        allow(ruleset, path, rights, int(str(orders["for_files"])))
    checked(LIBC.syscall(RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def allow(ruleset: int, path: str, rights: int, for_files: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # gone, or never there: no right is given
    mode = os.fstat(opened).st_mode
    # a link, or a folder that has become one, leads to what nobody has looked at
    really = os.readlink(f"/proc/self/fd/{opened}")  # noqa: PTH115 - pathlib would double the start of a command
    if not stat.S_ISLNK(mode) and really == path:
        rule = struct.pack("=Qi", rights if stat.S_ISDIR(mode) else rights & for_files, opened)
        checked(LIBC.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
    os.close(opened)


def without_capabilities() -> None:
    """As root, what is executed would get them all back."""
    number = 0
    while LIBC.prctl(DROP_BOUND, number, 0, 0, 0) == 0:
        number += 1


def filtered(program: bytes) -> None:
    lines = ctypes.create_string_buffer(program, len(program))
    wanted = struct.pack("@HP", len(program) // 8, ctypes.addressof(lines))
    checked(LIBC.prctl(SECCOMP, FILTER_MODE, wanted, 0, 0), "seccomp")


def main(orders_fd: int, command: list[str]) -> None:
    with open(orders_fd, "rb") as file:
        orders = json.loads(file.read().decode("utf-8", "surrogateescape"))
    checked(LIBC.prctl(DEATH_SIGNAL, KILL, 0, 0, 0), "prctl")
    if os.getsid(0) != os.getpid() and os.getpgid(0) != os.getpid():
        os.setsid()
    without_capabilities()
    checked(LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    restrict(orders)
    filtered(bytes.fromhex(orders["filter"]))
    os.execvp(command[0], command)  # noqa: S606 - that is what it is for


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
