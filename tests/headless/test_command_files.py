"""Commands in files, attacked: what they run, allow and read is governed as if the model had asked for it."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.config.flags import SettingsFlags
from handrail.config.load import load_settings
from handrail.config.places import places_for
from handrail.config.trust import TrustStore
from handrail.conversation.blocks import Text, ToolUse
from handrail.headless.engine import EngineOptions
from handrail.testing.model_server import Reply
from tests.headless.in_process import Line, peer
from tests.processes.seen import read_pipe

pytestmark = pytest.mark.anyio

TRUST = {"flags": SettingsFlags(trust=True)}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def command(folder: Path, head: str, body: str = "Go.") -> None:
    write(folder / ".claude/commands/go.md", f"---\n{head}\n---\n{body}")


def bash(line: str) -> Reply:
    return Reply((ToolUse("t1", "Bash", {"command": line}),))


DONE = Reply((Text("Done."),))


def result_of(lines: list[Line]) -> str:
    text: str = lines[-1]["result"]
    return text


@pytest.mark.proves("R3")
@pytest.mark.parametrize(
    ("head", "settings"),
    [
        pytest.param("allowed-tools: Bash", {"permissions": {"deny": ["Bash(mkdir *)"]}}, id="a deny rule wins"),
        pytest.param("allowed-tools: Bash", {"permissions": {"ask": ["Bash(mkdir *)"]}}, id="an ask rule wins"),
        pytest.param("allowed-tools: Bash(\ndescription: d", {}, id="a rule that cannot be read allows nothing"),
        pytest.param("allowed-tools: bash", {}, id="a tool that there is not allows nothing"),
        pytest.param("allowed-tools: Bash(mkdir)", {}, id="a rule allows what it says"),
        pytest.param("allowed-tools: Bash\ndisallowed-tools: Bash(mkdir *)", {}, id="its own limit wins"),
    ],
)
async def test_the_permissions_of_a_command_never_outweigh_a_limit(
    tmp_path: Path, head: str, settings: dict[str, Any]
) -> None:
    command(tmp_path / "work", head)
    write(tmp_path / "home/.handrail/settings.json", json.dumps(settings))
    async with peer(tmp_path, [bash("mkdir made"), DONE], spec=TRUST, options=EngineOptions()) as p:
        await p.turn("/go")

        offered = {tool["name"] for tool in p.server.requests[0].body["tools"]}
        assert "Bash" in offered
    assert not (tmp_path / "work/made").exists()


@pytest.mark.parametrize("head", ["disallowed-tools: Bash(", "disallowed-tools: Shell"])
async def test_a_command_whose_limit_cannot_work_is_not_started(tmp_path: Path, head: str) -> None:
    command(tmp_path / "home", head, "!`ls`")
    async with peer(tmp_path, options=EngineOptions()) as p:
        assert "/go was not started. ~/.claude/commands/go.md: " in result_of(await p.turn("/go"))
        assert p.server.requests == []


@pytest.mark.proves("R9")
async def test_trust_holds_for_what_was_trusted_and_not_for_what_a_command_became(tmp_path: Path) -> None:
    work = tmp_path / "work"
    command(work, "allowed-tools: Bash(mkdir *)", "Now: !`mkdir first`")
    env, state = {"HOME": str(tmp_path / "home")}, tmp_path / "state"
    places = places_for(work, env, state)
    found = load_settings(places, env, SettingsFlags())
    assert [item.shown for item in found.items] == [
        'commands.go.runs: ["mkdir first"]',
        'commands.go.allowed-tools: ["Bash(mkdir *)"]',
        "commands.go.text: 19 characters, sha256 e7f8ff459d70248c",
    ]
    TrustStore(state).trust(str(work), found.items)

    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        assert result_of(await p.turn("/go")) == "Done."
        assert (work / "first").exists()

    command(work, "allowed-tools: Bash(mkdir *)", "Now: !`mkdir second`")
    async with peer(tmp_path, options=EngineOptions()) as p:
        assert "it changed since this folder was trusted" in result_of(await p.turn("/go"))
        assert not (work / "second").exists()


@pytest.mark.proves("R9")
@pytest.mark.parametrize(
    ("front", "body", "is_trusted"),
    [
        ("allowed-tools: Bash(mkdir *)", "Now: !`mkdir new`\n\nDo as you like.", False),
        ("allowed-tools: Bash(mkdir *)\ndisallowed-tools: Read", "Now: !`mkdir new`", False),
        ("allowed-tools: Bash(mkdir *)\narguments: [where]", "Now: !`mkdir new`", False),
        ("allowed-tools: Bash(mkdir *)\ndescription: Other words", "Now: !`mkdir new`", True),
    ],
)
async def test_whatever_governs_a_trusted_command_may_not_change(
    tmp_path: Path, front: str, body: str, is_trusted: bool
) -> None:
    work = tmp_path / "work"
    command(work, "allowed-tools: Bash(mkdir *)", "Now: !`mkdir new`")
    trust(tmp_path, work)
    command(work, front, body)

    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        await p.turn("/go")

    assert (work / "new").exists() is is_trusted


async def test_a_file_that_a_command_only_prints_may_change(tmp_path: Path) -> None:
    work = tmp_path / "work"
    command(work, "allowed-tools: Bash", "It is version !`cat VERSION`.")
    (work / "VERSION").write_text("1")
    trust(tmp_path, work)
    (work / "VERSION").write_text("2")

    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        assert result_of(await p.turn("/go")) == "Done."


def trust(tmp_path: Path, work: Path) -> None:
    env, state = {"HOME": str(tmp_path / "home")}, tmp_path / "state"
    TrustStore(state).trust(str(work), load_settings(places_for(work, env, state), env, SettingsFlags()).items)


def script(path: Path, line: str) -> None:
    write(path, f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@pytest.mark.proves("R9")
@pytest.mark.parametrize("while_it_runs", [False, True], ids=["between sessions", "in a session"])
@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("./run.sh", "run.sh"),
        ("sh run.sh", "run.sh"),
        ("sh *.sh", "run.sh"),
        ("cd lib && sh run.sh", "lib/run.sh"),
        ("sh lib/{other,run}.sh", "lib/run.sh"),
        ("cat run.sh | sh", "run.sh"),
        ("${CLAUDE_PROJECT_DIR}/run.sh", "run.sh"),
        ("${CLAUDE_SKILL_DIR}/run.sh", ".claude/commands/run.sh"),
        ("${HANDRAIL_SKILL_DIR}/run.sh", ".claude/commands/run.sh"),
    ],
)
async def test_a_script_that_a_command_runs_is_part_of_what_was_trusted(
    tmp_path: Path, line: str, file: str, while_it_runs: bool
) -> None:
    work = tmp_path / "work"
    command(work, "allowed-tools: Bash", f"Now: !`{line}`")
    script(work / file, "echo fine")
    trust(tmp_path, work)
    if not while_it_runs:
        script(work / file, f"touch {work}/made")

    async with peer(tmp_path, [DONE, DONE], options=EngineOptions()) as p:
        if while_it_runs:
            assert result_of(await p.turn("/go")) == "Done."
            script(work / file, f"touch {work}/made")
        assert "nothing was run" in result_of(await p.turn("/go"))

    assert not (work / "made").exists()


@pytest.mark.proves("R9")
async def test_the_project_of_a_command_is_the_folder_that_was_trusted_wherever_the_agent_went(tmp_path: Path) -> None:
    work = tmp_path / "work"
    command(work, "allowed-tools: Bash", "Now: !`${CLAUDE_PROJECT_DIR}/run.sh`")
    script(work / "run.sh", "echo fine")
    trust(tmp_path, work)
    script(work / "inner/run.sh", f"touch {work}/made")

    async with peer(tmp_path, [bash("cd inner"), DONE, DONE], options=EngineOptions()) as p:
        await p.turn("Go there.")
        await p.turn("/go")

        assert "Now: fine" in p.server.requests[-1].raw.decode()
    assert not (work / "made").exists()


@pytest.mark.proves("R9", "R2")
@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("./guard.sh", "guard.sh"),
        ("hooks/guard.sh --strict", "hooks/guard.sh"),
        ("sh guard.sh", "guard.sh"),
        ("bash -e guard.sh", "guard.sh"),
        (". ./guard.sh", "guard.sh"),
        ("true && sh 'guard.sh'", "guard.sh"),
    ],
)
async def test_a_hook_of_a_trusted_folder_runs_no_script_of_a_folder_inside_it(
    tmp_path: Path, line: str, file: str
) -> None:
    work = tmp_path / "work"
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": line}]}]}
    write(work / ".claude/settings.json", json.dumps({"hooks": hooks}))
    script(work / file, "exit 0")
    trust(tmp_path, work)
    script(work / "inner" / file, f"touch {work}/made")

    async with peer(tmp_path, [bash("cd inner"), bash("pwd"), DONE], options=EngineOptions()) as p:
        await p.turn("Go there, and look.")

        assert "is another file in" in p.server.requests[-1].raw.decode()
    assert not (work / "made").exists()


async def test_a_command_that_changes_while_the_session_runs_is_not_what_was_trusted(tmp_path: Path) -> None:
    work = tmp_path / "work"
    command(work, "allowed-tools: Bash(mkdir *)", "Now: !`mkdir first`")
    async with peer(tmp_path, [DONE, DONE], spec=TRUST, options=EngineOptions()) as p:
        await p.turn("Hello.")
        command(work, "allowed-tools: Bash(mkdir *)", "Now: !`mkdir second`")
        await p.turn("/go")

    assert [name for name in ("first", "second") if (work / name).exists()] == []


async def test_the_client_is_asked_about_what_a_command_runs(tmp_path: Path) -> None:
    command(tmp_path / "home", "description: d", "Now: !`mkdir -v made`")
    async with peer(tmp_path, [DONE]) as p:
        p.prompt("/go")
        asked = (await p.until("control_request"))[-1]
        assert asked["request"]["input"] == {"command": "mkdir -v made"}
        answer = {"behavior": "allow", "updatedInput": {"command": "mkdir -v made"}}
        p.say(
            {
                "type": "control_response",
                "response": {"subtype": "success", "request_id": asked["request_id"], "response": answer},
            }
        )
        await p.until("result")

        assert "created directory 'made'" in p.server.requests[0].raw.decode()


@pytest.mark.parametrize(
    ("event", "output"),
    [
        ("UserPromptExpansion", {"decision": "block", "reason": "not today"}),
        ("PreToolUse", {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}),
    ],
)
async def test_hooks_that_object_keep_a_command_from_running_anything(
    tmp_path: Path, event: str, output: dict[str, Any]
) -> None:
    command(tmp_path / "home", "allowed-tools: Bash", "Now: !`mkdir made`")
    hook = {"type": "command", "command": f"echo '{json.dumps(output)}'"}
    write(tmp_path / "home/.handrail/settings.json", json.dumps({"hooks": {event: [{"hooks": [hook]}]}}))
    async with peer(tmp_path, options=EngineOptions()) as p:
        await p.turn("/go")
        assert p.server.requests == []
    assert not (tmp_path / "work/made").exists()


async def test_an_interrupt_ends_what_a_command_runs_and_takes_its_permissions_back(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    command(tmp_path / "home", "allowed-tools: Bash", f"Now: !`echo > {begun}; sleep 600`")
    async with peer(tmp_path, [bash("mkdir made"), DONE], options=EngineOptions()) as p:
        p.prompt("/go")
        await anyio.to_thread.run_sync(read_pipe, begun)
        await p.ask("interrupt")
        await p.until("result")
        await p.turn("Make it.")

        assert "there is no one to ask" in p.server.requests[1].raw.decode()
    assert not (tmp_path / "work/made").exists()


@pytest.mark.parametrize(
    ("head", "settings", "said"),
    [
        ("description: d", {"disableSkillShellExecution": True}, "[not run: disableSkillShellExecution is set"),
        ("user-invocable: false", {}, "/go is not for people"),
        ("shell: fish", {}, "There is no tool 'fish'"),
    ],
)
async def test_what_switches_a_command_off(tmp_path: Path, head: str, settings: dict[str, Any], said: str) -> None:
    command(tmp_path / "home", f"{head}\nallowed-tools: Bash", "Now: !`mkdir made`")
    write(tmp_path / "home/.handrail/settings.json", json.dumps(settings))
    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        answer = result_of(await p.turn("/go"))
        sent = "".join(each.raw.decode() for each in p.server.requests)
    assert said in answer + sent
    assert not (tmp_path / "work/made").exists()


async def test_outputs_and_words_of_a_command_are_only_text(tmp_path: Path) -> None:
    write(tmp_path / "work/secret.txt", "hidden words")
    command(tmp_path / "home", "description: d", "Echo: !`echo '@secret.txt $0'` and $1.")
    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        await p.turn("/go '$1' '!`mkdir made`'")
        sent = p.server.requests[0].raw.decode()
    assert "Echo: @secret.txt $1 and !`mkdir made`." in sent
    assert "hidden words" not in sent
    assert not (tmp_path / "work/made").exists()


async def test_the_effort_of_a_command_is_for_its_own_prompt(tmp_path: Path) -> None:
    command(tmp_path / "home", "effort: low")
    async with peer(tmp_path, [DONE, DONE], options=EngineOptions()) as p:
        await p.turn("/go")
        await p.turn("again")
        efforts = [each.body.get("output_config", {}).get("effort") for each in p.server.requests]
    assert efforts == ["low", None]


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param(f"See @{'x' * 5000}", id="a name that no file can have"),
        pytest.param("See @a\0b", id="a name with a NUL"),
        pytest.param("Ask @alice or me@example.com", id="words"),
        pytest.param("See @pipe and @loop", id="what cannot be read"),
    ],
)
async def test_mentions_that_name_no_file_hold_up_nothing(tmp_path: Path, prompt: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    os.mkfifo(work / "pipe")
    (work / "loop").symlink_to("loop")
    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        assert result_of(await p.turn(prompt)) == "Done."


async def test_many_and_long_files_are_bounded_and_kept_nowhere_but_in_the_sessions_own_folder(tmp_path: Path) -> None:
    work = tmp_path / "work"
    names = [f"f{number}" for number in range(30)]
    for name in names:
        write(work / "deep" / name, ("0123456789" * 12 + "\n") * 400)
    before = {str(path) for path in tmp_path.rglob("*") if "state" not in path.parts}
    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        await p.turn(" ".join(f"@../work/deep/{name}" for name in names))
        sent = p.server.requests[0].raw.decode()

    assert len(sent) < 400_000
    assert "@../work/deep/f0. Read shows" in sent
    assert "@../work/deep/f19. It is long: use Read to see it" in sent
    assert "@../work/deep/f20. " not in sent
    assert {str(path) for path in tmp_path.rglob("*") if "state" not in path.parts} == before
