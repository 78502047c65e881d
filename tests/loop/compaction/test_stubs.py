"""Micro-compaction: which results become stubs, where their text goes, and what never changes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.blocks import Document, Image, Text, ToolReference, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Message, UserMessage
from handrail.loop.compaction.stubs import CompactionPolicy, estimate, needed_action, stub_old_results
from handrail.loop.windows import DEFAULT_WINDOW, window_of
from tests.loop.histories import histories, is_valid

FOLDER = Path("/state/results")
EAGER = CompactionPolicy(keep_results=2, worth=1)
BIG = "x" * 5_000


def exchange(call_id: str, *parts: object) -> list[Message]:
    result = ToolResult(call_id, parts)  # type: ignore[arg-type]  # blocks of the table
    return [AssistantMessage((ToolUse(call_id, "Read", {}),)), UserMessage((result,))]


def test_old_large_results_become_stubs_that_name_a_file_with_the_whole_text() -> None:
    messages = [
        UserMessage((Text("Go."),)),
        *(message for n in range(4) for message in exchange(f"c{n}", Text(f"{n}{BIG}"))),
    ]

    done = stub_old_results(messages, FOLDER, EAGER)

    assert done is not None
    assert done.stubs == 2
    assert [save.data for save in done.saves] == [f"{n}{BIG}".encode() for n in range(2)]
    turns = [message for message in done.messages if isinstance(message, UserMessage)]
    texts = [block.text for turn in turns for block in turn.content if isinstance(block, ToolResult)]
    assert texts[0] == (
        "<earlier-output>\nThis result was moved out of the conversation.\n"
        f"5,001 characters of text. It is in {done.saves[0].path}: read it if you need it again.\n</earlier-output>"
    )
    assert texts[2:] == [f"{n}{BIG}" for n in (2, 3)]
    assert done.characters == 2 * (5_001 - len(texts[0]))


def test_small_results_references_and_those_the_model_has_not_seen_stay() -> None:
    small, unseen = "s" * 2_000, [ToolResult(f"u{n}", (Text(BIG),)) for n in range(5)]
    messages = [
        UserMessage((Text("Go."),)),
        *exchange("small", Text(small)),
        *exchange("reference", Text(BIG), ToolReference("A")),
        AssistantMessage(tuple(ToolUse(each.tool_use_id, "Read", {}) for each in unseen)),
        UserMessage(tuple(unseen)),
    ]

    assert stub_old_results(messages, FOLDER, EAGER) is None


def test_files_are_kept_as_files_and_text_that_is_on_disk_is_not_written_again() -> None:
    persisted = f"<persisted-output>\nThe whole text is in /state/x.txt.\n{'p' * 3_000}\n</persisted-output>"
    messages = [
        UserMessage((Text("Go."),)),
        *exchange("a", Image("cGljdHVyZQ==", "image/png"), Document("no base64", "application/pdf"), Text("see")),
        *exchange("b", Text(persisted)),
        *exchange("c", Text("")),
    ]

    done = stub_old_results(messages, FOLDER, CompactionPolicy(keep_results=0, worth=1))

    assert done is not None
    assert [(save.path.suffix, save.data) for save in done.saves] == [
        (".txt", b"see"),
        (".png", b"picture"),
        (".pdf", b"no base64"),
    ]
    kept = done.messages[4].content[0]  # type: ignore[union-attr]  # a user's turn
    assert isinstance(kept, ToolResult)
    assert "The whole text is in /state/x.txt." in kept.text
    assert "ppp" not in kept.text


def test_what_saves_little_is_not_worth_a_break() -> None:
    messages = [UserMessage((Text("Go."),)), *exchange("a", Text(BIG)), *exchange("b", Text("now"))]

    assert stub_old_results(messages, FOLDER, CompactionPolicy(keep_results=1, worth=4_000)) is not None
    assert stub_old_results(messages, FOLDER, CompactionPolicy(keep_results=1, worth=5_000)) is None
    assert stub_old_results([], FOLDER, EAGER) is None


@pytest.mark.proves("R1", "R5")
@given(histories(), st.integers(0, 4), st.integers(1, 50_000))
def test_after_any_micro_compaction_the_history_is_valid_shorter_and_otherwise_the_same(
    messages: list[Message], keep: int, worth: int
) -> None:
    policy = CompactionPolicy(keep_results=keep, worth=worth)
    done = stub_old_results(messages, FOLDER, policy)

    assert stub_old_results(messages, FOLDER, policy) == done
    if done is None:
        return
    assert is_valid(done.messages)
    assert estimate(done.messages) < estimate(messages)
    assert stub_old_results(done.messages, FOLDER, policy) is None
    assert len(done.messages) == len(messages)
    changed = 0
    for before, after in zip(messages, done.messages, strict=True):
        if before == after:
            assert before is after
            continue
        assert isinstance(before, UserMessage)
        assert isinstance(after, UserMessage)
        for old, new in zip(before.content, after.content, strict=True):
            assert isinstance(old, ToolResult)
            assert isinstance(new, ToolResult)
            assert (old.tool_use_id, old.is_error) == (new.tool_use_id, new.is_error)
            changed += old != new
    assert changed == done.stubs
    # what was taken out is on disk, under names of its own
    assert len({save.path for save in done.saves}) == len(done.saves)


@pytest.mark.parametrize(
    ("tokens", "expected"), [(0, "none"), (5_999, "none"), (6_000, "micro"), (7_999, "micro"), (8_000, "full")]
)
def test_what_is_called_for_depends_on_the_share_of_the_window(tokens: int, expected: str) -> None:
    assert needed_action(tokens, 10_000) == expected


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-sonnet-4-6", 200_000),
        ("anthropic/claude-opus-4-6", 200_000),
        ("us/anthropic.claude-haiku-4-5", 200_000),
        ("gpt-5.2", 272_000),
        ("openai/gpt-4o-mini", 128_000),
        ("GPT-4-0613", 8_000),
        ("meta-llama/Llama-3.3-70B", 128_000),
        ("my-own-model", DEFAULT_WINDOW),
        ("", DEFAULT_WINDOW),
    ],
)
def test_windows_are_known_by_the_models_name_and_unknown_ones_are_small(model: str, tokens: int) -> None:
    assert window_of(model) == tokens
