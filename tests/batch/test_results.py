"""The folder of a batch: what is kept, what a kill leaves, and one process at a time."""

import json
import os
import resource
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from handrail.batch.cells import Cell, Matrix, plan_cells
from handrail.batch.report import current_results
from handrail.batch.results import AttemptLog, BatchFolder, CellResult, LineWriter, missing_cells
from handrail.batch.seal import Seal
from handrail.batch.tasks import BatchTask
from handrail.errors import BatchError, HandrailError

SEAL = Seal(b"k")


@pytest.fixture
def folder(tmp_path: Path) -> BatchFolder:
    return BatchFolder(tmp_path)


def cells(*prompts: str) -> list[Cell]:
    tasks = [BatchTask(id=f"t{number}", prompt=prompt) for number, prompt in enumerate(prompts)]
    return plan_cells(tasks, Matrix(), {})


def result(cell: Cell, status: str = "solved") -> CellResult:
    return CellResult(cell.key, *cell.place, status=status, why="", tags=("a",), dollars=0.5)


def keep(folder: BatchFolder, *results: CellResult) -> None:
    writer = LineWriter(folder.results_file)
    for each in results:
        writer.write({"version": 1, **asdict(each)})
    writer.close()


def test_half_a_line_of_a_killed_process_loses_no_other(folder: BatchFolder) -> None:
    first, second = cells("x", "y")
    keep(folder, result(first))
    with folder.results_file.open("ab") as file:
        file.write(b'{"version": 1, "key": "hal')

    assert missing_cells([first, second], folder.read_results()[0]) == [second]
    keep(folder, result(second))

    assert folder.read_results() == ({first.key: result(first), second.key: result(second)}, 1)


@pytest.mark.parametrize("size", [0, 1, 40])
def test_a_file_cut_anywhere_is_read_up_to_there(folder: BatchFolder, size: int) -> None:
    first, second = cells("x", "y")
    keep(folder, result(first), result(second))
    whole = folder.results_file.read_bytes()
    folder.results_file.write_bytes(whole[: whole.index(b"\n") + 1 + size])

    assert folder.read_results() == ({first.key: result(first)}, 1 if size else 0)


WRONG_KEY = {"key": ["a"], "task": "a", "model": "b", "settings": "c", "trial": 1, "status": "solved", "why": ""}
WRONG_TAGS = {**WRONG_KEY, "key": "a", "tags": 5}
UNKNOWN_STATUS = {**WRONG_KEY, "key": "a", "status": "won"}
NEGATIVE_PRICE = {**WRONG_KEY, "key": "a", "dollars": -1000.0}
ENDLESS = {**WRONG_KEY, "key": "a", "seconds": float("inf")}
IMPOSSIBLE = [
    {**WRONG_KEY, "key": "a", name: value}
    for name, value in (
        *(("attempts", 10**30), ("attempts", -5), ("unpriced_attempts", -7), ("finished", float("nan"))),
        *(("lost_dollars", 1e308), ("denials", -1)),
    )
]


@pytest.mark.parametrize(
    "line",
    [
        *(b"[]", b"{}", b'{"version": 99, "key": "a"}', b"\xff\xfe", b"\0" * 64, b"[" * 100_000),
        *(json.dumps({"version": 1, **each}).encode() for each in (WRONG_KEY, WRONG_TAGS)),
        *(json.dumps({"version": 1, **each}).encode() for each in (UNKNOWN_STATUS, NEGATIVE_PRICE, ENDLESS)),
        *(json.dumps({"version": 1, **each}).encode() for each in IMPOSSIBLE),
    ],
    ids=range(17),
)
def test_lines_that_are_no_results_are_counted(folder: BatchFolder, line: bytes) -> None:
    folder.results_file.write_bytes(line + b"\n\n")

    assert folder.read_results() == ({}, 1)


def test_an_error_of_the_infrastructure_is_tried_again_and_never_replaces_a_result(folder: BatchFolder) -> None:
    first, second = cells("x", "y")
    keep(folder, result(first, "infrastructure"), result(second), result(second, "infrastructure"))

    assert missing_cells([first, second], folder.read_results()[0]) == [first]
    keep(folder, result(first, "failed"))

    assert missing_cells([first, second], folder.read_results()[0]) == []


def test_a_full_disk_takes_the_half_line_back_and_says_what_to_do(folder: BatchFolder) -> None:
    first, second = cells("x", "y")
    keep(folder, result(first))
    before = folder.results_file.read_bytes()
    writer = LineWriter(folder.results_file)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, hard))
    try:
        with pytest.raises(BatchError, match=r"results\.jsonl cannot be written: File too large\. Make room"):
            writer.write({"version": 1, **asdict(result(second))})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        writer.close()

    assert folder.results_file.read_bytes() == before


