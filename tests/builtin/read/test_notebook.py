"""Notebooks: cells under their ids, with what they put out."""

import json
from base64 import b64encode
from io import BytesIO
from typing import Any

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.read import notebook
from handrail.builtin.read.text import MAX_BYTES, LineRange
from handrail.builtin.read.tool import Read
from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Image, ResultBlock, Text
from handrail.errors import ToolError
from handrail.tools.context import ToolContext


def png() -> str:
    out = BytesIO()
    PIL.Image.new("RGB", (3, 2)).save(out, "PNG")
    return b64encode(out.getvalue()).decode()


def code(source: Any, *outputs: Any, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), **more}


def read(ctx: ToolContext, services: ToolServices, cells: list[Any], **rest: Any) -> tuple[ResultBlock, ...]:
    (ctx.cwd / "n.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}))
    tool = Read(services)
    return tool.result_blocks(tool.call_blocking(tool.parse({"file_path": "n.ipynb", **rest}), ctx))


@pytest.mark.proves("N3")
def test_cells_come_with_their_ids_and_outputs(ctx: ToolContext, services: ToolServices) -> None:
    cells = [
        {"cell_type": "markdown", "id": "intro", "source": ["# Title\n", "text"]},
        code(
            "print(1)\n2", {"output_type": "stream", "text": ["1\n"]}, {"output_type": "x", "data": {"text/plain": "2"}}
        ),
        code("plot()", {"output_type": "display_data", "data": {"image/png": png(), "text/plain": "<Figure>"}}, id="p"),
        code("1/0", {"output_type": "error", "traceback": ["\x1b[31mZeroDivisionError\x1b[0m", "line 1"]}, id="z"),
    ]

    before, picture, after = read(ctx, services, cells)

    assert before == Text(
        '<cell id="intro" type="markdown">\n# Title\ntext\n</cell>\n'
        '<cell id="cell-1">\nprint(1)\n2\n</cell>\n<output>\n1\n</output>\n<output>\n2\n</output>\n'
        '<cell id="p">\nplot()\n</cell>'
    )
    assert picture == Image(png(), "image/png")
    assert after == Text(
        '<output>\n<Figure>\n</output>\n<cell id="z">\n1/0\n</cell>\n<output>\nZeroDivisionError\nline 1\n</output>'
    )


@pytest.mark.proves("R6", "I8")
def test_a_large_notebook_comes_in_parts_of_whole_cells(ctx: ToolContext, services: ToolServices) -> None:
    cells = [code(f"cell {number} " + "x" * 9_000) for number in range(1, 31)]

    seen, offset = [], 1
    while offset:
        [block] = read(ctx, services, cells, offset=offset)
        assert isinstance(block, Text)
        assert len(block.text) < MAX_BYTES + 500
        seen += [int(line.split()[1]) for line in block.text.split("\n") if line.startswith("cell ")]
        notice = block.text.partition("\n")[0]
        offset = int(notice.partition("offset=")[2].rstrip(".") or 0) if notice.startswith("PARTIAL") else 0

    assert seen == list(range(1, 31))
    [block] = read(ctx, services, cells, offset=3, limit=1)
    assert isinstance(block, Text)
    assert block.text.startswith('<cell id="cell-2">\ncell 3 ')
    assert read(ctx, services, cells, offset=99) == (Text("n.ipynb has 30 cells, none of them from cell 99 on."),)


@pytest.mark.proves("R6")
def test_long_outputs_and_many_pictures_are_bounded(ctx: ToolContext, services: ToolServices) -> None:
    many = [{"output_type": "display_data", "data": {"image/png": png()}} for _ in range(30)]
    blocks = read(ctx, services, [code("x", {"output_type": "stream", "text": "y" * 50_000}), code("z", *many)])

    assert sum(isinstance(block, Image) for block in blocks) == notebook.MAX_PICTURES
    [text, *_] = blocks
    assert isinstance(text, Text)
    assert "[40,000 more characters]" in text.text
    huge = read(ctx, services, [code("x" * 3 * MAX_BYTES)])
    assert sum(len(block.text) for block in huge if isinstance(block, Text)) < MAX_BYTES


def test_what_is_no_notebook_is_told(ctx: ToolContext, services: ToolServices) -> None:
    tool = Read(services)
    for content, told in [
        ("{", "is not a notebook: it is not JSON"),
        ("[" * 100_000, "is not a notebook: it is not JSON"),
        ("[]", "it has no list of cells"),
        ('{"worksheets": []}', "is not a notebook of format 4"),
        ('{"cells": [1]}', "it has no list of cells"),
    ]:
        (ctx.cwd / "n.ipynb").write_text(content)
        with pytest.raises(ToolError, match=told):
            tool.call_blocking(tool.parse({"file_path": "n.ipynb"}), ctx)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["source", "outputs", "data", "image/png", "text", "output_type", "id"]), inner
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.sampled_from(["cell_type", "source", "outputs", "id"]), JSON), max_size=3))
def test_any_cells_are_shown_somehow(cells: list[Any]) -> None:
    blocks, shown, total = notebook.show_notebook(json.dumps({"cells": cells}).encode(), LineRange(), "n")

    assert blocks
    assert shown == total == len(cells)
