"""Real commands, a real server and real functions as hooks."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import HookCallback, HookNews, Hooks, RunContext, ToolUse
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.results import NOTHING, HookResult
from handrail.hooks.specs import HookSource
from handrail.tools.context import AgentIdentity
from handrail.tools.permission import Verdict
from handrail.tools.request import CallRequest
from tests.permissions.world import tool_called
from tests.processes.seen import alive, noted, read_pipe, stay

pytestmark = pytest.mark.anyio

DENY = (
    '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}'
)
CALL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "1"}

BEHIND: Any = {"async": True}


def commands(*lines: str, event: str = "PreToolUse", **more: Any) -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": line, **more} for line in lines]}]}


def hooks(section: Any, folder: Path, **more: Any) -> Hooks:
    return Hooks(section, environment=HookEnvironment(dict(os.environ), folder=folder / "state", **more))


async def fire(asked: Hooks, folder: Path, event: str = "PreToolUse", fields: Any = None, **more: Any) -> HookResult:
    with anyio.fail_after(20):
        return await asked.fire(event, CALL if fields is None else fields, RunContext(folder), **more)


# Commands


@pytest.mark.proves("H1")
async def test_a_command_reads_the_call_and_its_word_counts(tmp_path: Path) -> None:
    asked = hooks(commands(f"cat > seen.json; echo '{DENY}'"), tmp_path, session_id="s1", transcript="/t.jsonl")

    answer = await fire(asked, tmp_path)

    assert (answer.verdict, answer.reason) == (Verdict.DENY, "no")
    assert json.loads((tmp_path / "seen.json").read_text()) == {
        "session_id": "s1",
        "transcript_path": "/t.jsonl",
        "cwd": str(tmp_path),
        "hook_event_name": "PreToolUse",
        "permission_mode": "default",
        **CALL,
    }


async def test_inside_a_sub_agent_the_input_names_it(tmp_path: Path) -> None:
    asked = hooks(commands("cat > seen.json"), tmp_path)
    await asked.fire("PreToolUse", CALL, RunContext(tmp_path, agent=AgentIdentity("a7", "reviewer")))

    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (seen["agent_id"], seen["agent_type"]) == ("a7", "reviewer")


async def test_a_command_knows_the_project_and_runs_where_the_session_is(tmp_path: Path) -> None:
    line = 'printf "%s %s %s" "$PWD" "$CLAUDE_PROJECT_DIR" "$HANDRAIL_PROJECT_DIR" > seen'
    await fire(hooks(commands(line), tmp_path, project="/proj"), tmp_path)

    assert (tmp_path / "seen").read_text() == f"{tmp_path} /proj /proj"


async def test_with_args_no_shell_reads_the_words(tmp_path: Path) -> None:
    asked = hooks(commands("touch", args=["$HOME; touch PWNED"]), tmp_path)

    await fire(asked, tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["$HOME; touch PWNED"]


async def test_all_matching_hooks_run_side_by_side(tmp_path: Path) -> None:
    """Each waits for the other at a pipe: one after the other they would wait forever."""
    os.mkfifo(tmp_path / "pipe")
    asked = hooks(commands("echo x > pipe", "read x < pipe", timeout=15), tmp_path)

    assert await fire(asked, tmp_path) == NOTHING


async def test_identical_commands_run_once_and_those_of_a_plugin_apart(tmp_path: Path) -> None:
    line = commands("echo x >> seen")
    sources = [
        (HookSource("user", ".claude"), line),
        (HookSource("project"), line),
        (HookSource("plugin:p"), line),
        (HookSource("project"), {"PreToolUse": [{"matcher": "bash", "hooks": line["PreToolUse"][0]["hooks"]}]}),
    ]
    await fire(Hooks(sources=sources, environment=HookEnvironment(dict(os.environ))), tmp_path)

    assert (tmp_path / "seen").read_text() == "x\nx\n"


@pytest.mark.parametrize("ours_first", [True, False])
async def test_of_identical_hooks_the_strictest_counts(tmp_path: Path, ours_first: bool) -> None:
    both = [(HookSource("user", ".claude"), commands("exit 1")), (HookSource("project"), commands("exit 1"))]
    asked = Hooks(sources=reversed(both) if ours_first else both, environment=HookEnvironment(dict(os.environ)))

    assert (await fire(asked, tmp_path)).verdict is Verdict.ASK


@pytest.mark.proves("R2", "R8", "H2")
async def test_a_hook_that_takes_too_long_is_asked_about_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    asked = hooks(commands(f"({stay(tmp_path)}) & {stay(tmp_path)}", timeout=0.5), tmp_path)

    answer = await fire(asked, tmp_path)

    assert answer.verdict is Verdict.ASK
    assert "did not answer within 0.5 seconds" in answer.reason
    assert noted(tmp_path)
    assert not any(map(alive, noted(tmp_path)))


@pytest.mark.proves("R8")
async def test_what_a_hook_starts_in_the_background_ends_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    behind = f"(echo $$ >> pids; echo > ready; {stay(tmp_path)}) & read x < ready"
    await fire(hooks(commands(behind), tmp_path), tmp_path)

    assert noted(tmp_path)
    assert not any(map(alive, noted(tmp_path)))


@pytest.mark.proves("R8")
async def test_a_cancelled_hook_leaves_nothing_behind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    asked = hooks(commands(f"echo $$ >> pids; echo > ready; {stay(tmp_path)}"), tmp_path)
    news: list[HookNews] = []
    task = asyncio.create_task(asked.fire("PreToolUse", CALL, RunContext(tmp_path), on_news=news.append))
    await anyio.to_thread.run_sync(read_pipe, tmp_path / "ready")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not any(map(alive, noted(tmp_path)))
    assert [(each.stage, each.outcome) for each in news] == [("started", ""), ("response", "cancelled")]


@pytest.mark.parametrize(
    ("line", "more"),
    [
        pytest.param("./missing.sh", {}, id="a script that is not there"),
        pytest.param("/nowhere/program", {"args": []}, id="a program that is not there"),
        pytest.param("kill -9 $$", {}, id="killed"),
        pytest.param("echo '{\"hookSpecificOutput\":'", {}, id="half an answer"),
        pytest.param("head -c 2000000 /dev/zero | tr '\\0' '{'", {}, id="too much"),
    ],
)
@pytest.mark.proves("R2")
async def test_a_hook_that_cannot_do_its_work_is_asked_about_whoever_wrote_it(
    line: str, more: dict[str, Any], tmp_path: Path
) -> None:
    source = HookSource("project", ".claude", "settings.json")
    asked = Hooks(sources=[(source, commands(line, **more))], environment=HookEnvironment(dict(os.environ)))

    answer = await fire(asked, tmp_path)

    assert answer.verdict is Verdict.ASK
    assert "project settings settings.json: hooks.PreToolUse[0].hooks[0]" in answer.messages[0]


async def test_a_folder_that_is_gone_is_asked_about(tmp_path: Path) -> None:
    assert (await fire(hooks(commands("true"), tmp_path), tmp_path / "gone")).verdict is Verdict.ASK


@pytest.mark.proves("R6")
async def test_long_words_are_cut_and_kept_in_a_file(tmp_path: Path) -> None:
    asked = hooks(commands("head -c 30000 /dev/zero | tr '\\0' x", event="SessionStart"), tmp_path)

    [text] = (await fire(asked, tmp_path, "SessionStart", {"source": "startup"})).context

    assert len(text) == 10_000
    path = Path(text.rpartition("The whole text is in ")[2].removesuffix(".]"))
    assert path.read_text() == "x" * 30_000
    assert path.stat().st_mode & 0o077 == 0


async def test_a_hook_at_the_start_of_a_session_may_leave_variables(tmp_path: Path) -> None:
    asked = hooks(commands("echo 'export A=1' >> \"$CLAUDE_ENV_FILE\"", event="SessionStart"), tmp_path)
    await fire(asked, tmp_path, "SessionStart", {"source": "startup"})

    assert asked.environment.env_file is not None
    assert asked.environment.env_file.read_text() == "export A=1\n"


@pytest.mark.parametrize(
    ("event", "field", "value", "matcher", "runs"),
    [
        ("SessionStart", "source", "startup", "startup|resume", True),
        ("SessionStart", "source", "clear", "startup|resume", False),
        ("SessionEnd", "reason", "other", "other", True),
        ("Notification", "notification_type", "idle_prompt", "permission_prompt", False),
        ("PreCompact", "trigger", "auto", "manual", False),
        ("SubagentStart", "agent_type", "reviewer", "review.*", True),
        ("ConfigChange", "source", "user", "user", True),
        ("UserPromptExpansion", "command_name", "deploy", "deploy", True),
        ("UserPromptExpansion", "command_name", "deploy", "review", False),
        ("PermissionDenied", "tool_name", "Bash", "Edit|Write", False),
        ("StopFailure", "error", "rate_limit", "rate_limit", True),
        ("StopFailure", "error", "rate_limit", "server_error", False),
        ("InstructionsLoaded", "load_reason", "session_start", "nested_traversal", False),
        ("CwdChanged", "new_cwd", "/x", "never", True),
        ("Stop", "whatever", "x", "never", True),
    ],
)
async def test_each_event_is_matched_by_its_own_field(
    event: str, field: str, value: str, matcher: str, runs: bool, tmp_path: Path
) -> None:
    section = {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": "touch ran"}]}]}
    await fire(hooks(section, tmp_path), tmp_path, event, {field: value})

    assert (tmp_path / "ran").exists() == runs


@pytest.mark.parametrize(
    ("rule", "name", "given", "runs"),
    [
        ("Bash(git push *)", "Bash", {"command": "git push origin"}, True),
        ("Bash(git push *)", "Bash", {"command": "ls && echo $(git push origin)"}, True),
        ("Bash(git push *)", "Bash", {"command": "ls"}, False),
        ("Bash(git push *)", "Bash", {"command": "if then ("}, True),
        ("Edit(*.py)", "Edit", {"file_path": "src/a.py"}, True),
        ("Edit(*.py)", "Write", {"file_path": "src/a.py"}, True),
        ("Edit(*.py)", "Edit", {"file_path": "src/a.rs"}, False),
        ("Bash", "Edit", {"file_path": "src/a.py"}, False),
    ],
)
async def test_a_condition_is_a_permission_rule(
    rule: str, name: str, given: dict[str, Any], runs: bool, tmp_path: Path
) -> None:
    asked = hooks(commands("touch ran", **{"if": rule}), tmp_path)
    fields = {"tool_name": name, "tool_input": given}
    request = CallRequest.hypothetical(ToolUse("1", name, given), tool_called(name), RunContext(tmp_path))
    await fire(asked, tmp_path, fields=fields, request=request)

    assert (tmp_path / "ran").exists() == runs


async def test_once_in_a_skill_means_once(tmp_path: Path) -> None:
    section = commands("echo x >> seen", once=True)
    asked = Hooks(sources=[(HookSource("skill:s"), section)], environment=HookEnvironment(dict(os.environ)))
    for _ in range(3):
        await fire(asked, tmp_path)

    assert (tmp_path / "seen").read_text() == "x\n"


async def test_what_happens_is_told(tmp_path: Path) -> None:
    news: list[HookNews] = []
    line = 'echo \'{"systemMessage":"look"}\'; echo hm >&2'
    await fire(hooks(commands(line, statusMessage="Checking"), tmp_path), tmp_path, on_news=news.append)

    started, response, message = news
    assert (started.stage, started.message, started.event, started.name) == ("started", "Checking", "PreToolUse", line)
    assert (response.stage, response.id, response.exit_code, response.outcome, response.stderr) == (
        "response", started.id, 0, "success", "hm\n",
    )  # fmt: skip
    assert (message.stage, message.message) == ("message", "look")


# In the background


async def test_an_async_hook_is_not_waited_for_and_has_no_say(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    asked = hooks(commands("read x < pipe; touch done; exit 2", **BEHIND), tmp_path)

    assert await fire(asked, tmp_path) == NOTHING
    assert not (tmp_path / "done").exists()
    await asked.aclose()


@pytest.mark.proves("R8")
async def test_closing_ends_hooks_in_the_background(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    asked = hooks(commands(f"echo $$ >> pids; echo > ready; {stay(tmp_path)}", **BEHIND), tmp_path)
    await fire(asked, tmp_path)
    await anyio.to_thread.run_sync(read_pipe, tmp_path / "ready")

    await asked.aclose()

    assert noted(tmp_path)
    assert not any(map(alive, noted(tmp_path)))


@pytest.mark.parametrize(("code", "woken"), [(2, True), (0, False), (1, False)])
async def test_an_async_hook_may_wake_the_agent(code: int, woken: bool, tmp_path: Path) -> None:
    asked = hooks(commands(f"echo tests fail >&2; exit {code}", event="PostToolUse", asyncRewake=True), tmp_path)
    heard: list[str] = []
    ended = asyncio.Event()
    asked.on_wake = lambda news: heard.append(news.message)

    def on_news(news: HookNews) -> None:
        if news.stage == "response":
            ended.set()

    await fire(asked, tmp_path, "PostToolUse", on_news=on_news)
    with anyio.fail_after(20):
        await ended.wait()
        await asyncio.sleep(0)  # what it has to say follows in the same round of the loop
    await asked.aclose()

    assert [text.endswith(" objects: tests fail") for text in heard] == ([True] if woken else [])


# Functions


async def test_a_function_is_asked_with_the_input_and_its_word_counts(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def guard(event: Any) -> Any:
        seen.append(event["tool_input"])
        event["tool_input"]["command"] = "changed"
        return {"decision": "block", "reason": "not today"}

    fields = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    answer = await fire(Hooks(callbacks={"PreToolUse": [guard]}), tmp_path, fields=fields)

    assert (answer.verdict, answer.reason) == (Verdict.DENY, "not today")
    assert fields["tool_input"] == {"command": "ls"}
    assert answer.source == "callback: PreToolUse callback"


async def test_a_function_may_be_plain_and_python_names_are_understood(tmp_path: Path) -> None:
    asked = Hooks(callbacks={"Stop": [lambda event: {"continue_": False, "stopReason": event["hook_event_name"]}]})

    assert (await fire(asked, tmp_path, "Stop", {})).stop == "Stop"


async def test_any_object_that_can_be_called_may_be_asked(tmp_path: Path) -> None:
    @dataclass
    class Guard:
        word: str

        def __call__(self, event: Any) -> Any:
            return {"decision": self.word}

    same = Guard("block")
    answer = await fire(Hooks(callbacks={"PreToolUse": [same, Guard("approve"), same]}), tmp_path)

    assert answer.verdict is Verdict.DENY


@pytest.mark.parametrize("name", ["async", "async_"])
async def test_a_function_that_answers_later_has_no_opinion(name: str, tmp_path: Path) -> None:
    asked = Hooks(callbacks={"PreToolUse": [lambda _event: {name: True, "asyncTimeout": 5000}]})

    assert await fire(asked, tmp_path) == NOTHING


async def test_a_function_is_asked_only_for_what_it_is_for(tmp_path: Path) -> None:
    asked = Hooks(callbacks={"PreToolUse": [HookCallback(lambda event: {"decision": "block"}, "Edit")]})

    assert await fire(asked, tmp_path) == NOTHING


async def forever(event: Any) -> None:
    await asyncio.Event().wait()


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def looped() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["a"] = value
    return value


async def broken(event: Any) -> None:
    raise ValueError("odd")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (forever, "did not answer within 0.01 seconds"),
        (broken, "raised ValueError: odd"),
        (lambda event: "yes", "not an object"),
        (lambda event: {"decision": object()}, "cannot be written as JSON"),
        (lambda event: {"decision": "yes"}, "not 'approve' or 'block'"),
        (lambda event: {"x": float("nan")}, "cannot be written as JSON"),
        (lambda event: {"x": 1e308 * 10}, "cannot be written as JSON"),
        (lambda event: {"x": "\ud800"}, "cannot be written as JSON"),
        (lambda event: nested(100_000), ""),
        (lambda event: looped(), ""),
        (lambda event: {"async": 1}, "true or false"),
    ],
)
@pytest.mark.proves("R2")
async def test_a_function_that_fails_has_not_said_yes(function: Any, words: str, tmp_path: Path) -> None:
    before = Hooks(callbacks={"PreToolUse": [HookCallback(function, timeout=0.01 if function is forever else 20)]})
    prompt = Hooks(
        callbacks={"UserPromptSubmit": [HookCallback(function, timeout=0.01 if function is forever else 20)]}
    )

    answer = await fire(before, tmp_path)

    assert answer.verdict is Verdict.DENY
    assert words in answer.reason
    assert words in ((await fire(prompt, tmp_path, "UserPromptSubmit", {"prompt": "x"})).block or "")


# HTTP


class Endpoint(HTTPServer):
    """Answers every POST in the same way and keeps what it was sent."""

    def __init__(self, status: int = 200, body: bytes = b"") -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.status, self.body = status, body
        self.seen: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Endpoint)
        data = self.rfile.read(int(self.headers["content-length"]))
        server.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(data)))
        self.send_response(server.status)
        self.send_header("content-length", str(len(server.body)))
        if server.status == 302:
            self.send_header("location", f"{server.url}/elsewhere")
        self.end_headers()
        self.wfile.write(server.body)

    def log_request(self, code: Any = None, size: Any = None) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def post(url: str, **more: Any) -> dict[str, Any]:
    return {"PreToolUse": [{"hooks": [{"type": "http", "url": url, **more}]}]}


async def test_an_endpoint_gets_the_input_and_its_word_counts(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.body = DENY.encode()
    answer = await fire(hooks(post(f"{endpoint.url}/check?a=1"), tmp_path), tmp_path)

    [(path, headers, body)] = endpoint.seen
    assert (answer.verdict, answer.reason) == (Verdict.DENY, "no")
    assert (path, headers["content-type"], body["tool_input"]) == ("/check?a=1", "application/json", {"command": "ls"})


@pytest.mark.parametrize(
    ("allowed", "limit", "expected"),
    [
        pytest.param(["TOKEN"], None, "Bearer secret", id="listed by the hook"),
        pytest.param(["TOKEN"], ("TOKEN", "B"), "Bearer secret", id="and by the settings"),
        pytest.param(["TOKEN"], (), "Bearer", id="not by the settings"),
        pytest.param([], None, "Bearer", id="not by the hook"),
    ],
)
async def test_variables_go_into_headers_only_if_they_are_listed(
    allowed: list[str], limit: tuple[str, ...] | None, expected: str, endpoint: Endpoint, tmp_path: Path
) -> None:
    section = post(endpoint.url, headers={"authorization": "Bearer $TOKEN"}, allowedEnvVars=allowed)
    where = HookEnvironment({"TOKEN": "sec\r\nret"}, variables=limit)
    await fire(Hooks(section, environment=where), tmp_path)

    [(_, headers, _)] = endpoint.seen
    assert headers["authorization"] == expected


@pytest.mark.parametrize(
    ("patterns", "reached"),
    [
        pytest.param(None, True, id="no limit"),
        pytest.param((), False, id="nothing allowed"),
        pytest.param(("http://127.0.0.1:*/*",), True, id="any port"),
        pytest.param(("http://*.example/*",), False, id="another host"),
        pytest.param(("http://*/check",), True, id="any host"),
        pytest.param(("http://*",), False, id="a star in a host ends with the host"),
        pytest.param(("https://127.0.0.1:*/*",), False, id="another scheme"),
    ],
)
async def test_addresses_are_limited_by_the_settings(
    patterns: tuple[str, ...] | None, reached: bool, endpoint: Endpoint, tmp_path: Path
) -> None:
    answer = await fire(hooks(post(f"{endpoint.url}/check"), tmp_path, urls=patterns), tmp_path)

    assert bool(endpoint.seen) == reached
    assert (answer.verdict is Verdict.ASK) == (not reached)


async def test_an_endpoint_elsewhere_is_reached_through_the_proxy_and_one_here_is_not(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.body = DENY.encode()
    where = HookEnvironment({"http_proxy": endpoint.url})  # a proxy sees the whole address

    here = await fire(Hooks(post(f"{endpoint.url}/here"), environment=where), tmp_path)
    there = await fire(Hooks(post("http://hooks.example/there"), environment=where), tmp_path)

    assert (here.verdict, there.verdict) == (Verdict.DENY, Verdict.DENY)
    assert [path for path, _, _ in endpoint.seen] == ["/here", "http://hooks.example/there"]


@pytest.mark.parametrize("status", [302, 404, 500])
@pytest.mark.proves("R2")
async def test_an_endpoint_that_refuses_is_asked_about_and_redirects_are_not_followed(
    status: int, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.status = status
    answer = await fire(hooks(post(endpoint.url), tmp_path), tmp_path)

    assert answer.verdict is Verdict.ASK
    assert f"status {status}" in answer.reason
    assert len(endpoint.seen) == 1


async def test_an_endpoint_that_is_not_there_or_silent_is_asked_about(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        waited = await fire(hooks(post(f"http://127.0.0.1:{port}/", timeout=0.05), tmp_path), tmp_path)
    gone = await fire(hooks(post(f"http://127.0.0.1:{port}/"), tmp_path), tmp_path)

    assert (waited.verdict, gone.verdict) == (Verdict.ASK, Verdict.ASK)
    assert "within 0.05 seconds" in waited.reason
    assert "could not be asked" in gone.reason
