"""How much of a request must be as it was recorded: exactly all, the conversation, or only prompts and calls."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.context import AGENT_TYPES, LOADABLE_TOOLS, memory_file_frame, memory_frame
from handrail.conversation.messages import AssistantMessage, Attachment, Message, UserMessage
from handrail.conversation.request import History, Request, ToolDefinition
from handrail.errors import CassetteError, CassetteMissError
from handrail.providers.cassette.canonical import Canonical, canonical
from handrail.providers.cassette.match import MATCHES, changes, match_key
from handrail.providers.cassette.normalize import Normalizer
from handrail.providers.cassette.replay import Replayer
from handrail.providers.cassette.tape import Cassette, Chunk, Header, Recording
from handrail.providers.client import Endpoint, Provider
from tests.providers.asking import APIS

ALL = pytest.mark.parametrize("api", sorted(APIS))


def tool(name: str, words: str) -> ToolDefinition:
    text = f'{{"name":"{name}","description":"{words}","input_schema":{{"type":"object"}}}}'
    return ToolDefinition(name, text.encode())


def history(*, result: str = "x = 1", agents: str = "", memory: str = "", intro: str = "Notes:") -> list[Message]:
    frame = memory_frame(intro, [memory_file_frame("CLAUDE.md", "project", memory or "Be kind.")])
    return [
        Attachment("context", (Text(frame),)),
        *([Attachment("agents", (Text(agents),))] if agents else []),
        UserMessage((Text("Read a.py"),)),
        AssistantMessage((Text("I read."), ToolUse("t1", "Read", {"file_path": "a.py"}))),
        UserMessage((ToolResult("t1", (Text(result),)),)),
    ]


BASE = Request("m", History(history()), system=("Be brief.",), tools=(tool("Read", "Reads."), tool("Old", "Goes.")))


def asked(api: str, request: Request) -> Canonical:
    provider = Provider(APIS[api], Endpoint("http://127.0.0.1:1/v1"), None)  # type: ignore[arg-type]  # nothing is sent
    return canonical(provider.build_request(request, stream=True), Normalizer())


CHANGED: list[Any] = [
    pytest.param({"system": ("Be long.",)}, "conversation", ["the system prompt"], id="system prompt"),
    pytest.param(
        {"tools": (tool("Read", "Reads well."), tool("New", "Comes."))},
        "conversation",
        ["the text of the tool Read", "the tool New is new", "the tool Old is gone"],
        id="tools",
    ),
    pytest.param(
        {"history": History(history(agents=f"{AGENT_TYPES}(x):\n- y"))},
        "conversation",
        ["the list of tools and agents that can be had"],
        id="agents",
    ),
    pytest.param(
        {"history": History(history(agents=f"{LOADABLE_TOOLS}ToolSearch before they are used:\nMonitor"))},
        "conversation",
        ["the list of tools and agents that can be had"],
        id="loadable tools",
    ),
    pytest.param({"history": History(history(intro="Other words:"))}, "conversation", [], id="our own words"),
    pytest.param({"model": "n"}, "loose", ["model (m, now n)"], id="model"),
    pytest.param({"history": History(history(result="x = 2"))}, "loose", ["a result of a tool"], id="result"),
    pytest.param({"history": History(history(memory="Be rude."))}, "loose", ["a memory file or reminder"], id="memory"),
    pytest.param({"history": History([*history()[:1], UserMessage((Text("Other"),))])}, "", [], id="prompt"),
]


@ALL
@pytest.mark.parametrize(("change", "weakest", "told"), CHANGED)
def test_each_way_of_matching_lets_pass_what_it_says(
    api: str, change: dict[str, Any], weakest: str, told: list[str]
) -> None:
    before, now = asked(api, BASE), asked(api, replace(BASE, **change))

    passing = [match for match in MATCHES if match_key(before, match) == match_key(now, match)]  # type: ignore[arg-type]

    assert passing == (list(MATCHES[MATCHES.index(weakest) :]) if weakest else [])
    if weakest:
        assert changes(before, now) == told


def replayer(api: str, *requests: Request, **options: Any) -> Replayer:
    answers = (Chunk(f"answer {number}".encode()) for number in range(1, len(requests) + 1))
    recordings = tuple(
        Recording(number, asked(api, request), 200, {}, (answer,))
        for number, (request, answer) in enumerate(zip(requests, answers, strict=True), 1)
    )
    return Replayer(Cassette(Path("run.jsonl"), Header(), recordings), Normalizer(), **options)


async def answer(tape: Replayer, api: str, request: Request) -> str:
    provider = Provider(APIS[api], Endpoint("http://127.0.0.1:1/v1"), tape)
    return (await (await tape.send(provider.build_request(request, stream=True))).read()).decode()


@ALL
@pytest.mark.anyio
async def test_of_several_that_match_the_most_alike_is_played_and_what_changed_is_told_once(api: str) -> None:
    warnings: list[str] = []
    long = replace(BASE, system=("Be long.",))
    tape = replayer(api, BASE, long, BASE, on_warning=warnings.append)

    assert await answer(tape, api, long) == "answer 2"
    assert await answer(tape, api, BASE) == "answer 1"
    assert warnings == []
    assert await answer(tape, api, long) == "answer 3"
    assert [("the system prompt" in each, "--replay-match exact" in each) for each in warnings] == [(True, True)]
    with pytest.raises(CassetteMissError, match="It was recorded 3 times and is now sent once more"):
        await answer(tape, api, BASE)


@pytest.mark.anyio
async def test_a_miss_names_the_way_of_matching_that_would_answer() -> None:
    words = replace(BASE, system=("Be long.",))
    with pytest.raises(CassetteMissError, match=r"(?s)Be brief.*with --replay-match conversation"):
        await answer(replayer("anthropic", BASE, match="exact"), "anthropic", words)

    result = replace(BASE, history=History(history(result="x = 2")))
    with pytest.raises(CassetteMissError, match="with --replay-match loose") as miss:
        await answer(replayer("anthropic", BASE), "anthropic", result)
    assert "Be brief" not in str(miss.value)


def test_an_unknown_way_of_matching_is_refused() -> None:
    with pytest.raises(CassetteError, match="Choose one of exact, conversation, loose"):
        replayer("anthropic", BASE, match="fuzzy")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = (
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": JSON}) | JSON
)
REQUESTS = st.builds(
    Canonical,
    st.sampled_from(["anthropic", "openai"]),
    st.dictionaries(st.sampled_from(["model", "system", "tools", "max_tokens"]), JSON),
    st.lists(MESSAGES, max_size=3).map(tuple),
)


@given(REQUESTS, REQUESTS)
def test_what_matches_strictly_matches_loosely_and_no_request_is_too_odd(one: Canonical, other: Canonical) -> None:
    keys = [(match_key(one, match), match_key(other, match)) for match in MATCHES]  # type: ignore[arg-type]
    same = [a == b for a, b in keys]

    assert same == sorted(same)
    assert all(isinstance(each, str) for each in changes(one, other))
    assert changes(one, one) == []
