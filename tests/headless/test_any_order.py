"""Whatever a program does, and in whatever order: each prompt has one result, each request one answer, and it ends."""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import anyio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tests.headless.in_process  # noqa: F401  # loads what calls need, before threads do
from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.messages import UserMessage
from handrail.conversation.request import Request
from handrail.conversation.stream import StreamEvent
from handrail.errors import ClosedError
from handrail.headless.engine import EngineOptions, open_engine
from handrail.headless.serve import Service, Serving
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.session.transcript import TranscriptOptions
from handrail.testing import GatedTool, ScriptedModel, gate, say, use

Line = dict[str, Any]

PROMPTS = ("talk", "stall", "tool", "asked", "server", "", "/cost", "/compact", "/clear")
REQUESTS: Mapping[str, Line] = {
    "interrupt": {},
    "set_model": {"model": "other"},
    "set_permission_mode": {"mode": "acceptEdits"},
    "mcp_status": {},
    "mcp_toggle": {"serverName": "s", "enabled": False},
    "mcp_reconnect": {"serverName": "s"},
    "get_context_usage": {},
    "stop_task": {"task_id": "nothing"},
    "rewind_files": {"user_message_id": "p0"},
    "initialize": {"hooks": {}},
    "dance": {},
}
ALLOW = {"behavior": "allow", "updatedInput": {}}
ANSWERS: Mapping[str, Line] = {
    "allow": {"subtype": "success", "response": ALLOW},
    "deny": {"subtype": "success", "response": {"behavior": "deny", "message": "no"}},
    "deny and stop": {"subtype": "success", "response": {"behavior": "deny", "message": "no", "interrupt": True}},
    "nonsense": {"subtype": "success", "response": {"behavior": 3}},
    "error": {"subtype": "error", "error": "broken"},
}
ENDS = ("the input ends", "a signal", "the reader has gone")

Step = tuple[str, str]
STEPS = st.one_of(
    st.tuples(st.just("prompt"), st.sampled_from(PROMPTS)),
    st.tuples(st.just("request"), st.sampled_from(list(REQUESTS))),
    st.tuples(st.just("answer"), st.sampled_from(list(ANSWERS))),
    st.tuples(st.just("answer again"), st.sampled_from(list(ANSWERS))),
    st.tuples(st.just("take back"), st.just("")),
    st.tuples(st.just("let go"), st.sampled_from(["model", "tools"])),
    st.tuples(st.just("settle"), st.just("")),
    st.tuples(st.just("garbage"), st.sampled_from(["{", '{"type":"control_request","request_id":"x"', "[]"])),
)


class Model:
    """Does what the words of the newest prompt say."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.calls = 0

    def stream(self, request: Request, *, plain: bool = False) -> AsyncGenerator[StreamEvent, None]:
        newest = [message for message in request.history.messages if isinstance(message, UserMessage)][-1].content
        words = next((block.text for block in reversed(newest) if isinstance(block, Text)), "")
        self.calls += 1
        name = {"tool": "Open", "asked": "Asked", "server": "mcp__s__wait"}.get(words)
        if any(isinstance(block, ToolResult) for block in newest) or name is None:
            steps: list[Any] = [say("Well"), *([gate(self.gate)] if words == "stall" else []), say("then.")]
        else:
            steps = [say("I will."), use(f"c{self.calls}a", name), use(f"c{self.calls}b", name)]
        return ScriptedModel([steps]).stream(request)

    async def aclose(self) -> None:
        pass


class Program:
    """The program around handrail, which keeps count."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.gone = False
        self.results = 0
        self.prompts = 0
        self.asked = 0
        self.taken_back: set[str] = set()
        self.answers: Counter[str] = Counter()
        self.questions: list[Line] = []
        self.answered: list[str] = []

    async def next(self) -> bytes | None:
        return await self.incoming.get()

    async def send(self, line: Mapping[str, Any]) -> None:
        if self.gone:
            raise ClosedError("gone")
        await asyncio.sleep(0)
        match line:
            case {"type": "result"}:
                self.results += 1
            case {"type": "control_response", "response": {"request_id": name}}:
                self.answers[name] += 1
            case {"type": "control_request", "request": {"subtype": "mcp_message", "message": message}}:
                self._serve(line["request_id"], message)
            case {"type": "control_request"}:
                self.questions.append(dict(line))
            case _:
                pass

    def _serve(self, name: str, message: Line) -> None:
        """An MCP server whose one tool is answered like a question."""
        known = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}},
            "tools/list": {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]},
        }
        if message.get("method") == "tools/call":
            self.questions.append({"request_id": name})
            return
        answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": known.get(message["method"], {})}
        self._respond(name, {"subtype": "success", "response": {"mcp_response": answer}})

    def say(self, line: Line) -> None:
        self.incoming.put_nowait(json.dumps(line).encode())

    def _respond(self, name: str, answer: Line) -> None:
        self.answered.append(name)
        self.say({"type": "control_response", "response": {**answer, "request_id": name}})

    def do(self, step: Step) -> None:
        match step:
            case "prompt", words:
                uuid = f"p{self.prompts}"
                self.prompts += 1
                self.say({"type": "user", "uuid": uuid, "message": {"role": "user", "content": words}})
            case "request", subtype:
                request = {"subtype": subtype, **REQUESTS[subtype]}
                self.say({"type": "control_request", "request_id": f"r{self.asked}", "request": request})
                self.asked += 1
            case "answer", kind if self.questions:
                self._respond(self.questions.pop()["request_id"], ANSWERS[kind])
            case "answer again", kind:
                self._respond(self.answered[-1] if self.answered else "handrail_99", ANSWERS[kind])
            case "take back", _ if self.asked:
                self.taken_back.add(f"r{self.asked - 1}")
                self.say({"type": "control_cancel_request", "request_id": f"r{self.asked - 1}"})
            case "garbage", text:
                self.incoming.put_nowait(text.encode())


