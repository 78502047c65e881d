"""What a check of `handrail doctor` finds, and how findings are shown."""

import json
from enum import Enum

from handrail.cli.terminal import GREEN, RED, ReportScreen
from handrail.records import record


class State(Enum):
    """The state of one finding."""

    OK = "ok"
    OFF = "off"
    NOTE = "note"
    PROBLEM = "problem"


@record
class Finding:
    """One thing that was checked."""

    area: str
    name: str
    state: State
    text: str


def as_json(found: list[Finding]) -> str:
    """An object with `ok` and the findings."""
    rows = [{"area": f.area, "name": f.name, "state": f.state.value, "text": f.text} for f in found]
    return json.dumps({"ok": all(f.state is not State.PROBLEM for f in found), "findings": rows}, indent=2)


def as_text(found: list[Finding], screen: ReportScreen) -> str:
    """A heading for each area, then its findings in columns."""
    lines: list[str] = []
    for area in dict.fromkeys(each.area for each in found):
        rows = [(f"{each.state.value:<7}", each.name, each.text) for each in found if each.area == area]
        lines += [screen.heading(area), *map(screen.paint_word, screen.table(rows))]
    problems = sum(each.state is State.PROBLEM for each in found)
    end = f"{problems} problem{'s' * (problems != 1)}." if problems else "No problems."
    return "\n".join([*lines, "", screen.paint(end, RED if problems else GREEN)])
