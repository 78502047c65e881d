"""Spans and metrics of real runs, as a real OTLP receiver gets them."""

import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from handrail import Agent, Allow, tool, view
from handrail.cli.main import run as run_command
from handrail.conversation.stream import StreamFailure, Usage, UsageUpdate
from handrail.telemetry import conventions
from handrail.testing import ScriptedModel, say, use
from tests.telemetry.receiver import Receiver, open_receiver

pytestmark = pytest.mark.anyio
Answers: TypeAlias = Sequence[Sequence[Any]]
SECRET = "sk-ant-api03-" + "A" * 40
OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@tool
async def note(text: str) -> str:
    """Take a note."""
    return f"noted {text}"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with open_receiver() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield found


async def ask(answers: Answers, folder: Path, **options: Any) -> None:
    async with Agent(ScriptedModel(answers), [note], cwd=folder, **options) as agent:
        await agent.ask("Do it.")


COUNTED = UsageUpdate(Usage(input_tokens=10, output_tokens=5, cache_read_tokens=100, cache_write_tokens=20))


async def test_a_run_is_a_trace_of_its_agent_its_requests_and_its_calls(receiver: Receiver, tmp_path: Path) -> None:
    answers: Answers = [
        [use("n", "note", text="x"), use("b", "Bash", command="touch b.txt"), COUNTED],
        [use("u", "nothing\ud800"), COUNTED],
        [say("Done."), COUNTED],
    ]
    await ask(answers, tmp_path, allow=["note"], deny=["Bash(touch *)"])

    [agent] = receiver.named("invoke_agent")
    chats = receiver.named("chat")
    calls = {span.attributes["gen_ai.tool.call.id"]: span for span in receiver.named("execute_tool")}
    assert {span.trace for span in receiver.spans} == {agent.trace}
    assert {span.parent for span in (*chats, *calls.values())} == {agent.id}
    assert (agent.name, agent.parent, agent.is_error) == ("invoke_agent handrail", "", False)
    assert agent.attributes["handrail.outcome"] == "completed"
    assert agent.attributes["gen_ai.usage.cache_read.input_tokens"] == 300
    assert [span.attributes["handrail.turn"] for span in chats] == [1, 2, 3]
    assert chats[0].attributes["gen_ai.usage.input_tokens"] == 130
    assert calls["n"].name == "execute_tool note"
    assert calls["n"].events["handrail.decision"] == {
        "handrail.decision.verdict": "allow",
        "handrail.decision.layer": "allow rule",
        "handrail.decision.source": "rules of the program",
        "handrail.decision.rule": "note",
    }
    stages = [calls["n"].attributes[f"handrail.stage.{name}"] for name in ("queued", "decided", "ran", "fitted")]
    assert sum(stages) <= (calls["n"].end - calls["n"].start) / 1e9 + 1e-6
    refused = calls["b"]
    assert (refused.is_error, refused.attributes["error.type"]) == (True, "denied")
    assert refused.events["handrail.decision"]["handrail.decision.rule"] == "Bash(touch *)"
    assert calls["u"].attributes["error.type"] == "unknown_tool"
    assert receiver.scopes == {("handrail", conventions.SCHEMA_URL)}
    assert receiver.resources[0]["service.name"] == "handrail"
    assert receiver.headers[0]["x-team"] == "blue"
    assert "touch" not in repr([span.attributes for span in receiver.spans])


async def test_metrics_count_requests_tokens_and_calls(receiver: Receiver, tmp_path: Path) -> None:
    answers: Answers = [[use("n", "note", text="x"), use("u", "made-up"), COUNTED], [say("Done."), COUNTED]]
    await ask(answers, tmp_path, allow=["note"])

    tools = {
        (labels["gen_ai.tool.name"], labels["handrail.call.status"]): count
        for labels, _, count in receiver.metrics["handrail.tool.duration"]
    }
    tokens = {labels["gen_ai.token.type"]: total for labels, total, _ in receiver.metrics["gen_ai.client.token.usage"]}
    assert tools == {("note", "ok"): 1, ("unknown", "error"): 1}
    assert tokens == {"input": 260, "output": 10}
    assert [count for _, _, count in receiver.metrics["gen_ai.client.operation.duration"]] == [2]