def test_only_one_process_works_in_a_folder(folder: BatchFolder) -> None:
    with folder.lock():
        other = BatchFolder(folder.path)
        with pytest.raises(HandrailError, match="another handrail batch run works in"), other.lock():
            pass
    with folder.lock():
        pass


def test_what_all_attempts_of_a_cell_cost_is_known_from_its_last_line(folder: BatchFolder) -> None:
    (cell,) = cells("x")

    def end(log: AttemptLog, status: str, dollars: float | None) -> CellResult:
        attempt = log.begin(cell)
        return log.end(replace(result(cell, status), attempts=attempt.number, dollars=dollars))

    log = AttemptLog(folder, SEAL)
    end(log, "infrastructure", 0.25)
    end(log, "infrastructure", None)
    log.begin(cell)
    log.close()
    after_a_kill = AttemptLog(folder, SEAL)
    end(after_a_kill, "infrastructure", 0.5)
    last = end(after_a_kill, "solved", 1.0)
    after_a_kill.close()

    assert (last.attempts, last.dollars, last.lost_dollars, last.unpriced_attempts) == (5, 1.0, 0.75, 2)
    assert folder.read_results() == ({cell.key: last}, 0)
    begun = [json.loads(line) for line in folder.attempts_file.read_text().splitlines()]
    assert [each["attempt"] for each in begun] == [1, 2, 3, 4, 5]


def test_a_line_that_names_another_place_than_its_key_is_the_result_of_no_cell(folder: BatchFolder) -> None:
    first, second = cells("x", "y")
    folder.write_plan([first, second])
    planted = replace(result(first), key=second.key)
    keep(folder, planted)

    results, damaged = folder.read_results()

    assert missing_cells([first, second], results) == [first, second]
    assert current_results(results, folder.read_plan(), damaged).results == ()


def test_every_change_of_a_sealed_line_breaks_its_seal(folder: BatchFolder) -> None:
    (cell,) = cells("x")
    log = AttemptLog(folder, SEAL)
    log.end(result(cell, "failed"))
    log.close()
    line = json.loads(folder.results_file.read_text())
    assert folder.foreign_lines(SEAL) == []

    for name in line:
        changed = {**line, name: 7 if name == "seal" else "solved" if name == "status" else "x"}
        assert not SEAL.fits(changed), name
        assert not SEAL.fits({each: value for each, value in line.items() if each != name}), name
    assert folder.foreign_lines(Seal(b"other")) == folder.foreign_lines(Seal(b"")) == [1]


@pytest.mark.parametrize(
    "name", ["results.jsonl", "attempts.jsonl", "plan.json", "plan.draft", "work", "cassettes", "claims"]
)
@pytest.mark.parametrize("is_link", [True, False])
def test_links_and_pipes_that_came_with_a_folder_are_refused(tmp_path: Path, name: str, *, is_link: bool) -> None:
    folder, outside = BatchFolder(tmp_path / "out"), tmp_path / "outside"
    folder.path.mkdir()
    if is_link:
        (folder.path / name).symlink_to(outside)
    else:
        os.mkfifo(folder.path / name)

    for work in (folder.lock().__enter__, folder.read_results):
        with pytest.raises(HandrailError, match=f"{name} is not what a batch makes there"):
            work()
    assert not outside.exists()


def test_a_cell_that_changed_takes_the_place_of_the_old_one_and_other_runs_are_added(folder: BatchFolder) -> None:
    old, new, other = cells("x")[0], cells("z")[0], replace(cells("x")[0], model="other")
    folder.write_plan([old, other])
    folder.write_plan([new])
    keep(folder, result(old), result(other))
    results, damaged = folder.read_results()

    found = current_results(results, folder.read_plan(), damaged)

    assert found.results == (result(other),)
    assert (found.missing, found.replaced, found.damaged) == (1, 1, 0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"version": 1}', "cannot be read"),
        ('{"version": 1, "cells": [1]}', "cannot be read"),
        ('{"version": Infinity, "cells": []}', "cannot be read"),
        pytest.param("[" * 100_000, "cannot be read", id="deep"),
        (json.dumps({"version": 2, "cells": []}), "was written by a newer handrail"),
    ],
)
def test_a_plan_that_is_damaged_or_newer_is_refused(folder: BatchFolder, text: str, problem: str) -> None:
    (folder.path / "plan.json").write_text(text)

    with pytest.raises(HandrailError, match=problem):
        folder.read_plan()
