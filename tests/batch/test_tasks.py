"""Files of tasks: what is read, and what is said about mistakes."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.batch.cells import CellSettings, Matrix, plan_cells, settings_files
from handrail.batch.tasks import MAX_PROMPT, BatchTask, Revision, TaskProblem, is_inside, read_tasks

ONCE = Matrix()
HELLO = {"id": "hello", "prompt": "Say hello."}


def written(folder: Path, *lines: dict[str, Any] | bytes) -> Path:
    file = folder / "tasks.jsonl"
    file.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return file


def test_folders_are_relative_to_the_file_and_blank_lines_and_marks_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    commit = {"repository": "shop", "revision": "v1"}
    file = written(
        tmp_path,
        b"\xef\xbb\xbf" + json.dumps({**HELLO, "folder": "shop"}).encode() + b"\r",
        b"  ",
        {**HELLO, "id": "old", "folder": commit, "tags": ["git"], "max_turns": 3},
    )

    tasks, problems = read_tasks(file)

    assert problems == []
    assert [task.folder for task in tasks] == [
        str(tmp_path / "shop"),
        Revision(repository=str(tmp_path / "shop"), revision="v1"),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param(b"{", "It is not JSON:", id="no JSON"),
        pytest.param(b"[]", "It is not a JSON object.", id="no object"),
        pytest.param(b'{"id": "\xff"}', "It is not UTF-8 (byte 9).", id="no text"),
        pytest.param(b"\x00\x01\x02\xfe", "It is not UTF-8 (byte 4).", id="binary"),
        pytest.param(b"[" * 100_000, "It is not JSON:", id="too deep"),
        pytest.param({"prompt": "x"}, "The required field 'id' is missing.", id="no id"),
        pytest.param({**HELLO, "folder": "~no-such-user/x"}, "There is no folder", id="home of no one"),
        pytest.param({**HELLO, "model": "a\0b"}, "The model holds a NUL character.", id="NUL in a model"),
        pytest.param(
            {**HELLO, "folder": {"repository": "/", "revision": "a\0b"}}, "The revision", id="NUL in a revision"
        ),
        pytest.param({**HELLO, "promt": "x"}, "Did you mean 'prompt'?", id="a slip"),
        pytest.param({**HELLO, "id": "a/b"}, "The id 'a/b' cannot be one.", id="an id that is a path"),
        pytest.param({**HELLO, "id": "x" * 101}, "cannot be one. Use up to 100 letters", id="a long id"),
        pytest.param({**HELLO, "prompt": " "}, "The prompt is empty.", id="no prompt"),
        pytest.param({**HELLO, "prompt": "x" * (MAX_PROMPT + 1)}, "longer than 10,000,000 bytes", id="a huge prompt"),
        pytest.param({**HELLO, "prompt": "\ud800"}, "It holds half a character", id="half a character"),
        pytest.param({**HELLO, "folder": "gone"}, "There is no folder", id="no folder"),
        pytest.param({**HELLO, "folder": {"repository": "gone"}}, "not a folder of this machine.", id="no repository"),
        pytest.param(
            {**HELLO, "folder": {"repository": ".", "revision": "--upload-pack=x"}},
            "The revision '--upload-pack=x' cannot be one.",
            id="a revision that is an option",
        ),
        pytest.param({**HELLO, "files": {"../a": ""}}, "The name '../a' in files leads out", id="a file outside"),
        pytest.param({**HELLO, "files": {"/a": ""}}, "The name '/a' in files leads out", id="an absolute file"),
        pytest.param(
            {**HELLO, "check_files": {"a": ""}}, "There are check_files and no check.", id="files for nothing"
        ),
        pytest.param({**HELLO, "check": "a\0b"}, "The check holds a NUL character.", id="a NUL in the check"),
        pytest.param({**HELLO, "max_turns": 0}, "The field 'max_turns' is wrong:", id="no turns"),
    ],
)
def test_a_mistake_is_named_with_its_line(line: Any, problem: str, tmp_path: Path) -> None:
    _, problems = read_tasks(written(tmp_path, {**HELLO, "id": "first"}, line))

    assert [each.line for each in problems] == [2]
    assert problem in problems[0].text


def test_an_empty_file_and_a_second_task_of_the_same_id_are_refused(tmp_path: Path) -> None:
    assert read_tasks(written(tmp_path, b"\n"))[1][0].line == 0
    assert read_tasks(written(tmp_path, HELLO, HELLO))[1] == [
        TaskProblem(2, "The id 'hello' is that of line 1 already. Give another.")
    ]


@pytest.mark.parametrize("name", ["", ".", "a/../../b", "..", "/etc/passwd", "a\0b"])
def test_names_that_lead_out_are_not_inside(name: str) -> None:
    assert not is_inside(name)


def test_the_first_trial_of_everything_comes_first_and_a_task_can_name_its_model() -> None:
    tasks = [BatchTask(id="a", prompt="x"), BatchTask(id="b", prompt="y", model="own")]

    cells = plan_cells(tasks, Matrix(("m1", "m2"), trials=2), {})

    assert [cell.place for cell in cells] == [
        (task, model, "default", trial) for trial in (1, 2) for task, model in (("a", "m1"), ("a", "m2"), ("b", "own"))
    ]


def test_a_key_depends_on_everything_that_defines_a_cell_and_on_nothing_else(tmp_path: Path) -> None:
    def key(matrix: Matrix = ONCE, content: str = "1", **fields: Any) -> str:
        task = BatchTask(**{"id": "a", "prompt": "x", **fields})
        return plan_cells([task], matrix, {"a": content})[0].key

    (tmp_path / "strict.json").write_text("{}")
    (settings,) = settings_files([str(tmp_path / "strict.json")])
    changed = [
        key(prompt="y"),
        key(check="true"),
        key(files={"a": "b"}),
        key(check_files={"a": "b"}),
        key(content="2"),
        key(model="m"),
        key(max_turns=2),
        key(Matrix(settings=(settings,))),
        key(Matrix(settings=(CellSettings("strict", settings.path, "other content"),))),
    ]

    assert len({key(), *changed}) == len(changed) + 1
    assert key() == key(tags=["x"]) == key(folder="elsewhere, with the same content")


def test_settings_are_named_by_their_stem_or_by_their_path_where_two_have_the_same(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a/strict.json", "b/strict.json", "wide.json", "default.json")]
    for path in map(Path, paths):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")

    assert [each.name for each in settings_files(paths)] == [paths[0], paths[1], "wide", paths[3]]
