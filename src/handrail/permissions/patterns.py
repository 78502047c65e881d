"""
Path patterns of rules: gitignore matching with four anchors, and an index over many of them.

    //x  the root of the file system      ~/x  the home folder
    /x   the folder of the settings       x, ./x  the working folder; in the settings of a folder above it, that folder

Allow rules are narrow: `src/**` is one folder, `src/*` one level, matching is case-sensitive, and a link matches only
if its target does. Deny and ask rules are wide: `src/**` matches at any depth, with everything below it, in any case
and Unicode composition.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import takewhile

from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.permissions.rules import Behaviour, Rule

WILD = lazy_pattern(r"[*?\[\\]")
ANY_FOLDERS = "(?:/[^/]+)*"
NARROW_FLAGS, WIDE_FLAGS = int(re.DOTALL), int(re.DOTALL | re.IGNORECASE)
ENDING = lazy_pattern(r"\*(\.[^.*?\[\\/]+)\Z")


class Anchors(NamedTuple):
    """The folders that patterns start from, as absolute real paths."""

    cwd: str
    home: str
    working_dirs: tuple[str, ...] = ()
    worktrees: tuple[tuple[str, str], ...] = ()
    """Repositories, each with a worktree of it: what is denied in one is denied in the other."""


class Pattern:
    """
    A pattern from one base, and the key that the index finds it by: at most one of `folder`, `name` and `ending`.

    Its expression is made when it is first tested, because most rules never are.
    """

    __slots__ = ("_regex", "base", "ending", "flags", "floating", "folder", "name", "parts", "tail")

    def __init__(self, base: str, parts: list[str], tail: str, flags: int, *, floating: bool) -> None:
        self.base = "" if base == "/" else base
        self.parts = parts
        self.tail = tail
        self.flags = flags
        self.floating = floating
        self.folder = self.name = self.ending = ""
        self._regex: re.Pattern[str] | None = None
        key = str.lower if flags & re.IGNORECASE else str
        if not floating:
            literal = takewhile(is_literal, parts)
            self.folder = key("/".join([self.base, *literal]) or "/")
            """Every match is at or below this folder."""
        elif name := next(filter(is_literal, parts), ""):
            self.name = key(name)
            """Every match contains this name."""
        else:
            self.ending = key(next((found[1] for part in parts if (found := ENDING.match(part))), ""))
            """Every match contains a name with this ending."""

    @property
    def regex(self) -> re.Pattern[str]:
        """The expression that a whole path has to match."""
        if self._regex is None:
            body = join_parts(["**", *self.parts] if self.floating else self.parts)
            self._regex = compile_regex(re.escape(self.base) + body + self.tail, self.flags)
        return self._regex


def is_literal(part: str) -> bool:
    """Whether one name of a pattern means only itself."""
    return WILD.search(part) is None


@lru_cache(maxsize=4_096)
def compile_regex(text: str, flags: int) -> re.Pattern[str]:
    return re.compile(text, flags)


def compile_patterns(rule: Rule, anchors: Anchors) -> tuple[Pattern, ...]:
    """One pattern per base the rule starts from."""
    narrow = rule.behaviour is Behaviour.ALLOW
    bases, rest, floating = anchor(rule, anchors, narrow)
    if not narrow:
        copies = (copy for base in bases for copy in copies_of(base, anchors.worktrees))
        bases, rest = tuple(map(compose, (*bases, *copies))), compose(rest)
    while rest == ".." or rest.startswith("../"):
        bases, rest, floating = tuple(posixpath.dirname(base) for base in bases), rest[3:], False
    parts = [part for part in rest.split("/") if part not in ("", ".")]
    tail = tail_of(parts, rest.endswith("/"), narrow)
    flags = NARROW_FLAGS if narrow else WIDE_FLAGS
    return tuple(Pattern(base, parts, tail, flags, floating=floating) for base in dict.fromkeys(bases))


def copies_of(folder: str, worktrees: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """Where a folder of a repository is in its worktrees."""
    for repository, worktree in worktrees:
        if folder == repository or folder.startswith(f"{repository}/"):
            yield worktree + folder.removeprefix(repository)


def compose(text: str) -> str:
    """A name in composed Unicode form; some file systems treat all forms as the same."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def anchor(rule: Rule, anchors: Anchors, narrow: bool) -> tuple[tuple[str, ...], str, bool]:
    """The bases, the pattern below them, and whether it may match at any depth."""
    spec = rule.spec or ""
    if spec.startswith("//"):
        return ("/",), spec[2:], False
    if spec == "~" or spec.startswith("~/"):
        return (anchors.home,), spec[2:], False
    if spec.startswith("/") and rule.source.folder:
        return (rule.source.folder,), spec[1:], False
    own = (rule.source.folder,) if rule.source.above else ()
    here = own if own and narrow else (anchors.cwd, *own)
    if not narrow:  # a call of `cd` moves the current folder, and must not move what is denied
        here = (*here, *anchors.working_dirs)
    if spec.startswith("/"):
        return here, spec[1:], False
    if spec.startswith("./"):
        return here, spec[2:], False
    return here, spec, not narrow or "/" not in spec.rstrip("/")


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


