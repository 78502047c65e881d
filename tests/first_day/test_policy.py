"""A security engineer writes policy on the first day: no rule does nothing, and every mistake is named."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from handrail import Agent
from handrail.cli.main import run
from handrail.config.flags import SettingsFlags
from handrail.hooks.specs import HookCallback
from handrail.testing import ScriptedModel, say, use
from handrail.testing.model_server import Reply
from tests.headless.in_process import peer


@dataclass
class Repository:
    """A repository with a home and a state folder beside it."""

    root: Path
    env: Mapping[str, str]

    def write(self, name: str, content: Any) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    root = tmp_path / "repository"
    (root / "service" / "src").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    subprocess.run(["git", "init", "-q", root], check=True)
    env = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    env["IS_SANDBOX"] = "1"
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(root)
    return Repository(root, env)


def asked_once(repository: Repository, *calls: Any, **options: Any) -> dict[str, str]:
    """The reasons of the calls that were refused in a run with nobody to ask, by call."""
    model = ScriptedModel([[*calls], [say("Done.")]])
    agent = Agent(model, cwd=repository.root, env=repository.env, **options)
    ended = agent.ask_sync("Do it.").ended
    return {denial.use.id: denial.reason for denial in ended.denials}


LOOK = use("look", "Bash", command="ls")
MAKE = use("make", "Bash", command="touch made")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        pytest.param({"permissions": {"deny": ["bash"]}}, "names are case-sensitive: Bash", id="another case"),
        pytest.param({"permissions": {"deny": ["Shell"]}}, "there is Bash, PowerShell", id="another program's name"),
        pytest.param({"permissions": {"ask": ["Bash(curl"]}}, "the bracket is not closed", id="an open bracket"),
        pytest.param({"deny": ["Bash(touch *)"]}, "move them to permissions.deny", id="at the top of the file"),
        pytest.param({"permissions": {"Deny": ["Bash"]}}, "move them to permissions.deny", id="a key in capitals"),
        pytest.param({"permissions": {"dney": ["Bash"]}}, "move them to permissions.deny", id="a misspelt key"),
        pytest.param({"permissions.deny": ["Bash"]}, 'move them to {"permissions": {"deny": ', id="a key with a dot"),
        pytest.param({"permissions": {"deny": ["Frobnicate"]}}, "no tool 'Frobnicate'", id="nothing like it"),
    ],
)
def test_a_deny_rule_that_cannot_work_is_named_and_what_it_meant_is_refused_in_every_mode(
    settings: dict[str, Any], said: str, repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write(".claude/settings.json", settings)

    refused = asked_once(repository, MAKE, settings=True, mode="bypassPermissions", allow=["Bash"])

    assert said in refused["make"]
    assert not (repository.root / "made").exists()
    told = capsys.readouterr().err
    assert "handrail: .claude/settings.json:" in told
    assert said in told
    assert "consent" in told


def test_the_same_slip_has_the_same_consequence_in_a_flag_an_argument_and_a_program(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = {"PreToolUse": [HookCallback(lambda _input: None, matcher="bash")]}

    code = run(["call", "Bash", '{"command": "touch made"}', "--allowedTools", "Bash", "--disallowedTools", "bash"])
    by_flag = capsys.readouterr().err

    assert code == 3
    assert "command line: 'bash' - there is no tool 'bash'; names are case-sensitive: Bash" in by_flag
    assert "names are case-sensitive" in asked_once(repository, MAKE, allow=["Bash"], deny=["bash"])["make"]
    assert "rules of the program: 'bash' - there is no tool" in capsys.readouterr().err
    assert "'bash'" in asked_once(repository, MAKE, allow=["Bash"], hooks=hooks)["make"]
    assert not (repository.root / "made").exists()


@pytest.mark.anyio
async def test_a_client_whose_guard_matches_no_tool_is_asked_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = [Reply((use("1", "Bash", command="touch made"),)), Reply((say("Done."),))]
    spec = {"flags": SettingsFlags(allowed=("Bash",))}
    async with peer(tmp_path, replies, spec=spec) as client:
        await client.ask("initialize", hooks={"PreToolUse": [{"matcher": "shell", "hookCallbackIds": ["guard"]}]})
        client.prompt("Make it.")
        asked = (await client.until("control_request"))[-1]
        answer = {"behavior": "deny", "message": "Not without the guard."}
        response = {"subtype": "success", "request_id": asked["request_id"], "response": answer}
        client.say({"type": "control_response", "response": response})
        result = (await client.until("result"))[-1]

        assert asked["request"]["subtype"] == "can_use_tool"
        assert [denial["tool_name"] for denial in result["permission_denials"]] == ["Bash"]
    assert "no tool has the name 'shell'" in capsys.readouterr().err
    assert not (tmp_path / "work" / "made").exists()


@pytest.mark.anyio
async def test_a_deny_rule_that_a_client_sends_later_and_misspells_is_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls = [Reply((use(str(n), "Bash", command=f"mkdir made{n}"),)) for n in (1, 2)]
    rule = {"type": "addRules", "behavior": "deny", "destination": "session", "rules": [{"toolName": "bash"}]}
    allow = {"type": "addRules", "behavior": "allow", "destination": "session", "rules": [{"toolName": "Bash"}]}
    agree = {"behavior": "allow", "updatedInput": {"command": "mkdir made1"}, "updatedPermissions": [rule, allow]}
    async with peer(tmp_path, [*calls, Reply((say("Done."),))]) as client:
        await client.ask("initialize", hooks=None)
        client.prompt("Make them.")
        for answer in (agree, {"behavior": "deny", "message": "No."}):
            asked = (await client.until("control_request"))[-1]
            response = {"subtype": "success", "request_id": asked["request_id"], "response": answer}
            client.say({"type": "control_response", "response": response})
        result = (await client.until("result"))[-1]

    assert [denial["tool_use_id"] for denial in result["permission_denials"]] == ["2"]
    assert "names are case-sensitive: Bash. Until it is corrected, calls of Bash" in caplog.text


def test_a_guard_whose_script_is_gone_stops_what_it_guarded(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "command", "command": "node .claude/guard.js"}
    repository.write(".claude/settings.json", {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})
    capsys.readouterr()
    assert run(["trust", ".", "--yes"]) == 0

    refused = asked_once(repository, MAKE, settings=True, allow=["Bash"])

    assert "cannot run: there is no" in refused["make"]
    told = capsys.readouterr().err
    assert ".claude/settings.json:7: hooks.PreToolUse[0].hooks[0] starts" in told
    assert "does not exist" in told


def test_a_guard_with_a_condition_that_no_call_meets_is_named_and_asked_for(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "command", "if": "Shell", "command": "exit 2"}
    home = Path(repository.env["HOME"], ".claude", "settings.json")
    home.parent.mkdir()
    home.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))

    refused = asked_once(repository, MAKE, settings=True, allow=["Bash"])

    assert "there is no tool 'Shell'" in refused["make"]
    assert "~/.claude/settings.json:1: " in capsys.readouterr().err


def test_rules_for_tools_that_may_come_later_are_fine_and_allow_rules_are_only_warned_about(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    later = ["mcp__github__delete_*", "WebSearch", "MultiEdit", "Task(Explore)", "KillShell", "mcp__later"]
    repository.write(".claude/settings.json", {"permissions": {"deny": later}})
    repository.write(".claude/settings.local.json", {"permissions": {"allow": ["Bsh", "Bash"]}})
    assert run(["trust", ".", "--yes"]) == 0

    assert asked_once(repository, MAKE, settings=True) == {}
    told = capsys.readouterr().err
    assert "settings.local.json:4: permissions.allow[0] is 'Bsh' - there is no tool 'Bsh'; there is Bash" in told
    assert "It has no effect." in told
    assert "consent" not in told


def test_a_bare_read_rule_opens_no_secret_and_the_refusal_names_the_rule_that_does(repository: Repository) -> None:
    keys = Path(repository.env["HOME"], ".ssh")
    keys.mkdir()
    (keys / "config").write_text("Host a")
    reading = use("read", "Read", file_path=str(keys / "config"))
    finding = use("find", "Grep", pattern="Host", path=str(keys))

    refused = asked_once(repository, reading, finding, allow=["Read", "Grep"])

    assert "Read(~/.ssh/config)" in refused["read"]
    assert "Read(~/.ssh)" in refused["find"]
    assert asked_once(repository, reading, allow=["Read(~/.ssh/config)"]) == {}


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("git *", "git log *"), ("uv run *", "uv run pytest *"), ("poetry run *", "poetry run ruff *"),
        ("npm *", "npm run test *"), ("pnpm *", "pnpm run build *"), ("yarn *", "yarn test *"),
        ("cargo *", "cargo check *"), ("go run *", "go vet *"), ("pip install *", "pip list *"),
        ("just *", "just test"), ("make *", "make test"), ("tee *", "touch *"), ("cp *", "mkdir *"),
        ("gh *", "gh pr view *"), ("less *", "wc *"), ("python -c *", "python -m pytest *"),
        ("/usr/bin/git *", "pytest *"), ("cat *", "ls *"), ("npm exec *", "npm ci"), ("psql *", "jq *"),
    ],
)  # fmt: skip
def test_lint_knows_the_wide_rules_that_people_write(
    wide: str, narrow: str, repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    def remarks(rule: str) -> list[str]:
        settings = json.dumps({"permissions": {"allow": [rule]}})
        run(["permissions", "lint", "--json", "--settings", settings])
        return [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()]

    assert remarks(f"Bash({wide})") == ["wide"]
    assert remarks(f"Bash({narrow})") == []


def test_settings_of_the_root_hold_in_its_folders_and_the_files_are_listed(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write(
        ".claude/settings.json",
        {"permissions": {"deny": ["Read(/secret.txt)", "Edit(src/**)"], "allow": ["Bash(touch *)"]}, "model": "root"},
    )
    repository.write("service/.handrail/settings.json", {"permissions": {"deny": ["Bash(rm *)"]}, "model": "near"})
    repository.write("secret.txt", "x")
    monkeypatch.chdir(repository.root / "service")

    def explained(call: str) -> dict[str, Any]:
        run(["permissions", "explain", "--json", call])
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    asked = explained("Bash(touch a)")
    assert asked["decision"] == "ask"  # the root is not trusted yet
    assert asked["files"] == [".handrail/settings.json", "../.claude/settings.json"]
    assert explained("Read(../secret.txt)")["rule"] == "project settings ../.claude/settings.json:4: Read(/secret.txt)"
    assert explained("Edit(../src/a.py)")["decision"] == "deny"
    assert explained("Bash(rm a)")["decision"] == "deny"

    assert run(["trust", str(repository.root), "--yes"]) == 0
    capsys.readouterr()
    assert explained("Bash(touch a)")["decision"] == "allow"
    run(["config", "get", "model"])
    assert json.loads(capsys.readouterr().out) == "root"  # the nearer file is not trusted, and a model needs trust

    assert run(["trust", ".", "--yes"]) == 0
    capsys.readouterr()
    run(["config", "get", "model"])
    assert json.loads(capsys.readouterr().out) == "near"
    run(["doctor"])
    listed = capsys.readouterr().out
    assert all(str(repository.root / name) in listed for name in (".claude", "service/.handrail"))


def test_what_is_not_trusted_at_the_root_does_not_become_active_from_below(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"hooks": [{"type": "command", "command": "touch $CLAUDE_PROJECT_DIR/ran"}]}
    repository.write("service/.claude/settings.json", {"permissions": {"allow": ["Bash(ls /)"]}})
    monkeypatch.chdir(repository.root / "service")
    assert run(["trust", ".", "--yes"]) == 0
    repository.write(
        ".claude/settings.json", {"permissions": {"allow": ["Bash(touch *)"]}, "hooks": {"PreToolUse": [hook]}}
    )

    calls = [["call", "Bash", json.dumps({"command": command})] for command in ("touch made", "ls /")]
    codes = [run(call) for call in calls]

    assert codes == [3, 0]  # the folder's own rule is trusted, those of the root are not
    assert f"the folder {repository.root} is not trusted, so 2 of its settings are ignored" in capsys.readouterr().err
    assert not (repository.root / "ran").exists()
    assert [run([*call, "--trust"]) for call in calls] == [0, 0]
    assert (repository.root / "ran").exists()  # the hook's project is the folder of its settings
