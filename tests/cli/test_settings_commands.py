"""`handrail config` and `handrail trust`, and settings at work in runs and calls, as processes."""

import json
from pathlib import Path

import pytest
from tests.cli.test_commands import handrail
from tests.cli.test_run import HELLO
from tests.cli.test_run import handrail as run

from handrail.cli.main import run as command
from handrail.config.schema import build_schema
from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import Reply

ROOT = Path(__file__).resolve().parents[2]


def settings(folder: Path, content: object, name: str = ".handrail/settings.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2))
    return path


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_settings_are_written_read_and_traced_to_their_line(project: Path, env: dict[str, str]) -> None:
    wrote = handrail("config", "set", "permissions.defaultMode", "plan", cwd=project, environment=env)
    handrail("config", "set", "permissions.deny", '["Bash"]', "--scope", "project", cwd=project, environment=env)

    assert wrote.stdout == "permissions.defaultMode is set in ~/.handrail/settings.json.\n"
    got = handrail("config", "get", "permissions.defaultMode", "--json", cwd=project, environment=env)
    assert (got.returncode, got.stdout) == (0, '"plan"\n')
    listed = handrail("config", "list", "--show-source", cwd=project, environment=env)
    assert listed.stdout.splitlines() == [
        'permissions.deny[0] = "Bash"  (project .handrail/settings.json:4)',
        'permissions.defaultMode = "plan"  (user ~/.handrail/settings.json:3)',
    ]
    gone = handrail("config", "unset", "permissions.defaultMode", cwd=project, environment=env)
    assert gone.returncode == 0
    missing = handrail("config", "get", "permissions.defaultMode", cwd=project, environment=env)
    assert (missing.returncode, missing.stderr) == (1, "handrail: permissions.defaultMode is not set.\n")


def test_a_value_that_waits_for_trust_is_said_to_wait(project: Path, env: dict[str, str]) -> None:
    wrote = handrail("config", "set", "model", "m", "--scope", "local", cwd=project, environment=env)

    assert wrote.stdout == (
        "model is set in .handrail/settings.local.json. It takes effect once the folder is trusted: handrail trust.\n"
    )
    only = handrail("config", "get", "model", "--scope", "local", "--json", cwd=project, environment=env)
    assert only.stdout == '"m"\n'


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["set", "permissions.defaultMode", "yolo"], "must be one of"),
        (["set", "permissions.deny", "Bash"], "must be a list"),
        (["set", "permision.deny", "[]"], "Did you mean"),
        (["set", "allowManagedHooksOnly", "true"], "works only in policy files"),
        (["set", "env", '{"A": 1}'], "env.A is not a text"),
        (["set", "permissions.allow", '["Bash(npm *"]'], "'Bash(npm *': the bracket is not closed"),
        (["set", "permissions", '{"deny": ["Read(.env"]}'], "'Read(.env': the bracket is not closed"),
    ],
)
def test_a_value_that_does_not_fit_is_not_written(
    project: Path, env: dict[str, str], arguments: list[str], says: str
) -> None:
    ran = handrail("config", *arguments, cwd=project, environment=env)

    assert ran.returncode == 2
    assert says in ran.stderr
    assert not Path(env["HOME"], ".handrail").exists()


def test_what_is_not_set_or_not_known_is_said(project: Path, env: dict[str, str]) -> None:
    def config(*arguments: str) -> tuple[int, str]:
        ran = handrail("config", *arguments, cwd=project, environment=env)
        return ran.returncode, ran.stdout + ran.stderr

    assert config("get", "modle") == (1, "handrail: modle is not known. Did you mean 'model'?\n")
    unknown = "is not known. `handrail config schema` prints the keys there are."
    assert config("get", "nope") == (1, f"handrail: nope {unknown}\n")
    assert config("get", "permissions.qqq") == (1, f"handrail: permissions.qqq {unknown}\n")
    assert config("get", "model") == (1, "handrail: model is not set.\n")
    assert config("get", "permissions") == (1, "handrail: permissions is not set.\n")
    assert config("get", "env.MY_VARIABLE") == (1, "handrail: env.MY_VARIABLE is not set.\n")
    assert config("unset", "model") == (1, "handrail: model is not set in ~/.handrail/settings.json.\n")
    assert not Path(env["HOME"], ".handrail").exists()
    assert config("set", "shade", "blue") == (
        0,
        "shade is set in ~/.handrail/settings.json. handrail does not know this key: it is kept, and has no effect.\n",
    )
    assert config("unset", "shade") == (0, "shade was removed from ~/.handrail/settings.json.\n")
    assert handrail("trust", "--list", cwd=project, environment=env).stderr == "handrail: no folder is trusted\n"


