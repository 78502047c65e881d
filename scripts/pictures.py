"""Draws the pictures of the docs from a real conversation: the program, a screen emulator, a scripted model."""

import asyncio
import sys
import tempfile
from html import escape
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.cli.test_run import variables  # noqa: E402
from tests.interactive import Conversing  # noqa: E402

from handrail.conversation.blocks import Text, ToolUse  # noqa: E402
from handrail.testing.model_server import ModelServer, Reply  # noqa: E402

COLOURS = {
    "default": "#d8dee9",
    "black": "#2e3440",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "yellow": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#d8dee9",
}
BACKGROUND = "#1e222a"
FONT = "ui-monospace, Menlo, Consolas, monospace"
CELL, ROW, EDGE = 8.4, 19, 16
ANSWER = """I found it: `total` skips the last item. The fix is one line:

1. use `range(len(items))`
2. run the tests again
"""
BUGGY = "def total(items):\n    return sum(items[i] for i in range(len(items) - 1))\n"


def svg(screen: pyte.Screen) -> str:
    """The screen as a picture that needs no font from elsewhere."""
    rows = [y for y in range(screen.lines) if any(screen.buffer[y][x].data.strip() for x in range(screen.columns))]
    last = max(rows, default=0)
    width, height = round(screen.columns * CELL) + 2 * EDGE, (last + 1) * ROW + 2 * EDGE
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" font-size="14">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
    ]
    for y in range(last + 1):
        lines += row_texts(screen, y)
    return "\n".join([*lines, "</svg>", ""])


def row_texts(screen: pyte.Screen, y: int) -> list[str]:
    """A row, one element for each run of equal colour."""
    found: list[str] = []
    x = 0
    while x < screen.columns:
        first = screen.buffer[y][x]
        end = x
        while end < screen.columns and screen.buffer[y][end][1:] == first[1:]:
            end += 1
        text = "".join(screen.buffer[y][at].data for at in range(x, end))
        if text.strip():
            colour = COLOURS.get(first.fg, f"#{first.fg}" if len(first.fg) == 6 else COLOURS["default"])
            weight = ' font-weight="bold"' if first.bold else ""
            found.append(
                f'<text x="{EDGE + x * CELL:.1f}" y="{EDGE + (y + 1) * ROW - 5}" fill="{colour}"{weight} '
                f'textLength="{len(text.rstrip()) * CELL:.1f}" xml:space="preserve">{escape(text.rstrip())}</text>'
            )
        x = end
    return found


async def conversation(folder: Path) -> str:
    """A prompt, an edit, and the question about a command."""
    file = folder / "total.py"
    file.write_text(BUGGY)
    change = {"old_string": "range(len(items) - 1)", "new_string": "range(len(items))"}
    replies = [
        Reply((ToolUse("t1", "Read", {"file_path": file.name}),)),
        Reply((Text(ANSWER), ToolUse("t2", "Edit", {"file_path": file.name, **change}))),
        Reply((ToolUse("t3", "Bash", {"command": "python -m pytest -q"}),)),
    ]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(
            folder,
            variables(server, folder),
            "Why does the last item not count?",
            "--permission-mode",
            "acceptEdits",
            columns=92,
            rows=44,
            real=True,
        ) as terminal,
    ):
        await terminal.until_asked()
        return svg(terminal.screen)


def main() -> None:
    pictures = ROOT / "docs" / "pictures"
    pictures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="shop-") as folder:
        (pictures / "terminal.svg").write_text(asyncio.run(conversation(Path(folder))))


if __name__ == "__main__":
    main()
