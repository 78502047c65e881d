"""Requests: pairing, the serialised history, the stable prefix, cache marks, deferred tools."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.conversation.blocks import (
    BrokenToolUse,
    Document,
    Image,
    ServerBlock,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
    UserBlock,
)
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.conversation.request import Chain, History, Request, ToolDefinition
from handrail.conversation.request import ThinkingOptions as ThinkingOptions
from handrail.errors import PairingError
from handrail.providers.api import Api, RequestWriter
from handrail.providers.quirks import PLAIN, quirks_of
from handrail.testing.model_server import pairing_problem
from tests.providers.asking import APIS

MARK = b',"cache_control":{"type":"ephemeral"}'
OFFICIAL = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}


def writer(api: Api, base_url: str = "", model: str = "m") -> RequestWriter:
    return api.writer(quirks_of(api.name, base_url, model) if base_url else PLAIN[api.name])


def sent(name: str, request: Request, base_url: str = "") -> dict[str, Any]:
    body: dict[str, Any] = json.loads(writer(APIS[name], base_url, request.model).body(request, stream=True))
    return body


def definition(name: str, deferred: bool = False) -> ToolDefinition:
    value = {"name": name, "description": f"Does {name}.", "input_schema": {"type": "object", "properties": {}}}
    return ToolDefinition(name, json.dumps(value).encode(), deferred)


def user(*blocks: UserBlock | str) -> UserMessage:
    return UserMessage(tuple(Text(block) if isinstance(block, str) else block for block in blocks))


def result(call_id: str, text: str = "ok", **options: Any) -> ToolResult:
    return ToolResult(call_id, (Text(text),), **options)


def calls(*ids: str) -> AssistantMessage:
    return AssistantMessage(tuple(ToolUse(call_id, "Read", {"p": 1}) for call_id in ids))


TURNS: list[Message] = [
    user("Hi"),
    AssistantMessage((Text("Let me see."), ToolUse("a", "Read", {"p": "ä"}), ToolUse("b", "Bash", {}))),
    user(result("a"), result("b", "no such file", is_error=True)),
    Attachment("reminder", (Text("Mind the time."),)),
    SystemNote("only for people"),
    AssistantMessage((Text("Done."),)),
    user("Thanks"),
]


@pytest.mark.proves("R1")
@pytest.mark.parametrize(
    ("messages", "words"),
    [
        pytest.param([calls("a"), user("no")], "['a'] have no results", id="no result"),
        pytest.param([calls("a", "b"), user(result("a"))], "calls ['a', 'b']", id="a result missing"),
        pytest.param([calls("a", "b"), user(result("b"), result("a"))], "in the order", id="wrong order"),
        pytest.param([calls("a"), user(result("a"), result("a"))], "exactly one", id="two results for one call"),
        pytest.param([calls("a"), user(result("x"))], "['x']", id="a result of another call"),
        pytest.param([user(result("a"))], "['a']", id="a result without a call"),
        pytest.param([calls("a"), calls("b")], "['a'] have no results", id="an answer follows an answer with calls"),
        pytest.param([calls("a"), user(result("a")), user(result("a"))], "['a']", id="results in a second message"),
        pytest.param(
            [calls("a"), Attachment("x", (Text("y"),)), user(result("a"))], "have no results", id="something between"
        ),
    ],
)
def test_a_history_that_breaks_the_pairing_is_refused(messages: list[Message], words: str) -> None:
    with pytest.raises(PairingError) as caught:
        History(messages)

    assert words in str(caught.value)


@pytest.mark.proves("R1")
@pytest.mark.parametrize("api", sorted(APIS))
def test_no_request_leaves_while_a_call_waits_for_its_result(api: str) -> None:
    with pytest.raises(PairingError):
        sent(api, Request("m", History([user("Hi"), calls("a")])))


@pytest.mark.proves("R1", "E37")
@pytest.mark.parametrize("api", sorted(APIS))
def test_a_history_with_everything_is_accepted_by_a_strict_server(api: str) -> None:
    assert pairing_problem(api, sent(api, Request("m", History(TURNS)))) == ""


def test_a_turn_on_the_wire_has_results_first_then_words() -> None:
    turns: list[Message] = [
        user("Hi"),
        calls("a"),
        user("late words", result("a")),
        Attachment("note", (Text("more"),)),
    ]

    assert sent("anthropic", Request("m", History(turns)))["messages"][2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
            {"type": "text", "text": "late words"},
            {"type": "text", "text": "more", "cache_control": {"type": "ephemeral"}},
        ],
    }


@pytest.mark.proves("E37")
def test_calls_and_results_go_back_in_the_chat_format() -> None:
    assert sent("openai", Request("m", History(TURNS), system=("Be brief.",)))["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "Read", "arguments": '{"p":"ä"}'}},
                {"id": "b", "type": "function", "function": {"name": "Bash", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
        {"role": "tool", "tool_call_id": "b", "content": "Error: no such file"},
        {"role": "user", "content": "Mind the time."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks"},
    ]


def test_calls_and_results_go_back_in_the_responses_format() -> None:
    body = sent("openai-responses", Request("m", History(TURNS), system=("Be brief.",)))

    assert body["instructions"] == "Be brief."
    assert body["store"] is False
    assert [item.get("type", item.get("role")) for item in body["input"]] == [
        "user",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "user",
        "message",
        "user",
    ]
    assert body["input"][4] == {"type": "function_call_output", "call_id": "a", "output": "ok"}


names = st.sampled_from(["Read", "Bash", "a b", ""])
words = st.sampled_from(["", " ", "word", "ä\ud83d"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Any conversation that keeps to the pairing."""
    messages: list[Message] = [user("Hi")]
    for turn in range(draw(st.integers(0, 5))):
        said: list[Any] = [Text(text) for text in draw(st.lists(words, max_size=2))]
        made: list[Any] = [
            ToolUse(f"id {turn}.{n}", draw(names), {"x": draw(words)})
            if draw(st.booleans())
            else BrokenToolUse(f"id {turn}.{n}", draw(names), "{", "cut")
            for n in range(draw(st.integers(0, 3)))
        ]
        messages.append(AssistantMessage((*said, *made)))
        replies = [ToolResult(call.id, (Text(draw(words)),), draw(st.booleans())) for call in made]
        messages.append(user(*replies, *draw(st.lists(words, min_size=0 if made else 1, max_size=2))))
        if draw(st.booleans()):
            messages.append(Attachment("note", (Text(draw(words)),)))
    return messages