@pytest.mark.parametrize("step", [0, 50_000_000], ids=["as it is", "with 50 ms between two looks at the clock"])
async def test_the_wait_for_an_answer_is_a_span_inside_the_call(
    step: int, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine much time may pass between two lines."""
    passed = itertools.count(0, step)
    real = time.time_ns
    monkeypatch.setattr("handrail.telemetry.observer.time.time_ns", lambda: real() + next(passed))
    await ask([[use("n", "note", text="x")], [say("Done.")]], tmp_path, can_use_tool=lambda *_: Allow())

    [call], [wait] = receiver.named("execute_tool"), receiver.named("handrail.permission_wait")
    assert wait.parent == call.id
    assert call.start <= wait.start <= wait.end <= call.end
    assert wait.attributes["handrail.decision.verdict"] == "allow"


async def test_commands_and_hooks_get_the_context_of_their_call_below_that_of_the_program(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", OUTER)
    hooks = {
        name: [{"hooks": [{"type": "command", "command": f"echo $TRACEPARENT > {tmp_path}/{name}"}]}]
        for name in ("PreToolUse", "UserPromptSubmit")
    }
    (tmp_path / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    answers: Answers = [[use("b", "Bash", command="echo $TRACEPARENT > seen")], [say("Done.")]]
    await ask(answers, tmp_path, allow=["Bash"], settings=str(tmp_path / "hooks.json"))

    [agent], [call] = receiver.named("invoke_agent"), receiver.named("execute_tool")
    _, trace, outer, _ = OUTER.split("-")
    assert (agent.trace, agent.parent) == (trace, outer)
    assert (tmp_path / "seen").read_text().strip() == f"00-{trace}-{call.id}-01"
    assert (tmp_path / "PreToolUse").read_text().strip() == f"00-{trace}-{call.id}-01"
    assert (tmp_path / "UserPromptSubmit").read_text().strip() == f"00-{trace}-{agent.id}-01"


async def test_contents_are_sent_only_if_asked_for_and_without_secrets(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: Answers = [[use("n", "note", text=f"key {SECRET} end")], [say("All is done.")]]
    await ask(answers, tmp_path, allow=["note"])
    assert not any(word in repr(receiver.spans) for word in ("noted", "Do it.", "All is done.", SECRET))

    receiver.spans.clear()
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    await ask(answers, tmp_path, allow=["note"])

    [call] = receiver.named("execute_tool")
    assert json.loads(call.attributes["gen_ai.tool.call.arguments"])["text"].endswith(" end")
    assert call.attributes["gen_ai.tool.call.result"].startswith('"noted key')
    assert "Do it." in receiver.named("invoke_agent")[0].attributes["gen_ai.input.messages"]
    assert "All is done." in receiver.named("chat")[1].attributes["gen_ai.output.messages"]
    assert SECRET not in repr(receiver.spans)


async def test_a_sub_agent_has_a_trace_of_its_own_with_a_link_to_its_call(receiver: Receiver, tmp_path: Path) -> None:
    answers: Answers = [
        [use("a", "Agent", description="look", prompt="Look.", subagent_type="general-purpose")],
        [use("n", "note", text="x")],
        [say("Seen.")],
        [say("Done.")],
    ]
    await ask(answers, tmp_path, allow=["note", "Agent"])

    main, sub = sorted(receiver.named("invoke_agent"), key=lambda span: bool(span.links))
    call = next(span for span in receiver.named("execute_tool Agent"))
    inner = next(span for span in receiver.named("execute_tool note"))
    assert sub.trace != main.trace == call.trace
    assert sub.links == [(call.trace, call.id)]
    assert (inner.trace, inner.parent) == (sub.trace, sub.id)
    assert sub.attributes["gen_ai.agent.name"] == "general-purpose"


async def test_a_failed_request_and_a_run_that_is_left_are_errors(receiver: Receiver, tmp_path: Path) -> None:
    async with Agent(ScriptedModel([[StreamFailure("overloaded", "busy", retryable=False)]]), cwd=tmp_path) as agent:
        async for _ in agent.run("Do it."):
            pass
    async with Agent(ScriptedModel([[say("Done.")]]), cwd=tmp_path) as agent:
        run = agent.run("Do it.")
        await anext(run)
        await run.aclose()

    failed, left = receiver.named("invoke_agent")
    assert receiver.named("chat")[0].attributes["error.type"] == "overloaded"
    assert failed.attributes["error.type"] == "model_failed"
    assert (left.attributes["handrail.outcome"], left.is_error) == ("left", True)


async def test_what_is_not_sampled_is_not_sent_and_commands_are_told(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    await ask([[use("b", "Bash", command="echo $TRACEPARENT > seen")], [say("Done.")]], tmp_path, allow=["Bash"])

    assert receiver.spans == []
    assert (tmp_path / "seen").read_text().strip().endswith("-00")
    assert receiver.metrics["handrail.tool.duration"]


SERVER = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {}
    if message["method"] == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    elif message["method"] == "tools/list":
        answer = {"tools": [{"name": "where", "inputSchema": {"type": "object"}}]}
    elif message["method"] == "tools/call":
        seen = {"call": message["params"]["_meta"].get("traceparent"), "start": os.environ.get("TRACEPARENT")}
        answer = {"content": [{"type": "text", "text": json.dumps(seen)}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""


async def test_mcp_servers_get_the_context_of_the_run_and_of_each_call(receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    servers = {"places": {"command": sys.executable, "args": [str(tmp_path / "server.py")]}}
    answers: Answers = [[use("w", "mcp__places__where")], [say("Done.")]]
    async with Agent(ScriptedModel(answers), cwd=tmp_path, mcp_servers=servers, allow=["mcp__places"]) as agent:
        await agent.ask("Do it.")
        seen = json.loads(next(call["result"] for call in view.record(agent.messages).calls))

    [run], [call] = receiver.named("invoke_agent"), receiver.named("execute_tool")
    assert seen == {"call": f"00-{run.trace}-{call.id}-01", "start": f"00-{run.trace}-{run.id}-01"}
    assert call.attributes["mcp.method.name"] == "tools/call"
    assert call.attributes["handrail.mcp.server"] == "places"


def test_a_call_from_the_command_line_is_a_span_below_the_trace_of_the_program(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEPARENT", OUTER)
    assert run_command(["call", "Read", json.dumps({"file_path": "a.txt"})]) == 0

    [span] = receiver.named("execute_tool")
    _, trace, outer, _ = OUTER.split("-")
    assert (span.name, span.trace, span.parent, span.is_error) == ("execute_tool Read", trace, outer, False)
