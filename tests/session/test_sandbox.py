"""Bash in the sandbox of the settings: real commands, through the executor and the gate of a policy."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.config.flags import NO_FLAGS_GIVEN, SettingsFlags
from handrail.config.places import places_for
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.decide import conditions_left_to_tools
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.question import Question
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import Rails
from handrail.dispatch.results import ResultStore
from handrail.permissions.policy import Policy
from handrail.permissions.rules import SESSION, Behaviour
from handrail.processes.sandbox import confine
from handrail.processes.sandbox.choose import Method, MethodTrial, try_methods
from handrail.session.services import tool_services
from handrail.session.settings.confinement import denied_paths, protected_names, public
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.tools import make_catalog
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome, Status
from handrail.tools.permission import Allow
from handrail.tools.pool import Deferral

pytestmark = [pytest.mark.anyio, pytest.mark.needs("bwrap")]

SECRET = "the-secret-of-the-owner"


class World:
    """A person with a home, settings and a project, who answers questions with `agrees`; None = nobody is there."""

    who = "person"

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.home, self.project = self.root / "home", self.root / "work" / "project"
        for folder in (self.home / ".handrail", self.project):
            folder.mkdir(parents=True)
        (self.home / "notes.txt").write_text(SECRET)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "HANDRAIL_STATE_DIR": str(self.root / "state")}
        self.agrees: bool | None = None
        self.questions: list[str] = []
        self.closing: list[Any] = []

    def settings(self, sandbox: dict[str, Any], **permissions: Any) -> None:
        content = {"sandbox": sandbox, "permissions": permissions}
        (self.home / ".handrail" / "settings.json").write_text(json.dumps(content))

    def begin(self, sandbox: dict[str, Any], *, asked: SettingsFlags = NO_FLAGS_GIVEN, **permissions: Any) -> "World":
        """A session under these settings."""
        self.settings(sandbox, **permissions)
        self.live = SessionSettings(places_for(self.project, self.env, self.root / "state"), self.env, asked)
        services = tool_services(self.live)
        self.closing.append(services.sandbox)
        self.catalog = make_catalog(
            variables=self.live.loaded.env, services=lambda: services, deferral=Deferral(mode="off")
        )
        self.gate = PolicyGate(self.live.in_force(), self, conditions=conditions_left_to_tools)
        return self

    async def ask(self, question: Question) -> Allow | None:
        self.questions.append(question.reason)
        return Allow() if self.agrees else None

    def update(self, question: Question) -> None:
        raise AssertionError(question)

    async def use(self, tool: str, **given: Any) -> Outcome:
        store, run = ResultStore(self.root / "results"), RunContext(self.project)
        async with ToolExecutor(self.catalog.pool, run, store, rails=Rails(self.gate)) as executor:
            executor.add(ToolUse("call", tool, given))
            (outcome,) = [outcome async for outcome in executor.rest()]
        return outcome

    async def bash(self, command: str, **given: Any) -> Outcome:
        return await self.use("Bash", command=command, **given)

    def script(self, text: str) -> str:
        """A command line that runs this text; nothing of the text can be seen in it."""
        (self.project / "script.sh").write_text(text)
        return "sh script.sh"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for sandbox in made.closing:
        sandbox.close()


@pytest.fixture
def none_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any sandbox."""
    trials = (MethodTrial(Method.BUBBLEWRAP, False, "bwrap is not installed (package bubblewrap)"),)
    monkeypatch.setattr(confine, "try_methods", lambda: trials)
    monkeypatch.setattr(confine, "best", lambda: None)


# Inside