@pytest.mark.proves("R1")
@given(conversations(), st.sampled_from(sorted(APIS)))
def test_any_paired_conversation_is_accepted_and_valid_utf8(messages: list[Message], api: str) -> None:
    assert pairing_problem(api, sent(api, Request("m", History(messages)))) == ""


@pytest.mark.proves("R5")
@settings(max_examples=settings().max_examples // 2)
@given(conversations(), st.sampled_from(sorted(APIS)), st.data())
def test_a_history_that_grew_is_the_bytes_of_one_made_at_once_and_begins_with_the_one_before(
    messages: list[Message], api: str, data: st.DataObject
) -> None:
    request = Request("m", History(), system=("S",), tools=(definition("A"), definition("B")), last_builtin=0)
    growing, write = request.history, writer(APIS[api])
    before = b""
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        growing.append(message)
        turn_is_whole = following is None or isinstance(following, AssistantMessage)
        if isinstance(message, AssistantMessage) or not (turn_is_whole or data.draw(st.booleans())):
            continue
        body = write.body(request, stream=True)
        at_once = Request("m", History(growing.messages), request.system, request.tools, request.last_builtin)
        assert body == writer(APIS[api]).body(at_once, stream=True)
        if turn_is_whole:
            body = body.replace(MARK, b"")
            assert body.startswith(before.removesuffix(b"]}"))
            before = body


@pytest.mark.proves("R5", "B17")
@pytest.mark.parametrize("api", sorted(APIS))
def test_the_prefix_of_consecutive_requests_is_byte_identical(api: str) -> None:
    history = History()
    tools = (definition("Bash"), definition("Read"), definition("mcp__x"))
    request = Request("m", history, ("You are careful.", "Facts."), tools, last_builtin=1)
    write = writer(APIS[api])
    split = b'"input":[' if api == "openai-responses" else b'"messages":['
    prefixes, bodies = [], []
    for message in TURNS:
        history.append(message)
        if isinstance(message, UserMessage):
            body = write.body(request, stream=True)
            prefixes.append(body.partition(split)[0])
            bodies.append(body.replace(MARK, b"").removesuffix(b"]}"))

    assert len(set(prefixes)) == 1
    assert b"mcp__x" in prefixes[0]
    assert bodies[2].startswith(bodies[1].removesuffix(b"]}"))  # an attachment has joined that turn
    assert bodies[1].startswith(bodies[0])


@pytest.mark.proves("B17")
def test_cache_marks_stand_after_the_last_builtin_the_system_prompt_and_the_two_newest_turns() -> None:
    tools = (definition("Bash"), definition("Read"), definition("mcp__x"))
    body = sent("anthropic", Request("m", History(TURNS), ("One.", "Two."), tools, last_builtin=1))

    assert ["cache_control" in tool for tool in body["tools"]] == [False, True, False]
    assert ["cache_control" in part for part in body["system"]] == [False, True]
    marked = [[("cache_control" in block) for block in message["content"]] for message in body["messages"]]
    assert marked == [[False], [False, False, False], [False, False, True], [False], [True]]


def test_work_for_a_request_does_not_grow_with_the_history() -> None:
    encoded: list[int] = []

    class Counting(type(writer(APIS["anthropic"]))):  # type: ignore[misc]  # the writer's class is the api's own
        def assistant(self, message: AssistantMessage) -> bytes:
            encoded.append(1)
            return bytes(super().assistant(message))

        def user(self, blocks: Sequence[UserBlock]) -> tuple[bytes, int]:
            encoded.append(1)
            body, mark = super().user(blocks)
            return bytes(body), int(mark)

    write, history = Counting(PLAIN["anthropic"]), History([user("Hi")])
    for turn in range(50):
        history.append(calls(f"c{turn}"))
        history.append(user(result(f"c{turn}")))
        write.body(Request("m", history), stream=True)

    assert len(encoded) == 101  # each turn once


@pytest.mark.parametrize("api", sorted(APIS))
def test_amended_results_are_sent_as_they_are_now(api: str) -> None:
    history = History([user("Hi"), calls("a"), user(result("a"))])
    request, write = Request("m", history), writer(APIS[api])
    write.body(request, stream=True)
    amended = user(ToolResult("a", (Text("other"),)))
    history.amend(amended)

    at_once = Request("m", History([user("Hi"), calls("a"), amended]))
    assert write.body(request, stream=True) == writer(APIS[api]).body(at_once, stream=True)


def test_after_compaction_the_history_starts_over() -> None:
    history = History(TURNS)
    sent("anthropic", Request("m", history))
    history.replace([user("Summary.")])

    assert [message["role"] for message in sent("anthropic", Request("m", history))["messages"]] == ["user"]
    assert history.call_ids == set()


@pytest.mark.proves("C1")
class TestDeferredTools:
    TOOLS = (definition("Read"), definition("Find"), definition("x", deferred=True), definition("y", deferred=True))

    def request(self, *activated: str) -> Request:
        found = ToolResult("a", (ToolReference("y"),))
        history = History([user("Hi"), calls("a"), user(found)])
        return Request("claude-sonnet-4-6", history, ("S",), self.TOOLS, 1, activated)

    def test_the_api_that_knows_them_gets_flags_and_references(self) -> None:
        body = sent("anthropic", self.request("y"), OFFICIAL["anthropic"])

        assert [tool.get("defer_loading", False) for tool in body["tools"]] == [False, False, True, True]
        block = body["messages"][2]["content"][0]
        assert block["content"] == [{"type": "tool_reference", "tool_name": "y"}]
        headers = writer(APIS["anthropic"], OFFICIAL["anthropic"], "claude-sonnet-4-6").headers(self.request())
        assert headers == (("anthropic-beta", "advanced-tool-use-2025-11-20"),)

    @pytest.mark.proves("R5")
    def test_there_finding_one_changes_no_byte_of_the_prefix(self) -> None:
        write = writer(APIS["anthropic"], OFFICIAL["anthropic"], "claude-sonnet-4-6")

        assert write.body(self.request(), stream=True) == write.body(self.request("y"), stream=True)

    @pytest.mark.proves("R13")
    def test_a_reference_leads_only_to_a_deferred_tool_that_is_there(self) -> None:
        write = writer(APIS["anthropic"], OFFICIAL["anthropic"], "claude-sonnet-4-6")
        found, note = ToolResult("a", (ToolReference("x"), ToolReference("y"))), Text("From a hook.")
        told = ToolResult("b", (*found.content, note))
        history = History(
            [user("Hi"), calls("a", "b"), user(found, told), AssistantMessage((Text("Done."),)), user("More")]
        )

        def content(*tools: ToolDefinition) -> list[Any]:
            body = json.loads(write.body(Request("claude-sonnet-4-6", history, ("S",), tools, 1), stream=True))
            first, second = body["messages"][2]["content"]
            assert second["content"] == [*first["content"], {"type": "text", "text": note.text}]
            blocks: list[Any] = first["content"]
            return blocks

        referred = [{"type": "tool_reference", "tool_name": name} for name in ("x", "y")]
        gone = [{"type": "text", "text": f"The tool {name} is not available now."} for name in ("x", "y")]
        full = [definition("x"), definition("y")]
        assert content(*self.TOOLS) == referred
        assert content(*self.TOOLS[:3]) == referred[:1]
        assert content(*self.TOOLS[:2]) == gone
        assert content(*full) == [{"type": "text", "text": f"The tool {name} is loaded now."} for name in ("x", "y")]
        assert content(*self.TOOLS) == referred

    @pytest.mark.parametrize("api", sorted(APIS))
    def test_elsewhere_they_are_left_out_until_they_are_found_and_then_appended(self, api: str) -> None:
        def tools(*activated: str) -> list[str]:
            body = sent(api, self.request(*activated), "https://example.org/v1")
            return [tool.get("name") or tool["function"]["name"] for tool in body["tools"]]

        assert tools() == ["Read", "Find"]
        assert tools("y") == ["Read", "Find", "y"]
        assert tools("y", "x") == ["Read", "Find", "y", "x"]

        body = sent(api, self.request("y"), "https://example.org/v1")
        assert "The tool y is loaded now." in json.dumps(body)
        assert "tool_reference" not in json.dumps(body)


class TestGoingBack:
    """What an answer looks like when it is sent back."""

    def back(self, api: str, *blocks: Any, base_url: str = "", model: str = "m") -> Any:
        made = [block for block in blocks if isinstance(block, ToolUse | BrokenToolUse)]
        turns: list[Message] = [
            user("Hi"),
            AssistantMessage(tuple(blocks)),
            user(*(result(call.id) for call in made), "go on"),
        ]
        body = sent(api, Request(model, History(turns)), base_url)
        return body["input"][1:-1] if api == "openai-responses" else body["messages"][1:-1]

    def test_thinking_is_unchanged(self) -> None:
        raw = {"type": "thinking", "thinking": "hm", "signature": "s", "odd": [1]}
        hidden = {"type": "redacted_thinking", "data": "x"}
        call = ToolUse("a", "Read", {})

        (message,) = self.back("anthropic", Thinking("hm", raw), Thinking("", hidden), Text("Hi"), call)
        assert message["content"][:2] == [raw, hidden]

    def test_reasoning_of_another_format_stays_home(self) -> None:
        foreign = [Thinking("hm", {"reasoning_content": "hm"}), Thinking("hm", {"type": "reasoning", "id": "rs"})]

        (message,) = self.back("anthropic", *foreign, Text("Hi"))
        assert message["content"] == [{"type": "text", "text": "Hi"}]

    def test_encrypted_reasoning_stands_before_its_call_and_never_alone(self) -> None:
        raw: dict[str, Any] = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x", "status": None}
        call = ToolUse("a", "Read", {})
        wire = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}

        assert self.back("openai-responses", Thinking("", raw), call)[0] == wire
        assert self.back("openai-responses", Text("Hi"), Thinking("", raw))[-1]["type"] == "message"
        assert self.back("openai-responses", Thinking("", raw | {"encrypted_content": None}), call)[0] != wire

    @pytest.mark.parametrize(
        ("base_url", "expected"),
        [
            ("https://api.openai.com/v1", None),
            ("https://api.deepseek.com", "hm"),
            ("https://api.moonshot.ai/v1", "hm"),
            ("http://localhost:8000/v1", None),
        ],
    )
    def test_reasoning_goes_back_only_where_it_is_wanted(self, base_url: str, expected: str | None) -> None:
        thinking = Thinking("hm", {"reasoning_content": "hm"})

        (message, _) = self.back("openai", thinking, ToolUse("a", "Read", {}), base_url=base_url)
        assert message.get("reasoning_content") == expected

    def test_reasoning_details_go_back_where_they_came_from(self) -> None:
        thinking = Thinking("hm", {"reasoning": "hm", "reasoning_details": [{"data": "x"}]})

        (message,) = self.back("openai", thinking, Text("Hi"), base_url="https://openrouter.ai/api/v1")
        assert message["reasoning_details"] == [{"data": "x"}]
        assert "reasoning" not in message

    def test_a_signature_on_a_call_goes_back_with_it(self) -> None:
        extra = {"extra_content": {"google": {"thought_signature": "s"}}}

        (message, _) = self.back("openai", ToolUse("a", "Read", {}, extra))
        assert message["tool_calls"][0]["extra_content"] == extra["extra_content"]

    @pytest.mark.parametrize(
        ("base_url", "content"), [("https://api.openai.com/v1", None), ("http://localhost:1/v1", "")]
    )
    def test_calls_without_words(self, base_url: str, content: str | None) -> None:
        (message, _) = self.back("openai", ToolUse("a", "Read", {}), base_url=base_url)
        assert message["content"] == content

    def test_ids_and_names_that_a_provider_refuses_are_bent_the_same_way_everywhere(self) -> None:
        call = ToolUse("functions.Read:0", "functions.Read", {})

        (message, reply) = self.back("openai", call, base_url="https://api.mistral.ai/v1")
        assert len(message["tool_calls"][0]["id"]) == 9
        assert reply["tool_call_id"] == message["tool_calls"][0]["id"]
        assert message["tool_calls"][0]["function"]["name"] == "functions_Read"

        (message,) = self.back("anthropic", call)
        assert message["content"][0]["id"].startswith("call_")

    @pytest.mark.parametrize("api", sorted(APIS))
    def test_a_broken_call_goes_back_with_an_empty_input(self, api: str) -> None:
        wire = json.dumps(self.back(api, BrokenToolUse("a", "", '{"p', "cut")))

        assert '{\\"p' not in wire
        assert "unnamed" in wire

    def test_server_blocks_go_back_to_their_own_api_and_only_when_finished(self) -> None:
        used = ServerBlock("server_tool_use", {"type": "server_tool_use", "id": "s", "name": "n", "input": {}})
        found = ServerBlock("web_search_tool_result", {"type": "web_search_tool_result", "tool_use_id": "s"})
        searched = ServerBlock("web_search_call", {"type": "web_search_call", "id": "w"})

        (message,) = self.back("anthropic", used, found, searched, Text("Hi"))
        assert [block["type"] for block in message["content"]] == ["server_tool_use", "web_search_tool_result", "text"]
        (message,) = self.back("anthropic", used, Text("Hi"))
        assert [block["type"] for block in message["content"]] == ["text"]
        assert [item["type"] for item in self.back("openai-responses", used, found, searched)] == ["web_search_call"]


