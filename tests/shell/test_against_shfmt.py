"""The commands of a line against those a third parser finds: shfmt, which shares no code with the two we use."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from handrail.shell import Segment, analyse
from tests.shell.generator import Generator

LINES = 1_500


def calls(node: Any) -> Iterator[tuple[int, int]]:
    """(offset, number of words) of every command in the tree of shfmt."""
    if isinstance(node, list):
        for item in node:
            yield from calls(item)
    elif isinstance(node, dict):
        if node.get("Type") == "CallExpr" and node.get("Args"):
            yield node["Args"][0]["Pos"]["Offset"], len(node["Args"])
        for value in node.values():
            yield from calls(value)


def found_by_shfmt(lines: list[str]) -> list[set[tuple[int, int]]]:
    """The lines are parsed as one script; what is found is sorted back to the line it stands in."""
    text = b"".join(line.encode() + b"\n" for line in lines)
    ran = subprocess.run(["shfmt", "-ln", "bash", "--to-json"], input=text, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    starts, at = list[int](), 0
    for line in lines:
        starts.append(at)
        at += len(line.encode()) + 1
    found: list[set[tuple[int, int]]] = [set() for _ in lines]
    number = 0
    for offset, words in sorted(calls(json.loads(ran.stdout))):
        while number + 1 < len(lines) and starts[number + 1] <= offset:
            number += 1
        found[number].add((offset - starts[number], words))
    return found


def named(segment: Segment) -> tuple[int, int]:
    return segment.argv[0].start, len(segment.argv)


@pytest.mark.needs("shfmt")
def test_a_third_parser_finds_the_same_commands() -> None:
    generator = Generator(5)
    analyses = [analyse(generator.line()) for _ in range(LINES)]
    understood = [analysis for analysis in analyses if not analysis.problems]

    found = found_by_shfmt([analysis.text for analysis in understood])

    assert len(understood) > LINES / 2
    for analysis, expected in zip(understood, found, strict=True):
        ours = {named(segment) for segment in analysis.segments if segment.argv and segment.argv[0].literal != "[["}
        assert ours == expected, analysis.text
