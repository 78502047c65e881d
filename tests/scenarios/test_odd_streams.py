"""A model server may send anything: the run ends with one result line, and the conversation goes on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st

import tests.headless.in_process  # noqa: F401  # it imports what a session loads in a thread
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.headless.lines import Lines
from handrail.http.transport import HttpRequest
from handrail.loop.limits import Limits
from handrail.providers.client import Endpoint, Provider
from handrail.providers.retry import RetryPolicy
from handrail.session.build import open_session
from handrail.session.facts import session_facts
from handrail.session.spec import SessionHost, SessionSpec
from handrail.session.transcript import TranscriptOptions
from handrail.stdio.streams import line_bytes
from handrail.testing.wire_answers import FORMATS, ScriptedAnswer
from tests.providers.asking import APIS

STREAMS = Path(__file__).parents[1] / "providers" / "streams"
APIS_OF_FILES = {"anthropic": "anthropic", "openai-chat": "openai", "openai-responses": "openai-responses"}
LONGEST = 8_000
"""Characters of a recording that is worth changing: longer ones only repeat."""

Event = dict[str, Any]


def recorded(file: Path) -> list[Event]:
    lines = file.read_text("utf-8").splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def api_of(file: Path) -> str:
    return next(api for name, api in APIS_OF_FILES.items() if f"-{name}-" in file.name)


RECORDINGS = [(api_of(file), recorded(file)) for file in sorted(STREAMS.glob("*.sse")) if file.stat().st_size < LONGEST]
ODD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1.5, 2**63, 10**300, -(10**18), float("nan"), float("inf"), -float("inf")),
    *("", "x", "\ud800", "\x00", "{", "null", [], [[]], [None], [1, "x"], {}, {"type": "x"}, {"": None}),
    *({"type": ["list"]}, {"type": None, "id": 5}, [{"type": "text"}], {"text": {"deep": [1]}}),
)
STRANGE_EVENTS: tuple[Event, ...] = (
    {"type": "poem", "verse": 1},
    {"type": ["unhashable"]},
    {"type": "content_block_start", "index": 7, "content_block": {"type": "hologram", "x": 1}},
    {"type": "content_block_start", "index": [7], "content_block": {"type": "text", "text": "a"}},
    {"type": "content_block_start", "index": 0, "content_block": {}},
    {"type": "content_block_start", "index": 8, "content_block": {"type": "redacted_thinking"}},
    {"type": "content_block_start", "index": 9, "content_block": {"type": "server_tool_use", "id": "s", "name": "w"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "dance_delta", "step": 1}},
    {"type": "message_delta", "delta": {}, "usage": {"output_tokens": -(10**12), "input_tokens": 10**30}},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"name": "Read"}}] * 3}}]},
    {"choices": [{"delta": {"content": [{"type": ["odd"]}], "reasoning_details": [1, {"type": "x"}]}}]},
    {"choices": [], "usage": {"prompt_tokens": -5, "completion_tokens": 10**30, "total_tokens": True}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "hologram", "id": "h"}},
    {"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "summary": [5]}},
    {"type": "response.output_item.done", "output_index": 3, "item": {"type": ["list"], "id": {}}},
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, each in inner for path in ((*at, key), *places(each, (*at, key)))]


def changed(value: Any, path: tuple[Any, ...], to: Any, *, removed: bool = False) -> Any:
    """A copy of a JSON value with another value at this place, or without it."""
    copy = value.copy()
    key = path[0]
    if len(path) > 1:
        copy[key] = changed(copy[key], path[1:], to, removed=removed)
    elif removed:
        copy.pop(key)
    else:
        copy[key] = to
    return copy


@st.composite
def odd_streams(draw: st.DrawFn) -> tuple[str, list[Event]]:
    """A recorded stream after some changes: odd values, missing fields, strange, doubled, lost and swapped events."""
    api, events = draw(st.sampled_from(RECORDINGS))
    events = list(events)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(events) - 1)) if events else 0
        way = draw(st.sampled_from(("value", "value", "value", "remove", "add", "double", "drop", "swap")))
        if way == "add" or not events:
            events.insert(at, draw(st.sampled_from(STRANGE_EVENTS)))
        elif way in ("value", "remove"):
            path = draw(st.sampled_from(places(events[at]) or [("type",)]))
            if places(events[at]):
                events[at] = changed(events[at], path, draw(st.sampled_from(ODD)), removed=way == "remove")
        elif way == "double":
            events.insert(at, events[at])
        elif way == "drop":
            events.pop(at)
        else:
            other = draw(st.integers(0, len(events) - 1))
            events[at], events[other] = events[other], events[at]
    return api, events


@dataclass
class Answer:
    """A whole answer of a server."""

    data: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    async def read(self) -> bytes:
        data, self.data = self.data, b""
        return data

    def abort(self) -> None: ...

    def leave(self) -> None: ...


class OddServer:
    """Sends the given events first, then plain answers."""

    def __init__(self, api: str, events: list[Event]) -> None:
        frames = (b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
        self._odd: bytes | None = b"".join(frames) + b"data: [DONE]\n\n"
        self._plain = next(make for path, (name, make, _) in FORMATS.items() if name == api)

    async def send(self, request: HttpRequest, /) -> Answer:
        json.loads(request.body, parse_constant=refuse)
        odd, self._odd = self._odd, None
        plain = ScriptedAnswer((Text("Fine."),), "", "scripted", 10, 5, 0)
        return Answer(b"".join(self._plain(plain)) if odd is None else odd)

    async def aclose(self) -> None: ...


def refuse(literal: str) -> Any:
    raise AssertionError(f"{literal} is not JSON")


async def prompts(api: str, events: list[Event], folder: Path) -> list[list[Event]]:
    """The lines of two prompts: the first is answered by these events; then the session goes on after a resume."""
    model = Provider(
        APIS[api], Endpoint("http://127.0.0.1:1/v1"), OddServer(api, events), retry=RetryPolicy(attempts=1)
    )
    env = {"HOME": str(folder), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": ""}
    seen: list[list[Event]] = []
    for options in (TranscriptOptions(session_id="s"), TranscriptOptions(resume="s")):
        spec = SessionSpec(cwd=folder, transcript=options, limits=Limits(turns=3))
        session = open_session(spec, env, SessionHost(model=model, on_warning=lambda _text: None))
        lines = Lines(session.id, partial=True, facts=partial(session_facts, session))
        written: list[Event] = []
        async for event in session.drive(UserMessage((Text("go"),))):
            written += [json.loads(line_bytes(line), parse_constant=refuse) for line in lines.of(event)]
        await session.aclose()
        seen.append(written)
    return seen


@given(odd_streams())
def test_whatever_a_server_streams_the_run_ends_with_a_result(stream: tuple[str, list[Event]]) -> None:
    with TemporaryDirectory() as folder:
        first, second = anyio.run(prompts, *stream, Path(folder))

    for lines in (first, second):
        assert [line["type"] for line in lines].count("result") == 1
        assert lines[-1]["type"] == "result"
    total = first[-1]["usage"]
    assert all(0 <= tokens < 2**53 for tokens in total.values())