def join_parts(parts: Iterable[str]) -> str:
    """The expression of all parts; text between two `**` matches at its first occurrence, so that no match is slow."""
    groups = [""]
    for part in parts:
        if part != "**":
            groups[-1] += f"/{translate(part)}"
        elif len(groups) == 1 or groups[-1]:
            groups.append("")
    first, *others = groups
    middle = "".join(f"(?>{ANY_FOLDERS}?{group}(?=/|\\Z))" for group in others[:-1])
    return first + middle + "".join(f"{ANY_FOLDERS}{group}" for group in others[-1:])


def translate(part: str) -> str:
    """One name of a pattern."""
    texts, at = [""], 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            texts.append("")
        elif char == "?":
            texts[-1] += "[^/]"
        elif char == "[" and (close := part.find("]", at + 1)) > 0:
            inner = part[at:close]
            negated = inner[:1] in ("!", "^")
            texts[-1] += f"(?!/)[{'^' if negated else ''}{klass(inner[negated:])}]"
            at = close + 1
        else:
            if char == "\\" and at < len(part):
                char, at = part[at], at + 1
            texts[-1] += re.escape(char)
    first, *others = texts
    middle = "".join(f"(?>[^/]*?{text})" for text in others[:-1] if text)
    return first + middle + "".join(f"[^/]*{text}" for text in others[-1:])


def klass(inner: str) -> str:
    """The inside of a character class; a reversed range matches nothing, as in gitignore."""
    escaped = re.sub(r"([\\\]\[&~|^])", r"\\\1", inner)
    return re.sub(r"(.)-(.)", lambda pair: pair[0] if pair[1] <= pair[2] else re.escape(pair[1]), escaped)


Entries = list[tuple[Pattern, Rule]]


class PathIndex:
    """Finds the rules that match a path. The cost depends on the depth of the path, not on the number of rules."""

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

    def covers(self, folder: str) -> bool:
        """
        Whether a rule may match files of a folder for another reason than their names, so that `find` has to tell.

        The folder is an absolute path without a slash at its end.
        """
        if self.empty:
            return False
        key = folder if self.narrow else folder.lower()
        names = key.split("/")
        return bool(
            self.others
            or not folder.isascii()
            or key in self._parents
            or not self.folders.keys().isdisjoint(folders_to(key))
            or not self.names.keys().isdisjoint(names)
            or not self.endings.keys().isdisjoint(map(ending_of, names))
        )

    def may_match_name(self, name: str) -> bool:
        """Whether a rule may match files of this name in any folder, so that `find` has to tell."""
        if self.empty:
            return False
        plain = name if self.narrow else name.lower()
        return plain in self.names or ending_of(plain) in self.endings or not name.isascii()

    @cached_property
    def _parents(self) -> frozenset[str]:
        """The folders in which a rule names a file or folder."""
        return frozenset(path.rpartition("/")[0] for path in self.folders)

    def find(self, path: str) -> list[Rule]:
        """The rules that match an absolute path. A folder ends with a slash."""
        if self.empty:
            return []
        path = path if self.narrow else compose(path)
        key = path if self.narrow else path.lower()
        candidates = self.others
        if self.folders:
            cut = key.rfind("/")
            above = (key, *folders_to(key[:cut]))
            if not self.folders.keys().isdisjoint(above):
                candidates = [*candidates, *(entry for folder in above for entry in self.folders.get(folder, ()))]
        if self.names or self.endings:
            names = key.split("/")
            if not self.names.keys().isdisjoint(names):
                candidates = [*candidates, *(entry for name in names for entry in self.names.get(name, ()))]
            if self.endings:
                ends = map(ending_of, names)
                candidates = [*candidates, *(entry for end in ends for entry in self.endings.get(end, ()))]
        return [rule for pattern, rule in candidates if pattern.regex.fullmatch(path)] if candidates else []


def ending_of(name: str) -> str:
    """The last dot of a name and what follows it; empty if there is no dot."""
    dot = name.rfind(".")
    return name[dot:] if dot >= 0 else ""


@lru_cache(maxsize=512)
def folders_to(folder: str) -> tuple[str, ...]:
    """A folder and those above it."""
    found, at = [], len(folder)
    while at > 0:
        found.append(folder[:at])
        at = folder.rfind("/", 0, at)
    return (*found, "/")
