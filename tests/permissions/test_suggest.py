"""What "always allow" proposes: it covers the call, is useful, and is never as wide as an interpreter."""

from pathlib import Path
from typing import Any

import pytest

from handrail.permissions.layers import decide
from handrail.permissions.suggest import Suggestion, suggest
from handrail.permissions.wide_rules import RUN_ANYTHING
from handrail.tools.permission import Verdict
from tests.permissions.world import World
from tests.shell.corpus_report import lines as command_lines


def rules(world: World, command: str) -> list[str]:
    return [suggestion.rule for suggestion in suggest(world.case("Bash", {"command": command}))]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git push origin main", ["Bash(git push *)"]),
        ("npm run test -- --watch", ["Bash(npm run test *)"]),
        ("pytest -x tests", ["Bash(pytest *)"]),
        ("make all && git commit -m 'a b'", ["Bash(make all *)", "Bash(git commit *)"]),
        ("ls && make all", ["Bash(make all *)"]),
        ("timeout 5 make all", ["Bash(make all *)"]),
        ("python3 x.py", ["Bash(python3 x.py)"]),
        ("bash run.sh", ["Bash(bash run.sh)"]),
        ("env make all", ["Bash(env make all)"]),
        ("./gradlew build", ["Bash(./gradlew build)"]),
        ("git -C x push", ["Bash(git -C x push)"]),
        ("npx tool", ["Bash(npx tool)"]),
        ("docker run x", ["Bash(docker run x)"]),
        ("python3 -c 'exit(1)'", ["Bash(python3 -c 'exit(1)')"]),
        ("tool '*'", ["Bash(tool *)"]),
        ("rm -rf build", []),
        ("make $(cat x)", []),
        ("make 'broken", []),
        ("make all > .git/config", []),
        ("make all > out.txt", []),
        ("a1; a2; a3; a4; a5; a6", []),
        ("a1 x; a1 y; a1 z; a1 w; a1 v; a1 u", ["Bash(a1 *)"]),
        ("git status", []),
    ],
)
def test_commands_are_proposed_by_part(command: str, expected: list[str], tmp_path: Path) -> None:
    assert rules(World(tmp_path), command) == expected


def test_a_proposal_lets_the_command_pass_and_is_no_bare_interpreter(tmp_path: Path) -> None:
    world = World(tmp_path)
    for line in command_lines():
        world.rules = {}
        proposed = rules(world, line.command)
        if proposed:
            world.rules = {"allow": proposed}
            case = world.case("Bash", {"command": line.command})
            assert decide(case).verdict is Verdict.ALLOW, (line.command, proposed)
        assert not {rule.removeprefix("Bash(").removesuffix(" *)") for rule in proposed} & RUN_ANYTHING
        assert len(proposed) <= 5


@pytest.mark.parametrize(
    ("tool", "values", "expected"),
    [
        ("WebFetch", {"url": "https://docs.example.org/x"}, (Suggestion("WebFetch(domain:docs.example.org)"),)),
        ("WebFetch", {"url": "http://127.0.0.1/"}, ()),
        ("WebFetch", {"url": "https://"}, ()),
        ("mcp__db__query", {}, (Suggestion("mcp__db__query"),)),
        ("Edit", {"file_path": "a"}, (Suggestion("", "session", "acceptEdits"),)),
        ("Edit", {"file_path": ".git/config"}, ()),
        ("Edit", {"file_path": "../x"}, ()),
        ("Read", {"file_path": "/etc/hosts"}, ()),
        ("CronCreate", {}, (Suggestion("CronCreate"),)),
    ],
)
def test_other_tools_get_the_narrowest_useful_rule(
    tool: str, values: dict[str, Any], expected: tuple[Suggestion, ...], tmp_path: Path
) -> None:
    assert suggest(World(tmp_path).case(tool, values)) == expected
