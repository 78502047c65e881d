"""`--bare` and `--safe-mode`: what files and flags may still do, as a process."""

import json
from pathlib import Path

import pytest
from tests.cli.test_run import HELLO, handrail
from tests.forked import reference_server

from handrail.conversation.blocks import ToolUse
from handrail.testing.model_server import Reply

pytestmark = pytest.mark.anyio

WHO = ("project", "user", "flag")
FLAGS = {"rule of flag", "hook of flag", "server of flag", "agent of flag", "folder of flag"}
FILES = {f"{what} of {who}" for what in ("rule", "hook", "memory", "command", "agent") for who in WHO[:2]}
EVERYTHING = FILES | FLAGS | {"server of project"}


def settings(who: str, folder: Path) -> str:
    hook = {"type": "command", "command": f"touch {folder}/hook-of-{who}"}
    return json.dumps(
        {
            "permissions": {"allow": [f"Bash(touch rule-of-{who})"], "deny": [f"Read(secret-{who}.txt)"]},
            "hooks": {"SessionStart": [{"hooks": [hook]}]},
        }
    )


def furnished(folder: Path) -> list[str]:
    """A project and a user who have written down all there is; the flags that do the same."""
    for who, place in (("project", folder / ".handrail"), ("user", folder / "home" / ".handrail")):
        for kind in ("commands", "agents"):
            (place / kind).mkdir(parents=True)
        (place / "settings.json").write_text(settings(who, folder))
        (place / "commands" / f"command-of-{who}.md").write_text("Do it.")
        (place / "agents" / "a.md").write_text(f"---\nname: agent-of-{who}\ndescription: d\n---\nWork.\n")
    (folder / "AGENTS.md").write_text("memory of project")
    (folder / "home" / ".handrail" / "AGENTS.md").write_text("memory of user")
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"server-of-project": reference_server()}}))
    for who in WHO:
        (folder / f"secret-{who}.txt").write_text("hunter2")
    beside = folder.with_name(f"{folder.name}-beside")
    beside.mkdir()
    (beside / "a.txt").write_text("folder of flag")
    given = {
        "--settings": settings("flag", folder),
        "--allowedTools": "Bash(touch rule-of-flag)",
        "--mcp-config": json.dumps({"mcpServers": {"server-of-flag": reference_server()}}),
        "--agents": json.dumps({"agent-of-flag": {"description": "d", "prompt": "p"}}),
        "--add-dir": str(beside),
    }
    return [word for pair in given.items() for word in pair]


def calls(folder: Path) -> Reply:
    touching = [ToolUse(f"t-{who}", "Bash", {"command": f"touch rule-of-{who}"}) for who in WHO]
    files = [*(f"secret-{who}.txt" for who in WHO), f"{folder}-beside/a.txt"]
    return Reply((*touching, *(ToolUse(f"r{at}", "Read", {"file_path": file}) for at, file in enumerate(files))))


@pytest.mark.parametrize(
    ("flag", "left", "warned"),
    [
        (["--trust"], EVERYTHING, ""),
        (["--trust", "--bare"], FLAGS, "--trust: no effect with --bare"),
        (
            ["--safe-mode"],
            {"agent of flag"},
            "--allowedTools, --add-dir, --mcp-config: no effect with --safe-mode",
        ),
    ],
    ids=["neither", "bare", "safe mode"],
)
async def test_only_what_forbids_is_left_of_files_and_in_safe_mode_of_flags(
    tmp_path: Path, flag: list[str], left: set[str], warned: str
) -> None:
    given = furnished(tmp_path)

    ran, server = await handrail(
        [calls(tmp_path), HELLO], tmp_path, "-p", "go", "--output-format", "stream-json", *given, *flag
    )

    init = next(line for line in ran.lines if line.get("subtype") == "init")
    connected = [each["name"] for each in init["mcp_servers"] if each["status"] == "connected"]
    listed = [*connected, *init["slash_commands"], *init["agents"], *(path.name for path in tmp_path.iterdir())]
    said = server.requests[1].raw.decode()
    happened = {name.replace("-of-", " of ") for name in listed if "-of-" in name and not name.startswith("mcp__")}
    happened |= {text for text in ("memory of project", "memory of user", "folder of flag") if text in said}
    assert happened == left
    assert ran.errors == (f"handrail: {warned}\n" if warned else "")
    assert "hunter2" not in said  # deny rules of all of them hold


@pytest.mark.parametrize(
    "flags",
    [
        ("--permission-mode", "acceptEdits"),
        ("--dangerously-skip-permissions",),
        ("--allow-dangerously-skip-permissions",),
    ],
)
async def test_a_mode_that_allows_more_is_refused_in_safe_mode(tmp_path: Path, flags: tuple[str, ...]) -> None:
    ran, server = await handrail([], tmp_path, "-p", "go", "--safe-mode", *flags)

    assert (ran.code, server.requests) == (1, [])
    assert "cannot be used with --safe-mode" in ran.errors


async def test_an_agent_of_a_file_does_not_lead_a_bare_run_and_its_command_is_words(tmp_path: Path) -> None:
    furnished(tmp_path)

    led, _ = await handrail([], tmp_path, "-p", "go", "--bare", "--agent", "agent-of-project")
    said, server = await handrail([HELLO], tmp_path, "-p", "/command-of-user", "--bare")

    assert "there is no agent 'agent-of-project'" in led.errors
    assert (said.code, said.errors) == (0, "")
    assert "/command-of-user" in server.requests[0].raw.decode()
