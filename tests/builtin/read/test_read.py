"""Read: text with line numbers, and nothing that could hang or flood."""

import os
import socket
import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builtin.conftest import hiding

from handrail.builtin.read.text import MAX_BYTES, LineRange
from handrail.builtin.read.text import show_lines as lines_of
from handrail.builtin.read.tool import Read
from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text
from handrail.dispatch.footprint import footprint
from handrail.errors import ToolError
from handrail.files.paths import resolve
from handrail.files.source import FileSource
from handrail.files.text import Encoding
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Decision, Verdict


def show(ctx: ToolContext, services: ToolServices, path: str, **rest: Any) -> str:
    tool = Read(services)
    return tool.call_blocking(tool.parse({"file_path": path, **rest}), ctx).text


@pytest.mark.proves("I3", "N3", "I8")
@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        pytest.param(b"one\ntwo\n", {}, "1\tone\n2\ttwo", id="lines with numbers"),
        pytest.param(b"one\ntwo", {}, "1\tone\n2\ttwo", id="no newline at the end"),
        pytest.param(b"one\r\ntwo\r\n", {}, "1\tone\n2\ttwo", id="pairs of return and line feed"),
        pytest.param(b"one\rtwo\r", {}, "1\tone\n2\ttwo", id="returns alone"),
        pytest.param(b"\n\n", {}, "1\t\n2\t", id="empty lines"),
        pytest.param(b"a\nb\nc\nd", {"offset": 2, "limit": 2}, "2\tb\n3\tc", id="a part"),
        pytest.param(b"a\nb\nc\n", {"offset": 3, "limit": 2}, "3\tc", id="the last line"),
        pytest.param(b"a\nb", {"offset": 0}, "1\ta\n2\tb", id="offset 0 is the start"),
        pytest.param(b"a\nb", {"offset": "2", "limit": "9"}, "2\tb", id="numeric strings"),
        pytest.param(b"", {}, "f exists and is empty.", id="an empty file"),
        pytest.param(b"\xef\xbb\xbf", {}, "f exists and is empty.", id="nothing but a mark"),
        pytest.param(b"a\nb", {"offset": 3}, "f has 2 lines, so there is nothing from line 3 on.", id="past the end"),
        pytest.param(b"caf\xe9\n", {}, "1\tcafé", id="an old encoding"),
        pytest.param("snow ☃".encode(), {}, "1\tsnow ☃", id="UTF-8"),
        pytest.param(b"\xef\xbb\xbfone\n", {}, "1\tone", id="UTF-8 with a mark"),
        pytest.param("ä\nb\n".encode("utf-16"), {"offset": 2}, "2\tb", id="UTF-16"),
        pytest.param("日本語\nテキスト\n".encode("cp932"), {"offset": 2}, "2\tテキスト", id="Shift-JIS"),
    ],
)
def test_a_file_is_shown_line_by_line(
    ctx: ToolContext, services: ToolServices, content: bytes, options: dict[str, int], expected: str
) -> None:
    (ctx.cwd / "f").write_bytes(content)

    assert show(ctx, services, "f", **options) == expected


@given(
    st.lists(st.text("ab é☃", max_size=6), min_size=1, max_size=30),
    st.sampled_from([Encoding(), Encoding("utf-16-le", b"\xff\xfe"), Encoding("utf-16-be"), Encoding("utf-32-le")]),
    st.integers(1, 32),
    st.none() | st.integers(1, 32),
    st.booleans(),
)
def test_any_part_of_any_text_is_what_splitting_gives(
    lines: list[str], encoding: Encoding, first: int, limit: int | None, ended: bool
) -> None:
    text = "\n".join(lines) + ("\n" if ended else "")
    whole = text.removesuffix("\n").split("\n") if text else []
    wanted = [f"{number}\t{line}" for number, line in enumerate(whole, 1)][first - 1 :][:limit]

    data = encoding.mark + text.encode(encoding.name)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        in_steps = FileSource(file.fileno(), len(data), whole=-1, step=8)  # as if it were too large to be held
        for source in (FileSource.of(data), in_steps):
            part = lines_of(source, encoding, LineRange(first, limit), "f")
            assert part.total == len(whole)
            assert part.text == "\n".join(wanted) or not wanted
            assert part.lines == len(wanted)


