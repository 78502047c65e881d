"""Copies owner, mode and extended attributes to the file that replaces another."""

import os
import stat

from handrail.errors import NotExchangedError

LEFT_BEHIND = ("security.capability", "security.ima", "security.evm")
"""They vouch for the old content."""


def keep_attributes(source: int, found: os.stat_result, target: int) -> None:
    """Give the new file the owner, mode and extended attributes of the old one."""
    new = os.fstat(target)
    try:
        if (new.st_uid, new.st_gid) != (found.st_uid, found.st_gid):
            os.fchown(target, found.st_uid, found.st_gid)
    except OSError as error:
        raise NotExchangedError(f"belongs to another user or group ({found.st_uid}:{found.st_gid})") from error
    os.fchmod(target, stat.S_IMODE(found.st_mode))
    if not hasattr(os, "listxattr"):  # macOS
        return
    try:
        names = os.listxattr(source)
    except OSError:
        return  # a file system without them
    for name in names:
        if name in LEFT_BEHIND:
            continue
        try:
            value = os.getxattr(source, name)
            os.setxattr(target, name, value)
        except OSError as error:
            if name.startswith(("user.", "system.posix_acl")):
                raise NotExchangedError(f"has the attribute {name!r}, which cannot be copied") from error
