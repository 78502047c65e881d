"""Notes of worktrees that are being made."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from handrail.agents.pending_worktrees import FOLDER, forget_pending, note_pending
from handrail.agents.worktrees import Worktree


def test_worktrees_that_are_made_at_the_same_time_do_not_keep_each_other_from_being_noted(tmp_path: Path) -> None:
    def make_some(maker: int) -> None:
        for number in range(100):
            path = f"/tree-{maker}-{number}"
            note_pending(tmp_path, Worktree("/repository", path, "branch", "base", path))
            forget_pending(path)

    with ThreadPoolExecutor(4) as makers:
        list(makers.map(make_some, range(4)))

    assert not (tmp_path / FOLDER).exists()
