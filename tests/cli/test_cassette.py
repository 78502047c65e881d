"""`handrail cassette`: what is wrong with a tape is named, with its recording, and nothing else is."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from handrail.cli.main import run
from handrail.conversation.blocks import Text, ToolUse
from handrail.providers.cassette.canonical import Canonical
from handrail.providers.cassette.tape import Chunk, Header, Recording, TapeWriter
from handrail.testing.wire_answers import ScriptedAnswer, anthropic_events


def recording(number: int, *blocks: Text | ToolUse, prompt: str = "go") -> Recording:
    said = ScriptedAnswer(blocks, "", "m", input_tokens=1, output_tokens=1, piece=4)
    request = Canonical("anthropic", {"model": "m"}, ({"role": "user", "content": [{"type": "text", "text": prompt}]},))
    return Recording(number, request, 200, {}, tuple(map(Chunk, anthropic_events(said))))


def write(path: Path, *recordings: Recording) -> Path:
    tape = TapeWriter()
    path.write_text("".join([tape.header(Header("anthropic", "http://x", "m")), *map(tape.recording, recordings)]))
    return path


GOOD = recording(1, Text("Hello."))


@pytest.mark.parametrize(
    ("recordings", "problem"),
    [
        pytest.param([], "nothing is recorded in it", id="empty"),
        pytest.param([GOOD, replace(GOOD, number=2, status=500)], "recording 2: status 500", id="refused"),
        pytest.param([replace(GOOD, chunks=GOOD.chunks[:2])], "recording 1: ", id="half an answer"),
        pytest.param([replace(GOOD, end="cut", why="reset")], "the answer was cut: reset", id="cut"),
        pytest.param([replace(GOOD, end="failed", why="no route")], "there was no answer: no route", id="no answer"),
        pytest.param([recording(1, ToolUse("t", "Read", {}))], "its calls (Read) have no results", id="open calls"),
        pytest.param([recording(1, Text("tell-tale-value"))], "holds a secret: [redacted:MY_TOKEN]", id="secret"),
        pytest.param(
            [recording(1, Text("ok"), prompt="/home/someone/x")], "the home folder of this machine", id="path"
        ),
    ],
)
def test_a_problem_is_named(
    recordings: list[Recording],
    problem: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("MY_TOKEN", "tell-tale-value")
    path = write(tmp_path / "run.jsonl", *recordings)

    assert run(["cassette", "check", str(path)]) == 1
    out, errors = capsys.readouterr()
    assert out == ""
    assert problem in errors


def test_a_cut_file_and_one_that_is_none_are_told_apart_from_a_good_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write(tmp_path / "good.jsonl", GOOD)
    cut = write(tmp_path / "cut.jsonl", GOOD, replace(GOOD, number=2))
    cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:-2]))
    (tmp_path / "notes.jsonl").write_text("{}\n")

    assert run(["cassette", "check", str(good), str(cut), str(tmp_path / "notes.jsonl")]) == 1
    out, errors = capsys.readouterr()
    assert out == f"{good}: good (1 recording)\n"
    assert f"{cut}: recording 2: its answer was cut off" in errors
    assert "notes.jsonl is not a cassette" in errors
    assert run(["cassette", "show", str(good), "7"]) == 2
    assert "has no recording 7" in capsys.readouterr().err


def test_show_shows_what_is_whole_wherever_a_file_is_cut_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    greetings = ["Hello.", "Good day.", "\u4f60\u597d"]
    recordings = (recording(n, Text(text), prompt=text) for n, text in enumerate(greetings, 1))
    whole = write(tmp_path / "run.jsonl", *recordings)
    data, first = whole.read_bytes(), whole.read_bytes().index(b"\n")
    starts = [data.index(b'{"request": %d' % number) for number in (1, 2, 3)]
    ends = [data.index(b'{"end": "whole"}', start) + len(b'{"end": "whole"}') for start in starts]
    half = data.index("\u4f60".encode()) + 1
    edges = {at + step for at in (*starts, *ends) for step in (-1, 0, 1)} - {starts[0] - 1}
    for size in sorted({first, half, *edges, *range(first, len(data), 307)}):
        whole.write_bytes(data[:size])
        assert run(["cassette", "show", str(whole), "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        said = [each["answer"][0]["text"] for each in shown["recordings"]]
        assert said == [text for text, end in zip(greetings, ends, strict=True) if end <= size]
        assert len(shown["missing"]) == sum(start < size < end for start, end in zip(starts, ends, strict=True))

    whole.write_bytes(data[: starts[1] + 20] + b"\n" + data[starts[2] :])
    assert run(["cassette", "show", str(whole)]) == 0
    out, errors = capsys.readouterr()
    assert '-> "Hello."' in out
    assert "cannot be read" in errors
    assert "recording 3 continues recording 2, which is missing. Record it again" in errors
    assert run(["cassette", "show", str(whole), "3"]) == 2
    assert "has no recording 3 (line " in capsys.readouterr().err
    assert run(["cassette", "check", str(whole)]) == 1
