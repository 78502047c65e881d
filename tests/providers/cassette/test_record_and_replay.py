"""Record from a real server, then replay with the server gone: the same events, the same chunks, no socket."""

import asyncio
import json
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import Text, Thinking, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, Message, UserMessage
from handrail.conversation.request import History, Request
from handrail.conversation.stream import BlockEnd, MessageEnd, StreamEvent, StreamFailure, StreamRetry
from handrail.errors import CassetteError, CassetteMissError, TransportError
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest
from handrail.providers.cassette.opening import (
    open_replayed_provider,
    open_replayer,
    replayed_choice,
    session_normalizer,
)
from handrail.providers.cassette.record import Recorder
from handrail.providers.cassette.replay import Replayer
from handrail.providers.cassette.tape import Cassette, load
from handrail.providers.choose import ModelOptions
from handrail.providers.client import Endpoint, Provider
from handrail.testing.model_server import ModelServer, Reply
from tests.forked import unmeasured
from tests.providers.asking import APIS, everything, question
from tests.providers.virtual_clock import VirtualClock

pytestmark = pytest.mark.anyio
ALL = pytest.mark.parametrize("api", sorted(APIS))
OLD = '{"handrail_cassette": 1, "provider": "anthropic"}\n'
CALL = (Thinking("Hm."), Text("I read. äöü"), ToolUse("call_1", "Read", {"path": "a.py"}))


