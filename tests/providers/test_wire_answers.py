"""What our scripted server writes, our readers read: any answer, in any format, cut anywhere."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.blocks import AssistantBlock, BrokenToolUse, Text, Thinking, ToolUse
from handrail.testing.wire_answers import FORMATS, ScriptedAnswer
from tests.providers.reading import read

NAMES = {"/messages": "anthropic", "/chat/completions": "openai-chat", "/responses": "openai-responses"}

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
inputs: st.SearchStrategy[dict[str, Any]] = st.dictionaries(texts, texts | st.integers() | st.lists(texts), max_size=3)


@st.composite
def contents(draw: st.DrawFn) -> list[AssistantBlock]:
    """Thinking, then words, then calls, whole and broken: the order every format can carry."""
    blocks: list[AssistantBlock] = []
    if draw(st.booleans()):
        blocks.append(Thinking(draw(texts)))
    if draw(st.booleans()):
        blocks.append(Text(draw(texts)))
    for number in range(draw(st.integers(0, 4))):
        broken = BrokenToolUse(f"id{number}", "Bash", '{"a', "")
        blocks.append(draw(st.one_of(st.just(broken), inputs.map(lambda i, n=number: ToolUse(f"id{n}", "Read", i)))))  # type: ignore[misc]
    return blocks


def plain(blocks: Sequence[AssistantBlock]) -> list[object]:
    """Blocks without what a format adds to them."""
    return [
        Thinking(block.text)
        if isinstance(block, Thinking)
        else (block.id, block.name)
        if isinstance(block, BrokenToolUse)
        else block
        for block in blocks
    ]


@pytest.mark.proves("E2", "E36")
@given(contents(), st.sampled_from(sorted(FORMATS)), st.integers(0, 5), st.data())
def test_any_answer_is_read_as_it_was_meant(
    content: list[AssistantBlock], path: str, piece: int, data: st.DataObject
) -> None:
    _, events, _ = FORMATS[path]
    body = b"".join(events(ScriptedAnswer(content, "", "m", 1, 1, piece)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12)))

    seen = read(NAMES[path], [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)])
    assert plain(seen.content) == plain(content)


@pytest.mark.proves("K8")
@given(contents(), st.sampled_from(sorted(FORMATS)))
def test_the_form_in_one_piece_says_the_same(content: list[AssistantBlock], path: str) -> None:
    whole_calls = [block for block in content if not isinstance(block, BrokenToolUse)]
    said = ScriptedAnswer(whole_calls, "", "m", 1, 1)

    assert plain(read(NAMES[path], [json.dumps(FORMATS[path][2](said)).encode()]).content) == plain(whole_calls)


@given(contents(), st.sampled_from(sorted(FORMATS)), st.data())
def test_a_stream_cut_anywhere_before_its_end_never_ends_well(
    content: list[AssistantBlock], path: str, data: st.DataObject
) -> None:
    frames = list(FORMATS[path][1](ScriptedAnswer(content, "", "m", 1, 1, 2)))
    last = {"/messages": 2, "/chat/completions": 3, "/responses": 1}[path]  # frames that say the answer is whole
    kept = data.draw(st.integers(0, len(frames) - last))

    seen = read(NAMES[path], frames[:kept])
    assert seen.failure is not None
    assert set(map(repr, plain(seen.content))) <= set(map(repr, plain(content)))


def test_an_answer_in_the_responses_format_gives_the_sum_of_its_tokens_as_strict_clients_want() -> None:
    _, events, _ = FORMATS["/responses"]
    *_, last = events(ScriptedAnswer([Text("Hi")], "", "m", 10, 5))

    completed = json.loads(last.partition(b"data: ")[2])
    assert completed["response"]["usage"] == {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
