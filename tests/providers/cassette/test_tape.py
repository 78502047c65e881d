"""The file: what is written is read again, newer formats and damage are refused, a crash costs one recording."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.errors import CassetteError
from handrail.providers.cassette.canonical import Canonical
from handrail.providers.cassette.tape import Chunk, Header, Recording, TapeWriter, load

JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
REQUEST = st.builds(
    Canonical,
    st.sampled_from(["anthropic", "openai"]),
    st.dictionaries(st.text(max_size=3), JSON, max_size=2),
    st.lists(st.dictionaries(st.text(max_size=3), JSON, max_size=2), max_size=4).map(tuple),
)
CHUNK = st.builds(Chunk, st.binary(max_size=20), st.none() | st.integers(0, 9_999).map(lambda n: n / 1_000))
ANSWERED = st.builds(
    lambda request, chunks, end: (request, {"status": 200, "headers": {"a": "b"}, "chunks": tuple(chunks), "end": end}),
    REQUEST,
    st.lists(CHUNK, max_size=4),
    st.sampled_from(["whole", "cut", "aborted"]),
)
FAILED = REQUEST.map(lambda request: (request, {"end": "failed", "why": "gone"}))


def tape(recordings: list[Recording]) -> str:
    writer = TapeWriter()
    return writer.header(Header("openai", "http://h", "m", "n")) + "".join(map(writer.recording, recordings))


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(ANSWERED | FAILED, max_size=5), st.randoms())
def test_what_is_written_is_read_again_whatever_was_written_first(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[Canonical, dict[str, object]]], random: object
) -> None:
    recordings = [Recording(number, request, **rest) for number, (request, rest) in enumerate(parts, 1)]  # type: ignore[arg-type]  # fields by name
    path = tmp_path_factory.mktemp("tape") / "x.jsonl"
    shuffled = list(recordings)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    path.write_text(tape(shuffled), "utf-8")

    cassette = load(path)

    assert cassette.header == Header("openai", "http://h", "m", "n")
    assert cassette.recordings == tuple(recordings)


def entry(number: int) -> Recording:
    return Recording(number, Canonical("openai", {"a": 1}, ({"n": number},)), 200, {}, (Chunk(b"data"), Chunk(b"\xff")))


def test_a_crash_at_any_byte_costs_only_the_recording_that_was_being_written(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    one, two = tape([entry(1)]), tape([entry(1), entry(2)])
    assert two.startswith(one)

    for end in range(len(one), len(two)):
        path.write_text(two[:end])
        # the last line is whole once all of it but its end is there
        assert [each.number for each in load(path).recordings] == ([1, 2] if end == len(two) - 1 else [1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param('{"handrail_cassette": 2}\n', "has format 2, and this handrail reads formats up to 1", id="newer"),
        pytest.param('{"other": 1}\n', "does not say handrail_cassette", id="another file"),
        pytest.param("", "does not say handrail_cassette", id="empty"),
        pytest.param("hello\nworld\n", "x.jsonl:1: not JSON", id="no JSON"),
        pytest.param("[1]\n", "x.jsonl:1: '\\[1\\]' is not a JSON object", id="no object"),
        pytest.param(
            '{"handrail_cassette": 1}\n{"request": 1, "api": "a", "like": 7, "keep": 1}\n',
            "x.jsonl:2: the recording 1 is damaged",
            id="goes on from nothing",
        ),
    ],
)
def test_what_is_no_cassette_of_ours_is_refused_with_the_reason(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)

    with pytest.raises(CassetteError, match=words):
        load(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(CassetteError, match="not UTF-8"):
        load(path)


def test_unknown_fields_of_the_same_format_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [json.loads(line) | {"later": 1} for line in tape([entry(1)]).splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert load(path).recordings == (entry(1),)
