"""
The tasks of a file, one JSON object per line:

    {"id": "discount", "prompt": "Repair prices.py.", "folder": "shop", "check": "python -m unittest -q"}

All that is wrong with the file is found at once, each problem with its line.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from handrail.errors import InputError
from handrail.records import record
from handrail.tools.schema import parse_model

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
FORM = '{"id": "hello", "prompt": "Say hello."}'
MAX_PROMPT = 10_000_000
"""Bytes that `handrail -p` reads."""


class _TaskPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Revision(_TaskPart):
    """A commit of a git repository on this machine."""

    repository: str
    revision: str = "HEAD"


class BatchTask(_TaskPart):
    """What an agent is to do, where, and the command that says whether it did."""

    id: str
    prompt: str
    folder: str | Revision = ""
    files: dict[str, str] = {}
    check: str = ""
    check_files: dict[str, str] = {}
    tags: list[str] = []
    model: str = ""
    max_turns: Annotated[int, Field(gt=0)] | None = None


@record
class TaskProblem:
    """What is wrong in a line of the file; line 0 is the file itself."""

    line: int
    text: str


def read_tasks(file: Path) -> tuple[list[BatchTask], list[TaskProblem]]:
    """The tasks of a file with their folders made absolute, and all problems. Raises OSError if it cannot be read."""
    tasks: list[BatchTask] = []
    problems: list[TaskProblem] = []
    lines_of_ids: dict[str, int] = {}
    for number, line in enumerate(file.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if not line.strip():
            continue
        task = _read_line(line)
        if isinstance(task, str):
            problems += [TaskProblem(number, sentence) for sentence in task.splitlines()]
            continue
        task = _with_absolute_folder(task, file.absolute().parent)
        problems += [TaskProblem(number, sentence) for sentence in _mistakes(task)]
        if first := lines_of_ids.get(task.id):
            problems.append(TaskProblem(number, f"The id {task.id!r} is that of line {first} already. Give another."))
        lines_of_ids.setdefault(task.id, number)
        tasks.append(task)
    if not tasks and not problems:
        problems.append(
            TaskProblem(0, 'It holds no tasks. Write one per line: {"id": "hello", "prompt": "Say hello."}')
        )
    return tasks, problems


def _read_line(line: bytes) -> BatchTask | str:
    """The task of a line, or what is wrong with it, a sentence per line."""
    try:
        value: Any = json.loads(line.decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        return f"It is not UTF-8 (byte {error.start + 1}). Save the file in UTF-8."
    except UnicodeEncodeError:
        return "It holds half a character (a lone surrogate, \\ud800 to \\udfff). Write whole ones."
    except (ValueError, RecursionError) as error:
        return f"It is not JSON: {error}. Write one object per line."
    if not isinstance(value, dict):
        return f"It is not a JSON object. Write one per line: {FORM}"
    try:
        return parse_model(BatchTask, value)
    except InputError as error:
        return str(error)


def _with_absolute_folder(task: BatchTask, base: Path) -> BatchTask:
    match task.folder:
        case Revision(repository=repository) as commit if repository:
            found: str | Revision = commit.model_copy(update={"repository": _absolute(base, repository)})
        case str() as folder if folder:
            found = _absolute(base, folder)
        case nowhere:
            found = nowhere
    return task.model_copy(update={"folder": found})


def _absolute(base: Path, path: str) -> str:
    return str(base / os.path.expanduser(path))  # noqa: PTH111  # the home of an unknown user stays as written


def _mistakes(task: BatchTask) -> Iterator[str]:
    if not ID.fullmatch(task.id):
        yield f"The id {task.id!r} cannot be one. Use up to 100 letters, digits, dots, dashes and underscores."
    if not task.prompt.strip():
        yield "The prompt is empty. Say what is to be done."
    if len(task.prompt.encode()) > MAX_PROMPT:
        yield f"The prompt is longer than {MAX_PROMPT:,} bytes. Put the text into a file of the task."
    yield from _folder_mistakes(task.folder)
    for field, names in (("files", task.files), ("check_files", task.check_files)):
        for name in filter(lambda name: not is_inside(name), names):
            yield f"The name {name!r} in {field} leads out of the folder, or is none. Give a relative path of a file."
    if "\0" in task.check:
        yield "The check holds a NUL character. Give a command line."
    if "\0" in task.model:
        yield "The model holds a NUL character. Give the name of a model."
    if task.check_files and not task.check.strip():
        yield "There are check_files and no check. Give the command that uses them."


def _folder_mistakes(folder: str | Revision) -> Iterator[str]:
    if isinstance(folder, str):
        if folder and not Path(folder).is_dir():
            yield f"There is no folder {folder!r}. Paths are relative to the folder of the file."
        return
    if not folder.repository or not Path(folder.repository).is_dir():
        yield f"The repository {folder.repository!r} is not a folder of this machine. Clone it, and name the clone."
    if not folder.revision.strip() or folder.revision.startswith("-") or "\0" in folder.revision:
        yield f"The revision {folder.revision!r} cannot be one. Give a commit, a branch or a tag."


def is_inside(name: str) -> bool:
    """Whether a name is that of a file below the folder it is relative to."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name