def test_what_is_trusted_is_json_also_beside_a_broken_file(project: Path, env: dict[str, str]) -> None:
    settings(project, {}).write_text('{"model": 1,}')

    ran = handrail("trust", "--json", cwd=project, environment=env)

    assert json.loads(ran.stdout)["trust"] == "trusted"
    assert ran.stderr.startswith("handrail: .handrail/settings.json:1: ")


def test_the_published_schema_is_the_one_of_the_table(project: Path, env: dict[str, str]) -> None:
    printed = json.loads(handrail("config", "schema", cwd=project, environment=env).stdout)

    published = json.loads((ROOT / "docs" / "settings.schema.json").read_text())
    assert printed == published == build_schema()


@pytest.mark.proves("R9")
def test_a_folder_is_trusted_listed_and_forgotten(project: Path, env: dict[str, str]) -> None:
    (project / "notes.txt").write_text("x")
    settings(project, {"permissions": {"allow": ["Read(//etc/hostname)"]}})
    call = ("call", "Read", '{"file_path": "/etc/hostname"}')

    before = handrail(*call, cwd=project, environment=env)
    once = handrail(*call, "--trust", cwd=project, environment=env)
    shown = handrail("trust", "--show", cwd=project, environment=env)
    unasked = handrail("trust", cwd=project, environment=env)
    trusted = handrail("trust", "--yes", cwd=project, environment=env)
    after = handrail(*call, cwd=project, environment=env)
    listed = handrail("trust", "--list", "--json", cwd=project, environment=env)

    assert (before.returncode, once.returncode, after.returncode) == (3, 0, 0)
    assert "this folder is not trusted, so 1 of its settings is ignored: permissions.allow" in before.stderr
    assert (once.stderr, after.stderr) == ("", "")
    where = "(.handrail/settings.json:4)"
    assert f"is untrusted. It brings:\n  permissions.allow: Read(//etc/hostname)  {where}\n" in shown.stdout
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert unasked.stderr.endswith("handrail trust --show. Then say so with: handrail trust --yes.\n")
    assert trusted.returncode == 0
    assert [record["folder"] for record in json.loads(listed.stdout)] == [str(project)]
    assert handrail("trust", "--revoke", cwd=project, environment=env).returncode == 0
    assert handrail("trust", "--revoke", cwd=project, environment=env).returncode == 1
    assert handrail(*call, cwd=project, environment=env).returncode == 3
    assert "is not a folder" in handrail("trust", "none", cwd=project, environment=env).stderr


@pytest.mark.proves("G21", "P3")
def test_a_call_obeys_the_users_rules_and_names_the_line(project: Path, env: dict[str, str]) -> None:
    (project / "a.txt").write_text("x\n")
    settings(Path(env["HOME"]), {"permissions": {"deny": ["Read(a.txt)"]}})

    ran = handrail("call", "Read", '{"file_path": "a.txt"}', "--json", cwd=project, environment=env)

    [opinion] = [one for one in json.loads(ran.stdout)["decision"]["opinions"] if one["layer"] == "deny rule"]
    assert opinion["source"] == "user settings ~/.handrail/settings.json:4: Read(a.txt)"
    assert (
        handrail(
            "call", "Read", '{"file_path": "a.txt"}', "--setting-sources=", cwd=project, environment=env
        ).returncode
        == 0
    )


def guarded(folder: Path, command: str, event: str = "PreToolUse") -> None:
    settings(folder, {"hooks": {event: [{"matcher": "Read", "hooks": [{"type": "command", "command": command}]}]}})


