"""Glob: files by pattern, odd files, and bounds."""

import os
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.builtin.glob import MAX_FILES, Glob
from handrail.builtin.services import ToolServices
from handrail.builtin.support.name_patterns import matcher
from handrail.builtin.support.ripgrep import one_line, packaged_rg
from handrail.conversation.blocks import ToolUse
from handrail.errors import ToolError
from handrail.files.paths import resolve
from handrail.permissions.hidden_files import files_hidden_by, hidden_file_check
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.processes.sandbox.placeholders import Placeholders
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Decision, Verdict
from tests.builtin.conftest import hiding, made


def search(ctx: ToolContext, services: ToolServices, pattern: str, **rest: Any) -> list[str]:
    tool = Glob(services)
    return tool.call_blocking(tool.parse({"pattern": pattern, **rest}), ctx).text.split("\n")


def grow(root: Path, *names: str) -> None:
    """Files of growing age: the first one is the newest."""
    for age, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        os.utime(path, ns=(10**18 - age, 10**18 - age))


@pytest.mark.proves("N6")
def test_files_come_newest_first_and_as_read_takes_them(ctx: ToolContext, services: ToolServices) -> None:
    grow(ctx.cwd, "z.py", "sub/a.py", "sub/deep/m.py")

    assert search(ctx, services, "**/*.py") == ["z.py", "sub/a.py", "sub/deep/m.py"]
    assert search(ctx, services, "*.py", path="sub") == ["sub/a.py"]
    assert search(ctx, services, "sub/*.py") == ["sub/a.py"]
    assert search(ctx, services, "sub/deep/m.py") == ["sub/deep/m.py"]
    assert search(ctx, services, "*.py", path="sub/../sub") == ["sub/a.py"]
    assert search(ctx, services, "*.py", path=str(ctx.cwd / "sub")) == ["sub/a.py"]
    assert search(ctx, services, "*.txt") == ["No file matches."]
    assert search(ctx, services, "nowhere/*.py") == ["No file matches."]


def test_what_programs_get_says_how_many_there_are(ctx: ToolContext, services: ToolServices) -> None:
    grow(ctx.cwd, *(f"{number:03}" for number in range(MAX_FILES + 7)))

    data = Glob(services).call_blocking(Glob(services).parse({"pattern": "*"}), ctx).data

    assert data.pop("durationMs") >= 0
    assert data == {
        "filenames": [f"{number:03}" for number in range(MAX_FILES)],
        "numFiles": MAX_FILES,
        "truncated": True,
        "totalMatches": MAX_FILES + 7,
        "countIsComplete": True,
    }


@pytest.mark.parametrize(
    "pattern",
    ["**/*.{py,md}", "[!a]*", "*", "**", "d/**/*", "?.py", "**/a*", "{a,d/e}*/**", "**/.*", "[a-c].*", "*.py"],
)
def test_it_finds_what_ripgrep_finds(ctx: ToolContext, services: ToolServices, pattern: str) -> None:
    grow(ctx.cwd, "a.py", "b.md", "c", ".h", "d/a.py", "d/e/b.md", "d/e/.x", "abc/d", "d/é.py", "ab/c.md")
    anchored = ["/" + pattern] if "," not in pattern else [f"/{p}" for p in spelled_out(pattern)]

    listed = subprocess.run(
        [packaged_rg(), "--no-config", "--files", "--hidden", "--no-ignore", *(f"-g{glob}" for glob in anchored)],
        cwd=ctx.cwd,
        capture_output=True,
        text=True,
        check=False,
    )

    found = search(ctx, services, pattern)
    assert sorted(found) == sorted(listed.stdout.splitlines() or ["No file matches."])


def spelled_out(pattern: str) -> list[str]:
    before, _, rest = pattern.partition("{")
    inside, _, after = rest.partition("}")
    return [before + one + after for one in inside.split(",")]


