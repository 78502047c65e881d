"""
Conditions of programs that only read if they are what they seem, or ask a service that the user has named.

Each function returns what speaks against running the command, in words; empty = nothing.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from handrail.files.search_path import find_program
from handrail.shell.model import Segment

SHIM_FOLDERS = frozenset(("shims", ".volta", ".asdf", "asdf", "mise", ".proto", ".rustup", ".tfenv", ".goenv", ".gvm"))
SCRIPT = b"#!"
# Modules that a project may have without a question: Python does not need them for what runs here.
NOT_NEEDED = frozenset(("test", "this", "antigravity", "idlelib", "turtledemo", "lib2to3"))
MODULES = (sys.stdlib_module_names | {"pip"}) - NOT_NEEDED
MODULE = re.compile(r"\A[^.]+\Z|\.(?:pyc?|so|pyd)\Z")
CURRENT_CONTEXT = re.compile(r"^current-context:[ \t]*(['\"]?)([^'\"\s#]+)\1[ \t]*(?:#.*)?$", re.MULTILINE)
MAX_CONFIG = 1_000_000
REMOTE_HOST = re.compile(r"(?:[a-z+]+://(?:[^@/]*@)?|(?:[^@/:]+@)?)([A-Za-z0-9.-]+)[:/]")
CONTEXT_OPTIONS = ("--context", "--kube-context")
CLUSTER, FORGE = "cluster:", "forge:"
DEFAULT_FORGES = {"gh": "github.com", "glab": "gitlab.com"}


def shim_problem(name: str, path: str) -> str:
    """Whether a program would first choose, fetch or start another version of itself."""
    found = find_program(name, path)
    if not found:
        return ""
    real = os.path.realpath(found)
    folder, base = os.path.split(real)
    chooses = base == "rustup" or os.access(f"{folder}/rustup", os.X_OK) or SHIM_FOLDERS & set(real.split("/"))
    if chooses or is_script(real):
        return f"{found!r} may choose or fetch another version of {name} first"
    return ""


def is_script(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(2) == SCRIPT
    except OSError:
        return True


def module_problem(folder: str) -> str:
    """Whether Python would take a file of the folder for one of its own modules."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return f"the files in {folder!r} cannot be looked at"
    found = next((name for name in sorted(names) if name.partition(".")[0] in MODULES and MODULE.search(name)), "")
    return f"Python may take {found!r} for a module of its own" if found else ""


def cluster_problem(segment: Segment, home: str, allowed: Sequence[str]) -> str:
    """Whether the cluster that a command would ask is none that the settings name."""
    texts = [word.literal or "" for word in segment.argv]
    if segment.entry == "kubectl version" and "--client" in texts:
        return ""
    given = [value for name, value in pairwise(texts) if name in CONTEXT_OPTIONS]
    given += [
        text.partition("=")[2] for text in texts if text.startswith(tuple(f"{each}=" for each in CONTEXT_OPTIONS))
    ]
    context = given[-1] if given else current_context(home)
    if not context:
        return "it is not known which cluster it would ask"
    if f"{CLUSTER}{context}" in allowed:
        return ""
    return f"it would ask the cluster {context!r}, which permissions.readableServices does not name"


def current_context(home: str) -> str:
    """The context that the user's own configuration of kubectl chooses; empty if it is not known."""
    try:
        with Path(home, ".kube", "config").open(encoding="utf-8") as file:
            text = file.read(MAX_CONFIG)
    except (OSError, UnicodeDecodeError):
        return ""
    found = CURRENT_CONTEXT.findall(text)
    return found[0][1] if len(found) == 1 else ""


def forge_problem(segment: Segment, remotes: Sequence[str], allowed: Sequence[str]) -> str:
    """Whether the forge that a command would ask is none that the settings name; `remotes`: of the repository."""
    usual = DEFAULT_FORGES.get(segment.name, "")
    texts = [word.literal or "" for word in segment.argv]
    named = [text for text in texts if "://" in text]
    hosts = {*remote_hosts([*remotes, *named])} or {usual}
    if any(text.startswith(("-R", "--repo")) for text in texts):
        hosts.add(usual)
    unknown = sorted(host for host in hosts if f"{FORGE}{host}" not in allowed)
    if not unknown:
        return ""
    return f"it would ask the forge {unknown[0]!r}, which permissions.readableServices does not name"


def remote_hosts(remotes: Sequence[str]) -> Iterator[str]:
    for url in remotes:
        found = REMOTE_HOST.match(url)
        yield found[1].lower() if found else url


def repositories_named(listing: str) -> Iterator[str]:
    """The addresses that `git remote -v` prints, and the repositories that gh was told to take for them."""
    for line in listing.splitlines():
        name, _, value = line.replace("\t", " ").partition(" ")
        if not name.endswith(".gh-resolved"):
            yield value.removesuffix(" (fetch)").removesuffix(" (push)")
        elif value.count("/") > 1:
            yield value
