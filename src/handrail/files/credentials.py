"""
Files with ordinary names that may hold a password or a token: the settings of git, of package managers and of clients.

Most of them hold none and are read all day, so what is written in them decides. A name that is a secret whatever the
file holds is listed in `shell/secrets.py`.
"""

import os
import re
import stat

from handrail.lazy import lazy_pattern

NAMES = frozenset(
    """
    pip.conf pip.ini uv.toml auth.json nuget.config .condarc .mambarc .gitmodules .gitconfig .hgrc hgrc .curlrc .wgetrc
    .yarnrc bunfig.toml .bunfig.toml gradle.properties settings.xml kubeconfig kubeconfig.yaml kubeconfig.yml
    local.settings.json sftp.json sftp-config.json .ftpconfig datasources.xml wp-config.php
    """.split()
)
IN_FOLDERS = {"config": (".git", ".bundle", ".cargo"), "config.worktree": (".git",), "config.toml": (".cargo",)}
ENDINGS = (".tfvars", ".tfvars.json")
MAX_BYTES = 1 << 20
CREDENTIAL = lazy_pattern(
    r"://[^/\s@:\"']*:[^/\s@\"']+@|://[^/\s@\"']{20,}@"  # in an address: a password, or a token in the place of a name
    r"|(?m:^[^#;\n]{0,200}?(?:passw(?:or)?d|passphrase|token|secret|_auth|api_?-?key|access_?-?key|extraheader|client-key-data)"
    r"[\w.-]{0,40}[\"']?\s{0,4}(?:[=:,]|=>|\s)\s{0,4}[\"']?[^\s\"'$<{%#]{4,})"
    r"|<(?:password|passphrase|\w*token|privatekey)>[^<$\s]|cleartextpassword\"\s+value=\"[^%\"]"
    r"|(?m:^[^\S\n]*-?-?user\s{0,4}[=:\s]\s{0,4}[\"']?[^\s:]+:[^\s]+)",  # of curl
    re.IGNORECASE,
)


def is_name_of_settings(name: str) -> bool:
    """Whether what is written decides in files of this name, in some folder at least."""
    name = name.casefold()
    return name in NAMES or name in IN_FOLDERS or name.endswith(ENDINGS)


def may_hold_credentials(path: str) -> bool:
    """Whether the path of a file is one of those in which what is written decides."""
    folder, _, name = path.casefold().rpartition("/")
    above = IN_FOLDERS.get(name)
    if above is None:
        return name in NAMES or name.endswith(ENDINGS)
    return any(each.endswith(above) for each in folder.split("/"))


def holds_credentials(path: str) -> bool:
    """Whether a file of such a name holds what looks like a password or a token; true if it is too large to look."""
    if not may_hold_credentials(path):
        return False
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return False  # a command of the same user cannot read it either
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return False  # judged by its kind
        text = os.read(file, MAX_BYTES).replace(b"\0", b"").decode("latin-1")  # two bytes a letter in UTF-16
        return found.st_size > MAX_BYTES or CREDENTIAL.search(text) is not None
    except OSError:
        return True
    finally:
        os.close(file)
