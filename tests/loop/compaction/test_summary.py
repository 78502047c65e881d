"""Full compaction: what is summarised, how it is asked for, and what the history is afterwards."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.conversation.blocks import Text, ToolReference, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.conversation.request import History, Request
from handrail.loop.compaction.stubs import estimate
from handrail.loop.compaction.summary import REQUEST, replace_with_summary, split_history, summary_request
from handrail.providers.quirks import quirks_of
from handrail.testing.model_server import pairing_problem
from tests.loop.histories import histories, is_valid
from tests.providers.asking import APIS

CONTEXT = Attachment("context", (Text("<environment>\nhere\n</environment>"),))


def said(text: str) -> UserMessage:
    return UserMessage((Text(text),))


def exchange(call_id: str, *parts: object) -> list[Message]:
    result = ToolResult(call_id, parts)  # type: ignore[arg-type]  # blocks
    return [AssistantMessage((Text("I look."), ToolUse(call_id, "Read", {}))), UserMessage((result,))]


def references(messages: Sequence[Message]) -> list[str]:
    """The names of tools that results point at."""
    turns = [message for message in messages if isinstance(message, UserMessage)]
    results = [block for turn in turns for block in turn.content if isinstance(block, ToolResult)]
    return [part.name for result in results for part in result.content if isinstance(part, ToolReference)]


LONG: list[Message] = [
    CONTEXT,
    said("Build it. " + "w" * 3_000),
    *exchange("a", Text("a" * 3_000)),
    Attachment("memory", (Text("Use tabs."),)),
    *exchange("b", ToolReference("Weather")),
    *exchange("c", Text("c" * 3_000)),
    *exchange("d", Text("d" * 300)),
]


def test_a_summary_takes_the_place_of_the_older_turns() -> None:
    parts = split_history(LONG, 2_000)
    assert parts is not None

    after = replace_with_summary(parts, "  We began.\n")

    assert parts.newer == tuple(LONG[-2:])
    assert after is not None
    assert after[1:3] == (CONTEXT, Attachment("memory", (Text("Use tabs."),)))
    assert after[-2:] == tuple(LONG[-2:])
    assert after[0] == SystemNote("7 messages were replaced by a summary.")
    summary = after[-3]
    assert isinstance(summary, Attachment)
    [block] = summary.content
    assert isinstance(block, Text)
    assert "of it:\n\nWe began.\n</summary>" in block.text
    assert block.text.endswith("in their own words:\nBuild it. " + "w" * 2_990 + "w" * 10)


@pytest.mark.proves("C7")
def test_tools_in_use_are_found_again_by_a_search_in_the_new_history() -> None:
    parts = split_history(LONG, 2_000)
    assert parts is not None
    after = replace_with_summary(parts, "We began.")
    assert after is not None

    calls = [call for message in after if isinstance(message, AssistantMessage) for call in message.calls]
    assert isinstance(calls[0], ToolUse)
    assert (calls[0].name, calls[0].input) == ("ToolSearch", {"query": "select:Weather"})
    again = split_history([*after, said("And now? " + "n" * 9_000)], 2_000)
    assert again is not None
    twice = replace_with_summary(again, "Later.")
    assert twice is not None
    assert references(twice) == ["Weather"]


def test_a_prompt_that_stays_is_not_said_twice() -> None:
    messages = [*LONG, AssistantMessage((Text("Done."),)), said("Next, please.")]
    parts = split_history(messages, 2_000)
    assert parts is not None

    after = replace_with_summary(parts, "We built it.")

    assert after is not None
    assert "in their own words" not in repr(after)
    assert after[-1] == said("Next, please.")


def test_nothing_is_summarised_twice_and_an_empty_summary_changes_nothing() -> None:
    parts = split_history(LONG, 2_000)
    assert parts is not None
    after = replace_with_summary(parts, "We began.")
    assert after is not None

    assert split_history(after, 2_000) is None
    assert replace_with_summary(parts, " \n") is None
    assert replace_with_summary(parts, "s" * 1_000_000) is None
    assert split_history([CONTEXT, said("Hi")], 2_000) is None
    assert split_history([], 2_000) is None


def test_the_request_begins_like_those_before_it_and_ends_with_the_question() -> None:
    parts = split_history(LONG, 2_000)
    assert parts is not None

    asked = summary_request(parts.older, 100_000, "Keep the names.")

    assert asked[:-1] == parts.older
    [question] = asked[-1].content  # type: ignore[union-attr]  # a user's turn
    assert question == Text(f"{REQUEST}\n\nThe user asks of this summary: Keep the names.")


def test_what_does_not_fit_into_the_window_is_cut_from_the_front() -> None:
    asked = summary_request(LONG, 2_200)

    assert estimate(asked) <= 2_200
    assert is_valid(asked)
    assert "aaaa" not in repr(asked)
    assert "characters of text.\\n</earlier-output>" in repr(asked)  # no file was written, so none is named


@pytest.mark.proves("R1")
@settings(max_examples=settings().max_examples // 2)
@given(histories() | histories(closed=True), st.sampled_from([300, 3_000, 30_000, 300_000]), st.text(max_size=50))
def test_after_any_summary_the_history_is_valid_shorter_and_its_newest_turns_are_untouched(
    messages: list[Message], window: int, words: str
) -> None:
    parts = split_history(messages, window)
    assert split_history(messages, window) == parts
    if parts is None:
        return
    assert (*parts.older, *parts.newer) == tuple(messages)
    assert parts.newer

    asked = summary_request(parts.older, window)
    assert is_valid(asked)
    after = replace_with_summary(parts, words)
    if after is None:
        assert not words.strip() or estimate(parts.older) < 1_000
        return

    assert is_valid(after)
    assert estimate(after) < estimate(messages)
    assert after[-len(parts.newer) :] == parts.newer
    assert split_history(after, window) is None
    for kind in ("context", "memory"):
        told = [m for m in messages if isinstance(m, Attachment) and m.kind == kind]
        assert [m for m in after if isinstance(m, Attachment) and m.kind == kind] == list(dict.fromkeys(told))
    assert {*references(after)} == {*references(messages)}


@pytest.mark.proves("R1")
@settings(max_examples=settings().max_examples // 2)
@given(histories(), st.sampled_from(sorted(APIS)))
def test_strict_servers_take_the_summary_request_and_the_history_after_it(messages: list[Message], name: str) -> None:
    parts = split_history(messages, 300)
    if parts is None:
        return
    writer = APIS[name].writer(quirks_of(name, "https://api.anthropic.com", "m"))
    for said_now in (summary_request(parts.older, 3_000), replace_with_summary(parts, "Summary.")):
        if said_now is None:
            continue
        body = json.loads(writer.body(Request("m", History(said_now)), stream=True))
        assert pairing_problem(name, body) == ""
        if name == "anthropic":
            assert body["messages"][0]["role"] == "user"
