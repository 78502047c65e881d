"""Language servers in a session, through runs: real ones (ty, ruff), and one that does what a test wants."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.messages import Attachment, UserMessage
from handrail.session.spec import SessionHost
from handrail.testing import ScriptedModel, say, use
from tests.forked import unmeasured
from tests.session.folder_agent import open_agent

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "lsp" / "scripted_server.py"
CART = '''"""The sum of a cart."""


class Cart:
    def __init__(self) -> None:
        self.items: list[int] = []

    def total(self) -> int:
        """What everything costs."""
        return sum(self.items)


def bill(cart: Cart) -> str:
    return f"🧾 {cart.total()}"
'''
MAIN = """from pkg.cart import Cart, bill

cart = Cart()
print("😀😀", bill(cart), cart.total())
"""


class Project:
    """A trusted folder with an agent in it, and what its model gets to see."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder / "project"
        self.log = folder / "log.jsonl"
        self.log.touch()
        self.file("app.py", "value = 1\n")
        self.settings(**settings)
        self.env = {**unmeasured(), "HANDRAIL_STATE_DIR": str(folder / "state"), "HOME": str(folder / "home")}
        self.env["HANDRAIL_LSP_WAIT_MS"] = "60000"  # a busy machine may need longer than people would wait

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def settings(self, **settings: Any) -> None:
        if settings:
            self.file(".handrail/settings.json", json.dumps(settings))

    def scripted(self, mode: str, **more: Any) -> dict[str, Any]:
        """Settings with the scripted server, and no other."""
        entry = {
            "command": sys.executable,
            "args": [str(SERVER), mode, str(self.log)],
            "extensionToLanguage": {".py": "python"},
        }
        return {"lspServers": {"scripted": {**entry, **more}, "ruff": {"disabled": True}}}

    def agent(self, turns: Sequence[Any], *, trust: bool = True, mode: str = "acceptEdits", **flags: Any) -> Agent[Any]:
        self.model = ScriptedModel([*turns, [say("done")]])
        chosen = SettingsFlags(trust=trust, mode=mode, **flags)
        return open_agent(self.folder, self.env, flags=chosen, host=SessionHost(model=self.model))

    async def run(self, *turns: Any, **options: Any) -> dict[str, str]:
        """The results of the calls of a run, by their ids; the notes of the program stand under their kinds."""
        with anyio.fail_after(120):
            async with self.agent(turns, **options) as agent:
                _ = [event async for event in agent.run("go")]
                return results(agent)

    def sent(self, method: str) -> list[dict[str, Any]]:
        """What the scripted server was sent, with the ids of its processes."""
        lines = map(json.loads, self.log.read_text().splitlines())
        return [each for each in lines if each["message"].get("method") == method]


