"""Recorded answers of many providers are understood, however their bytes are cut."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.stream import Usage
from tests.providers.reading import described, read

STREAMS = Path(__file__).parent / "streams"
EXPECTED = [json.loads(line) for line in (STREAMS / "expected.jsonl").read_text().splitlines()]


def counts(expected: dict[str, Any]) -> tuple[int | None, ...]:
    usage = expected["usage"]
    before = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    after = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    return (
        usage.get("input_tokens", usage.get("prompt_tokens")),
        usage.get("output_tokens", usage.get("completion_tokens")),
        before.get("cached_tokens", usage.get("cache_read_input_tokens")),
        after.get("reasoning_tokens"),
    )


def counted(usage: Usage | None) -> tuple[int | None, ...]:
    assert usage is not None
    return usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.reasoning_tokens


def check(expected: dict[str, Any], chunks: list[bytes]) -> None:
    seen = read(expected["api"], chunks)
    assert seen.failure is None
    assert [described(block) for block in seen.content] == expected["blocks"]
    assert seen.end is not None
    assert seen.end.stop_reason == expected["stop_reason"]
    assert seen.model == expected["model"]
    assert counted(seen.usage) == counts(expected)


@pytest.mark.proves("E1", "E2", "E3", "E36")
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected["file"])
def test_a_recorded_stream_is_understood_in_one_piece_and_byte_by_byte(expected: dict[str, Any]) -> None:
    body = (STREAMS / expected["file"]).read_bytes()
    assert hashlib.sha256(body).hexdigest() == expected["sha256"]

    check(expected, [body])
    check(expected, [body[at : at + 1] for at in range(len(body))])


@given(data=st.data(), line_end=st.sampled_from([b"\n", b"\r\n", b"\r"]), bom=st.booleans(), noise=st.booleans())
def test_a_recorded_stream_is_understood_however_its_bytes_are_cut(
    data: st.DataObject, line_end: bytes, bom: bool, noise: bool
) -> None:
    expected = data.draw(st.sampled_from(EXPECTED))
    body = (STREAMS / expected["file"]).read_bytes()
    if noise:
        body = body.replace(b"\ndata: ", b"\n: a comment\nid: 7\nretry: 10\ndata:")
    body = (b"\xef\xbb\xbf" if bom else b"") + body.replace(b"\n", line_end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=40)))

    check(expected, [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)])
