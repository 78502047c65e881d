"""NotebookEdit: one cell changes, every other byte stays."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Agent, Question
from handrail.builtin.notebook_edit import tool
from handrail.builtin.notebook_edit.cells import NotebookText
from handrail.builtin.notebook_edit.tool import NotebookEdit
from handrail.builtin.read.tool import Read
from handrail.builtin.services import ToolServices
from handrail.errors import ToolError
from handrail.files.diff import format_patch, make_hunks, split_lines
from handrail.files.restore import go_back
from handrail.testing import ScriptedModel, say, use
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Refuse

pytestmark = pytest.mark.anyio


def cell(name: str, source: Any, kind: str = "code", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": source}
    if kind == "code":
        made |= {"execution_count": 3, "outputs": [{"output_type": "stream", "text": ["x\n"]}]}
    return {key: made[key] for key in sorted(made)} | more


def book(*cells: Any, minor: int = 5) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {"note": "ü"}, "nbformat": 4, "nbformat_minor": minor}


PAGE = book(cell("a", ["one\n", "two"]), cell("b", ["# T"], "markdown"), cell("c", "x = 'é'"))


async def edit(ctx: ToolContext, services: ToolServices, source: str = "", *, read: bool = True, **given: Any) -> Any:
    """Read, validate, change; a refusal is given back as text."""
    given = {"notebook_path": "n.ipynb", "new_source": source, **given}
    if read:
        Read(services).call_blocking(Read(services).parse({"file_path": given["notebook_path"]}), ctx)
    tool = NotebookEdit(services)
    args = tool.parse(given)
    problem = await tool.validate(args, ctx)
    return problem.message if isinstance(problem, Refuse) else tool.call_blocking(args, ctx)


def save(ctx: ToolContext, notebook: Any, **how: Any) -> Path:
    path = ctx.cwd / "n.ipynb"
    path.write_text(json.dumps(notebook, **{"indent": 1, "ensure_ascii": False, **how}) + "\n")
    return path


@pytest.mark.proves("N9")
async def test_a_replaced_cell_loses_its_outputs_and_nothing_else_changes(
    ctx: ToolContext, services: ToolServices
) -> None:
    path = save(ctx, PAGE)

    output = await edit(ctx, services, "new\ncode", cell_id="a")

    wanted = book(cell("a", ["new\n", "code"], execution_count=None, outputs=[]), *PAGE["cells"][1:])
    assert path.read_text() == json.dumps(wanted, indent=1, ensure_ascii=False) + "\n"
    assert output.text == "Replaced cell a (code) of n.ipynb."
    assert output.data["cell_id"] == "a"
    assert any("new" in line for hunk in output.data["structuredPatch"] for line in hunk["lines"])
    assert output.card.body_kind == "diff"


async def asked_about(folder: Path, **given: Any) -> list[Question]:
    """The questions about a call of an agent that has read the notebook."""
    asked: list[Question] = []

    def can_use_tool(name: str, values: Any, question: Question) -> bool:
        asked.append(question)
        return True

    call = use("2", "NotebookEdit", notebook_path="n.ipynb", **given)
    model = ScriptedModel([[use("1", "Read", file_path="n.ipynb")], [call], [say("Done.")]])
    await Agent(model, can_use_tool=can_use_tool, cwd=folder, env={}).ask("Change it.")
    return asked


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"cell_id": "a", "new_source": "new\ncode"}, id="replace"),
        pytest.param({"cell_id": "a", "new_source": "# T", "cell_type": "markdown"}, id="another type"),
        pytest.param({"cell_id": "b", "new_source": "", "edit_mode": "delete"}, id="delete"),
    ],
)
async def test_the_question_shows_the_change_that_is_then_made(ctx: ToolContext, given: Any) -> None:
    path = save(ctx, PAGE)
    before = path.read_text()

    [question] = await asked_about(ctx.cwd, **given)

    assert path.read_text() != before
    assert question.diff == format_patch(make_hunks(split_lines(before), split_lines(path.read_text())))


async def test_the_question_about_a_new_cell_shows_it(ctx: ToolContext) -> None:
    save(ctx, PAGE)
    [question] = await asked_about(ctx.cwd, new_source="first", edit_mode="insert", cell_type="code")
    assert '+    "first"' in question.diff


@pytest.mark.parametrize(("old", "new"), [(2_000, 1), (1, 2_000)])
async def test_a_large_notebook_or_cell_is_not_compared_for_the_question(
    ctx: ToolContext, old: int, new: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "MAX_COMPARED", 1_000)
    save(ctx, book(cell("a", ["x" * old]), cell("b", ["y"])))
    [question] = await asked_about(ctx.cwd, cell_id="b", new_source="z" * new)
    assert question.diff == ""


async def test_a_change_that_a_diff_would_cut_is_asked_about_with_the_whole_cell(ctx: ToolContext) -> None:
    save(ctx, PAGE)
    [long_line] = await asked_about(ctx.cwd, cell_id="a", new_source="x" * 1_500)
    save(ctx, PAGE)
    [many_lines] = await asked_about(ctx.cwd, cell_id="a", new_source="x\n" * 1_500)
    save(ctx, book(cell("a", ["x" * 2_000]), cell("b", ["y"])), indent=None)  # the whole notebook is one line
    [one_line] = await asked_about(ctx.cwd, cell_id="b", new_source="z")

    assert [each.diff for each in (long_line, many_lines, one_line)] == [""] * 3
    assert one_line.input["new_source"] == "z"


async def test_a_cell_that_is_not_there_is_asked_about_without_a_change(ctx: ToolContext) -> None:
    save(ctx, PAGE)
    [question] = await asked_about(ctx.cwd, cell_id="nope", new_source="x")
    assert question.diff == ""


@pytest.mark.proves("N9")
async def test_a_cell_is_inserted_behind_another_or_first(ctx: ToolContext, services: ToolServices) -> None:
    path = save(ctx, PAGE)

    await edit(ctx, services, "# second", cell_id="a", edit_mode="insert", cell_type="markdown")
    output = await edit(ctx, services, "first", edit_mode="insert", cell_type="code", read=False)

    cells = json.loads(path.read_text())["cells"]
    assert [each["source"] for each in cells] == [["first"], ["one\n", "two"], ["# second"], ["# T"], "x = 'é'"]
    assert cells[0] == {
        "cell_type": "code",
        "execution_count": None,
        "id": output.data["cell_id"],
        "metadata": {},
        "outputs": [],
        "source": ["first"],
    }
    assert all(re.fullmatch("[0-9a-f]{8}", each["id"]) for each in (cells[0], cells[2]))
    assert path.read_text() == json.dumps(json.loads(path.read_text()), indent=1, ensure_ascii=False) + "\n"


@pytest.mark.proves("N9")
@pytest.mark.parametrize("name", ["a", "b", "c"])
async def test_a_cell_is_deleted(ctx: ToolContext, services: ToolServices, name: str) -> None:
    path = save(ctx, PAGE)

    await edit(ctx, services, cell_id=name, edit_mode="delete")

    wanted = book(*(each for each in PAGE["cells"] if each["id"] != name))
    assert path.read_text() == json.dumps(wanted, indent=1, ensure_ascii=False) + "\n"


async def test_a_cell_may_become_another_kind(ctx: ToolContext, services: ToolServices) -> None:
    path = save(ctx, PAGE)

    await edit(ctx, services, "# text", cell_id="a", cell_type="markdown")
    await edit(ctx, services, "code", cell_id="b", cell_type="code", read=False)

    first, second, _ = json.loads(path.read_text())["cells"]
    assert first == {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# text"]}
    assert second == cell("b", ["code"], execution_count=None, outputs=[])
    assert path.read_text() == json.dumps(json.loads(path.read_text()), indent=1, ensure_ascii=False) + "\n"


async def test_older_formats_have_no_ids_and_cells_are_counted(ctx: ToolContext, services: ToolServices) -> None:
    old = [{key: value for key, value in each.items() if key != "id"} for each in PAGE["cells"]]
    path = save(ctx, book(*old, minor=4))

    await edit(ctx, services, "# changed", cell_id="cell-1")
    output = await edit(ctx, services, "end", cell_id="cell-2", edit_mode="insert", cell_type="code", read=False)

    cells = json.loads(path.read_text())["cells"]
    assert [each["source"] for each in cells] == [["one\n", "two"], ["# changed"], "x = 'é'", ["end"]]
    assert output.data["cell_id"] == "cell-3"
    assert not any("id" in each for each in cells)


SOURCES = st.text('ab\n"\\é☃\u2028\t', max_size=12)
CELLS = st.lists(st.tuples(SOURCES, st.sampled_from(["code", "markdown"]), st.booleans()), min_size=1, max_size=4)


@pytest.mark.proves("R7")
@given(
    CELLS,
    SOURCES,
    st.data(),
    st.sampled_from([None, 1, 2, 4, "\t"]),
    st.booleans(),
    st.sampled_from([(", ", ": "), (",", ":")]),
)
def test_any_edit_is_the_edit_of_the_notebook_written_in_the_same_manner(
    made: list[tuple[str, str, bool]], source: str, data: st.DataObject, indent: Any, escaped: bool, compact: Any
) -> None:
    cells = [
        cell(f"id{number}", text if whole else text.splitlines(keepends=True), kind)
        for number, (text, kind, whole) in enumerate(made)
    ]
    style: dict[str, Any] = {"indent": indent, "ensure_ascii": escaped}
    if indent is None:
        style["separators"] = compact
    text = json.dumps(book(*cells), **style)
    sheet = NotebookText(text, "n")
    at = data.draw(st.integers(0, len(cells) - 1))
    mode = data.draw(st.sampled_from(["replace", "delete", "insert", "first"]))

    if mode == "replace":
        done = sheet.replace(at, source, None)
        old = cells[at]
        new = source if isinstance(old["source"], str) else source.splitlines(keepends=True)
        reset: dict[str, Any] = {"execution_count": None, "outputs": []} if old["cell_type"] == "code" else {}
        cells[at] = old | reset | {"source": new}
    elif mode == "delete":
        done = sheet.delete(at)
        del cells[at]
    else:
        done = sheet.insert(at if mode == "insert" else None, source, "code")
        new_cell = cell(done.cell, source.splitlines(keepends=True), execution_count=None, outputs=[])
        cells.insert(at + 1 if mode == "insert" else 0, new_cell)

    assert done.text == json.dumps(book(*cells), **style)


@pytest.mark.proves("R7")
async def test_odd_but_legal_files_keep_their_ways(ctx: ToolContext, services: ToolServices) -> None:
    path = ctx.cwd / "n.ipynb"
    head = b'\xef\xbb\xbf{ "nbformat":4,\r\n"nbformat_minor" :5, "cells": [ {"source":'
    tail = b' , "id":"x", "cell_type":"raw"} ] ,\r\n "metadata": {"b": 1.0e5, "b": "\\u00e9" } }  \r\n'
    path.write_bytes(head + b'["a"]' + tail)
    await edit(ctx, services, "n\nm", cell_id="x")
    assert path.read_bytes() == head + b'["n\\n", "m"]' + tail

    head, tail = b'{"cells":[{"cell_type":"code","id":"x"', b'}],"nbformat":4}'
    path.write_bytes(head + tail)
    await edit(ctx, services, "n", cell_id="x")
    assert path.read_bytes() == head + b',"source":["n"],"outputs":[],"execution_count":null' + tail


async def test_an_empty_notebook_gets_its_first_cell(ctx: ToolContext, services: ToolServices) -> None:
    path = save(ctx, book())

    output = await edit(ctx, services, "x", edit_mode="insert", cell_type="code")

    wanted = book(cell(output.data["cell_id"], ["x"], execution_count=None, outputs=[]))
    assert path.read_text() == json.dumps(wanted, indent=1, ensure_ascii=False) + "\n"
    await edit(ctx, services, cell_id=output.data["cell_id"], edit_mode="delete", read=False)
    assert path.read_text() == json.dumps(book(), indent=1, ensure_ascii=False) + "\n"


async def test_an_edit_can_be_undone(ctx: ToolContext, services: ToolServices) -> None:
    path = save(ctx, PAGE)
    before = path.read_bytes()
    await edit(ctx, services, "x", cell_id="a")
    assert path.read_bytes() != before

    assert services.undo
    go_back(services.undo.folder, 1)

    assert path.read_bytes() == before


# What keeps it from being done


async def test_what_is_missing_is_told(ctx: ToolContext, services: ToolServices) -> None:
    save(ctx, PAGE)

    assert "has not been read yet" in await edit(ctx, services, "x", cell_id="a", read=False)
    assert "is not a .ipynb file" in await edit(ctx, services, "x", cell_id="a", notebook_path="n.py", read=False)
    assert "does not exist" in await edit(ctx, services, "x", cell_id="a", notebook_path="no.ipynb", read=False)
    assert "give its cell_type" in await edit(ctx, services, "x", cell_id="a", edit_mode="insert")
    assert "say which cell to delete" in await edit(ctx, services, edit_mode="delete")
    for wrong in ("d", "cell-9", "cell-x"):
        with pytest.raises(ToolError, match=f"has no cell '{wrong}'; it has 3 cells.*Read it to see the ids"):
            await edit(ctx, services, "x", cell_id=wrong)


@pytest.mark.proves("J6")
async def test_a_notebook_that_changed_since_it_was_read_is_left_alone(
    ctx: ToolContext, services: ToolServices
) -> None:
    path = save(ctx, PAGE)
    Read(services).call_blocking(Read(services).parse({"file_path": "n.ipynb"}), ctx)
    save(ctx, book(cell("a", ["other"])))
    before = path.read_bytes()

    with pytest.raises(ToolError, match="has changed since you read it"):
        await edit(ctx, services, "x", cell_id="a", read=False)
    assert path.read_bytes() == before


async def test_half_a_character_is_refused(ctx: ToolContext, services: ToolServices) -> None:
    path = save(ctx, PAGE)
    before = path.read_bytes()

    with pytest.raises(ToolError, match="cannot be written"):
        await edit(ctx, services, "\ud800", cell_id="a")
    assert path.read_bytes() == before


async def test_it_is_loaded_on_demand_and_writes_one_file(run: RunContext, services: ToolServices) -> None:
    tool = NotebookEdit(services)
    args = tool.parse({"notebook_path": "n.ipynb", "new_source": ""})

    assert tool.should_defer
    assert not tool.always_load
    assert not tool.is_read_only(args)
    assert tool.access(args, run) == Access.of(writes="n.ipynb")