@pytest.mark.proves("I3")
@given(
    st.lists(
        st.sampled_from((b"a", b"\r", b"\n", b"\r\n", b"\xc3", b"\xa9", b"\xff", b"\xe2\x98\x83", b" ")), max_size=30
    ),
    st.sampled_from((b"", b"\xef\xbb\xbf")),
    st.integers(0, 12),
    st.none() | st.integers(1, 12),
)
def test_a_small_text_is_shown_as_the_same_text_in_steps_also_with_broken_characters(
    parts: list[bytes], mark: bytes, offset: int, limit: int | None
) -> None:
    data, encoding, wanted = mark + b"".join(parts), Encoding("utf-8", mark), LineRange(offset, limit)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        in_steps = FileSource(file.fileno(), len(data), whole=-1, step=8)

        assert lines_of(FileSource.of(data), encoding, wanted, "f") == lines_of(in_steps, encoding, wanted, "f")


def test_reading_is_remembered_by_the_real_path(ctx: ToolContext, services: ToolServices) -> None:
    (ctx.cwd / "f").write_bytes(b"one\n")
    (ctx.cwd / "link").symlink_to("f")

    tool = Read(services)
    output = tool.call_blocking(tool.parse({"file_path": "link"}), ctx)

    record = ctx.files.get(Path(os.path.realpath(ctx.cwd)) / "f")
    assert record is not None
    assert record.size == 4
    assert output.card == Card(title="Read link", detail="1 line")
    about = {"filePath": str(ctx.cwd / "link"), "content": "one", "numLines": 1, "startLine": 1, "totalLines": 1}
    assert output.data == {"type": "text", "file": about}


@pytest.mark.parametrize(
    ("options", "content"),
    [
        ({"offset": 2, "limit": 2}, "two\n"),
        ({"offset": 3}, "\nfour"),
        ({"offset": 9}, ""),
    ],
)
def test_programs_get_the_lines_without_numbers(
    ctx: ToolContext, services: ToolServices, options: dict[str, int], content: str
) -> None:
    (ctx.cwd / "f").write_bytes(b"one\r\ntwo\r\n\r\nfour")

    tool = Read(services)
    output = tool.call_blocking(tool.parse({"file_path": "f", **options}), ctx)

    assert output.data["file"]["content"] == content


def test_programs_get_of_a_long_file_what_is_shown(ctx: ToolContext, services: ToolServices) -> None:
    lines = [f"line {number} {'x' * 90}" for number in range(5000)]
    (ctx.cwd / "long").write_text("\n".join(lines))

    tool = Read(services)
    file = tool.call_blocking(tool.parse({"file_path": "long"}), ctx).data["file"]

    assert file["content"].split("\n") == lines[: file["numLines"]]
    assert 0 < file["numLines"] < file["totalLines"] == 5000


def test_what_cannot_be_read_is_told_with_the_next_move(ctx: ToolContext, services: ToolServices) -> None:
    (ctx.cwd / "folder").mkdir()
    (ctx.cwd / "settings.json").write_text("{}")
    (ctx.cwd / "binary").write_bytes(b"\x7fELF\0\0\1\2\3\0\0")
    (ctx.cwd / "loop").symlink_to("loop")
    (ctx.cwd / "broken").symlink_to("nowhere")

    for path, problem in [
        ("nothing", "'nothing' does not exist. Use Glob to find it."),
        ("setings.json", "'setings.json' does not exist. Did you mean 'settings.json' in the same folder?"),
        ("broken", "'broken' does not exist."),
        ("no/such", "does not exist. Its folder"),
        ("folder", "'folder' is a folder. List it with Glob: give it as path and no pattern."),
        ("", "'' is a folder"),
        ("binary", "'binary' is a binary file of 11 bytes; Read shows text, images, PDFs and notebooks."),
        ("loop", "'loop' cannot be read: Too many levels of symbolic links"),
        ("f" * 300, "cannot be read: File name too long"),
        ("nul\0", "'nul\\x00' cannot be a path: it holds what no file name can hold. Give the name of a file."),
        ("binary/x", "'binary/x' does not exist"),
    ]:
        with pytest.raises(ToolError) as caught:
            show(ctx, services, path)
        assert problem in str(caught.value), path


