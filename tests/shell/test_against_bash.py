"""The analysis against bash itself: thousands of generated lines, run in a closed box that holds only a recorder."""

import json
from pathlib import Path

import pytest

from handrail.shell import Analysis, CommandVerdict, analyse
from tests.shell import box
from tests.shell.generator import Generator
from tests.shell.oracle import literal, unnamed

pytestmark = [pytest.mark.needs("bwrap")]

SEEDS = Path(__file__).parent / "corpus" / "fuzz.jsonl"


def understood(seed: int, count: int, *, plain: bool) -> list[tuple[str, Analysis]]:
    """Generated lines that are understood; enough of them that the comparison means something."""
    generator = Generator(seed, plain=plain)
    read = [(line, analyse(line)) for line in (generator.line() for _ in range(count))]
    found = [(line, analysis) for line, analysis in read if not analysis.problems]
    assert len(found) > count / 2
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_every_argument_vector_is_the_one_bash_makes(seed: int) -> None:
    lines = understood(seed, 1_000, plain=True)
    ran = box.run([line for line, _ in lines])

    compared = 0
    for (line, analysis), started in zip(lines, ran.started, strict=True):
        segments = [segment for segment in analysis.segments if segment.argv]
        expected = [argv for segment in segments if (argv := literal(segment)) is not None]
        if len(expected) == len(segments):
            compared += 1
            # a loop runs its body once for each value
            assert set(started) == set(expected), line
            assert "for" in line or len(started) == len(expected), line
    assert compared > len(lines) * 0.8
    assert ran.left_behind == ()


@pytest.mark.parametrize("seed", [3, 4])
def test_nothing_starts_that_the_analysis_did_not_name(seed: int) -> None:
    lines = understood(seed, 1_000, plain=False)
    ran = box.run([line for line, _ in lines])

    for (line, analysis), started in zip(lines, ran.started, strict=True):
        assert unnamed(analysis, started) == [], line
    assert sum(map(len, ran.started)) > len(lines)
    assert ran.left_behind == ()


def test_no_seed_of_the_fuzzer_starts_or_writes_what_was_not_named() -> None:
    seeds = [json.loads(line) for line in SEEDS.read_text().splitlines()]
    lines = [(seed, read) for seed in seeds if (read := analyse(seed)).verdict is CommandVerdict.READ_ONLY]
    ran = box.run([line for line, _ in lines])

    assert len(lines) > len(seeds) / 50
    for (line, analysis), started in zip(lines, ran.started, strict=True):
        assert unnamed(analysis, started) == [], line
    assert ran.left_behind == ()


def test_the_box_has_no_programs_no_network_and_one_folder_to_write() -> None:
    ran = box.run(
        [
            "/bin/ls; /usr/bin/env",
            ": > f",
            ": > /box/x; : > /tmp/x; : > /x",
            ": </dev/tcp/127.0.0.1/1 && t",
            "t $BASH_ENV",
        ]
    )

    assert ran.started == [[], [], [], [], [("t",)]]
    assert ran.left_behind == ("f",)