@pytest.mark.proves("N8")
def test_without_a_pattern_the_folder_is_listed(ctx: ToolContext, services: ToolServices) -> None:
    grow(ctx.cwd, "b.txt", "a.txt", ".hidden", "z/inside")
    tool = Glob(services)
    assert "LS" in tool.aliases

    assert tool.call_blocking(tool.parse({}), ctx).text.split("\n") == ["z/", ".hidden", "a.txt", "b.txt"]
    assert tool.call_blocking(tool.parse({"path": str(ctx.cwd / "z")}), ctx).text == "z/inside"


def test_names_that_are_kept_occupied_while_commands_run_are_not_listed(
    ctx: ToolContext, services: ToolServices
) -> None:
    grow(ctx.cwd, "a.txt")
    occupied = Placeholders()
    occupied.take([str(ctx.cwd / ".vscode"), str(ctx.cwd / ".mcp.json")])

    assert search(ctx, services, "") == ["a.txt"]
    occupied.close()


def test_an_absolute_pattern_brings_its_own_folder(
    ctx: ToolContext, services: ToolServices, run: RunContext, tmp_path: Path
) -> None:
    grow(tmp_path, "there/a.py", "there/b/c.py")

    there = [str(tmp_path / "there/a.py"), str(tmp_path / "there/b/c.py")]
    assert search(ctx, services, f"{tmp_path}/there/**/*.py") == there
    assert search(ctx, services, f"{tmp_path}/there/a.py") == there[:1]
    tool = Glob(services)
    args = tool.parse({"pattern": f"{tmp_path}/there/*.py"})
    assert tool.access(args, run) == Access.of(walks=(".", f"{tmp_path}/there"), filtered=True)


def test_a_pattern_may_start_further_up_or_at_home(ctx: ToolContext, services: ToolServices) -> None:
    grow(ctx.cwd, "a.py", "sub/b.py", "home/notes.md")

    assert search(ctx, services, "../*.py", path="sub") == ["a.py"]
    assert search(ctx, services, "sub/../*.py") == ["a.py"]
    assert search(ctx, services, "~/*.md") == ["home/notes.md"]


@pytest.mark.parametrize("pattern", ["*/../b", "{..,a}/x", "a*/../../b"])
def test_a_pattern_cannot_lead_upwards_behind_a_wildcard(
    ctx: ToolContext, services: ToolServices, pattern: str
) -> None:
    with pytest.raises(ToolError, match="leads upwards"):
        search(ctx, services, pattern)


@pytest.mark.parametrize(
    ("path", "problem"),
    [("nowhere", "No such file"), ("file", "Not a directory"), ("loop", "symbolic links"), ("nul\0", "cannot")],
)
def test_a_folder_that_cannot_be_searched_is_told(
    ctx: ToolContext, services: ToolServices, path: str, problem: str
) -> None:
    grow(ctx.cwd, "file")
    (ctx.cwd / "loop").symlink_to("loop")

    with pytest.raises(ToolError, match=f"cannot be searched: .*{problem}.*Give another folder"):
        search(ctx, services, "*", path=path)


def test_links_are_neither_listed_nor_followed(ctx: ToolContext, services: ToolServices, tmp_path: Path) -> None:
    grow(ctx.cwd, "real/file")
    grow(tmp_path, "secret/key")
    (ctx.cwd / "to_file").symlink_to("real/file")
    (ctx.cwd / "to_folder").symlink_to(tmp_path / "secret")
    (ctx.cwd / "real/up").symlink_to("..")
    (ctx.cwd / "broken").symlink_to("nowhere")
    (ctx.cwd / "loop").symlink_to("loop")

    assert search(ctx, services, "**") == ["real/file"]
    assert search(ctx, services, "to_folder/*") == ["No file matches."]


def test_a_link_given_as_the_folder_is_followed(ctx: ToolContext, services: ToolServices) -> None:
    grow(ctx.cwd, "real/file")
    (ctx.cwd / "link").symlink_to("real")

    assert search(ctx, services, "*", path="link") == ["link/file"]