def test_names_that_a_rule_hides_or_that_lie_elsewhere_are_not_suggested(
    ctx: ToolContext, services: ToolServices, tmp_path: Path
) -> None:
    (ctx.cwd / "secret.env").write_text("")
    (tmp_path / "other.txt").write_text("")
    careful = replace(services, hidden_files=hiding(lambda path: "secret" in path))

    for path in ("secret.en", str(tmp_path / "other.tx")):
        with pytest.raises(ToolError, match=r"does not exist\. Use Glob"):
            show(ctx, careful, path)


def test_a_file_in_a_closed_folder_is_told(ctx: ToolContext, services: ToolServices, closed: Path) -> None:
    with pytest.raises(ToolError, match="cannot be read: Permission denied"):
        show(ctx, services, str(closed / "inside"))


def test_pipes_sockets_and_devices_are_refused_at_once(
    ctx: ToolContext, services: ToolServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(ctx.cwd / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(ctx.cwd)  # the path of a socket must be short
        listening.bind("socket")
        for path in ("pipe", "socket", "/dev/zero", "/dev/null"):
            with pytest.raises(ToolError, match="is a pipe, socket or device"):
                show(ctx, services, path)


def test_what_took_the_place_of_the_file_since_the_decision_is_refused(
    ctx: ToolContext, services: ToolServices, tmp_path: Path
) -> None:
    path = ctx.cwd / "f"
    path.write_text("x")
    decided = ctx.replace(decision=Decision(Verdict.ALLOW, "", places=(resolve("f", str(ctx.cwd), ""),)))
    path.unlink()

    os.mkfifo(path)
    with pytest.raises(ToolError, match="is a pipe, socket or device"):
        show(decided, services, "f")
    path.unlink()
    (tmp_path / "secret").write_text("hunter2")
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(ToolError, match="is a link now"):
        show(decided, services, "f")


def test_a_file_of_the_kernel_without_a_size_is_read(ctx: ToolContext, services: ToolServices) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc here")
    assert show(ctx, services, "/proc/self/status").startswith("1\tName:")


# Bounds


@pytest.mark.proves("R6", "I3", "I8")
def test_a_long_file_is_cut_with_a_notice_that_comes_first_and_leads_on(
    ctx: ToolContext, services: ToolServices
) -> None:
    lines = [f"line {number} {'x' * 90}" for number in range(1, 5001)]
    (ctx.cwd / "long").write_text("\n".join(lines))

    seen: list[str] = []
    offset: int | None = 1
    while offset:
        notice, _, body = show(ctx, services, "long", offset=offset).rpartition("PARTIAL: ")[2].partition("\n")
        if "read on with offset=" in notice:
            offset = int(notice.partition("offset=")[2].rstrip("."))
        else:
            body, offset = f"{notice}\n{body}", None
        assert len(body) <= MAX_BYTES
        seen += [line.partition("\t")[2] for line in body.split("\n")]

    assert seen == lines


@pytest.mark.proves("I8")
def test_a_range_that_is_too_much_is_refused_with_one_that_fits(ctx: ToolContext, services: ToolServices) -> None:
    (ctx.cwd / "long").write_text("".join(f"{number} {'é' * 100}\n" for number in range(5000)))

    with pytest.raises(ToolError, match=r"Lines 11 to 2,010 of 'long' are more than 25,000 tokens") as caught:
        show(ctx, services, "long", offset=11, limit=2000)
    fits = int(str(caught.value).rpartition("limit=")[2].partition(" ")[0])

    assert show(ctx, services, "long", offset=11, limit=fits).startswith("11\t10 é")
    with pytest.raises(ToolError):
        show(ctx, services, "long", offset=11, limit=fits + 1)


def test_a_huge_single_line_is_cut(ctx: ToolContext, services: ToolServices) -> None:
    (ctx.cwd / "wide").write_bytes(b"x" * 3_000_000 + b"\nnext")

    for options in ({}, {"limit": 1}):
        text = show(ctx, services, "wide", **options)
        assert text.startswith("PARTIAL: line 1 alone is longer than fits; its first 100,000 characters follow. ")
        assert len(text) < MAX_BYTES + 300
    assert show(ctx, services, "wide", offset=2) == "2\tnext"
    (ctx.cwd / "one").write_bytes("é".encode() * 3_000_000)
    assert len(show(ctx, services, "one").encode()) < MAX_BYTES + 300


@pytest.mark.proves("R6")
def test_a_file_of_a_hundred_megabytes_is_read_in_bounded_memory(ctx: ToolContext, services: ToolServices) -> None:
    line = b"x" * 99 + b"\n"
    with (ctx.cwd / "huge").open("wb") as file:
        for _ in range(100):
            file.write(line * 10_000)
        file.write(b"the end\n")

    tracemalloc.start()
    text = show(ctx, services, "huge", offset=1_000_001)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert text == "1000001\tthe end"
    assert peak < 20_000_000
    record = ctx.files.get(Path(os.path.realpath(ctx.cwd / "huge")))
    assert record is not None
    assert record.size == 100_000_008


def test_a_file_without_end_is_refused_at_once(ctx: ToolContext, services: ToolServices) -> None:
    with (ctx.cwd / "sparse").open("wb") as file:
        file.write(b"text\n" * 10_000)
        file.truncate(10 << 40)

    with pytest.raises(ToolError, match=r"'sparse' has 10,995,116,277,760 bytes; .* Use a program such as head"):
        show(ctx, services, "sparse", limit=5)


def test_odd_names_can_be_read_and_told(ctx: ToolContext, services: ToolServices) -> None:
    name = os.fsdecode(b"a\nb\xff")
    (ctx.cwd / name).write_bytes(b"")

    tool = Read(services)
    [block] = tool.result_blocks(tool.call_blocking(tool.parse({"file_path": name}), ctx))
    assert block == Text("a\nb\\udcff exists and is empty.")


def test_only_a_small_text_that_was_decided_on_is_read_without_a_thread(
    ctx: ToolContext, services: ToolServices
) -> None:
    tool = Read(services)
    for name, content in {"small": b"x", "large": b"x" * 100_000, "p.png": b"x", "n.ipynb": b"{}"}.items():
        (ctx.cwd / name).write_bytes(content)

    def quick(name: str) -> bool:
        place = resolve(name, str(ctx.cwd), "")
        decided = ctx.replace(decision=Decision(Verdict.ALLOW, "", places=(place,)))
        return tool.is_quick(tool.parse({"file_path": name}), decided)

    assert [name for name in ("small", "large", "p.png", "n.ipynb", "missing", ".") if quick(name)] == ["small"]
    assert not tool.is_quick(tool.parse({"file_path": "small"}), ctx)


def test_pages_are_for_documents(ctx: ToolContext, services: ToolServices) -> None:
    (ctx.cwd / "f").write_text("x")

    with pytest.raises(ToolError, match="'f' is no PDF, so it has no pages"):
        show(ctx, services, "f", pages="1")


def test_it_declares_what_it_touches_and_that_it_only_reads(run: RunContext, services: ToolServices) -> None:
    tool = Read(services)
    (run.cwd / "link").symlink_to("real")
    args = tool.parse({"file_path": "link"})

    assert tool.is_read_only(args)
    assert tool.is_concurrency_safe(args)
    real = Access.of(reads=os.path.realpath(run.cwd / "real"))
    assert tool.access(args, run) == Access.of(reads="link", filtered=True)
    assert footprint(tool.access(args, run), run.cwd) == footprint(real, run.cwd)
    assert tool.summary(args) == "Read(link)"
    assert tool.max_result_chars is None
    for odd in ("nul\0", "x" * 5000):
        declared = tool.access(tool.parse({"file_path": odd}), run)
        assert footprint(declared, run.cwd).writes == frozenset()
