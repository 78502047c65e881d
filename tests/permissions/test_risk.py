"""The level of risk that a dialog shows."""

from pathlib import Path
from typing import Any

import pytest

from handrail.permissions.facts import Facts
from handrail.permissions.risk import Level, risk
from handrail.tools.tool import WARNINGS
from tests.permissions.world import World


@pytest.mark.parametrize(
    ("tool", "values", "level", "reason"),
    [
        ("Read", {"file_path": "a"}, Level.LOW, "it only reads"),
        ("Read", {"file_path": "/etc/hosts"}, Level.MEDIUM, "outside the working folders"),
        ("Write", {"file_path": "a"}, Level.MEDIUM, "it changes something"),
        ("Write", {"file_path": ".git/config"}, Level.HIGH, "is protected (.git)"),
        ("Bash", {"command": "ls"}, Level.LOW, "it only reads"),
        ("Bash", {"command": "npm ci"}, Level.MEDIUM, "it changes something"),
        ("Bash", {"command": "rm a"}, Level.HIGH, "'rm a' removes files"),
        ("Bash", {"command": "rm -rf ~"}, Level.HIGH, "must not be removed"),
        ("Bash", {"command": "echo 'a"}, Level.HIGH, "not understood"),
        ("WebFetch", {"url": "http://localhost/"}, Level.HIGH, "on this machine"),
        ("WebFetch", {"url": "http://169.254.169.254/"}, Level.HIGH, "hands out credentials"),
    ],
)
def test_the_risk_names_its_reason(
    tool: str, values: dict[str, Any], level: Level, reason: str, tmp_path: Path
) -> None:
    found = risk(World(tmp_path).case(tool, values))

    assert found.level is level
    assert reason in " ".join(found.reasons)


def test_the_destructive_mark_adds_to_the_risk(tmp_path: Path) -> None:
    case = World(tmp_path).case("mcp__db__drop", {}, Facts(warnings=tuple(WARNINGS.values())))

    assert risk(case).level is Level.HIGH
    assert risk(case).reasons == ("the tool calls it destructive",)
