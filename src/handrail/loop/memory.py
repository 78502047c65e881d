"""
Pure functions about memory files: what they import, when a rule applies, how they are combined for the model.

The session reads them from disk. Values are named tuples here, because every run loads them before
its first request, and a dataclass takes a millisecond to define.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePath
from typing import Literal, TypeAlias

from handrail.conversation.context import memory_file_frame, memory_frame
from handrail.files.frontmatter import parse_frontmatter
from handrail.records import record

Scope: TypeAlias = Literal["policy", "user", "project", "local"]

MAX_FILE = 40_000
MAX_TOTAL = 160_000
MAX_ALTERNATIVES = 64

INTRODUCTION = (
    "People wrote down what to know and what to keep to when working here. Broad files come first, nearer ones later "
    "and win where they differ. What the user asks for in this conversation comes before all of them."
)
# compiled when first used: many projects have no memory file
FENCE = r" {0,3}(`{3,}|~{3,})"
CODE_SPAN = r"(?s)(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)"
MENTION = r"(?<![^\s(])@((?:[^\s\\]|\\.)+)"


@record
class MemoryFile:
    """A memory file for the model, without front matter. A rule holds for files in `base` that fit its `patterns`."""

    path: Path
    text: str
    scope: Scope
    base: Path
    patterns: tuple[str, ...] = ()


@record
class MemoryProblem:
    """Something about a memory file that a person should know. `needs_approval`: the real file that was not read."""

    path: Path
    text: str
    needs_approval: Path | None = None


@record
class Memory:
    """The memory files shown, rules that wait for a matching file, folders looked into, real paths of files read."""

    files: tuple[MemoryFile, ...] = ()
    waiting: tuple[MemoryFile, ...] = ()
    folders: frozenset[Path] = frozenset()
    seen: frozenset[Path] = frozenset()
    problems: tuple[MemoryProblem, ...] = ()


@record
class NearbyMemory:
    """What reading a file brings with it: folders whose memory was not looked for yet, and rules that now hold."""

    folders: tuple[Path, ...]
    rules: tuple[MemoryFile, ...]


def memory_for(path: Path, cwd: Path, known: Memory) -> NearbyMemory:
    """What to add when `path` is read. Folders lie between the working folder and the file, outer ones first."""
    folders: list[Path] = []
    if path.is_relative_to(cwd):
        between = path.parent.relative_to(cwd).parts
        folders = [cwd.joinpath(*between[: depth + 1]) for depth in range(len(between))]
    rules = tuple(rule for rule in known.waiting if applies(rule, path))
    return NearbyMemory(tuple(folder for folder in folders if folder not in known.folders), rules)


def applies(rule: MemoryFile, path: Path) -> bool:
    """Whether a rule holds for a file."""
    if not rule.patterns:
        return True
    return path.is_relative_to(rule.base) and any(
        matches(pattern, path.relative_to(rule.base)) for pattern in rule.patterns
    )


def matches(pattern: str, path: PurePath) -> bool:
    """
    Whether a glob fits a relative path: `*`, `?`, `[..]`, `{a,b}`, and `**` for any folders.

    A pattern without a slash fits the name in any folder; one that ends with a slash fits everything below.
    """
    return any(_fits(_steps(each), path.parts) for each in _alternatives(pattern))


def split_front_matter(text: str) -> tuple[tuple[str, ...], str, str]:
    """The `paths` of a rule file, the text below the front matter, and what is wrong with it (empty = nothing)."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return (), text, ""
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    if not end:
        return (), text, ""
    body = "\n".join(lines[end + 1 :]).lstrip("\n")
    patterns = parse_frontmatter(text).names("paths")
    written = next((line.partition(":")[2].strip() for line in lines[1:end] if line.startswith("paths:")), "")
    return patterns or (), body, f"its `paths` {written!r} hold no pattern" if patterns == () else ""


def imports(text: str) -> tuple[str, ...]:
    """The paths that a text names with `@`, outside code, in order, each once."""
    if "@" not in text:
        return ()
    plain = re.sub(CODE_SPAN, " ", _without_fences(text))
    found = (re.sub(r"\\(.)", r"\1", match[1]).rstrip(".,;:!?)]}'\"*") for match in re.finditer(MENTION, plain))
    return tuple(dict.fromkeys(path for path in found if path))


def within(
    files: Sequence[MemoryFile], limit: int = MAX_TOTAL
) -> tuple[tuple[MemoryFile, ...], tuple[MemoryProblem, ...]]:
    """The files that fit into `limit` characters, in order. Policy files are kept first, then the nearest ones."""
    ranked = sorted(range(len(files)), key=lambda at: (files[at].scope != "policy", -at))
    kept: set[int] = set()
    used = 0
    for at in ranked:
        if used + len(files[at].text) <= limit:
            used += len(files[at].text)
            kept.add(at)
    problems = tuple(
        MemoryProblem(
            file.path, f"left out: all memory files together are over {limit:,} characters. Shorten some of them."
        )
        for at, file in enumerate(files)
        if at not in kept
    )
    return tuple(file for at, file in enumerate(files) if at in kept), problems


def memory_text(files: Iterable[MemoryFile]) -> str:
    """The files for the model, in order; empty if there is none."""
    framed = [memory_file_frame(str(file.path), file.scope, file.text) for file in files if file.text.strip()]
    return memory_frame(INTRODUCTION, framed) if framed else ""


def _without_fences(text: str) -> str:
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = re.match(FENCE, line)
        if fence:
            closes = mark and mark[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
        elif mark:
            fence = mark[1]
        else:
            kept.append(line)
    return "\n".join(kept)


@cache
def _alternatives(pattern: str) -> tuple[str, ...]:
    """The patterns that braces stand for; too many of them match nothing."""
    waiting = [pattern]
    done: list[str] = []
    while waiting:
        if len(waiting) + len(done) > MAX_ALTERNATIVES:
            return ()
        each = waiting.pop()
        inner = re.search(r"\{([^{}]*)\}", each)
        if inner is None:
            done.append(each)
        else:
            waiting += [each[: inner.start()] + word + each[inner.end() :] for word in inner[1].split(",")]
    return tuple(done)


def _steps(pattern: str) -> tuple[str, ...]:
    if pattern.endswith("/"):
        pattern += "**"
    steps = tuple(step for step in pattern.split("/") if step not in {"", "."})
    return ("**", *steps) if "/" not in pattern else steps


def _fits(steps: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    # which beginnings of the path the steps so far can stand for: no backtracking, so no pattern is slow
    reached = {0}
    for step in steps:
        if step == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], step)}
    return len(parts) in reached
