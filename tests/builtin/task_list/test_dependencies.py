"""Whatever is asked of the list, in whatever order, who waits for whom stays sound: checked against graphlib."""

import asyncio
import json
import shutil
import tempfile
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.builtin.bash.session import Session

IDS = st.integers(1, 5).map(str)
"""Also some that do not exist, or not any more."""


def sound(graph: dict[str, set[str]]) -> bool:
    known = all(blocker in graph for blockers in graph.values() for blocker in blockers)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return False
    return known


class TaskListMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.session = Session(self.folder)
        self.runner = asyncio.Runner()
        self.graph: dict[str, set[str]] = {}
        self.status: dict[str, str] = {}
        self.last = 0

    def teardown(self) -> None:
        self.runner.close()
        shutil.rmtree(self.folder)

    def data(self, name: str, **given: Any) -> Any:
        outcome = self.runner.run(self.session.use(name, given))
        assert outcome.output is not None
        assert not outcome.output.is_error
        return outcome.output.data

    @initialize()
    def some(self) -> None:
        for _ in range(3):
            self.add()

    @rule()
    def add(self) -> None:
        self.last += 1
        made = self.data("TaskCreate", subject=f"task {self.last}", description="")
        assert made["task"]["id"] == str(self.last)
        self.graph[str(self.last)], self.status[str(self.last)] = set(), "pending"

    @rule(which=IDS, blocks=st.lists(IDS, max_size=2), blocked_by=st.lists(IDS, max_size=2))
    def link(self, which: str, blocks: list[str], blocked_by: list[str]) -> None:
        wanted = {each: set(blockers) for each, blockers in self.graph.items()}
        possible = which in wanted and all(each in wanted for each in (*blocks, *blocked_by))
        if possible:
            wanted[which] |= set(blocked_by)
            for blocked in blocks:
                wanted[blocked].add(which)
        answer = self.data("TaskUpdate", taskId=which, addBlocks=blocks, addBlockedBy=blocked_by)
        assert answer["success"] is (possible and sound(wanted))
        if answer["success"]:
            self.graph = wanted

    @rule(blocked=IDS, blocker=IDS)
    def wait(self, blocked: str, blocker: str) -> None:
        self.link(blocked, [], [blocker])

    @rule(which=IDS)
    def delete(self, which: str) -> None:
        self.change(which, "deleted")

    @rule(which=IDS, status=st.sampled_from(["pending", "in_progress", "completed"]))
    def change(self, which: str, status: str) -> None:
        answer = self.data("TaskUpdate", taskId=which, status=status)
        assert answer["success"] is (which in self.graph)
        if which not in self.graph:
            return
        if self.status[which] != status:
            assert answer["statusChange"] == {"from": self.status[which], "to": status}
        self.status[which] = status
        if status == "deleted":
            del self.graph[which], self.status[which]
            for blockers in self.graph.values():
                blockers.discard(which)

    @invariant()
    def the_list_is_as_expected_and_both_sides_agree(self) -> None:
        listed = {task["id"]: task for task in self.data("TaskList")["tasks"]}
        assert {each: task["status"] for each, task in listed.items()} == self.status
        for which, blockers in self.graph.items():
            task = self.data("TaskGet", taskId=which)["task"]
            assert set(task["blockedBy"]) == blockers
            assert set(task["blocks"]) == {each for each, others in self.graph.items() if which in others}
            assert set(listed[which]["blockedBy"]) == {each for each in blockers if self.status[each] != "completed"}

    @invariant()
    def no_deleted_task_is_left_in_the_file(self) -> None:
        if self.last:
            kept = json.loads((self.session.state / "todo" / "tasks.json").read_text())
            assert {task["id"]: set(task["blockedBy"]) for task in kept["tasks"]} == self.graph


PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # each step is a real call, so shrinking would take minutes
TaskListMachine.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None, phases=PHASES)
TestDependencies = pytest.mark.proves("N20")(TaskListMachine.TestCase)
