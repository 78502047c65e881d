"""`handrail shell`: what a command line would do, without running it."""

import argparse
import json
import os
import posixpath
import sys
from pathlib import Path

from handrail.cli.terminal import ReportScreen
from handrail.files.paths import match_files
from handrail.shell import CommandVerdict, analyse, reads_outside, reads_secrets
from handrail.shell.effects import Found, PathText
from handrail.shell.explain import explain
from handrail.shell.json_form import analysis_json
from handrail.shell.patterns import read_pattern

READ_ONLY, NOT, NOT_UNDERSTOOD = 0, 1, 2


def run(chosen: argparse.Namespace) -> int:
    """Exit code 0: read-only, and no read of a secret or outside the workspaces; 1: otherwise; 2: not understood."""
    # bytes that are not UTF-8 become characters that the analysis refuses
    line = sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if chosen.line == "-" else chosen.line
    analysis = analyse(line)
    cwd = str(Path(chosen.cwd or ".").absolute())
    home = str(Path(chosen.home).absolute()) if chosen.home else str(Path.home())
    roots = tuple(str(Path(cwd, folder)) for folder in chosen.workspace or [cwd])
    outside = reads_outside(analysis, cwd=cwd, roots=roots, home=home, resolve=os.path.realpath, match=matches)
    secrets = reads_secrets(analysis, cwd=cwd, home=home, resolve=os.path.realpath, match=matches)
    code = exit_code(analysis.verdict, outside, secrets)
    if chosen.json:
        beyond = {"outside": names(outside), "secrets": names(secrets)}
        print(json.dumps(analysis_json(analysis) | {"reads": beyond, "exit": code}))
    else:
        described = describe_paths(explain(analysis), names(outside), names(secrets), roots)
        print("\n".join(ReportScreen(sys.stdout).wrap(described)))
    return code


def matches(folder: str, path: PathText) -> list[str]:
    """The path as written and, if it is a pattern, the files that it may match."""
    found = () if isinstance(path, str) else match_files(read_pattern(path.source, loose=True).parts, folder)
    # of more files than are looked at, any may lie elsewhere
    return [posixpath.join(folder, str(path)), *(("/",) if found is None else found)]


def exit_code(verdict: CommandVerdict, outside: Found, secrets: Found) -> int:
    if verdict is CommandVerdict.READ_ONLY:
        return NOT if outside or secrets else READ_ONLY
    return NOT_UNDERSTOOD if verdict is CommandVerdict.NOT_UNDERSTOOD else NOT


def names(found: Found) -> list[str]:
    return list(dict.fromkeys(str(word) for _, word in found))


def describe_paths(text: str, outside: list[str], secrets: list[str], roots: tuple[str, ...]) -> str:
    lines = [text]
    if outside:
        lines.append(f"reads outside {' and '.join(roots)}, or not known where: {', '.join(outside)}")
    if secrets:
        lines.append(f"reads what may hold secrets, or is not an ordinary file: {', '.join(secrets)}")
    return "\n".join(lines)
