"""
Restricts a reaper's child before it becomes a command: Landlock, seccomp, no capabilities, no way back.

Runs in the reaper, which has to be fast: only the cheapest modules are imported here. What cannot be done as ordered
raises before the command starts.
"""

import ctypes
import os
from struct import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

OPENAT2, CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 437, 444, 445, 446
DEATH_SIGNAL, SECCOMP, DROP_BOUND, NO_NEW_PRIVILEGES = 1, 22, 24, 38
PATH_BENEATH, FILTER_MODE, KILL, SET_MASK = 1, 2, 9, 2
SCOPES = 0b11  # abstract sockets and signals
NETWORK = 0b11  # TCP bind and connect
HERE = -100
# a link on the way, or a folder that has become one, leads to a place that was not checked
WITHOUT_LINKS = pack("=QQQ", os.O_PATH | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0, 0, 0x04)

LIBC = ctypes.CDLL(None, use_errno=True)


def check(answer: int, doing: str) -> int:
    """The answer of a system call; raises OSError if it failed."""
    if answer < 0:
        raise OSError(ctypes.get_errno(), doing, doing)
    return answer


def restrict(orders: "Mapping[str, Any]") -> None:
    """Take on the restrictions of `landlock.orders`, for this process and all that it starts."""
    check(LIBC.prctl(DEATH_SIGNAL, KILL, 0, 0, 0), "prctl")
    drop_capabilities()
    check(LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    version = orders["version"]
    attributes = pack("=QQQ", orders["handled"], NETWORK, SCOPES)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    ruleset = check(LIBC.syscall(CREATE_RULESET, attributes, len(attributes), 0), "landlock_create_ruleset")
    for path, rights in orders["rules"]:
        allow(ruleset, path, rights, orders["for_files"])
    check(LIBC.syscall(RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)
    install_filter(orders["filter"])


def allow(ruleset: int, path: bytes, rights: int, for_files: int) -> None:
    opened = LIBC.syscall(OPENAT2, HERE, path, WITHOUT_LINKS, len(WITHOUT_LINKS))
    if opened < 0:
        return  # gone, never there, or a link: no right is given
    # the rights of a folder do not fit a file
    if LIBC.syscall(ADD_RULE, ruleset, PATH_BENEATH, pack("=Qi", rights, opened), 0) < 0:
        rule = pack("=Qi", rights & for_files, opened)
        check(LIBC.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0), "landlock_add_rule")
    os.close(opened)


def drop_capabilities() -> None:
    """Drop all capabilities: as root, a program that is executed would get them back."""
    number = 0
    while LIBC.prctl(DROP_BOUND, number, 0, 0, 0) == 0:
        number += 1


def install_filter(program: bytes) -> None:
    """Install a seccomp filter."""
    lines = ctypes.create_string_buffer(program, len(program))
    wanted = pack("@HP", len(program) // 8, ctypes.addressof(lines))
    check(LIBC.prctl(SECCOMP, FILTER_MODE, wanted, 0, 0), "seccomp")


def reset_signals(defaulted: tuple[int, ...]) -> None:
    """Undo what Python changed, and unblock what the reaper blocks."""
    for number in defaulted:
        LIBC.signal(number, None)
    LIBC.sigprocmask(SET_MASK, bytes(128), None)
