"""
The cells of a batch: each task with each model, each settings file and each trial.

A cell is known by a key, the hash of all that defines it. What has a result under its key is not run again.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from handrail import __version__
from handrail.batch.tasks import BatchTask
from handrail.records import record

DEFAULT = "default"
"""The name of a model or of settings that no flag names."""


@record
class CellSettings:
    """A file of settings: its name in reports, its path, and the hash of its content; no path = none was given."""

    name: str = DEFAULT
    path: str = ""
    digest: str = ""


@record
class CellLimits:
    """What a cell may use, and whether the settings of its folder count."""

    turns: int | None = None
    dollars: float | None = None
    seconds: float = 3600.0
    trust: bool = False
    replay: bool = False


@record
class Cell:
    """
    One run: a task, under a model and settings, for the n-th time.

    `content` is the hash of the task's folder, `user_config` that of the user's own configuration.
    """

    task: BatchTask
    content: str
    model: str
    settings: CellSettings
    trial: int
    limits: CellLimits
    user_config: str = ""

    @property
    def place(self) -> tuple[str, str, str, int]:
        """Its place in the table of results, which stays when its content changes."""
        return self.task.id, self.model or DEFAULT, self.settings.name, self.trial

    @property
    def key(self) -> str:
        """The hash of all that defines it; where the folder lies and the tags do not."""
        task = self.task.model_dump(exclude={"tags", "folder", "model", "max_turns"})
        names = (self.content, self.model, self.settings.name, self.settings.digest, self.trial, self.user_config)
        defines = (task, names, asdict(self.limits), __version__)
        return hashlib.sha256(json.dumps(defines, sort_keys=True).encode()).hexdigest()


@record
class CellAttempt:
    """The n-th try to run a cell, as a session of its own; what ended before by no fault of the agent is a try too."""

    cell: Cell
    number: int
    session: str


@record
class Matrix:
    """What each task is run with."""

    models: Sequence[str] = ("",)
    settings: Sequence[CellSettings] = (CellSettings(),)
    trials: int = 1
    limits: CellLimits = CellLimits()
    user_config: str = ""


def plan_cells(tasks: Sequence[BatchTask], matrix: Matrix, contents: Mapping[str, str]) -> list[Cell]:
    """All cells, the first trial of everything first; `contents` are the hashes of the tasks' folders by task id."""
    return [
        Cell(
            task,
            contents.get(task.id, ""),
            model,
            settings,
            trial,
            _limits_of(task, matrix.limits),
            matrix.user_config,
        )
        for trial in range(1, matrix.trials + 1)
        for settings in matrix.settings
        for task in tasks
        for model in ([task.model] if task.model else matrix.models)
    ]


def _limits_of(task: BatchTask, limits: CellLimits) -> CellLimits:
    return replace(limits, turns=task.max_turns) if task.max_turns else limits


def settings_files(paths: Sequence[str]) -> Iterator[CellSettings]:
    """The files, named by their stem where that is clear; OSError if one cannot be read."""
    stems = [Path(path).stem for path in paths]
    for path, stem in zip(paths, stems, strict=True):
        name = stem if stems.count(stem) == 1 and stem != DEFAULT else path
        yield CellSettings(name, str(Path(path).absolute()), settings_digest(path))


def settings_digest(path: str) -> str:
    """The hash of a file; OSError if it cannot be read."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
