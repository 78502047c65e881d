"""The files that a call declares: read before they are written, kept for undo, known to later calls."""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.builtin.edit import Edit
from handrail.builtin.read.tool import Read
from handrail.builtin.services import ToolServices
from handrail.builtin.write import Write
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.decide import conditions_left_to_tools
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import Rails
from handrail.dispatch.results import ResultStore
from handrail.errors import ToolError, UndoError
from handrail.files.restore import go_back, latest
from handrail.files.undo import Undo, UndoHistory, read
from handrail.permissions.policy import Policy
from handrail.tools.abort import AbortReason
from handrail.tools.context import RunContext
from handrail.tools.function import tool
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tools.pool import AnyTool, Ingredients, assemble
from tests.permissions.world import ALL_MODES

UNREAD = "<tool_use_error>'{}' has not been read yet. Read it first, then change it.</tool_use_error>"


class Project:
    """A folder, an agent's memory of it and an undo journal, with tools that declare what they do."""

    def __init__(self, root: Path, *, limit: int = 10_000_000) -> None:
        self.folder = Path(os.path.realpath(root)) / "project"
        self.folder.mkdir(parents=True)
        self.undo = Undo(self.folder.parent / "state" / "undo" / "mine", str(self.folder), limit=limit)
        self.run = RunContext(self.folder, undo=lambda: self.undo)
        services = ToolServices({}, str(root), lambda: (str(self.folder),), root / "state" / "runs", undo=self.undo)
        self.tools: tuple[AnyTool, ...] = (Read(services), Edit(services), Write(services), *self._own_tools())

    def _own_tools(self) -> tuple[AnyTool, ...]:
        folder = self.folder

        @tool(reads="path", read_only=True)
        def Peek(path: str) -> str:
            """Read a file."""
            return (folder / path).read_text()

        @tool(writes="paths")
        def Put(paths: list[str], text: str, fail: bool = False) -> str:
            """Write files."""
            for path in paths:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
            if fail:
                raise ToolError("It broke.")
            return "put"

        @tool(removes="paths")
        async def Drop(paths: list[str]) -> str:
            """Remove files."""
            for path in paths:
                (folder / path).unlink()
            return "dropped"

        @tool(removes="old", writes="new")
        async def Move(old: str, new: str) -> str:
            """Rename a file."""
            (folder / old).rename(folder / new)
            return "moved"

        @tool(writes="path")
        def Export(path: str) -> str:
            """Make a folder with a file in it."""
            (folder / path).mkdir(exist_ok=True)
            (folder / path / "inner").write_text("x")
            return "exported"

        return Peek, Put, Drop, Move, Export

    def calls(
        self, *uses: tuple[str, dict[str, Any]], interrupts: list[Callable[[], None]] | None = None
    ) -> list[Outcome]:
        """The outcomes of calls that run one after the other through the executor with real rules."""

        async def run() -> list[Outcome]:
            empty = Policy.empty(str(self.folder))
            policy = replace(empty, mode="bypassPermissions", availability=ALL_MODES)
            gate = PolicyGate(LivePolicy(lambda: policy), None, conditions=conditions_left_to_tools)
            outcomes = []
            pool = assemble(Ingredients(custom=self.tools))
            for number, (name, values) in enumerate(uses):
                store = ResultStore(self.folder.parent / "results")
                async with ToolExecutor(pool, self.run, store, rails=Rails(gate)) as executor:
                    if interrupts is not None:
                        interrupts.append(partial(executor.interrupt, AbortReason.USER))
                    executor.add(ToolUse(f"call-{number}", name, values))
                    outcomes.append(await anext(executor.rest()))
            return outcomes

        return asyncio.run(run())

    def texts(self, *uses: tuple[str, dict[str, Any]]) -> list[str]:
        return [outcome.result.text for outcome in self.calls(*uses)]

    def history(self) -> UndoHistory:
        return read(self.undo.folder)

    def tree(self) -> Mapping[str, str | None]:
        """Every file with its text, and every folder."""
        return {
            str(path.relative_to(self.folder)): path.read_text() if path.is_file() else None
            for path in sorted(self.folder.rglob("*"))
        }


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def edit(old: str, new: str, path: str = "file") -> tuple[str, dict[str, Any]]:
    return "Edit", {"file_path": path, "old_string": old, "new_string": new}


def put(*paths: str, text: str = "new", **more: Any) -> tuple[str, dict[str, Any]]:
    return "Put", {"paths": list(paths), "text": text, **more}


READ = ("Read", {"file_path": "file"})


