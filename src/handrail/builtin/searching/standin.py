"""
A stand-in for ripgrep where there is none: the same arguments, as far as we use them, and the same output.

It runs in a process of its own, so that a pattern which takes for ever can be killed like ripgrep.

    python -m handrail.builtin.searching.standin --files-with-matches --null --regexp=TODO -- ./
"""

import json
import os
import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

from handrail.builtin.searching.ignoring import Ignored, Rule, glob_rule
from handrail.errors import ToolError
from handrail.records import record

MAX_FILE_BYTES = 100_000_000
EXTENSIONS = {
    "c": "c h", "cpp": "cpp cc cxx hpp hh hxx h", "css": "css scss", "csv": "csv", "go": "go", "html": "html htm",
    "java": "java", "js": "js jsx mjs cjs", "json": "json", "md": "md markdown", "php": "php", "py": "py pyi",
    "ruby": "rb", "rust": "rs", "sh": "sh bash zsh", "sql": "sql", "toml": "toml", "ts": "ts tsx mts cts",
    "txt": "txt", "xml": "xml", "yaml": "yml yaml",
}  # fmt: skip


@record
class Asked:
    """What the arguments ask for."""

    mode: str = "lines"
    pattern: str = ""
    flags: int = 0
    multiline: bool = False
    ignore_files: bool = True
    globs: tuple[str, ...] = ()
    before: int = 0
    after: int = 0
    targets: tuple[bytes, ...] = ()


MODES = {"--files": "files", "--files-with-matches": "matching", "--count": "count", "--json": "lines"}


def read_arguments(arguments: list[str]) -> Asked:
    """The arguments that our tools give, in any order; paths follow `--`."""
    options, paths = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    given: dict[str, list[str]] = {}
    for option in options:
        name, _, value = option.partition("=")
        given.setdefault(name, []).append(value)
    globs = list(given.get("--glob", ()))
    for kind in given.get("--type", ()):
        if kind not in EXTENSIONS:
            raise ToolError(f"unrecognized file type: {kind}")
        globs.append("*.{" + EXTENSIONS[kind].replace(" ", ",") + "}")
    flags = re.MULTILINE | (re.IGNORECASE if "--ignore-case" in given else 0)
    return Asked(
        mode=next(mode for option, mode in MODES.items() if option in given),
        pattern=given.get("--regexp", [""])[0],
        flags=flags | (re.DOTALL if "--multiline-dotall" in given else 0),
        multiline="--multiline" in given,
        ignore_files="--no-ignore" not in given,
        globs=tuple(globs),
        before=int(given.get("--before-context", ["0"])[0]),
        after=int(given.get("--after-context", ["0"])[0]),
        targets=tuple(map(os.fsencode, paths)),
    )


def compiled(asked: Asked) -> re.Pattern[str]:
    """The pattern, or an error that shows the place."""
    if "\n" in asked.pattern and not asked.multiline:
        raise ToolError('the literal "\\n" is not allowed in a regex')
    try:
        return re.compile(asked.pattern, asked.flags)
    except re.error as error:
        line = asked.pattern.replace("\n", " ")
        caret = " " * (error.pos or 0) + "^"
        raise ToolError(f"regex parse error:\n    {line}\n    {caret}\nerror: {error.msg}") from error


def files_below(asked: Asked, complain: Callable[[OSError], None]) -> Iterator[tuple[bytes, bool]]:
    """Regular files that neither ignore files nor globs leave out, and whether they were named. Links are left out."""
    whitelist = [glob_rule(glob) for glob in asked.globs if not glob.startswith("!")]
    blacklist = [glob_rule(glob[1:]) for glob in asked.globs if glob.startswith("!")]
    for target in asked.targets:
        if not os.path.isdir(target):  # noqa: PTH112  # bytes, which Path does not take
            yield target, True
            continue
        root = target.rstrip(b"/")
        waiting = [(root, Ignored.above(root) if asked.ignore_files else None)]
        while waiting:
            folder, ignored = waiting.pop()
            ignored = ignored.inside(folder) if ignored else None
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                complain(error)
                continue
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                parts = tuple(os.fsdecode(entry.path[len(root) + 1 :]).split("/"))
                wanted = _listed(whitelist, parts, is_folder=is_folder)
                out = _listed(blacklist, parts, is_folder=is_folder) or (
                    not wanted and ignored is not None and ignored.leaves_out(entry.path, is_folder=is_folder)
                )
                if out:
                    continue
                if is_folder:
                    waiting.append((entry.path, ignored))
                elif entry.is_file(follow_symlinks=False) and (wanted or not whitelist):
                    yield entry.path, False