def confined_by(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on commands are confined in this way, where it works."""
    found = next((each for each in try_methods() if each.method is method and each.works), None)
    if found is None:
        pytest.skip(f"{method.value} does not work here")
    monkeypatch.setattr(confine, "best", lambda: found)


async def test_a_command_in_the_sandbox_needs_no_consent_and_cannot_reach_out(world: World) -> None:
    world.begin({"enabled": True})
    outside = world.root / "outside.txt"

    done = await world.bash(world.script("echo made > made.txt"))
    away = await world.bash(world.script(f"echo x > {outside}; cat {world.home}/notes.txt"))

    assert (done.status, away.status, world.questions) == (Status.OK, Status.ERROR, [])
    assert (world.project / "made.txt").read_text() == "made\n"
    assert not outside.exists()
    assert SECRET not in away.result.text
    assert "The sandbox stopped this" in away.result.text


async def test_without_the_setting_commands_are_not_confined_and_the_usual_consent_holds(world: World) -> None:
    world.begin({})
    assert (await world.bash(world.script("true"))).status is Status.DENIED

    world.agrees = True
    outside = world.root / "outside.txt"
    outcome = await world.bash(world.script(f"echo x > {outside}"), dangerouslyDisableSandbox=True)

    assert (outcome.status, outside.read_text()) == (Status.OK, "x\n")
    assert all("outside the sandbox" not in reason for reason in world.questions)


@pytest.mark.parametrize(
    ("command", "permissions", "reason"),
    [
        pytest.param("sh script.sh", {"deny": ["Bash(sh *)"]}, "the rule Bash(sh *) matches", id="a deny rule"),
        pytest.param("sh script.sh", {"ask": ["Bash(sh *)"]}, "the rule Bash(sh *) matches", id="an ask rule"),
        pytest.param("echo x > .git/config", {}, "protected", id="a protected path"),
        pytest.param("rm -rf .", {}, "must not be removed", id="a critical path"),
        pytest.param('echo "', {}, "not understood", id="a line that is not understood"),
        pytest.param("cp script.sh ../x", {}, "outside the working folders", id="a file outside"),
        pytest.param("sh script.sh", {"defaultMode": "plan"}, "plan mode", id="plan mode"),
    ],
)
async def test_what_is_stronger_than_a_mode_is_stronger_than_the_sandbox(
    world: World, command: str, permissions: dict[str, Any], reason: str
) -> None:
    world.begin({"enabled": True}, **permissions)
    world.script("touch ran")

    outcome = await world.bash(command)

    assert outcome.status is Status.DENIED
    assert reason in outcome.result.text
    assert not (world.project / "ran").exists()


async def test_consent_is_wanted_also_inside_if_the_settings_say_so(world: World) -> None:
    world.begin({"enabled": True, "autoAllowBashIfSandboxed": False})
    assert (await world.bash(world.script("true"))).status is Status.DENIED
    assert (await world.bash("ls")).status is Status.OK

    world.agrees = True
    outcome = await world.bash(world.script(f"cat {world.home}/notes.txt"))
    assert SECRET not in outcome.result.text


async def test_background_tasks_are_confined_too(world: World) -> None:
    world.begin({"enabled": True})
    outside = world.root / "outside.txt"

    started = await world.bash(world.script(f"echo x > {outside}; echo said"), run_in_background=True)
    assert started.output is not None
    task = started.output.data["backgroundTaskId"]
    ended = await world.use("TaskOutput", task_id=task, block=True, timeout=10_000)

    assert (started.status, "said" in ended.result.text, outside.exists()) == (Status.OK, True, False)


async def test_where_bubblewrap_does_not_work_landlock_confines(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = next((each for each in try_methods() if each.method is Method.LANDLOCK and each.works), None)
    if found is None:
        pytest.skip("this kernel has no Landlock")
    monkeypatch.setattr(confine, "best", lambda: found)
    world.begin({"enabled": True})
    (world.project / "src").mkdir()
    text = f"echo made > src/made.txt; cat {world.home}/notes.txt; echo x > {world.root}/outside.txt"

    outcome = await world.bash(world.script(text))

    assert (world.project / "src" / "made.txt").read_text() == "made\n"
    assert (outcome.status, world.questions, (world.root / "outside.txt").exists()) == (Status.ERROR, [], False)
    assert SECRET not in outcome.result.text
    missing = await world.bash(world.script("exec /nowhere"))
    assert missing.result.text.startswith("Exit code 127")


@pytest.mark.parametrize("method", [Method.BUBBLEWRAP, Method.LANDLOCK])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "echo x > OUTSIDE/handrail.test", "'OUTSIDE/handrail.test' is read-only. Writable are", id="a file outside"
        ),
        pytest.param(
            "mkdir OUTSIDE/handrail.test", "'OUTSIDE/handrail.test' is read-only. Writable are", id="a folder outside"
        ),
        pytest.param("cat HOME/notes.txt", "'HOME/notes.txt' is hidden. sandbox.filesystem.allowRead", id="a secret"),
        pytest.param("cat STATE/audit", "'STATE/audit' is hidden", id="our own files"),
        pytest.param("curl -sS http://example.com", "there is no network", id="a name"),
        pytest.param("curl -sS http://192.0.2.1", "there is no network", id="an address"),
        pytest.param(
            "python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 5)\"",
            "there is no network",
            id="a socket",
        ),
    ],
)
async def test_a_violation_is_explained(
    world: World, monkeypatch: pytest.MonkeyPatch, method: Method, text: str, said: str
) -> None:
    confined_by(method, monkeypatch)
    world.begin({"enabled": True})
    places = {"OUTSIDE": Path("/usr/share"), "HOME": world.home, "STATE": world.root / "state"}
    for name, place in places.items():
        text, said = text.replace(name, str(place)), said.replace(name, str(place))

    outcome = await world.bash(world.script(text))

    assert outcome.status is Status.ERROR
    assert f"The sandbox stopped this: {said}" in outcome.result.text


@pytest.mark.parametrize("method", [Method.BUBBLEWRAP, Method.LANDLOCK])
async def test_the_variables_of_the_program_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    confined_by(method, monkeypatch)
    world.begin({"enabled": True})
    (world.project / "src").mkdir()
    with subprocess.Popen(["sleep", "1000"], env={"KEY": SECRET}) as holder:
        text = (
            f"grep -c {SECRET} /proc/[0-9]*/environ | grep -v ':0'; cat /proc/{holder.pid}/environ; kill {holder.pid}"
        )
        outcome = await world.bash(world.script(text))
        alone = holder.poll() is None
        holder.kill()

    assert SECRET not in outcome.result.text
    assert ":1" not in outcome.result.text
    assert alone or method is Method.LANDLOCK


# Outside


async def test_leaving_the_sandbox_is_asked_for_even_for_a_command_that_only_reads(world: World) -> None:
    world.begin({"enabled": True})
    refused = await world.bash("ls", dangerouslyDisableSandbox=True)
    assert refused.status is Status.DENIED
    assert world.questions == ["it asks to run outside the sandbox"]

    world.agrees = True
    outside = world.root / "outside.txt"
    outcome = await world.bash(world.script(f"echo x > {outside}"), dangerouslyDisableSandbox=True)
    assert (outcome.status, outside.read_text()) == (Status.OK, "x\n")


async def test_leaving_the_sandbox_is_refused_if_the_settings_say_so(world: World) -> None:
    world.begin({"enabled": True, "allowUnsandboxedCommands": False}, allow=["Bash"])
    world.agrees = True

    outcome = await world.bash(world.script("touch ran"), dangerouslyDisableSandbox=True)

    assert (outcome.status, world.questions) == (Status.DENIED, [])
    assert "sandbox.allowUnsandboxedCommands is false" in outcome.result.text
    assert not (world.project / "ran").exists()


async def test_excluded_commands_run_outside_with_the_usual_consent(world: World) -> None:
    world.begin({"enabled": True, "excludedCommands": ["sh"]})
    command = world.script(f"cat {world.home}/notes.txt")

    assert (await world.bash(command)).status is Status.DENIED
    world.agrees = True
    assert SECRET in (await world.bash(command)).result.text
    assert SECRET not in (await world.bash(f"{command}; python3 -c ''")).result.text


@pytest.mark.usefixtures("none_works")
async def test_if_no_sandbox_works_here_that_is_said_and_asked_for(world: World) -> None:
    world.begin({"enabled": True})
    refused = await world.bash("ls")
    assert refused.status is Status.DENIED
    assert "the sandbox is enabled, but none works here: bwrap is not installed" in refused.result.text

    world.agrees = True
    outcome = await world.bash(world.script("echo ran"))
    assert outcome.status is Status.OK
    assert "none works here" in outcome.result.text
    assert "so this runs with all your rights" in world.questions[-1]


@pytest.mark.usefixtures("none_works")
async def test_if_none_works_and_nothing_may_leave_nothing_runs(world: World) -> None:
    world.begin({"enabled": True, "allowUnsandboxedCommands": False}, allow=["Bash"])
    world.agrees = True

    outcome = await world.bash(world.script("touch ran"))

    assert (outcome.status, (world.project / "ran").exists()) == (Status.DENIED, False)


async def test_limits_that_are_not_understood_refuse_every_command(world: World) -> None:
    world.begin({"enabled": True, "filesystem": {"denyRead": ["a*b"]}}, allow=["Bash"])

    outcome = await world.bash(world.script("touch ran"))

    assert (outcome.status, (world.project / "ran").exists()) == (Status.DENIED, False)
    assert "sandbox.filesystem.denyRead[0]" in outcome.result.text


# Rules and settings


async def test_what_deny_rules_keep_from_the_file_tools_is_kept_from_commands(world: World) -> None:
    for name in ("keys/a.txt", ".env", ".env.local", "lock.json"):
        path = world.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(SECRET)
    world.begin({"enabled": True}, deny=["Read(keys/**)", "Read(./.env)", "Read(.env.*)", "Edit(lock.json)"])

    shown = await world.bash(world.script("cat keys/* .env .env.*; echo more >> lock.json; wc -c < lock.json"))

    assert SECRET not in shown.result.text
    assert str(len(SECRET)) in shown.result.text
    assert (world.project / "lock.json").read_text() == SECRET


async def test_so_is_what_the_command_line_denies(world: World) -> None:
    (world.project / "key").write_text(SECRET)
    world.begin({"enabled": True}, asked=SettingsFlags(disallowed=("Read(key)",)))

    shown = await world.bash(world.script("cat key"))

    assert (shown.status, SECRET in shown.result.text) == (Status.ERROR, False)
    assert f"{str(world.project / 'key')!r} is hidden" in shown.result.text


@pytest.mark.parametrize("method", [Method.BUBBLEWRAP, Method.LANDLOCK])
async def test_so_is_what_was_denied_for_the_session(
    world: World, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    confined_by(method, monkeypatch)
    (world.project / "key").write_text(SECRET)
    world.begin({"enabled": True})
    command = world.script("cat key; echo more >> lock.json")
    (world.project / "lock.json").touch()
    assert SECRET in (await world.bash(command)).result.text

    def update(kind: str, rule: str) -> dict[str, Any]:
        tool, _, path = rule.rstrip(")").partition("(")
        rules = [{"toolName": tool, "ruleContent": path}]
        return {"type": kind, "behavior": "deny", "rules": rules, "destination": "session"}

    denied = [update("addRules", rule) for rule in ("Read(key)", "Edit(lock.json)")]
    assert await world.live.in_force().change(denied) == ()
    refused = await world.bash(command)

    assert (refused.status, SECRET in refused.result.text) == (Status.ERROR, False)
    assert f"{str(world.project / 'key')!r} is hidden" in refused.result.text
    assert (world.project / "lock.json").read_text() == "more\n"

    await world.live.in_force().change([update("removeRules", "Read(key)")])
    assert SECRET in (await world.bash(command)).result.text


async def test_a_change_of_the_settings_counts_for_the_next_command(world: World) -> None:
    world.begin({})
    world.agrees = True
    command = world.script(f"cat {world.home}/notes.txt")
    assert SECRET in (await world.bash(command)).result.text

    world.settings({"enabled": True, "filesystem": {"denyRead": []}})
    assert SECRET not in (await world.bash(command)).result.text

    world.settings({"enabled": True, "filesystem": {"allowRead": [f"{world.home}/notes.txt"]}})
    assert SECRET in (await world.bash(command)).result.text


async def test_a_command_that_was_allowed_in_the_sandbox_does_not_run_without_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.begin({"enabled": True})
    decide = world.gate.decide

    async def decided(*given: Any) -> Any:
        decision = await decide(*given)
        world.settings({"enabled": False, "filesystem": {}})
        return decision

    monkeypatch.setattr(world.gate, "decide", decided)
    outcome = await world.bash(world.script("touch ran"))

    assert (outcome.status, (world.project / "ran").exists()) == (Status.ERROR, False)
    assert "switched off since" in outcome.result.text


def test_the_command_line_door_uses_it_and_pays_nothing_while_it_is_off(world: World) -> None:
    world.settings({"enabled": True})
    done = subprocess.run(
        [sys.executable, "-m", "handrail", "call", "Bash", json.dumps({"command": 'python3 -c \'open("x", "w")\''})],
        cwd=world.project,
        env=world.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (world.project / "x").exists()
    assert sorted(path.name for path in world.project.iterdir()) == ["x"]

    world.settings({"enabled": False})
    probe = (
        "import sys\n"
        "from handrail.cli.main import run\n"
        "code = run(['call', 'Bash', '{\"command\": \"ls\"}'])\n"
        "loaded = [name for name in sys.modules if name.startswith('handrail.processes.sandbox.')]\n"
        "print(code, loaded, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=world.project, env=world.env, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("x\n", "0 ['handrail.processes.sandbox.placeholder_marks']\n")


@pytest.mark.parametrize(
    ("rule", "paths"),
    [
        ("Read(//etc/hostname)", ["/etc/hostname"]),
        ("Read(//etc/ssl/**)", ["/etc/ssl"]),
        ("Read(~/.aws)", ["/home/me/.aws"]),
        ("Read(**/.env)", ["/p/.env", "/q/.env"]),
        ("Read(a/**/b)", []),
        ("Read(//nowhere/at/all/*.pem)", []),
        ("Read", []),
        ("Edit(x)", []),
    ],
)
def test_deny_rules_as_paths(rule: str, paths: list[str]) -> None:
    policy = Policy.empty("/p", "/home/me").with_directories(("/p", "/q")).adding(Behaviour.DENY, [rule], SESSION)

    assert list(denied_paths(policy, "Read")) == paths


def test_protected_names_come_from_the_permission_language() -> None:
    names = protected_names()

    assert {".handrail", ".claude", ".mcp.json", ".envrc", ".vscode"} <= set(names.project)
    assert not {".git", ".bashrc"} & set(names.project)
    assert {".bashrc", ".ssh", "bin", ".config/git", ".mcp.json"} <= set(names.home)


@pytest.mark.parametrize(
    ("address", "answer"),
    [
        ("93.184.216.34", True),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("10.1.2.3", False),
        ("nonsense", False),
    ],
)
def test_which_addresses_are_public(address: str, answer: bool) -> None:
    assert public(address) is answer
