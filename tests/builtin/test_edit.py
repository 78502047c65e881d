"""Edit: replaces exactly what was asked for, or says why not and what to do."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from handrail.builtin.edit import Edit
from handrail.builtin.read.tool import Read
from handrail.conversation.blocks import Text, ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.footprint import WRITES_WORLD, footprint
from handrail.dispatch.gate import CarefulGate, Rails
from handrail.dispatch.results import ResultStore
from handrail.errors import ToolError
from handrail.files.restore import go_back
from handrail.session.services import default_services
from handrail.testing import FixedApprover
from handrail.tools.abort import AbortReason
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.pool import Ingredients, assemble


@pytest.fixture
def tool(ctx: ToolContext, tmp_path: Path) -> Edit:
    return Edit(default_services({"HANDRAIL_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}, ctx.cwd))


def put(ctx: ToolContext, content: bytes | str, name: str = "f") -> Path:
    """A file that was read."""
    path = ctx.cwd / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    real = Path(os.path.realpath(path))
    ctx.files.record(real, real.stat(), real.read_bytes())
    return path


def edit(tool: Edit, ctx: ToolContext, old: str, new: str, *, path: str = "f", **rest: Any) -> Output:
    """What the pipeline does: check the meaning, then call."""
    args = tool.parse({"file_path": path, "old_string": old, "new_string": new, **rest})
    refused = asyncio.run(tool.validate(args, ctx))
    if refused is not None:
        raise ToolError(f"refused: {refused.message}")
    return tool.call_blocking(args, ctx)


@pytest.mark.proves("N5")
def test_an_edit_changes_its_place_and_shows_it_to_model_person_and_program(tool: Edit, ctx: ToolContext) -> None:
    path = put(ctx, "one\ntwo\nthree\n")

    output = edit(tool, ctx, "two", "2\n2.5")

    assert path.read_bytes() == b"one\n2\n2.5\nthree\n"
    assert output == Output(
        text="Edited f. The change:\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2.5\n three",
        data={
            "filePath": str(ctx.cwd / "f"),
            "oldString": "two",
            "newString": "2\n2.5",
            "originalFile": "one\ntwo\nthree\n",
            "structuredPatch": [
                {
                    "oldStart": 1,
                    "oldLines": 3,
                    "newStart": 1,
                    "newLines": 4,
                    "lines": [" one", "-two", "+2", "+2.5", " three"],
                }
            ],
            "userModified": False,
            "replaceAll": False,
        },
        card=Card("Edit f", "+2 -1", "@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2.5\n three", body_kind="diff"),
    )


@pytest.mark.proves("R7")
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(b"a\r\nb\nc", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\nc", id="mixed line ends, no final newline"),
        pytest.param(b"\xef\xbb\xbfa\n", "a", "ä", b"\xef\xbb\xbf\xc3\xa4\n", id="a mark"),
        pytest.param("Größe – schön für alle\n".encode("cp1252"), "Größe", "Straße", None, id="cp1252"),
        pytest.param("これは日本語のテキストです\n".encode("cp932"), "日本語", "表", None, id="Shift-JIS"),
        pytest.param("这是一个中文的文件\n".encode("gbk"), "中文", "英文", None, id="GBK"),
        pytest.param("이것은 한국어 텍스트입니다\n".encode("euc_kr"), "한국어", "영어", None, id="EUC-KR"),
        pytest.param("a\r\nb\r\n".encode("utf-16"), "b", "☃", "a\r\n☃\r\n".encode("utf-16"), id="UTF-16"),
        pytest.param(
            "naïve ☃ über öl\n".encode() + b"\xff\xfe\x80 mark\n",
            "mark",
            "ende",
            "naïve ☃ über öl\n".encode() + b"\xff\xfe\x80 ende\n",
            id="bytes that mean nothing",
        ),
    ],
)
def test_every_other_byte_stays(
    tool: Edit, ctx: ToolContext, before: bytes, old: str, new: str, after: bytes | None
) -> None:
    path = put(ctx, before)
    if after is None:
        name = next(
            n for n in ("cp1252", "cp932", "gbk", "euc_kr") if old.encode(n, "ignore") in before and _has(old, n)
        )
        after = before.replace(old.encode(name), new.encode(name))

    edit(tool, ctx, old, new)

    assert path.read_bytes() == after


def _has(text: str, name: str) -> bool:
    return text.encode(name, "ignore").decode(name) == text


@pytest.mark.proves("R7", "R12")
def test_a_character_that_the_file_cannot_hold_is_refused_by_name(tool: Edit, ctx: ToolContext) -> None:
    path = put(ctx, "Größe, schön\n".encode("cp1252"))

    with pytest.raises(ToolError) as refused:
        edit(tool, ctx, "Größe", "Größe → 5")

    assert str(refused.value) == (
        "'→' (U+2192, RIGHTWARDS ARROW; line 1 of the new text) cannot be written to 'f': the file is in cp1252, which "
        "does not have it. Nothing was changed. Use other characters, or ask the user whether the file should be in "
        "UTF-8."
    )
    assert path.read_bytes() == "Größe, schön\n".encode("cp1252")


@pytest.mark.proves("J9", "P7", "R12")
def test_a_text_that_occurs_several_times_is_an_error_with_the_lines(tool: Edit, ctx: ToolContext) -> None:
    path = put(ctx, "total\n" + "x\n" * 5 + "total\n" + "total total\n")

    with pytest.raises(ToolError) as refused:
        edit(tool, ctx, "total", "sum")
    assert str(refused.value) == (
        "old_string occurs 4 times in 'f' (lines 1, 7, 8, 8). Add neighbouring lines to old_string, or set replace_all."
    )
    assert path.read_text().count("total") == 4

    output = edit(tool, ctx, "total", "sum", replace_all=True)
    assert path.read_text() == "sum\n" + "x\n" * 5 + "sum\n" + "sum sum\n"
    assert output.text.startswith("Edited f at 4 places. The change:\n@@ -1,8 +1,8 @@\n-total\n+sum\n")


@pytest.mark.proves("J8", "R12")
@pytest.mark.parametrize(
    ("file", "old", "reason"),
    [
        pytest.param(
            "if x:\n\ty = 1\n",
            "if x:\n    y = 1\n",
            "line 2: the file is indented by 1 tab, old_string by 4 spaces",
            id="tabs",
        ),
        pytest.param(
            "a = 1  \nb = 2\n",
            "a = 1\nb = 2\n",
            "line 1: the file has 2 spaces at the end, old_string nothing",
            id="trailing blanks",
        ),
        pytest.param(
            "value = a\u00a0+ b\n",
            "value = a + b",
            "line 1: the file has U+00A0 NO-BREAK SPACE in column 10",
            id="a blank that is none",
        ),
        pytest.param(
            "na\u200bme = 1\n",
            "name = 1",
            "line 1: the file has U+200B ZERO WIDTH SPACE in column 3",
            id="a character without width",
        ),
        pytest.param(
            "total = count + 1\n",
            "total = count + 2\n",
            "line 1: from column 17 the file has '1', old_string '2'",
            id="a letter",
        ),
        pytest.param(
            "Total = 1\n",
            "total = 1",
            "line 1: upper and lower case differ: from column 1 the file has 'Total = 1', old_string 'total = 1'",
            id="case",
        ),
        pytest.param(
            "f(a,  b)\n",
            "f(a, b)",
            "line 1: blanks differ: from column 6 the file has ' b)', old_string 'b)'",
            id="blanks inside",
        ),
        pytest.param(
            "one\ntwo\n",
            "1\tone\n2\ttwo\n",
            "line 1: old_string holds the line number that Read shows; leave it out",
            id="line numbers",
        ),
        pytest.param(
            "first\nlast",
            "last\n",
            "line 2: it is the last one and has no line end, and old_string ends with one",
            id="no final newline",
        ),
        pytest.param(
            "cafe\u0301 = 1\n",
            "caf\u00e9 = 1\n",
            "accents are composed differently: from column 4 the file has 'e\\u0301 = 1', old_string '\\xe9 = 1'",
            id="composition",
        ),
        pytest.param(
            "def total(prices, discount=0.25, currency='EUR', rounding=None):\n    pass\n",
            "discount=0.2, currency",
            "line 1: from column 31 the file has '5, currenc', old_string ', currency'",
            id="a part of a line",
        ),
        pytest.param(
            "x" * 500 + "; const answer = compute(6, 7); " + "y" * 500 + "\n",
            "const answer=compute(6,7)",
            "line 1: blanks differ: from column 515 the file has ' = compute(6, 7)', old_string '=compute(6,7)'",
            id="blanks in a part of a long line",
        ),
        pytest.param(
            "if (done) { return first(value);\n}\n",
            "retrun first",
            "line 1: from column 16 the file has 'urn first', old_string 'run first'",
            id="a slip in a part of a line",
        ),
        pytest.param(
            "f(a, b) {\n  total = 1;\n} // end\n",
            "b) {\n  total = 2;\n}",
            "line 2: from column 11 the file has '1;', old_string '2;'",
            id="parts of the first and the last line",
        ),
    ],
)
def test_a_text_that_is_not_there_is_an_error_with_the_nearest_block_and_what_differs(
    tool: Edit, ctx: ToolContext, file: str, old: str, reason: str
) -> None:
    path = put(ctx, file)

    with pytest.raises(ToolError) as refused:
        edit(tool, ctx, old, "new")

    message = str(refused.value)
    assert message.startswith("old_string does not occur in 'f'. Correct old_string.\nThe nearest block:\n")
    assert reason in message.rpartition("What differs: ")[2]
    assert path.read_bytes() == file.encode()


def test_a_text_that_is_like_nothing_in_the_file_is_said_to_be_missing(tool: Edit, ctx: ToolContext) -> None:
    put(ctx, "one\ntwo\n")

    with pytest.raises(ToolError, match=r"^old_string does not occur in 'f', and nothing like it does\."):
        edit(tool, ctx, "something else altogether", "new")
    put(ctx, "")
    with pytest.raises(ToolError, match=r"^old_string does not occur in 'f': the file is empty\."):
        edit(tool, ctx, "one", "new")


@pytest.mark.proves("J10")
def test_quotes_of_another_shape_match_and_the_result_says_so(tool: Edit, ctx: ToolContext) -> None:
    path = put(ctx, "He said “no” and it’s fine.\n")

    output = edit(tool, ctx, 'said "no" and it\'s', 'said "yes" and it\'s')

    assert path.read_text() == "He said “yes” and it’s fine.\n"
    assert "Quotes of another shape stood in the file; its own shapes were kept." in output.text


@pytest.mark.proves("J1", "F4", "R12")
def test_a_file_must_have_been_read(tool: Edit, ctx: ToolContext) -> None:
    (ctx.cwd / "f").write_text("one")

    with pytest.raises(ToolError, match=r"^refused: 'f' has not been read yet\. Read it first, then change it\.$"):
        edit(tool, ctx, "one", "two")

    reader = Read(default_services({}, ctx.cwd))
    reader.call_blocking(reader.parse({"file_path": "f"}), ctx)
    edit(tool, ctx, "one", "two")
    assert (ctx.cwd / "f").read_text() == "two"


def test_what_another_agent_has_read_does_not_count(tool: Edit, ctx: ToolContext, run: RunContext) -> None:
    put(ctx, "one")
    other = ToolContext(RunContext(run.cwd), ctx.use, ctx.abort, ctx.progress, lambda *_: pytest.fail("asked"))

    with pytest.raises(ToolError, match="has not been read yet"):
        edit(tool, other, "one", "two")


@pytest.mark.proves("J2", "J6")
def test_a_changed_file_is_an_error_that_shows_the_change_and_a_touched_one_is_not(
    tool: Edit, ctx: ToolContext
) -> None:
    path = put(ctx, "one\ntwo\n")
    path.write_text("one\nTWO\n")

    with pytest.raises(ToolError) as refused:
        edit(tool, ctx, "one", "1")
    assert str(refused.value) == (
        "'f' has changed since you read it, and was left as it is. Read it again, then repeat the change.\n"
        "What changed:\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO"
    )
    assert path.read_text() == "one\nTWO\n"

    path.write_text("one\ntwo\n")
    os.utime(path, (5, 5))
    edit(tool, ctx, "one", "1")
    assert path.read_text() == "1\ntwo\n"


@pytest.mark.proves("X5")
def test_a_touched_file_in_an_old_encoding_changes_in_one_line_only(tool: Edit, ctx: ToolContext) -> None:
    last = "caf\xe9 \x99".encode("latin-1")
    path = put(ctx, b"first\r\nsecond\n" + last)
    os.utime(path, (5, 5))

    edit(tool, ctx, "first", "1st \u2122")

    assert path.read_bytes() == b"1st \x99\r\nsecond\n" + last


@pytest.mark.proves("J5")
def test_an_edit_counts_as_a_read_of_what_it_wrote(tool: Edit, ctx: ToolContext) -> None:
    path = put(ctx, "one two three")

    edit(tool, ctx, "one", "1")
    edit(tool, ctx, "two", "2")

    assert path.read_text() == "1 2 three"


@pytest.mark.proves("J4")
def test_an_empty_old_string_makes_a_new_file_and_fills_an_empty_one(tool: Edit, ctx: ToolContext) -> None:
    output = edit(tool, ctx, "", "one\n", path="new/f")
    assert (ctx.cwd / "new" / "f").read_text() == "one\n"
    assert output.text == "Edited new/f. The change:\n@@ -0,0 +1,1 @@\n+one"

    put(ctx, "")
    edit(tool, ctx, "", "two\n")
    assert (ctx.cwd / "f").read_text() == "two\n"

    with pytest.raises(ToolError, match="'f' is not empty, but old_string is"):
        edit(tool, ctx, "", "three\n")


@pytest.mark.proves("F4", "R12")
@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        pytest.param(
            "a", "a", "f", r"refused: old_string and new_string are equal\. Nothing would change in 'f'\.", id="equal"
        ),
        pytest.param(
            "a\r\n",
            "a\n",
            "f",
            r"refused: old_string and new_string are equal but for line ends, which Edit keeps",
            id="line ends",
        ),
        pytest.param(
            "a", "b", "missing", r"refused: 'missing' does not exist, so there is nothing to replace\.", id="missing"
        ),
        pytest.param("a", "b", ".", r"refused: '\.' is a folder, not a file\. Name a file\.", id="a folder"),
        pytest.param("a", "b", "/dev/null", r"refused: '/dev/null' is a device, not a file\.", id="a device"),
        pytest.param("a", "b", "pipe", r"refused: 'pipe' is a pipe, not a file\.", id="a pipe"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anybody_is_asked(
    tool: Edit, ctx: ToolContext, old: str, new: str, path: str, message: str
) -> None:
    put(ctx, "a\n")
    os.mkfifo(ctx.cwd / "pipe")

    with pytest.raises(ToolError, match=message):
        edit(tool, ctx, old, new, path=path)


def test_a_binary_file_is_refused(tool: Edit, ctx: ToolContext) -> None:
    put(ctx, b"\x7fELF\0\0\0\x01text\0\0")

    with pytest.raises(ToolError, match=r"'f' is a binary file of 14 bytes, and Edit changes text\. Use a program\."):
        edit(tool, ctx, "text", "TEXT")


@pytest.mark.proves("R4")
def test_the_real_path_is_what_an_edit_writes(tool: Edit, run: RunContext) -> None:
    (run.cwd / "f").write_text("")
    (run.cwd / "link").symlink_to("f")
    args = tool.parse({"file_path": "link", "old_string": "", "new_string": "a"})
    real = Access.of(writes=os.path.realpath(run.cwd / "f"))
    assert tool.access(args, run) == Access.of(writes="link")
    assert footprint(tool.access(args, run), run.cwd) == footprint(real, Path("/"))

    os.link(run.cwd / "f", run.cwd / "other")
    assert footprint(tool.access(args, run), run.cwd) is WRITES_WORLD, (
        "it may be reached by a name that nobody knows of"
    )


@pytest.mark.anyio
@pytest.mark.proves("R4", "J5")
async def test_edits_of_one_file_follow_each_other_and_each_sees_the_one_before(
    tool: Edit, run: RunContext, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (run.cwd / name).write_text("0")
    pool = assemble(Ingredients(custom=(tool, Read(default_services({}, run.cwd)))))
    rails = Rails(CarefulGate(FixedApprover()))
    async with ToolExecutor(pool, run, ResultStore(tmp_path / "results"), rails=rails) as executor:
        for name in ("a", "b"):
            executor.add(ToolUse(f"read-{name}", "Read", {"file_path": name}))
        for number in range(10):
            for name in ("a", "b"):
                change = {"file_path": name, "old_string": str(number), "new_string": str(number + 1)}
                executor.add(ToolUse(f"{name}-{number}", "Edit", change))
        outcomes = [outcome async for outcome in executor.rest()]

    assert [outcome.result.content for outcome in outcomes if outcome.result.is_error] == []
    assert [(run.cwd / name).read_text() for name in ("a", "b")] == ["10", "10"]
    assert outcomes[2].result.content == (
        Text(
            "Edited a. The change:\n@@ -1,1 +1,1 @@\n-0\n\\ No newline at end of file\n+1\n\\ No newline at end of file"
        ),
    )


@pytest.mark.anyio
@pytest.mark.proves("F4", "J1")
async def test_the_model_gets_the_refusal_of_an_unread_file_as_an_error(
    tool: Edit, run: RunContext, tmp_path: Path
) -> None:
    (run.cwd / "f").write_text("one")
    approver = FixedApprover()
    pool = assemble(Ingredients(custom=(tool,)))
    store = ResultStore(tmp_path / "results")
    async with ToolExecutor(pool, run, store, rails=Rails(CarefulGate(approver))) as executor:
        executor.add(ToolUse("c", "Edit", {"file_path": "f", "old_string": "one", "new_string": "two"}))
        outcome = await anext(executor.rest())

    assert outcome.result.is_error
    assert approver.asked == [], "nobody is bothered with what cannot be done"


def test_a_change_can_be_undone(tool: Edit, ctx: ToolContext, tmp_path: Path) -> None:
    path = put(ctx, b"a\r\n\xff\n")
    edit(tool, ctx, "a", "b")

    go_back(next((tmp_path / "state" / "undo").glob("[!.]*")), 1)

    assert path.read_bytes() == b"a\r\n\xff\n"


def test_a_call_that_was_stopped_changes_nothing_any_more(tool: Edit, ctx: ToolContext) -> None:
    path = put(ctx, "one")
    ctx.abort.abort(AbortReason.USER)

    with pytest.raises(ToolError, match=r"The call was stopped before 'f' was changed\."):
        edit(tool, ctx, "one", "two")
    assert path.read_text() == "one"


def test_large_files_are_edited_in_pieces(tool: Edit, ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.files.source.WHOLE", 1000)
    monkeypatch.setattr("handrail.files.source.FileSource.__init__.__defaults__", (1000, 512))
    lines = [f"line {number}\n" for number in range(1000)]
    path = put(ctx, "".join(lines))

    output = edit(tool, ctx, "line 700\nline 701\n", "changed\n")

    assert path.read_text() == "".join([*lines[:700], "changed\n", *lines[702:]])
    assert output.text.splitlines()[1:8] == [
        "@@ -698,8 +698,7 @@",
        *(" line 697", " line 698", " line 699", "-line 700", "-line 701", "+changed"),
    ]


def test_the_card_of_a_call_shows_what_it_wants_to_change(tool: Edit) -> None:
    whole = {"file_path": "f", "old_string": "a\n", "new_string": "b\n"}

    assert tool.use_card({"file_path": "f"}) == Card("Edit", "f", body_kind="diff")
    assert tool.use_card(whole) == Card("Edit", "f", "@@ -1,1 +1,1 @@\n-a\n+b", body_kind="diff")
    assert tool.summary(tool.parse(whole)) == "Edit(f)"
    assert tool.classifier_text(tool.parse(whole)) == "f: b\n"


def test_a_miss_in_a_large_file_looks_at_a_bounded_part(
    tool: Edit, ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.files.nearest_block.MAX_LOOKED", 100)
    put(ctx, "x = 1\n" * 100 + "the place  to change\n")

    with pytest.raises(ToolError, match="nothing like it does"):
        edit(tool, ctx, "the place to change", "new")


def test_validation_looks_at_the_place_and_opens_nothing(tool: Edit, ctx: ToolContext) -> None:
    path = put(ctx, "one")
    path.write_text("two")
    os.utime(path, (time.time() + 10, time.time() + 10))
    args = tool.parse({"file_path": "f", "old_string": "one", "new_string": "1"})

    assert asyncio.run(tool.validate(args, ctx)) is None, "the hash is looked at in the call, in a thread"
