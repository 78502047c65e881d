"""
Classifies places: inside the working folders, protected, critical, secret.

    critical   removing it removes everything (the root, the home folder, the project): always asks
    protected  writing it changes what runs later without a question (.git, .handrail, .bashrc): asks, except in bypass
    secret     reading it shows a key or a password: asks unless a rule allows it
"""

import posixpath
import unicodedata
from functools import lru_cache

from handrail.files.paths import FileKind, Place
from handrail.lazy import lazy_pattern
from handrail.permissions.protected_names import find_at_home, find_protected
from handrail.shell.patterns import NamePattern
from handrail.shell.secrets import SYSTEM_FACTS, may_be_listed, no_file
from handrail.shell.secrets import secret as secret_path

# A pattern that leaves out hardly anything: `*`, `.*`, `.[!.]*`, `.??*`, `[a-z]*`.
WILD = lazy_pattern(r"[*?\[]")
EVERY_NAME = lazy_pattern(r"\.?(?:[*?]|\[[!^][^]]*\]|\[\[:\w+:\]\]|\[[^]]*[A-Za-z]-[A-Za-z][^]]*\])+\Z")


@lru_cache(maxsize=4096)
def fold_name(name: str) -> str:
    """A name without case, invisible characters, trailing dots and blanks, as the most lenient file system reads it."""
    if not name.isascii():
        name = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    return name.casefold().rstrip(". ") or name


@lru_cache(maxsize=4096)
def protected_name(path: str, home: str) -> str:
    """The protected name in a path, or an empty text."""
    if found := find_protected([fold_name(name) for name in path.split("/") if name]):
        return found
    folded, folded_home = path.casefold(), home.casefold()
    return find_at_home(folded.removeprefix(folded_home)) if below(folded, folded_home) else ""


def protected_place(place: Place, home: str, own: tuple[str, ...] = ()) -> str:
    """The protected name in the path as spelled or resolved; everything in the folders `own` is protected."""
    found = protected_name(place.real, home)
    if not found and place.absolute != place.real:
        found = protected_name(place.absolute, home)
    return found or next((folder for folder in own if below(place.real, folder)), "")


secret = lru_cache(maxsize=4096)(secret_path)


def below(path: str, folder: str) -> bool:
    """Whether a path is the folder or in it; `/proj-x` is not in `/proj`."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def critical(path: str, home: str, working_dirs: tuple[str, ...]) -> bool:
    """Whether it must not be removed: the root and its folders, home, the working folders, and all above them."""
    names = path.rstrip("/").split("/")
    while names and "*" in names[-1] and leaves_out_little(names[-1]):
        del names[-1]
    plain = "/" + posixpath.normpath("/" + "/".join(names)).lstrip("/")
    if plain.count("/") == 1:
        return True
    kept = (home, *working_dirs)
    return any(below(path, plain) for path in kept) or (
        WILD.search(plain) is not None and any(matches_above(plain, path) for path in kept)
    )


def leaves_out_little(pattern: str) -> bool:
    """Whether a pattern for names matches nearly all of them, or it is not known which."""
    return EVERY_NAME.match(pattern) is not None or not NamePattern(pattern).sure


def matches_above(pattern: str, path: str) -> bool:
    """Whether a pattern matches the path, or a folder that it is in."""
    wanted, names = pattern.split("/"), path.split("/")
    pairs = zip(wanted, names, strict=False)
    return len(wanted) <= len(names) and all(NamePattern(part, loose=True).may_match(name) for part, name in pairs)


SPECIAL = {
    FileKind.DEVICE: "it is a device",
    FileKind.PIPE: "it is a pipe, and reading it could wait for ever",
    FileKind.SOCKET: "it is a socket",
}


def doubt(place: Place, prefixes: tuple[str, ...], *, writes: bool) -> str:
    """Why the user should be asked about a place: odd spelling, outside, not a regular file, a secret; else empty."""
    if place.problem:
        return f"{place.spelling!r}: {place.problem}"
    if not writes and place.real in SYSTEM_FACTS and place.absolute in SYSTEM_FACTS:
        return ""
    if not (place.real + "/").startswith(prefixes):
        leads = f" leads to {place.real!r}, which" if place.real != place.absolute else ""
        return f"{place.spelling!r}{leads} is outside the working folders"
    if place.kind in SPECIAL:
        return f"{place.spelling!r}: {SPECIAL[place.kind]}"
    if place.kind is FileKind.LINK and not writes:
        return f"{place.spelling!r} is a link that leads nowhere"
    if writes and place.links > 1:
        return f"{place.spelling!r} is one of {place.links} names of the same file, and the others may be elsewhere"
    if not writes and secret_place(place):
        return (
            f"{place.spelling!r} holds a password or token"
            if place.credentials
            else f"{place.spelling!r} may hold secrets"
        )
    return ""


def secret_place(place: Place) -> bool:
    """Whether a place is a secret: by its name, or by what is written in it."""
    return place.credentials or secret(place.real) or secret(place.absolute)


def doubt_of_look(place: Place, prefixes: tuple[str, ...], *, lists: bool = False) -> str:
    """
    Why the user should be asked before a name, a size or a count is shown: it lies outside, or is no file.

    `lists`: only the names in one folder are shown, which may lie outside if its whole path is given and no secret.
    """
    paths = {place.real, place.absolute}
    inside = (place.real + "/").startswith(prefixes) and not any(map(no_file, paths))
    named = lists and place.spelling.startswith("/") and ".." not in place.spelling and not any(map(secret, paths))
    open_to_all = named or all(map(may_be_listed, paths))
    if not place.problem and place.kind not in SPECIAL and (inside or open_to_all):
        return ""
    return doubt(place, prefixes, writes=False)