def test_odd_names_stand_on_one_line_each_and_can_be_encoded(ctx: ToolContext, services: ToolServices) -> None:
    for name in (b"two\nlines", b"bad\xff", b"esc\x1b[31m", "snow ☃".encode(), b"-dash", b"!not"):
        (ctx.cwd / os.fsdecode(name)).write_text("")

    lines = search(ctx, services, "*")

    assert sorted(lines) == sorted(["'two\\nlines'", "'bad\\udcff'", "'esc\\x1b[31m'", "snow ☃", "-dash", "!not"])
    "\n".join(lines).encode()
    assert search(ctx, services, "two\nl*") == ["'two\\nlines'"]


@pytest.mark.proves("R6")
def test_more_matches_than_shown_are_counted(ctx: ToolContext, services: ToolServices) -> None:
    grow(ctx.cwd, *(f"{number:03}" for number in range(MAX_FILES + 7)))

    lines = search(ctx, services, "*")

    assert lines[:-1] == [f"{number:03}" for number in range(MAX_FILES)]
    assert lines[-1] == "(7 more files match. Use a narrower pattern to see them.)"


def test_ignored_files_are_found_unless_told_otherwise_and_version_control_is_not(
    ctx: ToolContext, services: ToolServices
) -> None:
    grow(ctx.cwd, "kept.py", "made.py", "build/out.py", ".git/HEAD", ".git/hooks/pre.py")
    (ctx.cwd / ".gitignore").write_text("made.py\nbuild/\n")
    careful = replace(services, env={**services.env, "CLAUDE_CODE_GLOB_NO_IGNORE": "false"})

    assert search(ctx, services, "**/*.py") == ["kept.py", "made.py", "build/out.py"]
    assert search(ctx, careful, "**/*.py") == ["kept.py"]
    assert search(ctx, services, ".git/hooks/*") == [".git/hooks/pre.py"]
    assert search(ctx, services, "**/.git/hooks/*") == [".git/hooks/pre.py"]


def test_what_a_rule_hides_is_not_found(ctx: ToolContext, services: ToolServices) -> None:
    grow(ctx.cwd, "open.txt", "sub/secret.txt", "sub/open.txt")
    real = os.path.realpath(ctx.cwd)
    asked: list[str] = []

    def hidden(path: str) -> bool:
        asked.append(path)
        return "secret" in path

    careful = replace(services, hidden_files=hiding(hidden))

    assert search(ctx, careful, "**/*.txt") == ["open.txt", "sub/open.txt"]
    assert search(ctx, careful, "sub/*.txt") == ["sub/open.txt"]
    assert search(ctx, careful, "", path="sub") == ["sub/open.txt"]
    assert set(asked) == {f"{real}/{name}" for name in ("open.txt", "sub/secret.txt", "sub/open.txt")}


def context(root: Path) -> ToolContext:
    async def refuse(_use: ToolUse, _run: RunContext) -> Decision:
        return Decision(Verdict.DENY, "")

    return ToolContext(RunContext(root), ToolUse("1", "Glob", {}), AbortSignal(), lambda _: None, refuse)


PARTS = ("a", "b.py", "c.PY", ".env", "x.key", "secrets", ".ssh", "d e", "\udcff", "é", "deep")