async def play(steps: list[Step], end: str, folder: Path) -> None:
    model, program = Model(), Program()
    tools = (GatedTool("Open"), GatedTool("Asked", shared=False))
    env = {"HOME": str(folder), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": "", "ENABLE_TOOL_SEARCH": "0"}
    servers = {"s": {"type": "sdk", "name": "s"}}
    spec = SessionSpec(cwd=folder, transcript=TranscriptOptions(), tools=ToolOptions(custom=tools, mcp_servers=servers))
    host, options = SessionHost(model=model, on_warning=lambda _text: None), EngineOptions(ask="stdio")
    with anyio.fail_after(20):
        service = Service(
            program,
            lambda client, control: open_engine(spec, env, host, client, control, options=options),
            Serving(states=True),
        )
        serving = asyncio.create_task(service.serve(program))
        for step in steps:
            match step:
                case "let go", "model":
                    model.gate.set()
                case "let go", _:
                    for tool in tools:
                        tool.open_all(*tool.started)
                case "settle", _:
                    await anyio.wait_all_tasks_blocked()
                case _:
                    program.do(step)
        if end == "a signal":
            await anyio.wait_all_tasks_blocked()  # what was said has arrived
            service.stop()
            service.stop()
        else:
            program.gone = end == "the reader has gone"
            model.gate.set()
            for tool in tools:
                tool._gates.default_factory = open_gate
                tool.open_all(*tool.started)
            program.incoming.put_nowait(None)
        assert await serving in (0, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    if not program.gone:
        assert program.results == program.prompts
        must = {f"r{number}" for number in range(program.asked)} - program.taken_back
        assert {name: program.answers[name] for name in must} == dict.fromkeys(must, 1)
        assert max(program.answers.values(), default=1) == 1


def open_gate() -> asyncio.Event:
    made = asyncio.Event()
    made.set()
    return made


SETTLED = ("settle", "")
STOP = ("request", "interrupt")


@given(st.lists(STEPS, max_size=14), st.sampled_from(ENDS))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(
    [("prompt", "asked"), SETTLED, ("request", "interrupt"), ("request", "interrupt"), ("answer", "allow")], ENDS[0]
)
@example([("prompt", "server"), SETTLED, ("request", "mcp_toggle"), SETTLED, ("prompt", "server")], ENDS[0])
@example([("prompt", "stall"), SETTLED, ("prompt", "talk"), STOP, ("prompt", "stall")], ENDS[1])
@example([("prompt", "tool"), SETTLED, ("request", "rewind_files"), ("request", "set_model")], ENDS[2])
def test_each_prompt_has_one_result_and_each_request_one_answer_and_it_ends(steps: list[Step], end: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(steps, end, Path(folder)))
