"""Diagnostics: errors and warnings that a server finds in a file, and which of them are new."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from handrail.lsp.positions import from_utf16
from handrail.lsp.texts import one_line
from handrail.records import record

SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
MAX_PROBLEMS = 1_000
MAX_MESSAGE = 400


@record
class CodeProblem:
    """One diagnostic. Line and character count from 0, in UTF-16 units."""

    severity: int
    line: int
    character: int
    message: str
    origin: str = ""
    """The program and the rule that say so."""


def parse_problems(listed: object) -> tuple[CodeProblem, ...]:
    """The diagnostics of a list of the protocol, the gravest first, then by their place."""
    given = listed[: 2 * MAX_PROBLEMS] if isinstance(listed, list) else []
    found = [problem for each in given if (problem := _parse(each)) is not None]
    return tuple(sorted(found, key=lambda each: (each.severity, each.line, each.character))[:MAX_PROBLEMS])


def _parse(value: Any) -> CodeProblem | None:
    match value:
        case {"range": {"start": {"line": int(line), "character": int(character)}}, "message": str(message)}:
            severity = value.get("severity")
            code = value.get("code")
            parts = (value.get("source"), code if isinstance(code, str | int) else None)
            origin = " ".join(one_line(str(part), 60) for part in parts if part not in (None, ""))
            known = severity if isinstance(severity, int) and severity in SEVERITIES else 1
            return CodeProblem(known, max(line, 0), max(character, 0), one_line(message, MAX_MESSAGE), origin)
        case _:
            return None


def problem_line(problem: CodeProblem, name: str, lines: Sequence[str]) -> str:
    """One diagnostic as it is shown, with its place counted from 1."""
    text = lines[problem.line] if problem.line < len(lines) else ""
    column = from_utf16(text, problem.character) + 1
    origin = f" ({problem.origin})" if problem.origin else ""
    return f"{name}:{problem.line + 1}:{column}: {SEVERITIES[problem.severity]}: {problem.message}{origin}"


def new_problems(
    before: Sequence[CodeProblem], old: Sequence[str], after: Sequence[CodeProblem], new: Sequence[str]
) -> tuple[CodeProblem, ...]:
    """The problems that were not there before. One whose line only moved is not new."""
    known = Counter(_identity(each, old) for each in before)
    found = []
    for each in after:
        same = _identity(each, new)
        if known[same] > 0:
            known[same] -= 1
        else:
            found.append(each)
    return tuple(found)


def _identity(problem: CodeProblem, lines: Sequence[str]) -> tuple[int, str, str, str]:
    text = lines[problem.line].strip() if problem.line < len(lines) else ""
    return problem.severity, problem.message, problem.origin, text
