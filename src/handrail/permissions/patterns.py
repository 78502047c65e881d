"""
Path patterns of rules: gitignore matching with four anchors, and an index over many of them.

    //x  the root of the file system      ~/x  the home folder
    /x   the folder of the settings       x, ./x  the working folder

An allow rule is read narrowly: `src/**` is one folder, `src/*` one level, letters keep their case, and a link matches
only if its target does. Deny and ask rules are read widely: `src/**` at any depth, below what matches, in any case.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from handrail.permissions.rules import Behaviour, Rule

WILD = re.compile(r"[*?\[\\]")
ENDING = re.compile(r"\*(\.[^.*?\[\\/]+)\Z")


class Anchors(NamedTuple):
    """What patterns start from. All are absolute real paths."""

    cwd: str
    home: str
    working_dirs: tuple[str, ...] = ()


class Pattern(NamedTuple):
    """A pattern from one base: how it is matched, and by which key it is found."""

    regex: re.Pattern[str]
    folder: str = ""
    """What it matches lies at or below this folder."""
    name: str = ""
    """What it matches has this name in it."""
    ending: str = ""
    """What it matches has a name with this ending in it."""


def compile_patterns(rule: Rule, anchors: Anchors) -> tuple[Pattern, ...]:
    """One pattern per base the rule starts from."""
    narrow = rule.behaviour is Behaviour.ALLOW
    bases, rest, floating = anchored(rule, anchors, narrow)
    while rest == ".." or rest.startswith("../"):
        bases, rest, floating = tuple(posixpath.dirname(base) for base in bases), rest[3:], False
    parts = [part for part in rest.split("/") if part not in ("", ".")]
    tail = tail_of(parts, rest.endswith("/"), narrow)
    middle = "".join(translate(part) for part in parts)
    flags = re.DOTALL if narrow else re.DOTALL | re.IGNORECASE
    return tuple(pattern_from(base, parts, floating, middle + tail, flags) for base in dict.fromkeys(bases))


def anchored(rule: Rule, anchors: Anchors, narrow: bool) -> tuple[tuple[str, ...], str, bool]:
    """The bases, the pattern below them, and whether it may match at any depth."""
    spec = rule.spec or ""
    if spec.startswith("//"):
        return ("/",), spec[2:], False
    if spec == "~" or spec.startswith("~/"):
        return (anchors.home,), spec[2:], False
    if spec.startswith("/"):
        return (rule.source.folder or anchors.cwd,), spec[1:], False
    if spec.startswith("./"):
        return (anchors.cwd,), spec[2:], False
    if narrow:
        return (anchors.cwd,), spec, "/" not in spec.rstrip("/")
    return (anchors.cwd, *anchors.working_dirs), spec, True


def tail_of(parts: list[str], folder_only: bool, narrow: bool) -> str:
    """What may follow the pattern. A folder is matched with a slash at its end."""
    if not parts:
        return "(?:/.*)?"
    if parts[-1] == "**":
        parts.pop()
        return "(?:/.*)?" if not narrow or not parts else "/.*"
    if folder_only:
        return "/.*"
    return "/?" if narrow and WILD.search(parts[-1]) else "(?:/.*)?"


def pattern_from(base: str, parts: list[str], floating: bool, body: str, flags: int) -> Pattern:
    start = "" if base == "/" else base
    regex = re.compile(re.escape(start) + ("(?:/[^/]+)*" if floating else "") + body, flags)
    key = str.lower if flags & re.IGNORECASE else str
    if not floating:
        literal = list(literal_start(parts))
        return Pattern(regex, folder=key("/".join([start, *literal]) or "/"))
    name = next((part for part in parts if not WILD.search(part)), "")
    if name:
        return Pattern(regex, name=key(name))
    ending = next((found[1] for part in parts if (found := ENDING.match(part))), "")
    return Pattern(regex, ending=key(ending))


def literal_start(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        if WILD.search(part):
            return
        yield part


def translate(part: str) -> str:
    """One part of a pattern, with the slash before it."""
    if part == "**":
        return "(?:/[^/]+)*"
    out, at = "/", 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            out += "" if out.endswith("[^/]*") else "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "[" and (close := part.find("]", at + 1)) > 0:
            inner = part[at:close]
            negated = inner[:1] in ("!", "^")
            out += f"(?!/)[{'^' if negated else ''}{klass(inner[negated:])}]"
            at = close + 1
        else:
            if char == "\\" and at < len(part):
                char, at = part[at], at + 1
            out += re.escape(char)
    return out


def klass(inner: str) -> str:
    """The inside of a character class; a range that runs backwards matches nothing, as in gitignore."""
    escaped = re.sub(r"([\\\]\[&~|^])", r"\\\1", inner)
    return re.sub(r"(.)-(.)", lambda pair: pair[0] if pair[1] <= pair[2] else re.escape(pair[1]), escaped)


Entries = list[tuple[Pattern, Rule]]


class PathIndex:
    """Finds the rules that match a path. The cost depends on the depth of the path, not on the number of rules."""

    __slots__ = ("empty", "endings", "folders", "names", "narrow", "others")

    def __init__(self, rules: Iterable[Rule], anchors: Anchors, *, narrow: bool) -> None:
        self.narrow = narrow
        self.folders: dict[str, Entries] = {}
        self.names: dict[str, Entries] = {}
        self.endings: dict[str, Entries] = {}
        self.others: Entries = []
        self.empty = True
        for rule in rules:
            self.empty = False
            for pattern in compile_patterns(rule, anchors):
                self.home_of(pattern).append((pattern, rule))

    def home_of(self, pattern: Pattern) -> Entries:
        if pattern.folder:
            return self.folders.setdefault(pattern.folder, [])
        if pattern.name:
            return self.names.setdefault(pattern.name, [])
        return self.endings.setdefault(pattern.ending, []) if pattern.ending else self.others

    def find(self, path: str) -> list[Rule]:
        """The rules that match an absolute path. A folder ends with a slash."""
        if self.empty:
            return []
        candidates = list(self.others)
        key = path if self.narrow else path.lower()
        if self.folders:
            # Walking up the path: the number of steps is its depth.
            folders, at = self.folders, len(key)
            while at > 0:
                if (prefix := key[:at]) in folders:
                    candidates += folders[prefix]
                at = key.rfind("/", 0, at)
            candidates += folders.get("/", ())
        if self.names or self.endings:
            for name in key.split("/"):
                if name in self.names:
                    candidates += self.names[name]
                if self.endings and (dot := name.rfind(".")) >= 0:
                    candidates += self.endings.get(name[dot:], ())
        return [rule for pattern, rule in candidates if pattern.regex.fullmatch(path)]
