"""Everything below a process: found in order, and killed."""

import subprocess
import sys

import pytest

from handrail.processes import tree
from handrail.processes.tree import SIGKILL, children_of, descendants, kill_below, send

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

NESTED = "echo $$; sh -c 'echo $$; sleep 1000 & echo $!; wait' & wait"


class Family:
    """Three generations: a shell, a shell below it, and a program below that."""

    def __init__(self) -> None:
        self.top = subprocess.Popen(["sh", "-c", NESTED], stdout=subprocess.PIPE, start_new_session=True)
        assert self.top.stdout is not None
        self.pids = [int(self.top.stdout.readline()) for _ in range(3)]

    def end(self) -> None:
        send(self.pids, SIGKILL)
        self.top.communicate()


def test_descendants_come_after_their_parents() -> None:
    family = Family()
    try:
        assert descendants(family.pids[0]) == family.pids[1:]
        assert children_of(family.pids[0]) == [family.pids[1]]
    finally:
        family.end()


@pytest.mark.needs("ps")
def test_where_the_kernel_lists_no_children_ps_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_kernel_lists_children", lambda: False)
    family = Family()
    try:
        assert descendants(family.pids[0]) == family.pids[1:]
    finally:
        family.end()


@pytest.mark.proves("R8")
def test_all_below_are_killed_and_the_top_is_left() -> None:
    family = Family()
    try:
        kill_below(family.pids[0])
        family.top.wait()  # it waited for the others

        assert family.top.returncode >= 0
    finally:
        family.end()


def test_who_is_gone_already_is_no_problem() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    send([gone.pid], SIGKILL)

    assert children_of(gone.pid) == []
    assert descendants(gone.pid) == []
