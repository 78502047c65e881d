"""Read: text with line numbers, and nothing that could hang or flood."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from handrail.builtin import read
from handrail.builtin.read import MAX_CHARS, Read
from handrail.errors import ToolError
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext


def show(ctx: ToolContext, path: str, **rest: Any) -> str:
    tool = Read()
    return tool.call_blocking(tool.parse({"file_path": path, **rest}), ctx).text


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        pytest.param(b"one\ntwo\n", {}, "1\tone\n2\ttwo", id="lines with numbers"),
        pytest.param(b"one\ntwo", {}, "1\tone\n2\ttwo", id="no newline at the end"),
        pytest.param(b"\n\n", {}, "1\t\n2\t", id="empty lines"),
        pytest.param(b"a\nb\nc\nd", {"offset": 2, "limit": 2}, "2\tb\n3\tc", id="a part"),
        pytest.param(b"a\nb", {"offset": 0}, "1\ta\n2\tb", id="offset 0 is the start"),
        pytest.param(b"a\nb", {"offset": "2", "limit": "9"}, "2\tb", id="numeric strings"),
        pytest.param(b"", {}, "f exists and is empty.", id="an empty file"),
        pytest.param(b"a\nb", {"offset": 3}, "f has 2 lines, so there is nothing from line 3 on.", id="past the end"),
        pytest.param(b"caf\xe9\n", {}, "1\tcaf�", id="bytes that are no UTF-8"),
        pytest.param("snow ☃".encode(), {}, "1\tsnow ☃", id="UTF-8"),
    ],
)
def test_a_file_is_shown_line_by_line(ctx: ToolContext, content: bytes, options: dict[str, int], expected: str) -> None:
    (ctx.cwd / "f").write_bytes(content)

    assert show(ctx, "f", **options) == expected


def test_reading_is_remembered_by_the_real_path(ctx: ToolContext) -> None:
    (ctx.cwd / "f").write_bytes(b"one\n")
    (ctx.cwd / "link").symlink_to("f")

    tool = Read()
    output = tool.call_blocking(tool.parse({"file_path": "link"}), ctx)

    record = ctx.files.get(Path(os.path.realpath(ctx.cwd)) / "f")
    assert record is not None
    assert record.size == 4
    assert output.card == Card(title="Read link", detail="1 lines")


def test_what_cannot_be_read_is_told_with_the_next_move(ctx: ToolContext) -> None:
    (ctx.cwd / "folder").mkdir()
    (ctx.cwd / "binary").write_bytes(b"\x7fELF\0\0")
    (ctx.cwd / "loop").symlink_to("loop")

    for path, problem in [
        ("nowhere", "'nowhere' does not exist. Use Glob to find it."),
        ("folder", "'folder' is a folder. Use Glob with the pattern '*' to list it."),
        ("", "'' is a folder"),
        ("binary", "'binary' is a binary file of 6 bytes; Read shows text only."),
        ("loop", "'loop' cannot be read: Too many levels of symbolic links"),
        ("f" * 300, "cannot be read: File name too long"),
        ("nul\0", "'nul\\x00' cannot be a path: it holds what no file name can hold. Give the name of a file."),
        ("binary/x", "'binary/x' cannot be read: Not a directory"),
    ]:
        with pytest.raises(ToolError) as caught:
            show(ctx, path)
        assert problem in str(caught.value)


def test_a_file_in_a_closed_folder_is_told(ctx: ToolContext, closed: Path) -> None:
    with pytest.raises(ToolError, match="cannot be read: Permission denied"):
        show(ctx, str(closed / "inside"))


@pytest.mark.proves("R6")
def test_pipes_sockets_and_devices_are_not_opened(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(ctx.cwd / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(ctx.cwd)  # the path of a socket must be short
        listening.bind("socket")
        for path in ("pipe", "socket", "/dev/zero", "/dev/null"):
            with pytest.raises(ToolError, match="is a pipe, socket or device"):
                show(ctx, path)


def test_a_pipe_that_takes_the_place_of_a_file_does_not_hang_the_read(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ctx.cwd / "f"
    path.write_text("x")
    real_open = os.open

    def swap(name: Any, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return real_open(name, flags)

    monkeypatch.setattr(os, "open", swap)
    with pytest.raises(ToolError, match="is a pipe, socket or device"):
        show(ctx, "f")


def test_a_file_of_the_kernel_without_a_size_is_read(ctx: ToolContext) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc here")
    assert show(ctx, "/proc/self/status").startswith("1\tName:")


def test_a_file_that_is_too_big_is_refused(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_FILE_BYTES", 1000)
    (ctx.cwd / "fits").write_bytes(b"x" * 1000)
    (ctx.cwd / "big").write_bytes(b"x" * 1001)

    assert len(show(ctx, "fits")) == 1002
    with pytest.raises(ToolError, match="'big' has more than 1,000 bytes"):
        show(ctx, "big")


@pytest.mark.proves("R6", "I3")
def test_a_long_file_is_cut_with_a_notice_that_comes_first_and_leads_on(ctx: ToolContext) -> None:
    lines = [f"line {number} {'x' * 90}" for number in range(1, 5001)]
    (ctx.cwd / "long").write_text("\n".join(lines))

    seen: list[str] = []
    offset: int | None = 1
    while offset:
        notice, _, body = show(ctx, "long", offset=offset).rpartition("PARTIAL: ")[2].partition("\n")
        if "read on with offset=" in notice:
            offset = int(notice.partition("offset=")[2].rstrip("."))
        else:
            body, offset = f"{notice}\n{body}", None
        assert len(body) <= MAX_CHARS
        seen += [line.partition("\t")[2] for line in body.split("\n")]

    assert seen == lines


def test_a_huge_single_line_is_cut(ctx: ToolContext) -> None:
    (ctx.cwd / "wide").write_bytes(b"x" * 3_000_000 + b"\nnext")

    text = show(ctx, "wide")

    assert text.startswith("PARTIAL: line 1 alone has 3,000,000 characters, of which 100,000 follow.")
    assert len(text) < MAX_CHARS + 300
    assert show(ctx, "wide", offset=2) == "2\tnext"


def test_odd_names_can_be_read_and_told(ctx: ToolContext) -> None:
    name = os.fsdecode(b"a\nb\xff")
    (ctx.cwd / name).write_bytes(b"")

    tool = Read()
    output = tool.call_blocking(tool.parse({"file_path": name}), ctx)
    for block in tool.result_blocks(output):
        assert block.text.encode() == b"a\nb\\udcff exists and is empty."  # type: ignore[union-attr]  # it is a text


def test_it_declares_what_it_touches_and_that_it_only_reads(run: RunContext, ctx: ToolContext) -> None:
    tool = Read()
    (run.cwd / "link").symlink_to("real")
    args = tool.parse({"file_path": "link"})

    assert tool.is_read_only(args)
    assert tool.is_concurrency_safe(args)
    assert tool.access(args, run) == Access.of(reads=[os.path.realpath(run.cwd / "real")])
    assert tool.summary(args) == "Read(link)"
    assert tool.max_result_chars is None
    for odd in ("nul\0", "x" * 5000):
        assert tool.access(tool.parse({"file_path": odd}), run).writes == frozenset()
