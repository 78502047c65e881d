"""Ignore files (`.gitignore`, `.ignore`, `.rgignore`) and globs in their manner, for the stand-in of ripgrep."""

import os
from collections.abc import Callable
from pathlib import Path

from handrail.builtin.searching.patterns import Parts, matcher
from handrail.errors import ToolError
from handrail.records import record

NAMES = (".gitignore", ".ignore", ".rgignore")


@record
class Rule:
    """One line: what it fits, whether only folders, and whether it takes back what earlier lines left out."""

    matches: Callable[[Parts], bool]
    folders_only: bool = False
    negated: bool = False

    def fits(self, parts: Parts, *, is_folder: bool) -> bool:
        """Whether the line is about this path."""
        return (is_folder or not self.folders_only) and self.matches(parts)


def glob_rule(glob: str) -> Rule:
    """A glob without a slash fits at any depth, one with a slash from the top."""
    text = _unescaped(glob)
    folders_only = text.endswith("/") and len(text) > 1
    text = text.rstrip("/") if folders_only else text
    return Rule(matcher(text.lstrip("/") if "/" in text else f"**/{text}"), folders_only)


def _unescaped(glob: str) -> str:
    out, signs = "", iter(glob)
    for sign in signs:
        out += f"[{next(signs, '')}]" if sign == "\\" else sign
    return out


def read_rules(path: bytes) -> list[Rule]:
    """The lines of an ignore file; one that is not understood leaves nothing out."""
    try:
        if not Path(os.fsdecode(path)).is_file():  # a pipe would never end
            return []
        lines = Path(os.fsdecode(path)).read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    rules: list[Rule] = []
    for line in (line if line.endswith("\\ ") else line.rstrip() for line in lines):
        if not line or line.startswith("#"):
            continue
        negated = line.startswith("!")
        try:
            rule = glob_rule(line[1:] if negated else line)
        except ToolError:
            continue
        rules.append(Rule(rule.matches, rule.folders_only, negated))
    return rules


@record
class Ignored:
    """The ignore files that count in a folder, the outermost first."""

    files: tuple[tuple[bytes, list[Rule]], ...] = ()
    in_repository: bool = False

    @classmethod
    def above(cls, root: bytes) -> "Ignored":
        """Those of the folders above."""
        top = os.path.realpath(root)
        found = cls()
        above = [parent.encode() for parent in map(str, reversed(Path(os.fsdecode(top)).parents))]
        repository = max((at for at, folder in enumerate(above) if os.path.lexists(folder + b"/.git")), default=-1)
        for folder in above[repository:] if repository >= 0 else ():
            found = found.inside(folder)
        return found

    def inside(self, folder: bytes) -> "Ignored":
        """With those of one folder more."""
        repository = self.in_repository or os.path.lexists(folder + b"/.git")
        real = os.path.realpath(folder)
        rules: list[Rule] = []
        for name in NAMES if repository else NAMES[1:]:
            rules += read_rules(folder + b"/" + name.encode())
        return Ignored((*self.files, (real, rules)) if rules else self.files, repository)

    def leaves_out(self, path: bytes, *, is_folder: bool) -> bool:
        """The last line that is about the path decides."""
        above, _, name = path.rpartition(b"/")
        real = os.path.realpath(above) + b"/" + name
        for folder, rules in reversed(self.files):
            parts = tuple(os.fsdecode(real[len(folder.rstrip(b"/")) + 1 :]).split("/"))
            for rule in reversed(rules):
                if rule.fits(parts, is_folder=is_folder):
                    return not rule.negated
        return False
