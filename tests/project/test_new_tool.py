"""A new built-in tool is two files and one line: rules, hooks and `explain` know it from its name and declaration."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import handrail

PEEK = """
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.tools.access import Access
from handrail.tools.output import Output
from handrail.tools.plain_input import PlainInput


class PeekInput(PlainInput):
    path: str


class Peek(ReadOnlyTool[PeekInput]):
    name = "Peek"
    input_model = PeekInput
    subject = "path"

    def access(self, args, run):
        return Access.of(reads=args.path)

    async def call(self, args, ctx):
        return Output(text=(ctx.cwd / args.path).read_text())
"""
LINE = '        _entry("Peek", "peek.Peek"),\n'


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with one more tool; all its other files are links to ours."""
    ours, made = Path(handrail.__file__).parent, tmp_path_factory.mktemp("src")
    (made / "handrail" / "builtin").mkdir(parents=True)
    for below in ("", "builtin"):
        for each in (ours / below).iterdir():
            if each.name not in {"builtin", "table.py"}:
                (made / "handrail" / below / each.name).symlink_to(each)
    table, builtin = (ours / "builtin" / "table.py").read_text(), made / "handrail" / "builtin"
    (builtin / "table.py").write_text(
        table.replace('        _entry("PowerShell"', f'{LINE}        _entry("PowerShell"')
    )
    (builtin / "peek.py").write_text(PEEK)
    (builtin / "peek.md").write_text("Show a file.\n")
    return made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (made := tmp_path / "project").mkdir()
    for name in (".env", "open.txt"):
        (made / name).write_text(f"text of {name}")
    return made


def handrail_with(source: Path, project: Path, *words: str) -> tuple[int, str, str]:
    home = project.parent
    env = {**os.environ, "PYTHONPATH": str(source), "HOME": str(home), "HANDRAIL_STATE_DIR": f"{home}/state"}
    env |= {"IS_SANDBOX": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "handrail", *words]
    ran = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=60, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def settings(**rules: list[str]) -> str:
    hook = """echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}'"""
    hooks = {"PreToolUse": [{"matcher": "Peek", "hooks": [{"type": "command", "command": hook}]}]}
    return json.dumps({"permissions": rules, "hooks": hooks})


@pytest.mark.parametrize(("rule", "mode"), [("Read(.env)", "bypassPermissions"), ("Peek(.env)", "default")])
def test_rules_for_files_and_for_its_own_name_hold_for_a_new_tool(
    source: Path, project: Path, rule: str, mode: str
) -> None:
    rules = ("--settings", settings(deny=[rule], allow=["Peek"]))
    given = (*rules, "--permission-mode", mode, "--allow-dangerously-skip-permissions")

    code, _, refused = handrail_with(source, project, "call", *given, "Peek", '{"path": "./.env"}')
    assert code == 3
    assert rule in refused
    assert "there is no tool" not in refused
    allowed = handrail_with(source, project, "call", *given, "Peek", '{"path": "open.txt"}')
    assert allowed == (0, "text of open.txt\n", "")


def test_a_new_tool_is_offered_explained_and_kept_inside(source: Path, project: Path) -> None:
    (project.parent / "other").write_text("x")

    assert "Peek" in handrail_with(source, project, "tools")[1]
    explained = handrail_with(source, project, "permissions", "explain", "Peek", '{"path": "../other"}')[1]
    assert explained.startswith("ask: ")
    assert "outside the working folders" in explained