def results(agent: Agent[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for message in agent.messages:
        for block in message.content if isinstance(message, UserMessage | Attachment) else ():
            if isinstance(block, ToolResult):
                found[block.tool_use_id] = block.text
            elif isinstance(message, Attachment) and isinstance(block, Text):
                found[message.kind] = block.text
    return found


def lsp(number: str, operation: str, file_path: str = "app.py", symbol: str = "value", **more: Any) -> ToolUse:
    given = {"operation": operation, "file_path": file_path, "symbol": symbol, **more}
    return use(number, "LSP", **{name: value for name, value in given.items() if value})


def names(agent: Agent[Any]) -> list[str]:
    return [tool.name for tool in agent.tools]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# A real server


@pytest.mark.proves("N30")
async def test_a_real_server_answers_every_operation_by_name_and_line(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.file("pkg/cart.py", CART)
    project.file("main.py", MAIN)

    found = await project.run(
        [
            lsp("definition", "goToDefinition", "main.py", "total", line=4),
            lsp("column", "goToDefinition", "main.py", "", line=4, column=15),
            lsp("references", "findReferences", "pkg/cart.py", "Cart.total"),
            lsp("implementation", "goToImplementation", "main.py", "Cart"),
            lsp("hover", "hover", "pkg/cart.py", "total"),
            lsp("symbols", "documentSymbol", "pkg/cart.py", ""),
            lsp("project", "workspaceSymbol", "", "bill"),
            lsp("callers", "incomingCalls", "pkg/cart.py", "total"),
            lsp("called", "outgoingCalls", "pkg/cart.py", "bill"),
            lsp("outside", "goToDefinition", "pkg/cart.py", "sum"),
            lsp("absent", "hover", "pkg/cart.py", "nothing_like_it"),
            lsp("elsewhere", "hover", "pkg/cart.py", "total", line=1),
        ],
    )

    assert found["definition"] == "1 definition:\npkg/cart.py:8:9: def total(self) -> int:"
    assert found["column"] == "1 definition:\npkg/cart.py:13:5: def bill(cart: Cart) -> str:"
    assert sorted(found["references"].splitlines()) == [
        "3 references:",
        'main.py:4:30: print("😀😀", bill(cart), cart.total())',
        'pkg/cart.py:14:22: return f"🧾 {cart.total()}"',
        "pkg/cart.py:8:9: def total(self) -> int:",
    ]
    assert "pkg/cart.py:4:7: class Cart:" in found["implementation"]
    assert "What everything costs." in found["hover"]
    assert "\n  pkg/cart.py:8:9: method: def total(self) -> int:" in found["symbols"]
    assert "pkg/cart.py:13:" in found["project"]
    assert "pkg/cart.py:13:5: function: def bill(cart: Cart) -> str:" in found["callers"]
    assert "pkg/cart.py:8:9: method: def total(self) -> int:" in found["called"]
    assert "outside the working folders" in found["outside"]
    assert "does not stand in 'pkg/cart.py'" in found["absent"]
    assert "does not stand on line 1 of 'pkg/cart.py', but on 8, 14." in found["elsewhere"]


@pytest.mark.proves("N30")
async def test_after_an_edit_the_model_is_told_what_is_newly_wrong_and_nothing_else(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.file("app.py", "def half(n: int) -> float:\n    return n / 2\n\n\nold: int = 'wrong before'\n")
    new = "    # moved down\n    return m / 2"
    edit = use("edit", "Edit", file_path="app.py", old_string="    return n / 2", new_string=new)

    found = await project.run(
        [lsp("before", "diagnostics", symbol="")],
        [use("read", "Read", file_path="app.py")],
        [edit],
        [lsp("after", "diagnostics", symbol="")],
    )

    assert "app.py:5:12: error: " in found["before"]
    assert "New diagnostics in app.py since the change:" in found["diagnostics"]
    assert "`m`" in found["diagnostics"]
    assert "old" not in found["diagnostics"]


@pytest.mark.parametrize(("setting", "told"), [(True, True), (False, False)])
async def test_the_note_after_edits_can_be_switched_off(tmp_path: Path, setting: bool, told: bool) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted("plain"), lspDiagnostics=setting)
    new = [use("made", "Write", file_path="new.py", content="one\nBUG here\n")]

    found = await project.run([lsp("1", "goToDefinition")], new, [lsp("2", "diagnostics", "new.py", "")])

    assert found["1"] == "1 definition:\napp.py:1:1: value = 1"
    assert "new.py:2:1: error: a bug: BUG here (scripted)" in found["2"]
    assert ("New diagnostics in new.py since the change:" in found.get("diagnostics", "")) is told
    changed = [each["message"]["params"]["changes"] for each in project.sent("workspace/didChangeWatchedFiles")]
    assert [(each["type"], Path(each["uri"]).name) for [each] in changed] == [(1, "new.py")]


async def test_edits_without_a_running_server_start_none(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted("plain"))

    found = await project.run([use("made", "Write", file_path="new.py", content="BUG\n")])

    assert "diagnostics" not in found
    assert project.log.read_text() == ""


async def test_a_text_of_a_server_cannot_close_the_frame_around_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted("rude"))
    new = [use("made", "Write", file_path="new.py", content="BUG\n")]

    found = await project.run([lsp("1", "goToDefinition")], new)

    assert found["diagnostics"].count("</system-reminder>") == 1
    assert found["diagnostics"].endswith("</system-reminder>")
    assert "\x1b" not in found["diagnostics"]


async def test_a_server_that_never_tells_holds_no_edit_up_for_long(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted("silent"))
    project.env["HANDRAIL_LSP_WAIT_MS"] = "50"
    edits = ([use(name, "Write", file_path=f"{name}.py", content="BUG\n")] for name in ("a", "b", "c", "d"))

    found = await project.run([lsp("1", "goToDefinition")], *edits, [lsp("2", "goToDefinition")])

    assert "diagnostics" not in found
    assert "app.py:1:1" in found["2"]
    opened = [
        Path(each["message"]["params"]["textDocument"]["uri"]).name for each in project.sent("textDocument/didOpen")
    ]
    assert opened == ["app.py", "a.py", "b.py", "c.py", "d.py"]


# Who may use it


async def test_the_tool_is_offered_in_a_trusted_folder_only_and_once_a_server_is_there(tmp_path: Path) -> None:
    project = Project(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    project.env["PATH"] = f"{programs}:/usr/bin:/bin"

    async def offered(*, trust: bool) -> bool:
        async with project.agent([], trust=trust) as agent:
            return "LSP" in names(agent)

    assert not await offered(trust=True)
    ty = programs / "ty"
    async with project.agent([[use("1", "Bash", command="true")]], allowed=("Bash",)) as agent:
        assert "LSP" not in names(agent)
        ty.write_text("#!/bin/sh\n")
        ty.chmod(0o755)
        _ = [event async for event in agent.run("go")]
        assert agent.tools.active[-1].name == "LSP"  # appended, so that no other tool moves
    assert await offered(trust=True)
    assert not await offered(trust=False)


async def test_servers_of_settings_wait_for_trust_and_those_of_safe_mode_never_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted("plain"))

    options: dict[str, Any]
    for options in ({"trust": False}, {"mode": "", "wideners": "policy"}):
        found = await project.run([lsp("1", "goToDefinition")], **options)
        assert "1 definition" not in found["1"]

    assert project.log.read_text() == ""


async def test_what_rules_hide_and_what_lies_outside_is_not_shown(tmp_path: Path) -> None:
    project = Project(tmp_path)
    deny = {"permissions": {"deny": ["Read(secret/**)"]}}
    project.settings(**project.scripted("outside"), **deny)
    project.file("secret/key.py", "KEY = 'hunter2'\n")
    (tmp_path / "outside.py").write_text("OUTSIDE = 1\n")
    (project.folder / "link.py").symlink_to(tmp_path / "outside.py")

    found = await project.run(
        [
            lsp("places", "goToDefinition"),
            lsp("hover", "hover"),
            lsp("denied", "hover", "secret/key.py", "KEY"),
            lsp("beyond", "hover", str(tmp_path / "outside.py"), "OUTSIDE"),
        ]
    )

    assert found["places"].splitlines() == [
        "1 definition:",
        "app.py:1000000001:1: ",
        "(6 results lie outside the working folders or may not be read; not shown.)",
    ]
    assert "defined in a file that may not be read" in found["hover"]
    assert not any("hunter2" in text or "OUTSIDE = 1" in text for text in found.values())
    opened = [
        Path(each["message"]["params"]["textDocument"]["uri"]).name for each in project.sent("textDocument/didOpen")
    ]
    assert set(opened) == {"app.py"}


async def test_a_question_about_a_file_does_not_count_as_having_read_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted("plain"))

    found = await project.run([lsp("1", "hover")], [use("2", "Write", file_path="app.py", content="gone\n")])

    assert "has not been read" in found["2"]
    assert (project.folder / "app.py").read_text() == "value = 1\n"


# Servers that misbehave


@pytest.mark.parametrize("mode", ["garbage", "flood", "many"])
async def test_odd_messages_and_floods_do_not_keep_an_answer_back(tmp_path: Path, mode: str) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted(mode))

    found = await project.run([lsp("1", "goToDefinition")])

    assert "\napp.py:1:1: value = 1" in found["1"]
    assert len(found["1"]) < 20_000