@given(
    paths=st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("/".join), max_size=25),
    times=st.lists(st.integers(1, 3), min_size=25, max_size=25),
    rules=st.dictionaries(
        st.sampled_from(["deny", "ask", "allow"]),
        st.lists(st.sampled_from(["Read(b.py)", "Read(deep/)", "Read(a/**)", "Read(*.key)"]), max_size=2),
    ),
    pattern=st.sampled_from(["**/*", "**/*.py", "a/**", "**/deep/*", "*"]),
)
@settings(max_examples=60, deadline=None)
def test_it_lists_what_a_look_at_every_file_by_itself_finds(
    paths: list[str], times: list[int], rules: dict[str, list[str]], pattern: str
) -> None:
    with TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        for path, seconds in zip(paths, times, strict=False):
            with suppress(OSError):  # a file and a folder of one name
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text("")
                os.utime(root / path, (seconds, seconds))
        policy = Policy.empty(str(root), "/nonexistent")
        for kind, texts in rules.items():
            policy = policy.adding(Behaviour(kind), texts, RuleSource("project", folder=str(root)))
        hidden = files_hidden_by(policy)
        careful = replace(made(root), hidden_files=lambda: hidden)

        fits, is_hidden = matcher(pattern), hidden_file_check(policy)
        files = [path for path in root.rglob("*") if path.is_file() and not is_hidden(str(path))]
        names = [str(path.relative_to(root)) for path in files]
        found = [name for name in names if fits(tuple(name.split("/")))]
        found.sort(key=lambda name: (-(root / name).stat().st_mtime_ns, os.fsencode(name)))

        assert search(context(root), careful, pattern) == ([*map(one_line, found)] or ["No file matches."])


def test_a_file_that_is_gone_before_its_time_is_read_is_neither_listed_nor_counted(
    ctx: ToolContext, services: ToolServices
) -> None:
    grow(ctx.cwd, "a", "b", "sub/c")

    def remove(path: str) -> bool:
        """What is asked for each listed file, before its time is read."""
        if path.endswith("/b"):
            (ctx.cwd / "b").unlink()
        return False

    tool = Glob(replace(services, hidden_files=hiding(remove)))
    data = tool.call_blocking(tool.parse({"pattern": "**/*"}), ctx).data

    assert (data["filenames"], data["totalMatches"]) == (["a", "sub/c"], 2)


def test_a_closed_folder_is_counted_below_and_told_as_the_root(
    ctx: ToolContext, services: ToolServices, closed: Path
) -> None:
    (closed.parent / "open").mkdir(mode=0o755)
    (closed.parent / "seen").write_text("")

    assert search(ctx, services, "**", path=str(closed.parent)) == [
        str(closed.parent / "seen"),
        "(1 folder could not be read.)",
    ]
    with pytest.raises(ToolError, match="cannot be searched: Permission denied"):
        search(ctx, services, "**", path=str(closed))


def test_an_aborted_search_stops(ctx: ToolContext, services: ToolServices) -> None:
    grow(ctx.cwd, "a")
    ctx.abort.abort(AbortReason.USER)

    assert search(ctx, services, "*") == ["No file matches."]


def test_a_folder_swapped_for_a_link_since_the_decision_is_refused(
    ctx: ToolContext, services: ToolServices, tmp_path: Path
) -> None:
    grow(tmp_path, "key")
    (ctx.cwd / "sub").mkdir()
    decided = ctx.replace(decision=Decision(Verdict.ALLOW, "", places=(resolve("sub", str(ctx.cwd), ""),)))
    (ctx.cwd / "sub").rmdir()
    (ctx.cwd / "sub").symlink_to(tmp_path)

    with pytest.raises(ToolError, match="is a link now"):
        search(decided, services, "*", path="sub")


def test_it_declares_what_it_touches_and_that_it_only_reads(run: RunContext, services: ToolServices) -> None:
    tool = Glob(services)
    args = tool.parse({"pattern": "*", "path": "sub"})

    assert tool.is_read_only(args)
    assert tool.is_concurrency_safe(args)
    assert tool.access(args, run) == Access.of(walks="sub", filtered=True)
    assert tool.summary(args) == "Glob(*)"


@pytest.mark.parametrize("pattern", ["\0", "a\0b*", "**/\0"])
def test_a_pattern_that_no_name_can_fit_is_told(ctx: ToolContext, services: ToolServices, pattern: str) -> None:
    with pytest.raises(ToolError, match="NUL"):
        search(ctx, services, pattern)