class TestMedia:
    BLOCKS = (
        Image("aW1n", "image/png"),
        Document("cGRm", "application/pdf", "a.pdf"),
        Document("dGV4dA==", "text/plain"),
    )

    def parts(self, api: str, base_url: str = "") -> list[Any]:
        body = sent(api, Request("m", History([user("See", *self.BLOCKS)])), base_url)
        turn = body["input" if api == "openai-responses" else "messages"][0]
        return list(turn["content"])

    def test_in_the_messages_format(self) -> None:
        image, pdf, text = self.parts("anthropic")[1:]

        assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "aW1n"}
        assert (pdf["type"], pdf["title"], pdf["source"]["media_type"]) == ("document", "a.pdf", "application/pdf")
        assert text["source"] == {"type": "text", "media_type": "text/plain", "data": "text"}

    def test_in_the_chat_format(self) -> None:
        image, pdf, text = self.parts("openai", OFFICIAL["openai"])[1:]

        assert image == {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}}
        assert pdf["file"] == {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"}
        assert text == {"type": "text", "text": "text"}

    def test_in_the_responses_format(self) -> None:
        assert [part["type"] for part in self.parts("openai-responses")] == [
            "input_text",
            "input_image",
            "input_file",
            "input_text",
        ]

    def test_what_a_provider_does_not_take_is_said(self) -> None:
        image, pdf, _ = self.parts("openai", "https://api.deepseek.com")[1:]

        assert image["text"] == "[image/png left out: this provider does not take it]"
        assert "application/pdf left out" in pdf["text"]

    def test_a_picture_in_a_result_follows_the_tool_messages_in_the_chat_format(self) -> None:
        seen = ToolResult("a", (Text("here"), Image("aW1n", "image/png")))
        body = sent("openai", Request("m", History([user("Hi"), calls("a", "b"), user(seen, result("b"), "so?")])))

        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
        assert [part["type"] for part in body["messages"][-1]["content"]] == ["text", "image_url", "text"]


@pytest.mark.proves("K10")
@pytest.mark.parametrize(
    ("api", "base_url", "options", "expected"),
    [
        ("anthropic", "", {"thinking": ThinkingOptions("adaptive")}, {"thinking": {"type": "adaptive"}}),
        ("anthropic", "", {"thinking": ThinkingOptions("off")}, {"thinking": {"type": "disabled"}}),
        (
            "anthropic",
            "",
            {"thinking": ThinkingOptions(budget=40_000)},
            {"thinking": {"type": "enabled", "budget_tokens": 40_000}, "max_tokens": 41_024},
        ),
        ("anthropic", "", {"effort": "high"}, {"output_config": {"effort": "high"}}),
        ("anthropic", "", {"effort": "minimal"}, {"output_config": {"effort": "low"}}),
        ("anthropic", "", {"max_tokens": 7}, {"max_tokens": 7}),
        ("openai", "", {"effort": "high", "max_tokens": 7}, {"reasoning_effort": "high", "max_tokens": 7}),
        ("openai", "https://api.openai.com/v1", {"max_tokens": 7}, {"max_completion_tokens": 7}),
        ("openai", OFFICIAL["openai"], {"chain": Chain("c1")}, {"prompt_cache_key": "c1"}),
        ("openai", "https://api.mistral.ai/v1", {"chain": Chain("c1")}, {"prompt_cache_key": None}),
        ("openai-responses", "", {"chain": Chain("c1")}, {"prompt_cache_key": "c1"}),
        (
            "openai",
            "https://api.deepseek.com",
            {"thinking": ThinkingOptions("off")},
            {"thinking": {"type": "disabled"}},
        ),
        ("openai", "https://openrouter.ai/api/v1", {"effort": "low"}, {"reasoning": {"effort": "low"}}),
        (
            "openai-responses",
            "",
            {"effort": "max", "max_tokens": 7},
            {"reasoning": {"effort": "xhigh"}, "max_output_tokens": 7},
        ),
    ],
)
def test_thinking_effort_and_limits(api: str, base_url: str, options: Any, expected: dict[str, Any]) -> None:
    body = sent(api, Request("m", History([user("Hi")]), **options), base_url)

    assert {key: body.get(key) for key in expected} == expected


def test_structured_output_in_each_format() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    loose = {"type": "object", "properties": {"n": {"type": "integer"}}}
    request = Request("m", History([user("Hi")]), schema=json.dumps(schema).encode())

    assert sent("anthropic", request, OFFICIAL["anthropic"])["output_config"] == {
        "format": {"type": "json_schema", "schema": schema}
    }
    shape = {"name": "answer", "schema": schema, "strict": True}
    assert sent("openai", request, OFFICIAL["openai"])["response_format"] == {
        "type": "json_schema",
        "json_schema": shape,
    }
    assert sent("openai-responses", request, OFFICIAL["openai"])["text"] == {"format": {"type": "json_schema", **shape}}

    request = Request("m", History([user("Hi")]), schema=json.dumps(loose).encode())
    assert sent("openai", request, OFFICIAL["openai"])["response_format"]["json_schema"]["strict"] is False


@pytest.mark.parametrize("api", APIS)
def test_servers_that_are_not_known_to_take_a_schema_are_sent_none(api: str) -> None:
    request = Request("m", History([user("Hi")]), schema=b'{"type":"object"}')

    assert not {"output_config", "response_format", "text"} & {*sent(api, request, "http://127.0.0.1:1/v1")}


def test_reasoning_models_are_asked_for_their_reasoning_and_others_are_not() -> None:
    for model, wanted in [("gpt-5.2", True), ("o4-mini", True), ("openai/gpt-oss-120b", True), ("gpt-4o", False)]:
        body = sent("openai-responses", Request(model, History([user("Hi")])), OFFICIAL["openai"])
        assert ("include" in body) is wanted
