"""PowerShell: the machinery of Bash behind another shell, where that is installed."""

from pathlib import Path

import pytest

from handrail.builtin.powershell import PowerShell, Pwsh
from handrail.errors import ToolError
from handrail.session.tools import make_catalog
from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = pytest.mark.anyio

STAND_IN = """#!/bin/sh
for word; do last=$word; done
printf '%s|' "$@"
eval "$last"
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a program called pwsh, which is sh and says how it was started."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "pwsh").write_text(STAND_IN)
    (folder / "pwsh").chmod(0o755)
    return folder


def offered(**variables: str) -> bool:
    return any(tool.name == "PowerShell" for tool in make_catalog(variables=variables).pool.listed)


def test_it_is_offered_where_it_is_installed(installed: Path, tmp_path: Path) -> None:
    assert offered(PATH=f"/nowhere:{installed}")
    assert not offered(PATH=str(tmp_path))
    assert not offered(PATH="bin:")
    assert not offered()


async def test_the_line_is_handed_over_without_profile_and_questions(installed: Path, tmp_path: Path) -> None:
    session = Session(tmp_path, {"PATH": f"{installed}:/usr/bin:/bin", "ANTHROPIC_API_KEY": "sk-1", "MINE": "yes"})
    outcome = await session.use("PowerShell", {"command": 'echo "$MINE$ANTHROPIC_API_KEY"; cd /; exit 3'})

    assert outcome.status is Status.ERROR
    assert outcome.result.text == (
        'Exit code 3\n-NoLogo|-NoProfile|-NonInteractive|-Command|echo "$MINE$ANTHROPIC_API_KEY"; cd /; exit 3|yes'
    )
    assert outcome.output is not None
    assert outcome.output.card is not None
    assert outcome.output.card.title.startswith("PowerShell echo")
    assert session.run.cwd == session.project


@pytest.mark.parametrize("command", ["ls", "Get-ChildItem", "echo hello"])
async def test_nothing_is_read_only_and_all_is_asked_about(installed: Path, tmp_path: Path, command: str) -> None:
    session = Session(tmp_path, {"PATH": f"{installed}:/usr/bin:/bin"})
    tool = PowerShell(session.services)
    args = tool.parse({"command": command})
    outcome = await session.use("PowerShell", {"command": command}, session.rules())

    assert (tool.is_read_only(args), tool.is_concurrency_safe(args)) == (False, False)
    assert tool.summary(args) == f"PowerShell({command})"
    assert outcome.status is Status.DENIED


async def test_without_it_a_call_would_say_so(tmp_path: Path) -> None:
    session = Session(tmp_path, {"PATH": "/nowhere"})

    with pytest.raises(ToolError, match="pwsh is not installed here"):
        await Pwsh(session.services).prepare("Get-Date", str(session.project), None, inside=False)


@pytest.mark.needs("pwsh")
@pytest.mark.proves("N2")
async def test_the_real_one_runs_a_command(tmp_path: Path) -> None:
    session = Session(tmp_path)
    outcome = await session.use("PowerShell", {"command": "Write-Output (1 + 2); exit 4"})

    assert outcome.result.text == "Exit code 4\n3"
