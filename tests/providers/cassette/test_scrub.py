"""Secrets and places leave a stream however it is cut; everything else keeps its bytes and boundaries."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.redact import build_redactor
from handrail.conversation.stream import BlockEnd
from handrail.providers.cassette.normalize import Normalizer
from handrail.providers.cassette.scrub import scrub
from handrail.testing.wire_answers import FORMATS, ScriptedAnswer
from tests.providers.asking import APIS

KEY = "sk-ant-api03-Zz91kdm3KDm20dkMMd02mxZkw"
TOKEN = "correct-horse-battery"
HERE = Normalizer(build_redactor({"MY_TOKEN": TOKEN}), (("/home/me/project", "cwd"), ("/home/me", "home")))
FORMAT = st.sampled_from(sorted(FORMATS))
WORDS = st.lists(
    st.one_of(
        st.sampled_from(
            [KEY, TOKEN, "/home/me/project/a.py", "/home/me/.config", "/home/meow", "sk-ant-", 'ä😀\n"', "{{"]
        ),
        st.text(max_size=8),
    ),
    max_size=6,
).map(" ".join)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(ends)]


def read(path: str, chunks: tuple[bytes, ...]) -> list[object]:
    reader = APIS[FORMATS[path][0]].reader((), ())
    events = [event for chunk in chunks for event in reader.feed(chunk)] + reader.end()
    return [event.block for event in events if isinstance(event, BlockEnd)]


@pytest.mark.proves("R10")
@settings(max_examples=settings().max_examples // 2)
@given(FORMAT, WORDS, st.integers(1, 12), st.lists(st.integers(0, 10_000), max_size=20))
def test_a_scrubbed_stream_says_the_same_without_secrets_and_places(
    path: str, words: str, piece: int, places: list[int]
) -> None:
    content = (Text(f"Say: {words}."), ToolUse("c1", "Write", {"text": f"{words} ok"}))
    said = ScriptedAnswer(content, "", "m", 1, 1, piece)
    chunks = cut(b"".join(FORMATS[path][1](said)), places)

    clean = scrub(chunks, HERE.edits)

    body = b"".join(clean).decode()
    assert KEY not in body
    assert TOKEN not in body
    assert "/home/me/" not in body
    text, call = read(path, clean)
    assert text == Text(
        HERE.redactor.text(f"Say: {words}.")
        .replace("/home/me/project/", "{{handrail:cwd}}/")
        .replace("/home/me/.", "{{handrail:home}}/.")
    )
    assert isinstance(call, ToolUse)
    assert KEY not in json.dumps(call.input)
    assert len(clean) <= len(chunks)


@given(FORMAT, st.text(max_size=60), st.integers(0, 7), st.lists(st.integers(0, 10_000), max_size=20))
def test_what_holds_nothing_to_hide_keeps_every_byte_and_boundary(
    path: str, words: str, piece: int, places: list[int]
) -> None:
    said = ScriptedAnswer((Text(words), ToolUse("c1", "Write", {"text": words})), "", "m", 1, 1, piece)
    chunks = cut(b"".join(FORMATS[path][1](said)), places)

    assert scrub(chunks, HERE.edits) == tuple(chunks)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=10))
def test_any_bytes_come_through(data: bytes, places: list[int]) -> None:
    chunks = cut(data, places)
    clean = b"".join(scrub(chunks, HERE.edits))

    assert clean == data or data.startswith(clean) or b"data:" in data


@given(st.integers(1, 10), st.integers(0, 400))
@pytest.mark.proves("R10")
def test_a_stream_that_breaks_off_inside_a_secret_does_not_show_its_parts(piece: int, end: int) -> None:
    said = ScriptedAnswer((Text(f"It is {TOKEN}!"),), "", "m", 1, 1, piece)
    body = b"".join(FORMATS["/messages"][1](said))
    start = body.index(b"It is"[:piece])
    clean = b"".join(scrub([body[: start + end]], HERE.edits)).decode()

    shown = "".join(
        json.loads(line[6:])["delta"].get("text", "")
        for line in clean.splitlines()
        if line.startswith("data: ") and '"text_delta"' in line
    )
    assert not any(TOKEN[at : at + 8] in shown for at in range(len(TOKEN) - 7))


@pytest.mark.parametrize(
    ("body", "clean"),
    [
        pytest.param(
            f'{{"error": "bad key {KEY}"}}', '{"error":"bad key [redacted:anthropic-key]"}', id="one JSON value"
        ),
        pytest.param(f"<html>{KEY}</html>", "<html>[redacted:anthropic-key]</html>", id="no JSON at all"),
        pytest.param(f": {KEY}\r\n", ": [redacted:anthropic-key]\r\n", id="a comment"),
        pytest.param(
            f'data: {{"a":\r\ndata: "{KEY}"}}\r\n\r\n',
            'data: {"a":"[redacted:anthropic-key]"}\r\n\r\n',
            id="two data lines",
        ),
        pytest.param(f'data:["{KEY}"]\r\r', 'data: ["[redacted:anthropic-key]"]\r\r', id="other line ends"),
        pytest.param(f'data: {{"{KEY}"', "", id="an event that broke off"),
    ],
)
def test_other_bodies_are_cleaned_too(body: str, clean: str) -> None:
    assert b"".join(scrub([body.encode()], HERE.edits)).decode() == clean


def test_a_boundary_inside_a_changed_event_moves_to_its_end_and_others_stay() -> None:
    event = b'data: {"delta": " x "}\n\n'
    secret = f'data: {{"delta": "{KEY}"}}\n'.encode()
    chunks = [event[:5], event[5:] + secret[:9], secret[9:20], secret[20:] + b"\n" + event[:3], event[3:]]

    clean = scrub(chunks, HERE.edits)

    changed = b'data: {"delta":"[redacted:anthropic-key]"}\n'
    assert clean == (event[:5], event[5:] + changed, b"\n" + event[:3], event[3:])
