"""Write: makes a file, or replaces one that was read."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin import write as module
from handrail.builtin.write import Write
from handrail.conversation.blocks import ToolUse
from handrail.errors import ToolError
from handrail.files.restore import go_back
from handrail.session.services import default_services
from handrail.tools.abort import AbortSignal
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output


@pytest.fixture
def tool(ctx: ToolContext, tmp_path: Path) -> Write:
    return Write(default_services({"HANDRAIL_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}, ctx.cwd))


def put(ctx: ToolContext, content: bytes) -> Path:
    path = Path(os.path.realpath(ctx.cwd / "f"))
    path.write_bytes(content)
    ctx.files.record(path, path.stat(), content)
    return path


def write(tool: Write, ctx: ToolContext, content: str, path: str = "f") -> Output:
    args = tool.parse({"file_path": path, "content": content})
    refused = asyncio.run(tool.validate(args, ctx))
    if refused is not None:
        raise ToolError(f"refused: {refused.message}")
    return tool.call_blocking(args, ctx)


@pytest.mark.proves("N4", "J4")
def test_a_new_file_is_made_with_its_folders(tool: Write, ctx: ToolContext) -> None:
    output = write(tool, ctx, "one\ntwo", "a/b/f")

    assert (ctx.cwd / "a" / "b" / "f").read_bytes() == b"one\ntwo"
    assert output == Output(
        text="Created a/b/f (2 lines).",
        data={
            "type": "create",
            "filePath": str(ctx.cwd / "a/b/f"),
            "content": "one\ntwo",
            "structuredPatch": [],
            "originalFile": None,
        },
        card=Card(
            "Write a/b/f", "+2 -0", "@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file", body_kind="diff"
        ),
    )


@pytest.mark.proves("N4", "J1")
def test_an_existing_file_is_replaced_once_it_was_read(tool: Write, ctx: ToolContext) -> None:
    (ctx.cwd / "f").write_text("old\nsame\n")
    with pytest.raises(ToolError, match=r"^refused: 'f' has not been read yet\. Read it first, then change it\.$"):
        write(tool, ctx, "new")

    put(ctx, b"old\nsame\n")
    output = write(tool, ctx, "new\nsame\n")

    assert (ctx.cwd / "f").read_text() == "new\nsame\n"
    assert output.text == "Replaced f (2 lines)."
    assert output.data == {
        "type": "update",
        "filePath": str(ctx.cwd / "f"),
        "content": "new\nsame\n",
        "structuredPatch": [
            {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": ["-old", "+new", " same"]}
        ],
        "originalFile": "old\nsame\n",
    }
    write(tool, ctx, "newer\n")
    assert (ctx.cwd / "f").read_text() == "newer\n"


@pytest.mark.proves("J6")
def test_a_file_that_others_changed_is_not_overwritten(tool: Write, ctx: ToolContext) -> None:
    put(ctx, b"old").write_bytes(b"theirs")

    with pytest.raises(ToolError, match=r"'f' has changed since you read it, and was left as it is\. Read it again"):
        write(tool, ctx, "ours")
    assert (ctx.cwd / "f").read_bytes() == b"theirs"


@pytest.mark.proves("R7")
@pytest.mark.parametrize(
    ("before", "content", "after", "told"),
    [
        pytest.param(b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n", "", id="pairs everywhere"),
        pytest.param(b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\r\n", "", id="pairs in the content too"),
        pytest.param(b"a\r\nb\n", "x\ny\n", b"x\ny\n", "", id="mixed: as given"),
        pytest.param(b"a\n", "x\r\ny\n", b"x\r\ny\n", "", id="line feeds: as given"),
        pytest.param(b"", "x\n", b"x\n", "", id="empty"),
        pytest.param(b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n", "UTF-8", id="a mark stays one mark"),
        pytest.param("a\r\n".encode("utf-16"), "x\n", "x\r\n".encode("utf-16"), "UTF-16", id="UTF-16"),
        pytest.param("Größe, schön\n".encode("cp1252"), "für\n", "für\n".encode("cp1252"), "cp1252", id="cp1252"),
    ],
)
def test_encoding_mark_and_uniform_line_ends_are_kept(
    tool: Write, ctx: ToolContext, before: bytes, content: str, after: bytes, told: str
) -> None:
    path = put(ctx, before)

    output = write(tool, ctx, content)

    assert path.read_bytes() == after
    assert output.text.endswith(f"Its encoding, {told}, was kept.") or not told


@pytest.mark.proves("R7", "R12")
def test_content_that_the_encoding_does_not_have_is_refused(tool: Write, ctx: ToolContext) -> None:
    path = put(ctx, "Größe, schön\n".encode("cp1252"))

    with pytest.raises(ToolError, match=r"'☃' \(U\+2603, SNOWMAN; line 2 of the new text\) cannot be written to 'f'"):
        write(tool, ctx, "a\n☃\n")
    assert path.read_bytes() == "Größe, schön\n".encode("cp1252")


def test_a_link_stays_and_its_target_is_written(tool: Write, ctx: ToolContext) -> None:
    put(ctx, b"old")
    (ctx.cwd / "link").symlink_to("f")

    write(tool, ctx, "new", "link")

    assert (ctx.cwd / "link").is_symlink()
    assert (ctx.cwd / "f").read_bytes() == b"new"


def test_limits_and_folders_are_refused(tool: Write, ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONTENT_CHARS", 10)
    monkeypatch.setattr("handrail.builtin.support.file_changes.MAX_FILE_BYTES", 5)
    put(ctx, b"123456")

    with pytest.raises(ToolError, match=r"content has 11 characters; 10 is the most for one call"):
        write(tool, ctx, "x" * 11)
    with pytest.raises(ToolError, match=r"'\.' is a folder, not a file"):
        write(tool, ctx, "x", ".")
    with pytest.raises(ToolError, match=r"'f' has 6 bytes; 5 is the most that can be changed here"):
        write(tool, ctx, "x")
    (ctx.cwd / "g").write_bytes(b"")
    with pytest.raises(ToolError, match=r"cannot be opened: Not a directory|is a link now"):
        write(tool, ctx, "x", "g/h")


def test_the_home_folder_is_understood(tool: Write, ctx: ToolContext, tmp_path: Path) -> None:
    args = tool.parse({"file_path": "~/note", "content": "x"})

    assert tool.access(args, ctx.run) == Access.of(writes="~/note")
    tool.call_blocking(args, ctx)
    assert (tmp_path / "note").read_text() == "x"


def test_the_card_of_a_call_shows_the_content(tool: Write) -> None:
    assert tool.use_card({"file_path": "f", "content": "x = 1"}) == Card("Write", "f", "x = 1", body_kind="code")
    assert tool.classifier_text(tool.parse({"file_path": "f", "content": "x"})) == "f: x"
    assert tool.summary(tool.parse({"file_path": "f", "content": "x"})) == "Write(f)"


@given(
    contents=st.lists(
        st.text(max_size=20).filter(lambda t: not any("\ud800" <= c <= "\udfff" for c in t)), min_size=1, max_size=4
    )
)
def test_what_is_written_is_what_is_there_and_undo_brings_everything_back(
    contents: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("round")
    tool = Write(default_services({"HANDRAIL_STATE_DIR": str(folder / "state"), "HOME": str(folder)}, folder))
    use = ToolUse("call-1", "Write", {})
    ctx = ToolContext(RunContext(folder), use, AbortSignal(), lambda _progress: None, lambda *_: pytest.fail("asked"))
    held: list[bytes] = []
    for content in contents:
        uniform = bool(held) and b"\r\n" in held[-1] and held[-1].count(b"\n") == held[-1].count(b"\r\n")
        write(tool, ctx, content)
        held.append((folder / "f").read_bytes())
        expected = content.replace("\r\n", "\n").replace("\n", "\r\n") if uniform else content
        assert (
            held[-1].removeprefix(b"\xef\xbb\xbf") == expected.encode().removeprefix(b"\xef\xbb\xbf")
            or b"\0" in held[-1]
        )

    journal = next((folder / "state" / "undo").glob("[!.]*"))
    for number in range(len(contents), 1, -1):
        go_back(journal, number)
        assert (folder / "f").read_bytes() == held[number - 2]
    go_back(journal, 1)
    assert not (folder / "f").exists()