class Studio:
    """Records and replays in folders of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "cassette.jsonl"
        self.first, self.second = folder / "first", folder / "second"
        self.first.mkdir()
        self.second.mkdir()
        self.env = {"HOME": str(folder / "home"), "SERVICE_TOKEN": "t0p-secret-value"}

    def recorder(self, cwd: Path | None = None, **options: Any) -> Recorder:
        normalizer = session_normalizer(cwd or self.first, self.env)
        return Recorder(HttpClient({}), self.path, normalizer, **options)

    def recording(self, server: ModelServer, api: str, recorder: Recorder) -> Provider:
        base = server.url if api == "anthropic" else f"{server.url}/v1"
        headers = (("x-api-key", "sk-ant-api03-0123456789abcdefghij"), ("authorization", "Bearer sesame-open-1234"))
        return Provider(APIS[api], Endpoint(base, headers), recorder, clock=VirtualClock(), random=lambda: 1.0)

    def replayer(self, cwd: Path | None = None, **options: Any) -> Replayer:
        return open_replayer(
            self.path, session_normalizer(cwd or self.second, self.env | {"HOME": "/elsewhere"}), **options
        )

    def replaying(self, cwd: Path | None = None, **options: Any) -> Provider:
        return open_replayed_provider(self.replayer(cwd, **options), ModelOptions())


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path.resolve())


async def record(studio: Studio, api: str, replies: list[Reply], *requests: Request) -> list[list[StreamEvent]]:
    async with ModelServer(replies) as server:
        provider = studio.recording(server, api, studio.recorder())
        answers = [await everything(provider, request) for request in requests]
        await provider.aclose()
    return answers


@ALL
async def test_a_recorded_answer_is_the_same_answer_without_the_server(studio: Studio, api: str) -> None:
    reply = Reply(CALL, piece=2)
    request = question("Go.", system=("Be brief.",))

    [recorded] = await record(studio, api, [reply], request)

    assert isinstance(recorded[-1], MessageEnd)
    assert await everything(studio.replaying(), request) == recorded


@ALL
@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_chunks_are_replayed_with_the_boundaries_they_came_with(studio: Studio, api: str, size: int) -> None:
    raw = 'data: {"delta": "äöü€😀"}\r\n\r\n: comment\n\ndata: [DONE]\n\n'.encode()
    pieces = tuple(raw[at : at + size] for at in range(0, len(raw), size))
    request = question()
    async with ModelServer([Reply(raw=pieces)]) as server:
        provider = studio.recording(server, api, studio.recorder())
        outgoing = provider.build_request(request, stream=True)
        reply = await provider.transport.send(outgoing)
        seen = [chunk async for chunk in chunks_of(reply)]
        await provider.aclose()

    replayed = await studio.replaying().transport.send(outgoing)

    assert b"".join(seen) == raw
    assert [chunk async for chunk in chunks_of(replayed)] == seen


async def chunks_of(reply: Any) -> Any:
    while chunk := await reply.read():
        yield chunk


@ALL
async def test_a_conversation_goes_on_in_another_folder_with_other_ids_dates_and_facts(
    studio: Studio, api: str
) -> None:
    def conversation(cwd: Path, call_id: str, day: str, run: str, *late: str) -> list[Request]:
        opening = Attachment("context", (Text(f"<environment>\nWorking folder: {cwd}\nDate: {day}\n</environment>"),))
        start: list[Message] = [opening, UserMessage((Text(f"Look at {cwd}/a.py"),))]
        call = AssistantMessage((Text("I read."), ToolUse(call_id, "Read", {"path": f"{cwd}/a.py", "id": "x"})))
        done = f"{cwd}/a.py: 1 passed in {run}, at 0x7f{call_id[-6:]}ab, on {day}T10:11:12Z"
        results = UserMessage((ToolResult(call_id, (Text(done),)),))
        facts = [Attachment("context", (Text(f"<environment>\n{line}\n</environment>"),)) for line in late]
        return [Request("m", History(start)), Request("m", History([*start, call, results, *facts]))]

    first = conversation(studio.first, "call_aaaaaa", "2026-11-15", "0.02s")
    replies = [Reply((ToolUse("call_aaaaaa", "Read", {"path": f"{studio.first}/a.py", "id": "x"}),), piece=3)]
    await record(studio, api, [*replies, Reply((Text(f"It is in {studio.first}."),), piece=1)], *first)

    second = conversation(studio.second, "call_bbbbbb", "2031-02-03", "12.5s", "Git: branch main; nothing changed")
    provider = studio.replaying()
    answers = [await everything(provider, request) for request in second]

    blocks = [event.block for answer in answers for event in answer if isinstance(event, BlockEnd)]
    assert blocks == [
        ToolUse("call_aaaaaa", "Read", {"path": f"{studio.second}/a.py", "id": "x"}),
        Text(f"It is in {studio.second}."),
    ]
    assert str(studio.first) not in studio.path.read_text()


@ALL
async def test_recordings_of_one_request_are_played_in_their_order_and_then_it_is_a_miss(
    studio: Studio, api: str
) -> None:
    replies = [Reply((Text(word),)) for word in ("one", "two")]
    await record(studio, api, replies, question(), question())

    provider = studio.replaying()
    words = [await text_of(provider, question()) for _ in range(2)]

    assert words == ["one", "two"]
    with pytest.raises(CassetteMissError, match="recorded 2 times and is now sent once more"):
        await everything(provider, question())


async def text_of(provider: Provider, request: Request) -> str:
    events = await everything(provider, request)
    return "".join(e.block.text for e in events if isinstance(e, BlockEnd) and isinstance(e.block, Text))


@ALL
async def test_errors_and_broken_streams_are_replayed_and_retried_as_they_were(studio: Studio, api: str) -> None:
    replies = [
        Reply(status=429, error="slow down", headers={"retry-after": "7"}),
        Reply((Text("half of it"),), cut_after=2),
        Reply((Text("all of it"),)),
    ]
    [recorded] = await record(studio, api, replies, question())

    replayed = await everything(studio.replaying(), question())

    retries = [event for event in recorded if isinstance(event, StreamRetry)]
    assert [event.failure.kind for event in retries] == ["scripted", "cut"]
    assert [e.failure for e in replayed if isinstance(e, StreamRetry)] == [
        replace(event.failure, message=event.failure.message) for event in retries
    ]
    assert replayed[-1] == recorded[-1]


@ALL
async def test_a_refusal_and_a_server_that_is_not_there_are_recorded_too(studio: Studio, api: str) -> None:
    async with ModelServer([Reply(status=401, error="no such key")]) as server:
        recorder = studio.recorder()
        provider = studio.recording(server, api, recorder)
        refused = await everything(provider, question())
        await provider.transport._inner.aclose()  # type: ignore[attr-defined]  # the connection is kept otherwise
    gone = await everything(provider, question("more"))
    await provider.aclose()

    replaying = studio.replaying()
    refused_again = await everything(replaying, question())
    gone_again = await everything(replaying, question("more"))
    for events, again in ((refused, refused_again), (gone, gone_again)):
        first, second = events[-1], again[-1]
        assert isinstance(first, StreamFailure)
        assert isinstance(second, StreamFailure)
        assert replace(first, hint="") == replace(second, hint="")  # advice is about the environment of a run
        assert len(again) == len(events)


async def test_an_answer_that_was_aborted_is_replayed_up_to_there(studio: Studio) -> None:
    reply = Reply((Text("one two three"),), piece=4, stall_after=4)
    async with ModelServer([reply]) as server:
        provider = studio.recording(server, "anthropic", studio.recorder())
        answer = provider.stream(question())
        seen = [await anext(answer) for _ in range(3)]
        await answer.aclose()
        await provider.aclose()

    replayed = studio.replaying().stream(question())

    assert [await anext(replayed) for _ in range(3)] == seen
    assert [entry.end for entry in load(studio.path).recordings] == ["aborted"]
    outgoing = studio.replaying().build_request(question(), stream=True)
    rest = await studio.replaying().transport.send(outgoing)
    with pytest.raises(TransportError, match="broken off"):
        [chunk async for chunk in chunks_of(rest)]


@pytest.mark.proves("R10")
@ALL
async def test_no_secret_reaches_the_file_even_in_pieces(studio: Studio, api: str) -> None:
    key = "sk-proj-AbCd1234efGh5678ijKl9012"
    token = studio.env["SERVICE_TOKEN"]
    content = (Text(f"The key is {key} and {token}."), ToolUse("c", "Send", {"key": key, "token": token}))
    request = question(f"Use {key} and {token}", system=(f"Mind {key}",))

    await record(studio, api, [Reply(content, piece=3), Reply(content, chunk=5)], request, request)

    text = studio.path.read_text()
    provider = studio.replaying()
    answers = [await everything(provider, request) for _ in range(2)]
    for secret in (key, token, key[8:], token[3:], "sk-ant-api03", "sesame"):
        assert secret not in text
        assert secret not in repr(answers)
    calls = [event.block for answer in answers for event in answer if isinstance(event, BlockEnd)]
    assert ToolUse("c", "Send", {"key": "[redacted:api-key]", "token": "[redacted:SERVICE_TOKEN]"}) in calls


@ALL
async def test_a_miss_shows_the_nearest_recording_and_what_differs(studio: Studio, api: str) -> None:
    await record(studio, api, [Reply((Text("a"),))] * 2, question("First\nquestion"), question("Something else"))

    provider = studio.replaying()
    with pytest.raises(CassetteMissError) as caught:
        await everything(provider, question("First\nquery"))

    message = str(caught.value)
    assert f"This request is not in the cassette {studio.path} (2 recordings, 0 played)." in message
    [removed] = [line for line in message.splitlines() if line.startswith("-") and "question" in line]
    [added] = [line for line in message.splitlines() if line.startswith("+") and "query" in line]
    assert ("First" in removed, "First" in added) == (False, False)
    assert provider.transport.misses == [message]  # type: ignore[attr-defined]  # a Replayer


async def test_the_nearest_recording_is_the_one_that_begins_alike(studio: Studio) -> None:
    def talk(*words: str) -> Request:
        messages: list[Message] = []
        for number, word in enumerate(words):
            block = (Text(word),)
            messages.append(AssistantMessage(block) if number % 2 else UserMessage(block))
        return Request("m", History(messages))

    recorded = [talk("x"), talk("a", "b", "c"), talk("a", "b", "c", "d", "e"), talk("y", "b", "c", "d", "e")]
    await record(studio, "openai", [Reply((Text("."),))] * 4, *recorded)

    for asked, nearest in ((talk("z"), 1), (talk("a", "b", "z"), 2), (talk("a", "b", "c", "d", "z"), 3)):
        with pytest.raises(CassetteMissError, match=f"The nearest is recording {nearest}"):
            await everything(studio.replaying(), asked)


async def test_a_difference_in_tools_or_model_is_a_miss_and_shown(studio: Studio) -> None:
    await record(studio, "anthropic", [Reply((Text("a"),))], question(system=("Be brief.",)))

    with pytest.raises(CassetteMissError, match=r'(?s)-.*"text": "Be brief."\n.*\+.*"text": "Be long."'):
        await everything(studio.replaying(match="exact"), question(system=("Be long.",)))
    with pytest.raises(
        CassetteMissError, match=r'(?s)- "model": "m",\n\+ "model": "n",.*Use that model, or record it again'
    ):
        await everything(studio.replaying(), replace(question(system=("Be brief.",)), model="n"))


async def test_in_order_plays_on_whatever_is_asked(studio: Studio) -> None:
    await record(studio, "openai", [Reply((Text("a"),)), Reply((Text("b"),))], question("1"), question("2"))

    provider = studio.replaying(in_order=True)

    assert [await text_of(provider, question(word)) for word in ("other", "words")] == ["a", "b"]
    with pytest.raises(CassetteMissError):
        await everything(provider, question("1"))


async def test_a_timed_recording_keeps_its_pauses_and_speed_changes_them(studio: Studio) -> None:
    ticks = iter(range(100))
    recorder = studio.recorder(timed=True, clock=lambda: next(ticks) * 0.5)
    async with ModelServer([Reply((Text("abc"),), piece=1)]) as server:
        provider = studio.recording(server, "openai", recorder)
        await everything(provider, question())
        await provider.aclose()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    player = Replayer(load(studio.path), session_normalizer(studio.second, {}), speed=2.0, sleep=sleep)
    await everything(open_replayed_provider(player, ModelOptions()), question())

    assert slept
    assert set(slept[: len(load(studio.path).recordings[0].chunks)]) == {0.25}


async def test_while_an_answer_is_replayed_others_get_their_turn(studio: Studio) -> None:
    await record(studio, "anthropic", [Reply((Text("abc"),), piece=1)], question())
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(other())
    await everything(studio.replaying(), question())
    task.cancel()

    assert turns >= len(load(studio.path).recordings[0].chunks)


async def test_a_cassette_knows_whom_it_was_recorded_from(studio: Studio) -> None:
    await record(studio, "openai", [Reply((Text("a"),))], question())
    cassette = load(studio.path)

    choice = replayed_choice(cassette, ModelOptions())

    assert (choice.provider, choice.model, choice.key) == ("openai", "m", "")
    assert choice.base_url.startswith("http://127.0.0.1:")
    assert choice.base_url.endswith("/v1")
    assert replayed_choice(cassette, ModelOptions(model="n")).model == "n"
    with pytest.raises(CassetteError, match="Give --provider: anthropic"):
        replayed_choice(replace(cassette, header=replace(cassette.header, provider="other")), ModelOptions())


async def test_two_recordings_of_the_same_answers_are_the_same_file(studio: Studio) -> None:
    # the port of the server is part of the base URL
    replies = [Reply(CALL, piece=3)]
    await record(studio, "anthropic", replies, question())
    first = studio.path.read_text().split("\n")[1:]
    await record(studio, "anthropic", replies, question())

    assert studio.path.read_text().split("\n")[1:] == first


async def test_the_file_is_its_owners_replaced_whole_and_the_old_one_survives_a_crash(studio: Studio) -> None:
    studio.path.write_text(OLD)
    async with ModelServer([Reply((Text("a"),)), Reply((Text("b"),))]) as server:
        recorder = studio.recorder()
        provider = studio.recording(server, "anthropic", recorder)
        await everything(provider, question("1"))
        [part] = studio.path.parent.glob(".*.part")
        assert studio.path.read_text() == OLD
        assert [entry.end for entry in load(part).recordings] == ["whole"]
        await everything(provider, question("2"))
        await provider.aclose()

    assert stat.S_IMODE(studio.path.stat().st_mode) == 0o600
    assert len(load(studio.path).recordings) == 2
    assert list(studio.path.parent.glob(".*.part")) == []
    with pytest.raises(CassetteError, match="is closed"):
        await provider.transport.send(HttpRequest("http://x/v1/messages", (), b"{}"))


async def test_a_discarded_recording_leaves_the_old_one(studio: Studio) -> None:
    studio.path.write_text(OLD)
    recorder = studio.recorder()

    recorder.discard()

    assert [path.name for path in studio.path.parent.glob("cassette*")] == ["cassette.jsonl"]
    assert studio.path.read_text() == OLD


async def test_a_folder_that_is_not_there_is_a_clear_error(studio: Studio) -> None:
    studio.path = studio.path.parent / "none" / "x.jsonl"

    with pytest.raises(CassetteError, match=r"cannot be written: there is no folder .* Make it first"):
        studio.recorder()
    with pytest.raises(CassetteError, match="Record it first"):
        studio.replayer()


async def test_answers_at_the_same_time_are_kept_apart_and_in_order_of_asking(studio: Studio) -> None:
    gate = asyncio.Event()
    async with ModelServer([Reply((Text("slow"),), gates={1: gate}), Reply((Text("fast"),))]) as server:
        provider = studio.recording(server, "anthropic", studio.recorder())
        slow = asyncio.ensure_future(text_of(provider, question()))
        while not server.requests:
            await asyncio.sleep(0)
        assert await text_of(provider, question()) == "fast"
        gate.set()
        await slow
        await provider.aclose()

    replaying = studio.replaying()
    assert [await text_of(replaying, question()) for _ in range(2)] == ["slow", "fast"]


async def test_a_long_conversation_is_written_once(studio: Studio) -> None:
    history = History()
    requests = []
    for turn in range(30):
        history.append(UserMessage((Text(f"Question {turn} " + "x" * 1_000),)))
        requests.append(Request("m", History(history.messages)))
        history.append(AssistantMessage((Text(f"Answer {turn}"),)))
    await record(studio, "anthropic", [Reply((Text(f"Answer {turn}"),)) for turn in range(30)], *requests)

    assert studio.path.stat().st_size < 30 * 4_000
    provider = studio.replaying()
    assert [await text_of(provider, request) for request in requests] == [f"Answer {turn}" for turn in range(30)]


SCRIPT = """
import asyncio, sys, socket
from pathlib import Path
def watch(event, args):
    inner = event == "socket.__new__" and args[1] in (socket.AF_INET, socket.AF_INET6)
    if inner or event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
        print("SOCKET", event, args, flush=True)
        sys.exit(9)
