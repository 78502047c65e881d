"""The input of Grep and the ripgrep arguments for it."""

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from handrail.builtin.support.ripgrep import VERSION_CONTROL
from handrail.errors import ToolError
from handrail.lazy import lazy_pattern
from handrail.tools.plain_input import Field, PlainInput

Mode: TypeAlias = Literal["files_with_matches", "content", "count"]

DEFAULT_LINES = 250
CHARS_A_LINE = 120
MIN_CHARS, MAX_CHARS = 6_000, 100_000
BETWEEN_GLOBS = lazy_pattern(r"[,\s]+(?![^{]*\})")


class GrepInput(PlainInput):
    pattern: str = Field(min_length=1, max_length=10_000, description="Regular expression.")
    path: str = Field(default=".", description="File or folder.")
    glob: str = Field(default="", max_length=1000, description="Only these files: *.{ts,tsx}")
    type: str = Field(default="", max_length=100, description="Only files of this type: py, js, rust, ...")
    output_mode: Mode = Field(default="files_with_matches", description="Paths, matching lines, or numbers of them.")
    after: int = Field(default=0, ge=0, alias="-A", description="Lines after each match.")
    before: int = Field(default=0, ge=0, alias="-B", description="Lines before each match.")
    around: int = Field(default=0, ge=0, alias="-C", description="Lines on both sides.")
    context: int = Field(default=0, ge=0, description="The same as -C.")
    numbers: bool = Field(default=True, alias="-n", description="With line numbers.")
    ignore_case: bool = Field(default=False, alias="-i", description="Ignore case.")
    only_matching: bool = Field(default=False, alias="-o", description="Only the part that matches.")
    multiline: bool = Field(default=False, description="Patterns may cross lines; . matches newlines.")
    head_limit: int = Field(default=DEFAULT_LINES, ge=0, description="Show so many lines or files; 0 = all.")
    offset: int = Field(default=0, ge=0, description="Leave out so many first.")

    @property
    def lines_before(self) -> int:
        return self.before or self.around or self.context

    @property
    def lines_after(self) -> int:
        return self.after or self.around or self.context

    @property
    def max_chars(self) -> int:
        """The limit of the result in characters, from the number of wanted lines."""
        return min(max(self.head_limit * CHARS_A_LINE, MIN_CHARS), MAX_CHARS) if self.head_limit else MAX_CHARS


def pattern_arguments(args: GrepInput) -> Iterator[str]:
    """The arguments that decide whether a line matches."""
    yield "--no-config"
    if args.ignore_case:
        yield "--ignore-case"
    if args.multiline:
        yield "--multiline"
        yield "--multiline-dotall"
    if "\0" in args.pattern:
        raise ToolError(r"The pattern holds a NUL character. Write \x00 for it.")
    try:
        args.pattern.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"The pattern {args.pattern!r} holds half a character. Write \\xNN for a byte.") from error
    yield f"--regexp={args.pattern}"


def file_arguments(args: GrepInput) -> Iterator[str]:
    """The arguments that decide which files are searched."""
    yield "--hidden"
    for glob in filter(None, BETWEEN_GLOBS.split(args.glob)):
        yield f"--glob={glob}"
    if args.type:
        yield f"--type={args.type}"
    for name in VERSION_CONTROL:
        yield f"--glob=!{name}"


def refusal(args: GrepInput, complaint: bytes) -> ToolError:
    """Turn ripgrep's complaint about its arguments into an error for the model."""
    text = complaint.decode("utf-8", "replace").removeprefix("rg: ").strip()
    first = text.partition("\n")[0]
    if first.startswith("regex parse error") or "not allowed in a regex" in first:
        return ToolError(f"The pattern {args.pattern!r} is not valid: {pattern_problem(args.pattern, text)}")
    if "unrecognized file type" in first:
        return ToolError(f"There is no file type {args.type!r}. Use a glob such as '*.{args.type}' instead.")
    if "parsing glob" in first:
        problem = first.rpartition("': ")[2]
        return ToolError(f"The glob {args.glob!r} is not valid: {problem}. Correct it.")
    return ToolError(f"The search for {args.pattern!r} failed: {text[:500]}. Try another pattern.")


def pattern_problem(pattern: str, text: str) -> str:
    """What is wrong with a pattern, and at which character."""
    if "not allowed in a regex" in text:
        return "it holds a line break. Set multiline."
    lines = text.splitlines()
    what = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), "it cannot be read")
    caret = next((at for at, line in enumerate(lines) if set(line.strip()) == {"^"}), 0)
    advice = "Escape signs that are meant literally, for example \\( or \\{."
    if not caret:
        return f"{what}. {advice}"
    column = lines[caret].index("^") - 4
    shown = lines[caret - 1][4:]
    if shown == f"(?:{pattern})":  # some versions show the wrapped pattern, and may point at their own brackets
        odd = find_unbalanced(pattern)
        column = column - 3 if odd is None else odd
    return f"{what} (at character {column + 1}, {pattern[column : column + 10]!r}). {advice}"


def find_unbalanced(pattern: str) -> int | None:
    """The position of an unmatched closing bracket, or of the last unclosed group."""
    groups: list[int] = []
    for sign in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]", pattern, re.DOTALL):
        if sign[0] == "(":
            groups.append(sign.start())
        elif sign[0] == ")":
            if not groups:
                return sign.start()
            groups.pop()
    return groups[-1] if groups else None
