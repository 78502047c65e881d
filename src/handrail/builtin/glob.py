"""Glob: find files by name pattern, newest first."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias

from pydantic import Field

from handrail.errors import ToolError
from handrail.files.paths import real_path
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.schema import Input
from handrail.tools.tool import Tool

MAX_FILES = 100
MAX_SEEN = 200_000
MAX_ALTERNATIVES = 500
BRACES = re.compile(r"\{([^{}]*)\}")

Parts: TypeAlias = tuple[str, ...]
ANY_FOLDERS = None


class GlobInput(Input):
    pattern: str = Field(min_length=1, max_length=1000, description="Glob pattern, for example src/**/*.py.")
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
        folder, _ = place_to_search(run.cwd, args)
        return Access.of(reads=[str(real_path(run.cwd, str(folder)))])

    def summary(self, args: GlobInput) -> str:
        return f"Glob({args.pattern})"

    def call_blocking(self, args: GlobInput, ctx: ToolContext) -> Output:
        root, pattern = place_to_search(ctx.cwd, args)
        unreadable: list[OSError] = []
        found = newest_first(root, matcher(pattern), ctx, unreadable)
        if len(unreadable) == 1 and not found and unreadable[0].filename == str(root):
            raise ToolError(f"{str(root)!r} cannot be searched: {unreadable[0].strerror}. Give another folder as path.")
        text = listing(found, _as_seen_from(ctx.cwd, root), len(unreadable))
        return Output(text=text, card=Card(title=f"Glob {args.pattern}", detail=f"{len(found)} files"))


def place_to_search(cwd: Path, args: GlobInput) -> tuple[Path, str]:
    """The folder and the pattern below it. An absolute pattern brings its own folder: all before its first wildcard."""
    if not args.pattern.startswith("/"):
        return cwd / args.path, args.pattern
    parts = [part for part in args.pattern.split("/") if part]
    fixed = list(takewhile(lambda part: not set(part) & set("*?[{"), parts[:-1]))
    return Path("/", *fixed), "/".join(parts[len(fixed) :])


def newest_first(
    root: Path, matches: Callable[[Parts], bool], ctx: ToolContext, unreadable: list[OSError]
) -> list[Parts]:
    """Files below the root that match, the last changed one first."""
    found: list[tuple[int, Parts]] = []
    for seen, (parts, entry) in enumerate(files_below(root, unreadable)):
        if ctx.abort.aborted:
            break
        if seen >= MAX_SEEN:
            raise ToolError(f"More than {MAX_SEEN:,} files lie below {str(root)!r}. Search in a folder further down.")
        if matches(parts):
            try:
                found.append((-entry.stat(follow_symlinks=False).st_mtime_ns, parts))
            except FileNotFoundError:
                continue  # it went away in the meantime
    return [parts for _, parts in sorted(found)]


def files_below(root: Path, unreadable: list[OSError]) -> Iterator[tuple[Parts, os.DirEntry[str]]]:
    """Whatever is no folder, with its way from the root; links to folders are neither followed nor listed."""
    waiting: list[tuple[str, Parts]] = [(str(root), ())]
    while waiting:
        folder, way = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except (OSError, ValueError) as error:
            unreadable.append(error if isinstance(error, OSError) else OSError(0, str(error), folder))
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, (*way, entry.name)))
            elif not (entry.is_symlink() and os.path.isdir(entry.path)):  # noqa: PTH112  # it never raises
                yield (*way, entry.name), entry


def matcher(pattern: str) -> Callable[[Parts], bool]:
    """
    Tells whether a path, given as its parts, fits the pattern.

    `*`, `?` and `[a-z]` stay within one name, `**` as a whole name stands for any folders, `{a,b}` for either.
    Every step goes forward, so that no pattern can make it slow.
    """
    ways = [_names(alternative) for alternative in alternatives(pattern)]
    return lambda parts: any(_fits(parts, names) for names in ways)


def alternatives(pattern: str) -> list[str]:
    """The pattern with its braces spelled out. A brace without a partner stands for itself."""
    done: dict[str, None] = {}
    waiting = [pattern]
    while waiting:
        one = waiting.pop()
        if braces := BRACES.search(one):
            waiting += [one[: braces.start()] + choice + one[braces.end() :] for choice in braces[1].split(",")]
        else:
            done[one] = None
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ToolError(f"{pattern!r} has more than {MAX_ALTERNATIVES} alternatives. Use * or several searches.")
    return list(done)


def _names(pattern: str) -> list[re.Pattern[str] | None]:
    parts = [part for part in pattern.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise ToolError(f"{pattern!r} leads upwards. Give the folder as path, and a pattern below it.")
    if pattern.endswith("/"):
        parts.append("**")
    names = [ANY_FOLDERS if part == "**" else re.compile(translate(part)) for part in parts]
    return [*names, re.compile(translate("*"))] if names and names[-1] is ANY_FOLDERS else names


def _fits(parts: Parts, names: Sequence[re.Pattern[str] | None]) -> bool:
    """Walks both sides; after a mismatch the last `**` takes one more folder, earlier ones need not be tried again."""
    at = index = 0
    retry: tuple[int, int] | None = None
    while at < len(parts):
        name = names[index] if index < len(names) else None
        if index < len(names) and name is ANY_FOLDERS:
            index += 1
            retry = (at + 1, index)
        elif name is not None and name.match(parts[at]):
            at, index = at + 1, index + 1
        elif retry is not None:
            at, index = retry
            retry = (at + 1, index)
        else:
            return False
    return index == len(names)


def _as_seen_from(cwd: Path, root: Path) -> Path:
    return root.relative_to(cwd) if root.is_relative_to(cwd) else root


def listing(files: list[Parts], folder: Path, unreadable: int) -> str:
    """One path a line, as Read takes it, with a word about what was left out."""
    lines = [line(str(folder.joinpath(*parts))) for parts in files[:MAX_FILES]] or ["No file matches."]
    if len(files) > MAX_FILES:
        lines.append(f"({len(files) - MAX_FILES} more files match. Use a narrower pattern to see them.)")
    if unreadable:
        lines.append(f"({unreadable} folders could not be read.)")
    return "\n".join(lines)


def line(path: str) -> str:
    """A path on one line: one with line breaks or undecodable bytes in it is quoted like a Python string."""
    return path if path.isprintable() else repr(path)