@pytest.mark.parametrize(
    ("use", "refused"),
    [
        pytest.param(put("file"), "file", id="a file that exists"),
        pytest.param(put("./sub/../file"), "./sub/../file", id="in another spelling"),
        pytest.param(put("link"), "link", id="through a link"),
        pytest.param(put("new", "file"), "file", id="the second of two"),
        pytest.param(("Move", {"old": "other", "new": "file"}), "file", id="as the target of a rename"),
        pytest.param(put("new"), "", id="a new file needs no read"),
        pytest.param(put("deep/down/new"), "", id="nor one in a new folder"),
        pytest.param(("Drop", {"paths": ["file"]}), "", id="removing needs no read, because undo brings it back"),
        pytest.param(("Export", {"path": "sub"}), "", id="a folder is not looked at"),
    ],
)
def test_a_file_that_a_tool_of_the_user_writes_must_have_been_read(
    project: Project, use: tuple[str, dict[str, Any]], refused: str
) -> None:
    for name in ("file", "other"):
        (project.folder / name).write_text("old")
    (project.folder / "sub").mkdir()
    (project.folder / "link").symlink_to("file")
    before = project.tree()

    [outcome] = project.calls(use)

    if refused:
        assert (outcome.cause, outcome.result.text) == (Cause.REFUSED_INPUT, UNREAD.format(refused))
        assert project.tree() == before
        assert not project.undo.folder.exists()
    else:
        assert outcome.status is Status.OK


def test_a_file_that_was_read_may_be_written_and_what_was_written_is_known_to_an_edit(project: Project) -> None:
    (project.folder / "file").write_text("old")

    read_it, wrote, edited = project.calls(READ, put("file", text="two words"), edit("two", "three"))

    assert [each.status for each in (read_it, wrote, edited)] == [Status.OK] * 3
    assert (project.folder / "file").read_text() == "three words"
    assert [change.tool for change in project.history().changes] == ["Put", "Edit"]


def test_a_declared_read_counts_as_a_read(project: Project) -> None:
    (project.folder / "file").write_text("old")

    outcomes = project.calls(("Peek", {"path": "file"}), edit("old", "new"), put("file", text="newer"))

    assert [each.status for each in outcomes] == [Status.OK] * 3
    assert (project.folder / "file").read_text() == "newer"


def test_a_declared_read_that_failed_does_not_count(project: Project) -> None:
    @tool(reads="path")
    def Broken(path: str) -> str:
        """Fail."""
        raise ToolError("It broke.")

    project.tools = (*project.tools, Broken)
    (project.folder / "file").write_text("old")

    _, refused = project.texts(("Broken", {"path": "file"}), edit("old", "new"))

    assert refused == UNREAD.format("file")


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_file_that_another_program_changed_is_left_as_it_is_and_the_change_is_shown(
    project: Project, size: int
) -> None:
    (project.folder / "file").write_text("old\n" * size)
    project.calls(READ)
    (project.folder / "file").write_text("old\n" * size + "theirs\n")

    [outcome] = project.calls(put("new", "file"))

    assert outcome.cause is Cause.FAILED
    assert "'file' has changed since you read it, and was left as it is." in outcome.result.text
    assert ("+theirs" in outcome.result.text) is (size == 10)
    assert (project.folder / "file").read_text().endswith("theirs\n")
    assert not (project.folder / "new").exists()
    assert not project.history().changes


def test_a_touch_is_no_change(project: Project) -> None:
    (project.folder / "file").write_text("old")
    project.calls(READ)
    os.utime(project.folder / "file", ns=(1, 1))

    assert project.texts(put("file")) == ["put"]


def test_what_a_failed_call_wrote_can_be_undone_but_is_not_known(project: Project) -> None:
    (project.folder / "file").write_text("old")

    _, failed, refused = project.texts(READ, put("file", fail=True), edit("new", "newer"))

    assert "It broke." in failed
    assert "has changed since you read it" in refused
    go_back(project.undo.folder, 1)
    assert (project.folder / "file").read_text() == "old"


def test_a_call_that_changes_nothing_leaves_nothing_to_undo(project: Project) -> None:
    (project.folder / "file").write_text("old")

    project.calls(READ, put("file", text="old"), ("Drop", {"paths": ["missing"]}))

    assert latest(project.history()) == 0


def test_another_program_that_changes_the_file_afterwards_is_not_overwritten_by_undo(project: Project) -> None:
    project.calls(put("file"))
    (project.folder / "file").write_text("theirs")

    with pytest.raises(UndoError, match="file was changed since"):
        go_back(project.undo.folder, 1)


def test_a_call_that_was_killed_half_way_can_be_undone(project: Project) -> None:
    """The process is gone before the journal learns what the call wrote."""

    @tool(writes="path")
    def Dying(path: str) -> str:
        """Write, and die."""
        (project.folder / path).write_text("half")
        shutil.copytree(project.undo.folder, project.folder.parent / "killed")
        return ""

    project.tools = (*project.tools, Dying)
    (project.folder / "file").write_text("old")
    project.calls(READ, ("Dying", {"path": "file"}))

    go_back(project.folder.parent / "killed", 1)

    assert (project.folder / "file").read_text() == "old"


