"""
A seccomp filter as bytes: what no sandboxed command needs, and what reaches past the view of files.

Kernel keyrings and vsock are not part of any namespace, io_uring makes sockets behind the back of a filter, TIOCSTI
types into a terminal, and new user namespaces open a lot of the kernel to attack.
"""

import errno
import platform
import socket
import struct
from functools import cache

# Numbers of the calls on x86_64 and on aarch64.
DENIED = {
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_by_handle_at": (304, 265),
    "setns": (308, 268),
}
# Attributes of files, which Landlock does not look at. Programs take them for a file system without attributes.
ATTRIBUTES = {
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
}
SOCKET, IOCTL, CLONE, UNSHARE, CLONE3 = (41, 198), (16, 29), (56, 220), (272, 97), (435, 435)
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32 = 0x40000000
NEW_USER = 0x10000000
TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24
ALLOW, REFUSE = 0x7FFF0000, 0x00050000

# netlink tells about the (own, empty) network and is how names of interfaces are read
IN_OWN_NETWORK = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, getattr(socket, "AF_NETLINK", 16))


@cache
def seccomp_filter(
    families: tuple[int, ...], machine: str = platform.machine(), *, attributes: bool = True
) -> bytes | None:
    """
    The program for this kind of machine, which lets sockets of these families be made; None if it is not known.

    `attributes`: whether extended attributes of files may be changed.
    """
    if machine not in ARCHITECTURES:
        return None
    column, audit = ARCHITECTURES[machine]
    code = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, audit),
        (RETURN, 0, 0, REFUSE | errno.ENOSYS),
        (LOAD, 0, 0, NUMBER),
        # numbers from here on are a second way to the same calls
        (AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, REFUSE | errno.ENOSYS),
    ]
    for numbers in DENIED.values():
        code += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, REFUSE | errno.EPERM)]
    for numbers in () if attributes else ATTRIBUTES.values():
        code += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, REFUSE | errno.EOPNOTSUPP)]
    # its flags cannot be seen from here; the C library then uses clone
    code += [(EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]
    for numbers in (CLONE, UNSHARE):
        code += when(numbers[column], FIRST, [(ANY_BIT, NEW_USER)], errno.EPERM)
    code += when(IOCTL[column], SECOND, [(EQUAL, value) for value in TERMINAL_INJECTION], errno.EPERM)
    # as on a machine without network: programs know this error, and so do people who read their messages
    code += unless(SOCKET[column], FIRST, list(families), errno.ENETUNREACH)
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *each) for each in code)


Line = tuple[int, int, int, int]


def when(number: int, argument: int, tests: list[tuple[int, int]], error: int) -> list[Line]:
    """Refuse the call if one of the tests holds for its argument."""
    checks = [(test, len(tests) - at, 0, value) for at, (test, value) in enumerate(tests)]
    body = [(LOAD, 0, 0, argument), *checks, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE | error)]
    return [(EQUAL, 0, len(body), number), *body]


def unless(number: int, argument: int, values: list[int], error: int) -> list[Line]:
    """Refuse the call if its argument is none of the values."""
    checks = [(EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    body = [(LOAD, 0, 0, argument), *checks, (RETURN, 0, 0, REFUSE | error), (RETURN, 0, 0, ALLOW)]
    return [(EQUAL, 0, len(body), number), *body]
