"""Prints, by class, the corpus lines judged too loosely or too strictly: `python -m tests.shell.misses [class ...]`."""

import sys

from handrail.shell import analyse, reads_outside
from tests.shell.corpus_report import HOME, WORKSPACE, Line, score


def reason(line: Line) -> str:
    analysis = analyse(line.command)
    if analysis.reasons:
        return analysis.reasons[0].text
    outside = reads_outside(analysis, cwd=WORKSPACE, roots=(WORKSPACE,), home=HOME)
    return f"reads {outside[0][1]} outside" if outside else "read-only"


def main(wanted: list[str]) -> None:
    for (expect, tier, kind), found in sorted(score().items()):
        misses = found.others if expect == "allow_read_only" else found.read_only
        print(f"{expect:16} {tier:8} {kind:28} read-only {len(found.read_only):3} of {found.total}")
        if misses and (not wanted or kind in wanted):
            for line in misses:
                print(f"    {line.id} {line.command!r}: {reason(line)}")


if __name__ == "__main__":
    main(sys.argv[1:])