sys.addaudithook(watch)
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.request import History, Request
from handrail.providers.cassette.opening import open_replayed_provider, open_replayer, session_normalizer
from handrail.providers.choose import ModelOptions
async def main():
    player = open_replayer(Path(sys.argv[1]), session_normalizer(Path.cwd(), {}))
    provider = open_replayed_provider(player, ModelOptions())
    request = Request("m", History([UserMessage((Text("Hi"),))]))
    print([type(event).__name__ async for event in provider.stream(request)][-1])
    await provider.aclose()
asyncio.run(main())
network = [name in sys.modules for name in ("handrail.http.http1", "ssl")]
print("http" if "handrail.http.client" in sys.modules else "no http", *network)
"""


@ALL
async def test_a_replay_opens_no_socket_and_loads_no_network_code(studio: Studio, api: str) -> None:
    await record(studio, api, [Reply((Text("a"),))], question())

    command = [sys.executable, "-c", SCRIPT, str(studio.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=studio.second, env=unmeasured())

    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == "MessageEnd"
    assert second.startswith("no http False")


async def test_every_line_is_json_that_names_one_thing(studio: Studio) -> None:
    await record(studio, "anthropic", [Reply(CALL, piece=3)], question())

    kinds = [next(iter(json.loads(line))) for line in studio.path.read_text().splitlines()]

    assert kinds[:4] == ["handrail_cassette", "request", "message", "answer"]
    assert kinds[4:-1] == ["chunk"] * len(kinds[4:-1])
    assert kinds[-1] == "end"
    assert isinstance(load(studio.path), Cassette)


# A failed recording does not replace a good one


async def recording_of(studio: Studio, *replies: Reply, failed: bool = False) -> list[str]:
    """Record one question to the same file; what the recorder warned about."""
    warnings: list[str] = []
    recorder = studio.recorder(on_warning=warnings.append)
    async with ModelServer([*replies]) as server:
        provider = studio.recording(server, "anthropic", recorder)
        await everything(provider, question())
        if failed:
            recorder.mark_failed()
        await provider.aclose()
    return warnings


@pytest.mark.parametrize(
    ("reply", "failed"),
    [
        pytest.param(Reply(status=401, error="no"), False, id="the server refuses"),
        pytest.param(Reply(status=0), False, id="the server hangs up"),
        pytest.param(Reply((Text("whole"),)), True, id="the run failed for another reason"),
    ],
)
async def test_a_failed_recording_is_put_beside_the_good_one(studio: Studio, reply: Reply, failed: bool) -> None:
    assert await recording_of(studio, Reply((Text("good"),))) == []
    good = studio.path.read_bytes()

    [warning] = await recording_of(studio, *[reply] * 20, failed=failed)

    assert studio.path.read_bytes() == good
    aside = studio.path.with_name("cassette.failed.jsonl")
    assert "was not replaced" in warning
    assert str(aside) in warning
    assert load(aside).recordings
    assert list(studio.path.parent.glob(".*.part")) == []


async def test_a_first_recording_that_fails_is_kept_with_a_warning(studio: Studio) -> None:
    [warning] = await recording_of(studio, Reply(status=401, error="no"))

    assert "a replay of" in warning
    assert [entry.status for entry in load(studio.path).recordings] == [401]


async def test_a_recording_without_a_request_replaces_nothing(studio: Studio) -> None:
    studio.path.write_text(OLD)
    warnings: list[str] = []

    await studio.recorder(on_warning=warnings.append).aclose()

    assert studio.path.read_text() == OLD
    assert "The model was not asked" in warnings[0]


async def test_a_file_that_is_no_cassette_is_not_recorded_over(studio: Studio) -> None:
    studio.path.write_text("my notes\n")

    with pytest.raises(CassetteError, match="is not a cassette"):
        studio.recorder()
    assert studio.path.read_text() == "my notes\n"