@pytest.mark.parametrize("timeout", [0.01, None], ids=["it takes too long", "the user interrupts it"])
def test_what_a_stopped_call_wrote_is_in_the_journal(project: Project, timeout: float | None) -> None:
    interrupts: list[Callable[[], None]] = []

    @tool(writes="path", timeout=timeout)
    async def Slow(path: str) -> str:
        """Write, and never end."""
        (project.folder / path).write_text("half")
        if timeout is None:
            interrupts[-1]()
        await asyncio.Event().wait()
        return ""

    project.tools = (*project.tools, Slow)
    (project.folder / "file").write_text("old")

    _, stopped = project.calls(READ, ("Slow", {"path": "file"}), interrupts=interrupts)

    assert stopped.cause is (Cause.USER_INTERRUPTED if timeout is None else Cause.TIMED_OUT)
    [change] = project.history().changes
    assert (change.torn, change.new and change.new.size) == (False, 4)


def test_a_file_too_large_for_the_journal_is_written_and_the_result_says_so(tmp_path: Path) -> None:
    project = Project(tmp_path, limit=10)
    (project.folder / "file").write_text("more than ten bytes")

    _, text = project.texts(READ, put("file"))

    assert text.startswith("put")
    assert "too large for the undo journal (19 bytes; 10 are kept), so this change cannot be undone." in text


def test_a_journal_that_cannot_be_written_stops_the_call(project: Project) -> None:
    (project.folder / "file").write_text("old")
    project.undo.folder.parent.mkdir(parents=True)
    project.undo.folder.write_text("not a folder")

    _, text = project.texts(READ, put("file"))

    assert "The undo journal cannot be written" in text
    assert (project.folder / "file").read_text() == "old"


@pytest.mark.parametrize("path", ["\0", "a\ud800", "", "/dev/null", "pipe"])
def test_what_is_no_file_is_left_to_the_tool_or_refused_in_a_sentence(project: Project, path: str) -> None:
    os.mkfifo(project.folder / "pipe")

    @tool(writes="path", reads="path")
    async def Odd(path: str) -> str:
        """Do nothing."""
        return "done"

    project.tools = (*project.tools, Odd)

    [outcome] = project.calls(("Odd", {"path": path}))

    assert outcome.cause in (Cause.DONE, Cause.FAILED, Cause.INVALID_INPUT)
    assert "Traceback" not in outcome.result.text


def test_many_files_of_one_call_are_kept_and_brought_back(project: Project) -> None:
    names = [f"many/{number}" for number in range(300)]
    project.calls(put(*names, text="one"), put(*names, text="two"))

    go_back(project.undo.folder, len(names) + 2)  # the folder is a change of its own

    assert project.tree() == {"many": None} | dict.fromkeys(sorted(names), "one")
    go_back(project.undo.folder, 1)
    assert project.tree() == {}


NAMES = st.sampled_from(["a", "b", "deep/c", "deep/er/d"])
STEPS = st.lists(
    st.one_of(
        st.builds(lambda paths, text, fail: put(*paths, text=text, fail=fail),
                  st.lists(NAMES, min_size=1, max_size=3), st.sampled_from("xyz"), st.booleans()),
        st.builds(lambda path: ("Drop", {"paths": [path]}), NAMES),
        st.builds(lambda old, new: ("Move", {"old": old, "new": new}), NAMES, NAMES),
        st.builds(lambda path: ("Peek", {"path": path}), NAMES),
        st.builds(lambda path, old, new: edit(old, new, path), NAMES, st.sampled_from("xyz"), st.sampled_from("uvw")),
        st.builds(lambda path, text: ("Write", {"file_path": path, "content": text}), NAMES, st.sampled_from("xyz")),
    ),
    max_size=12,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(["a", "b", "deep/c"]), st.sampled_from("xyz")), STEPS)
def test_undo_brings_back_what_was_there_before_any_tools_and_nothing_unread_is_overwritten(
    tmp_path_factory: pytest.TempPathFactory, start: Mapping[str, str], steps: Sequence[tuple[str, dict[str, Any]]]
) -> None:
    project = Project(tmp_path_factory.mktemp("undo"))
    for name, text in start.items():
        (project.folder / name).parent.mkdir(exist_ok=True)
        (project.folder / name).write_text(text)
    before = project.tree()

    known: set[str] = set()
    for name, values in steps:
        present = project.tree()
        written = {*values.get("paths", ())} if name == "Put" else {values["new"]} if name == "Move" else set()
        [outcome] = project.calls((name, values))
        if any(present.get(path) is not None and path not in known for path in written):
            assert outcome.cause is Cause.REFUSED_INPUT
            assert project.tree() == present
        if outcome.status is Status.OK:
            known |= written | ({values["path"]} if name == "Peek" else set())
            known |= {values["file_path"]} if name in ("Edit", "Write") else set()

    if project.undo.folder.exists() and project.history().entries:
        go_back(project.undo.folder, 1)
    assert project.tree() == before