@pytest.mark.parametrize(
    ("mode", "said", "restarts"),
    [
        ("noise", "lines that belong to no message", 1),
        ("huge", "it sent a message of 99,999,999,999 bytes", 1),
        ("deep", "it sent a message that is nested too deeply", 1),
        ("dies", "it ended with exit code 3. Its last output: I cannot go on", 2),
        ("hang", "gave no answer within 3 s, and was ended", 0),
    ],
)
async def test_a_server_that_cannot_answer_is_ended_said_and_started_again_a_few_times(
    tmp_path: Path, mode: str, said: str, restarts: int
) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted(mode, requestTimeout=3_000 if mode == "hang" else 60_000, maxRestarts=restarts))

    found = await project.run(*([lsp(str(number), "goToDefinition")] for number in range(restarts + 2)))

    *answers, last = (found[str(number)] for number in range(restarts + 2))
    assert all(said in each for each in answers)
    assert f"is not started again in this session: it failed {restarts + 1} times." in last
    assert said.removesuffix(", and was ended") in last
    pids = {each["pid"] for each in project.sent("initialize")}
    assert len(pids) == restarts + 1
    assert not any(map(is_alive, pids))


async def test_a_server_changes_no_file_opens_no_page_and_gets_only_its_own_settings(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted("edits", settings={"scripted": {"colour": "green"}}))

    found = await project.run([lsp("1", "goToDefinition")])

    assert "app.py:1:1: value = 1" in found["1"]
    assert (project.folder / "app.py").read_text() == "value = 1\n"
    said = {m["id"]: m for line in project.log.read_text().splitlines() if "id" in (m := json.loads(line)["message"])}
    assert said["a"]["result"]["applied"] is False
    assert said["b"]["result"] == {"success": False}
    assert said["c"]["error"]["code"] == -32601
    assert said["d"]["result"] == ["green", None]


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("confined", [True, False])
async def test_where_commands_are_confined_servers_are_too(tmp_path: Path, confined: bool) -> None:
    project = Project(tmp_path)
    project.log = project.file("log.jsonl", "")
    project.settings(**project.scripted("escape"), sandbox={"enabled": confined})

    found = await project.run([lsp("1", "goToDefinition")])

    assert found["1"] == "1 definition:\napp.py:1:1: value = 1"
    assert (tmp_path / "escaped").exists() is not confined


async def test_agents_share_one_server_and_nothing_of_it_outlives_the_session(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.settings(**project.scripted("child"))
    project.env["SECRET_TOKEN"] = "hunter2"

    found = await project.run(
        [use("agent", "Agent", description="look", prompt="look", subagent_type="general-purpose")],
        [lsp("inner", "goToDefinition")],
        [say("it is there")],
        [lsp("outer", "goToDefinition"), lsp("again", "findReferences")],
    )

    assert "app.py:1:1" in found["outer"]
    assert "app.py:1:1" in found["again"]
    [server] = {each["pid"] for each in project.sent("initialize")}
    [child] = [each["message"]["pid"] for each in project.sent("child")]
    assert not is_alive(server)
    assert not is_alive(child)