@pytest.mark.parametrize(
    ("command", "said"),
    [("cat > seen.json; echo 'not today' >&2; exit 2", "not today"), ("./missing.sh", "there is no ./missing.sh")],
)
def test_hooks_have_a_say_in_a_call_as_in_a_models(project: Path, env: dict[str, str], command: str, said: str) -> None:
    (project / "a.txt").write_text("x\n")
    guarded(Path(env["HOME"]), command)

    ran = handrail("call", "Read", '{"file_path": "a.txt"}', cwd=project, environment=env)

    assert ran.returncode == 3
    assert "PreToolUse hook" in ran.stderr
    assert said in ran.stderr
    if said == "not today":
        seen = json.loads((project / "seen.json").read_text())
        assert (seen["tool_name"], seen["permission_mode"], bool(seen["session_id"])) == ("Read", "default", True)


@pytest.mark.proves("R2")
@pytest.mark.parametrize(
    ("event", "code", "said"),
    [
        pytest.param("PreToolUs", 3, "Did you mean PreToolUse?", id="a guard that is misspelt"),
        pytest.param("pre_tool_use", 3, "Did you mean PreToolUse?", id="a guard in another style"),
        pytest.param("PostToolUs", 0, "Did you mean PostToolUse?", id="an observer that is misspelt"),
        pytest.param("OfAnotherProgram", 0, "there is no event of this name.", id="an event of another program"),
    ],
)
def test_a_hook_of_an_event_that_does_not_exist_is_said_and_a_lost_guard_is_no_yes(
    project: Path, env: dict[str, str], event: str, code: int, said: str
) -> None:
    (project / "a.txt").write_text("x\n")
    guarded(Path(env["HOME"]), "true", event=event)

    ran = handrail("call", "Read", '{"file_path": "a.txt"}', cwd=project, environment=env)

    assert (ran.returncode, ran.stdout) == (code, "" if code else "1\tx\n")
    assert f"hooks.{event}: there is no event of this name." in ran.stderr
    assert said in ran.stderr


def test_the_flag_that_trusts_for_one_run_also_covers_a_hook_that_was_replaced(
    project: Path, env: dict[str, str]
) -> None:
    (project / "a.txt").write_text("x\n")
    guarded(project, "true")
    assert handrail("trust", "--yes", cwd=project, environment=env).returncode == 0
    guarded(project, "echo 'not today' >&2; exit 2")
    call = ("call", "Read", '{"file_path": "a.txt"}')

    without = handrail(*call, cwd=project, environment=env)
    trusting = handrail(*call, "--trust", cwd=project, environment=env)

    assert (without.returncode, trusting.returncode) == (3, 3)
    assert "cannot run: its folder changed since it was trusted" in without.stderr
    assert "not today" not in without.stderr
    assert "not today" in trusting.stderr
    assert "changed since it was trusted" not in trusting.stderr


def offered(server: object) -> list[str]:
    return [tool["name"] for tool in server.requests[0].body["tools"]]  # type: ignore[attr-defined]  # a ModelServer


@pytest.mark.anyio
@pytest.mark.proves("B13")
async def test_denied_tools_are_not_offered_to_the_model(tmp_path: Path) -> None:
    settings(tmp_path, {"permissions": {"deny": ["Glob", "Read(.env)"]}})

    ran, server = await run([HELLO], tmp_path, "-p", "hi", "--disallowedTools", "Sleep,Read(x)", "Bash(rm *)")

    assert (ran.code, ran.errors) == (0, "")
    assert {"Read", "Bash"} <= {*offered(server)}
    assert not {"Glob", "Sleep"} & {*offered(server)}


@pytest.mark.anyio
async def test_rules_of_flags_and_files_decide_the_calls_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    calls = Reply(
        (
            ToolUse("a", "Read", {"file_path": "/etc/hostname"}),
            ToolUse("b", "Read", {"file_path": "a.txt"}),
            ToolUse("c", "Read", {"file_path": "/etc/hosts"}),
        )
    )
    settings(tmp_path, {"permissions": {"deny": ["Read(a.txt)"]}})

    ran, _ = await run(
        [calls, HELLO], tmp_path, "-p", "hi", "--output-format", "json", "--allowedTools", "Read(//etc/hostname)"
    )

    assert [denial["tool_use_id"] for denial in ran.lines[0]["permission_denials"]] == ["b", "c"]


