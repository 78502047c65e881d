"""Glob: find files by name pattern, newest first; without a pattern, list a folder."""

import os
import posixpath
import time

from handrail.builtin.services import ToolServices
from handrail.builtin.support.name_patterns import fixed_start, for_ripgrep, matcher
from handrail.builtin.support.places import place_of
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.builtin.support.ripgrep import (
    VERSION_CONTROL,
    Folder,
    RipgrepProcess,
    one_line,
    relative_name,
    sort_names,
    visible_names,
)
from handrail.conversation.blocks import Json
from handrail.errors import ToolError
from handrail.processes.sandbox.placeholder_marks import stands_in
from handrail.records import record
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.wording import several

MAX_FILES = 100
MAX_ENTRIES = 1_000
EVERYTHING = "/**/*"
"""A glob that excludes nothing, and would take ripgrep a tenth of its time."""
ONE_THREAD = ("--threads=1",)
"""With one thread, ripgrep lists files faster than we read their times, and leaves us more of the processor."""
ENDING = "/**/*."
"""A glob that begins so often matches many files."""
FEW_PROCESSORS = 2
NO_IGNORE = "CLAUDE_CODE_GLOB_NO_IGNORE"
OFF = frozenset({"0", "false", "no", "off"})


class GlobInput(PlainInput):
    pattern: str = Field(
        default="", max_length=1000, description="For example src/**/*.{ts,tsx}; left out: list the folder."
    )
    path: str = Field(default=".", description="Folder to search in; the working folder if left out.")


@record
class GlobResult:
    """The newest files first, how many there are in all, and how many folders could not be read."""

    names: list[str]
    total: int = 0
    unreadable: int = 0


class Glob(ReadOnlyTool[GlobInput]):
    name = "Glob"
    aliases = ("LS",)
    search_hint = "find list files folder name wildcard"
    input_model = GlobInput
    subject = "path"
    always_load = True
    blocking = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: GlobInput, run: RunContext) -> Access:
        start = beyond(args.pattern)
        if start and not start.startswith("~"):
            start = posixpath.join(args.path, start)
        return Access.of(walks=(args.path, start) if start else args.path, filtered=True)

    def summary(self, args: GlobInput) -> str:
        return f"Glob({args.pattern or args.path})"

    def call_blocking(self, args: GlobInput, ctx: ToolContext) -> Output:
        began = time.monotonic()
        spelling, pattern = place_to_search(args)
        place = place_of(spelling, ctx, self._services)
        folder = Folder.at(place)
        if folder.real != place.real:
            folder.close()
            raise ToolError(f"{spelling!r} cannot be searched: Not a directory. Give another folder as path.")
        with folder:
            base = relative_name(ctx.cwd, place)
            found = self._matching(folder, pattern, ctx) if pattern else self._entries(folder)
        names = [f"{base.rstrip('/')}/{name}" if base else name for name in found.names]
        data = {
            "filenames": names,
            "numFiles": len(names),
            "durationMs": round((time.monotonic() - began) * 1000),
            "truncated": found.total > len(names),
            "totalMatches": found.total,
            "countIsComplete": True,
        }
        text = listing(names, found.total - len(names), found.unreadable)
        card = Card(title=f"{self.name} {args.pattern or args.path}", detail=several(found.total, "file"))
        return Output(text=text, data=data, card=card)

    def output_from_data(self, data: Json) -> Output:
        names = data.get("filenames")
        if isinstance(names, list):
            return Output(text="\n".join(map(str, names)), data=data)
        return super().output_from_data(data)

    def _matching(self, folder: Folder, pattern: str, ctx: ToolContext) -> GlobResult:
        before, rest = fixed_start(pattern)
        if folder.below(before) is None:
            return GlobResult([])
        globs, exact = for_ripgrep(rest)
        if not globs:
            return GlobResult([])
        with RipgrepProcess(self._arguments(globs, rest), folder, self._services, ctx.abort) as program:
            lists = program.pieces(b"\0")
            if not exact or self._respects_ignore_files:
                fits = matcher(rest)
                lists = ([name for name in names if fits(tuple(os.fsdecode(name[2:]).split("/")))] for names in lists)
            shown = visible_names(folder, lists, self._services)
            newest, total = sort_names(folder, shown, self._services, MAX_FILES)
            if program.complaint and not program.unreadable:
                complaint = program.complaint.decode(errors="replace").strip().rstrip(".")
                raise ToolError(f"{pattern!r} cannot be searched for: {complaint}. Give another pattern.")
            start = "".join(f"{part}/" for part in before)
            return GlobResult([start + os.fsdecode(name[2:]) for name in newest], total, program.unreadable)

    def _arguments(self, globs: list[str], pattern: str) -> list[str]:
        """Where ignore files count, no glob is passed: it would override them."""
        if self._respects_ignore_files:
            given = []
        else:
            given = ["--no-ignore"] if EVERYTHING in globs else ["--no-ignore", *(f"--glob={glob}" for glob in globs)]
            given += _threads(globs)
        kept = set(pattern.split("/"))
        given += [f"--glob=!{name}" for name in VERSION_CONTROL if name not in kept]
        return ["--no-config", "--files", "--null", "--hidden", *given, "--", "./"]

    @property
    def _respects_ignore_files(self) -> bool:
        return self._services.env.get(NO_IGNORE, "").lower() in OFF

    def _entries(self, folder: Folder) -> GlobResult:
        """The entries of the folder, folders first and with a slash."""
        with os.scandir(folder.descriptor) as entries:
            found = sorted((not entry.is_dir(), entry.name) for entry in entries if not _stands_in(entry))
        files = {b"./" + os.fsencode(name): file for file, name in found}
        shown = [name for names in visible_names(folder, [[*files]], self._services) for name in names]
        first = [os.fsdecode(name[2:]) + ("" if files[name] else "/") for name in shown[:MAX_ENTRIES]]
        return GlobResult(first, len(shown))


