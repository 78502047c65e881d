"""Glob: find files by name pattern, newest first."""

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from handrail.errors import ToolError
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.schema import Input
from handrail.tools.tool import Tool

MAX_FILES = 100
MAX_SEEN = 200_000


class GlobInput(Input):
    pattern: str = Field(min_length=1, description="Glob pattern, for example src/**/*.py.")
    path: str = Field(default=".", description="Folder to search in; the working folder if left out.")


class Glob(Tool[GlobInput]):
    name = "Glob"
    aliases = ("LS",)
    search_hint = "find list files folder name wildcard"
    input_model = GlobInput
    always_load = True
    blocking = True

    def is_read_only(self, args: GlobInput) -> bool:
        return True

    def is_concurrency_safe(self, args: GlobInput) -> bool:
        return True

    def access(self, args: GlobInput, run: RunContext) -> Access:
        return Access.of(reads=[str((run.cwd / args.path).resolve())])

    def summary(self, args: GlobInput) -> str:
        return f"Glob({args.pattern})"

    def call_blocking(self, args: GlobInput, ctx: ToolContext) -> Output:
        root = ctx.cwd / args.path
        if not root.is_dir():
            raise ToolError(f"{args.path!r} is not a folder. Give a folder, or leave path out to search {ctx.cwd}.")
        found = newest_first(root, args.pattern, ctx)
        return Output(text=listing(found, root), card=Card(title=f"Glob {args.pattern}", detail=f"{len(found)} files"))


def newest_first(root: Path, pattern: str, ctx: ToolContext) -> list[Path]:
    """Files below the root that match, the last changed one first."""
    matches = matcher(pattern)
    found: list[tuple[float, Path]] = []
    for seen, path in enumerate(files_below(root)):
        if ctx.abort.aborted:
            break
        if seen >= MAX_SEEN:
            raise ToolError(f"More than {MAX_SEEN:,} files lie below {root}. Search in a folder further down.")
        if matches.fullmatch(path.relative_to(root).as_posix()):
            found.append((path.lstat().st_mtime, path))
    return [path for _, path in sorted(found, key=lambda item: (-item[0], str(item[1])))]


def files_below(root: Path) -> Iterator[Path]:
    """All files, depth first; links to folders are not followed."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(folder.iterdir())
        except PermissionError:
            continue
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                waiting.append(entry)
            elif not entry.is_dir():
                yield entry


def matcher(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stay within one folder, `**` crosses folders, a bare name matches in the root only."""
    parts: list[str] = []
    rest = pattern.removeprefix("./")
    while rest:
        if rest.startswith("**/"):
            parts.append("(?:[^/]+/)*")
            rest = rest[3:]
        elif rest.startswith("**"):
            parts.append(".*")
            rest = rest[2:]
        elif rest[0] in "*?":
            parts.append("[^/]*" if rest[0] == "*" else "[^/]")
            rest = rest[1:]
        elif rest[0] == "{" and "}" in rest:
            choices, _, rest = rest[1:].partition("}")
            parts.append("(?:" + "|".join(map(re.escape, choices.split(","))) + ")")
        else:
            parts.append(re.escape(rest[0]))
            rest = rest[1:]
    return re.compile("".join(parts), re.DOTALL)


def listing(files: list[Path], root: Path) -> str:
    """One path a line, relative to the root, with a word about what was left out."""
    if not files:
        return "No file matches."
    lines = [str(path.relative_to(root)) for path in files[:MAX_FILES]]
    if len(files) > MAX_FILES:
        lines.append(f"({len(files) - MAX_FILES} more files match. Use a narrower pattern to see them.)")
    return "\n".join(lines)
