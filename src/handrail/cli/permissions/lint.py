"""`handrail permissions lint`: finds rules that do not do what they seem to."""

import argparse
import json
import sys
import time
from collections.abc import Callable

from handrail.cli.permission_flags import warn
from handrail.cli.permissions.calls import KnownTools, open_preview
from handrail.cli.terminal import ReportScreen
from handrail.permissions.lint import lint

CLEAN, FOUND = 0, 1


def run(chosen: argparse.Namespace) -> int:
    """Exit code 0: no remarks; 1: at least one, or a settings file is broken, so that its rules are not known."""
    notes: list[str] = []
    preview = open_preview(chosen, notes.append, trust=True)  # before a folder is trusted, its rules can be checked
    policy, screen = preview.policy, ReportScreen(sys.stdout)
    findings = lint(policy, KnownTools(preview.loaders).names, progress(len(policy.rules)))
    for note in notes:
        if not any(found.message in note for found in findings):  # what is found is printed below
            warn(note)
    for found in findings:
        if chosen.json:
            source = found.source
            place = {"file": source.file, "line": source.line, "source": source.name}
            print(json.dumps({"kind": found.kind, "rule": found.rule, **place, "message": found.message}))
        else:
            place_text = f"{found.source.file}:{found.source.line}" if found.source.file else str(found.source)
            print("\n".join(screen.wrap(f"{place_text}: {found.kind}: {found.rule}: {found.message}", 2)))
    if not chosen.json:
        broken = ", and at least one settings file that is broken" if preview.has_broken_file else ""
        rules = {(rule.text, rule.source) for rule in policy.rules} | {(p.text, p.source) for p in policy.problems}
        print(f"{count_noun(len(rules), 'rule')}, {count_noun(len(findings), 'remark')}{broken}")
    return FOUND if findings or preview.has_broken_file else CLEAN


def count_noun(number: int, noun: str) -> str:
    """The number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def progress(total: int) -> Callable[[int], None]:
    """Shows progress on a terminal after one second."""
    started = time.monotonic()

    def show_progress(done: int) -> None:
        if sys.stderr.isatty() and time.monotonic() - started > 1:
            sys.stderr.write(f"\r{done} of {total} rules\x1b[K" + ("\r\x1b[K" if done + 500 >= total else ""))
            sys.stderr.flush()

    return show_progress