def _threads(globs: list[str]) -> tuple[str, ...]:
    crowded = (os.cpu_count() or 1) <= FEW_PROCESSORS and any(glob.startswith(ENDING) for glob in globs)
    return ONE_THREAD if crowded or EVERYTHING in globs else ()


def _stands_in(entry: os.DirEntry[str]) -> bool:
    """Whether it is a placeholder that the sandbox creates while commands run."""
    try:
        return entry.is_dir(follow_symlinks=False) and stands_in(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def place_to_search(args: GlobInput) -> tuple[str, str]:
    """The folder to search and the pattern below it. A pattern that leaves the folder names its own start."""
    if not args.pattern.startswith(("/", "~/")) and ".." not in args.pattern.split("/"):
        return args.path, args.pattern
    fixed, rest = fixed_start(args.pattern)
    if args.pattern.startswith("/"):
        return "/" + "/".join(fixed), rest
    start = "/".join(fixed)
    return start if args.pattern.startswith("~/") else posixpath.join(args.path, start), rest


def beyond(pattern: str) -> str:
    """Where a pattern leaves the searched folder; empty if it does not."""
    if not pattern.startswith(("/", "~")) and ".." not in pattern.split("/"):
        return ""
    parts = pattern.split("/")
    wild = next((at for at, part in enumerate(parts) if set(part) & set("*?[{")), len(parts))
    back = max((at for at, part in enumerate(parts) if part == ".."), default=-1)
    # what a wildcard matches is unknown, so `..` after one counts from the start of the wildcard
    return "/".join(parts[:wild] + [".."] * parts[wild : back + 1].count("..")) or "/"


def listing(names: list[str], more: int, unreadable: int) -> str:
    """One path per line, as Read accepts it, with notes about what was left out."""
    lines = [one_line(name) for name in names] or ["No file matches."]
    if more:
        rest = f"{more:,} more files match" if more > 1 else "1 more file matches"
        lines.append(f"({rest}. Use a narrower pattern to see them.)")
    if unreadable:
        lines.append(f"({several(unreadable, 'folder')} could not be read.)")
    return "\n".join(lines)
