"""Shows Jupyter notebooks to the model: cells with their ids and outputs."""

import binascii
import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from handrail.builtin.read import images
from handrail.builtin.read.text import MAX_BYTES, LineRange, size
from handrail.conversation.blocks import Image, ResultBlock, Text
from handrail.errors import ToolError
from handrail.lazy import lazy_pattern
from handrail.tools.wording import several

MAX_FILE_BYTES = 100_000_000
MAX_OUTPUT = 10_000
MAX_PICTURES = 20
ESCAPES = lazy_pattern(r"\x1b\[[0-9;]*[A-Za-z]")


def cells_of(data: bytes, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The notebook and its cells."""
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ToolError(f"{name!r} is not a notebook: it is not JSON ({error}). Look at it with a program.") from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ToolError(f"{name!r} is not a notebook of format 4: it has no list of cells. Look at it with a program.")
    return notebook, cells


def cell_id(cell: dict[str, Any], index: int) -> str:
    """The id of a cell; older formats have none, so cells are numbered."""
    own = cell.get("id")
    return own if isinstance(own, str) and own else f"cell-{index}"


def join_lines(value: Any) -> str:
    """Join a text that the format stores as one string or a list of lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def show_notebook(data: bytes, wanted: LineRange, name: str) -> tuple[tuple[ResultBlock, ...], int, int]:
    """The blocks of the wanted cells, how many cells these are, and how many there are."""
    notebook, cells = cells_of(data, name)
    language = language_of(notebook)
    asked = list(enumerate(cells))[wanted.first - 1 :][: wanted.limit]
    blocks: list[ResultBlock] = []
    room, pictures, shown = MAX_BYTES, MAX_PICTURES, 0
    for index, cell in asked:
        parts = list(_cell(cell, index, language))
        needed = sum(size(block.text) for block in parts if isinstance(block, Text))
        if needed > room and shown:
            break
        if needed > room:
            parts = [Text(f"{parts[0].text[: MAX_BYTES // 4]}\n[cut]")] if isinstance(parts[0], Text) else []
        room -= needed
        shown += 1
        for block in parts:
            pictures -= isinstance(block, Image)
            if pictures >= 0 or isinstance(block, Text):
                blocks.append(block)
    upto = wanted.first + shown - 1
    if shown < len(asked):
        notice = f"PARTIAL: cells {wanted.first} to {upto} of {len(cells)}; read on with offset={upto + 1}."
        blocks.insert(0, Text(notice))
    if not blocks:
        blocks = [Text(f"{name} has {several(len(cells), 'cell')}, none of them from cell {wanted.first} on.")]
    return merge_texts(blocks), shown, len(cells)


def merge_texts(blocks: list[ResultBlock]) -> tuple[ResultBlock, ...]:
    """Merge neighbouring texts."""
    out: list[ResultBlock] = []
    for block in blocks:
        if isinstance(block, Text) and out and isinstance(out[-1], Text):
            out[-1] = Text(f"{out[-1].text}\n{block.text}")
        else:
            out.append(block)
    return tuple(out)


def language_of(notebook: dict[str, Any]) -> str:
    """The language of its code cells."""
    metadata = notebook.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else "python"


def _cell(cell: dict[str, Any], index: int, language: str) -> Iterator[ResultBlock]:
    kind = cell.get("cell_type")
    about = f' type="{kind}"' if kind != "code" else f' language="{language}"' if language != "python" else ""
    yield Text(f'<cell id="{cell_id(cell, index)}"{about}>\n{join_lines(cell.get("source"))}\n</cell>')
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict):
            yield from _output(output)


def _output(output: dict[str, Any]) -> Iterator[ResultBlock]:
    match output.get("output_type"):
        case "stream":
            text = join_lines(output.get("text"))
        case "error":
            trace = output.get("traceback")
            text = "\n".join(map(str, trace)) if isinstance(trace, list) else str(output.get("evalue", ""))
        case _:
            data = output.get("data")
            data = data if isinstance(data, dict) else {}
            yield from _pictures(data)
            text = (
                join_lines(data.get("text/plain"))
                or join_lines(data.get("text/markdown"))
                or join_lines(data.get("text/html"))
            )
    text = ESCAPES.sub("", text)
    if len(text) > MAX_OUTPUT:
        text = f"{text[:MAX_OUTPUT]}\n[{len(text) - MAX_OUTPUT:,} more characters]"
    if text:
        yield Text(f"<output>\n{text.removesuffix(chr(10))}\n</output>")


def _pictures(data: dict[str, Any]) -> Iterator[ResultBlock]:
    for kind in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        if encoded := join_lines(data.get(kind)):
            try:
                yield images.fit_image(b64decode(encoded), "output").block
            except (ToolError, binascii.Error) as error:
                yield Text(f"<output>\n[an image that cannot be shown: {error}]\n</output>")
            return