def _listed(rules: list[Rule], parts: tuple[str, ...], *, is_folder: bool) -> bool:
    return any(rule.fits(parts, is_folder=is_folder) for rule in rules)


def content(path: bytes, *, named: bool = True) -> str:
    """The text of a file; a binary one that nobody named counts as empty."""
    with open(path, "rb") as file:  # noqa: PTH123  # bytes
        data = file.read(MAX_FILE_BYTES)
    return "" if b"\0" in data and not named else data.decode("utf-8", "surrogateescape")


def spans(pattern: re.Pattern[str], asked: Asked, text: str) -> Iterator[tuple[int, list[str], list[tuple[int, int]]]]:
    """Each run of matching lines: the number of the first, the lines, and what matches, as byte offsets."""
    lines = text.splitlines(keepends=True) if asked.multiline else text.split("\n")
    if not asked.multiline:
        for number, line in enumerate(lines):
            if number == len(lines) - 1 and not line:
                return
            if found := [match.span() for match in pattern.finditer(line) if match.group() or not line]:
                yield number, [line], [_bytes(line, span) for span in found]
            elif pattern.search(line):
                yield number, [line], []
        return
    done = -1
    for match in pattern.finditer(text):
        first, last = text.count("\n", 0, match.start()), text.count("\n", 0, max(match.end() - 1, match.start()))
        if first > done:
            start = text.rfind("\n", 0, match.start()) + 1
            block = text.split("\n")[first : last + 1]
            yield first, block, [_bytes("\n".join(block), (match.start() - start, match.end() - start))]
            done = last


def _bytes(line: str, span: tuple[int, int]) -> tuple[int, int]:
    start = len(os.fsencode(line[: span[0]]))
    return start, start + len(os.fsencode(line[span[0] : span[1]]))


def json_text(data: bytes) -> dict[str, str]:
    """A text as ripgrep writes it in JSON."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": b64encode(data).decode()}


def events(path: bytes, pattern: re.Pattern[str], asked: Asked) -> Iterator[dict[str, Any]]:
    """What ripgrep would say about one file in JSON."""
    text = content(path)
    lines = text.split("\n")
    last = len(lines) - (lines[-1] == "")
    shown = 0
    found = list(spans(pattern, asked, text))
    for at, (number, block, matches) in enumerate(found):
        end = number + len(block)
        upto = found[at + 1][0] if at + 1 < len(found) else last
        yield from (
            _event("context", path, n, [lines[n]], []) for n in range(max(shown, number - asked.before), number)
        )
        yield _event("match", path, number, block, matches)
        shown = min(end + asked.after, upto)
        yield from (_event("context", path, n, [lines[n]], []) for n in range(end, shown))
        shown = max(shown, end)


def _event(kind: str, path: bytes, number: int, block: list[str], matches: list[tuple[int, int]]) -> dict[str, Any]:
    data = os.fsencode("\n".join(block) + "\n")
    parts = [{"match": json_text(data[start:end]), "start": start, "end": end} for start, end in matches]
    return {
        "type": kind,
        "data": {
            "path": json_text(path),
            "lines": json_text(data),
            "line_number": number + 1,
            "absolute_offset": 0,
            "submatches": parts,
        },
    }


def answer(asked: Asked, write: Callable[[bytes], object], complain: Callable[[OSError], None]) -> None:
    """Write what was asked for."""
    pattern = compiled(asked)
    for path, named in files_below(asked, complain):
        try:
            if asked.mode == "files":
                write(path + b"\0")
            elif asked.mode == "lines":
                for event in events(path, pattern, asked):
                    write(json.dumps(event, separators=(",", ":")).encode() + b"\n")
            elif asked.mode == "count":
                count = sum(1 for _ in spans(pattern, asked, content(path, named=named)))
                write(b"%b\0%d\n" % (path, count) if count else b"")
            elif next(spans(pattern, asked, content(path, named=named)), None):
                write(path + b"\0")
        except OSError as error:
            complain(error)


def main() -> int:
    """The program."""

    def complain(error: OSError) -> None:
        print(f"rg: {error.filename!r}: {error.strerror} (os error {error.errno})", file=sys.stderr)  # noqa: T201

    try:
        answer(read_arguments(sys.argv[1:]), sys.stdout.buffer.write, complain)
        sys.stdout.flush()
    except ToolError as error:
        print(f"rg: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