@pytest.mark.anyio
async def test_a_folder_that_is_added_may_be_read(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.txt").write_text("inside\n")
    (tmp_path / "project").mkdir()
    read = Reply((ToolUse("a", "Read", {"file_path": str(tmp_path / "other" / "b.txt")}),))

    _, server = await run([read, HELLO], tmp_path / "project", "-p", "hi", "--add-dir", "../other")

    assert "inside" in server.requests[1].raw.decode()


@pytest.mark.anyio
async def test_the_model_and_variables_can_come_from_settings(tmp_path: Path) -> None:
    settings(tmp_path / "home", {"model": "claude-from-settings", "effortLevel": "low"})

    _, server = await run([Reply((Text("Hello there."),))], tmp_path, "-p", "hi")

    assert server.requests[0].body["model"] == "claude-from-settings"
    _, server = await run([HELLO], tmp_path, "-p", "hi", "--model", "claude-from-flag")
    assert server.requests[0].body["model"] == "claude-from-flag"


@pytest.mark.anyio
async def test_a_run_says_what_of_an_untrusted_folder_does_not_count(tmp_path: Path) -> None:
    hook = {"SessionStart": [{"hooks": [{"type": "command", "command": "touch marker"}]}]}
    settings(tmp_path, {"hooks": hook, "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "model": "evil"})

    ran, server = await run([HELLO], tmp_path, "-p", "hi")

    assert (ran.code, ran.out) == (0, "Hello there.\n")
    assert "so 3 of its settings are ignored: hooks.SessionStart, env.ANTHROPIC_BASE_URL, model" in ran.errors
    assert server.requests[0].body["model"] != "evil"
    assert not (tmp_path / "marker").exists()


def test_a_folder_of_which_nothing_counts_yet_has_an_empty_list(project: Path, env: dict[str, str]) -> None:
    settings(project, {"model": "x", "future": {"a": [1]}})

    listed = handrail("config", "list", "--show-source", "--json", cwd=project, environment=env)

    assert (listed.returncode, json.loads(listed.stdout)) == (0, [])


@pytest.fixture
def inside(project: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project, as the folder of this very process."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", env["HOME"])
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(project.parent / "state"))
    return project


def test_control_characters_of_a_project_reach_no_terminal(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = "\x1b[2J\x07\u202e"
    rules = {"deny": [f"Bash{odd}(x)", f"Read({odd}"], "allow": [odd]}
    settings(inside, {"permissions": rules, f"permission{odd}s": {}, f"{odd}model": 1})

    for words in (
        ("call", "Bash", '{"command": "true"}'),
        ("permissions", "lint"),
        ("permissions", "explain", "Bash(ls)"),
        ("trust", "--show"),
        ("config", "list", "--show-source"),
        ("doctor",),
    ):
        command(list(words))
        done = capsys.readouterr()
        assert done.out + done.err
        assert not set(done.out + done.err) & set(odd[:1] + odd[4:]), words


@pytest.mark.parametrize(
    ("allowed", "disallowed", "code"),
    [
        ("Bash(touch *)", "", 0),
        ("Read,Bash(touch a,b)", "", 0),
        ("Read Bash(touch a,b)", "", 0),
        ("Read\nBash(touch *)", "", 0),
        (" Bash( touch  a,b ) ", "", 0),
        ("'Bash(touch *)'", "", 3),
        ("bash(touch *)", "", 3),
        ("Bash(touch *", "", 3),
        ("Bash\u200b", "", 3),
        ("Bash", "Read,Bash(touch *)", 3),
        ("Bash", "Read\nBash(touch:*)", 3),
        ("Bash", "Bash( touch\t* )", 3),
        ("Bash", "Bash(touch *", 2),
        ("Bash", '"Bash(touch *)"', 2),
        ("Bash", "bash(touch *)", 2),
        ("Bash", "Bash (touch *)", 2),
        ("Bash", "Bash\u200b(touch *)", 2),
    ],
)
def test_rules_of_flags_in_many_spellings(inside: Path, allowed: str, disallowed: str, code: int) -> None:
    words = ["--allowedTools", allowed, *(["--disallowedTools", disallowed] if disallowed else [])]

    assert command(["call", "Bash", '{"command": "touch a,b"}', *words]) == code
    assert (inside / "a,b").exists() is (code == 0)
