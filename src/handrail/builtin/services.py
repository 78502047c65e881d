"""What a session gives to its tools."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.processes.sandbox_contract import Sandbox
from handrail.records import record
from handrail.tools.delegation import Delegate
from handrail.tools.skills import Skills

if TYPE_CHECKING:
    from handrail.files.undo import Undo


def nothing_hidden(_path: str) -> bool:
    """For programs without rules."""
    return False


def usual_quota() -> int:
    """For programs without settings: 2 GB."""
    return 2_000_000_000


@record
class ToolServices:
    """What the tools of a session share. Creating it does not touch the disk."""

    env: Mapping[str, str]
    home: str
    working_dirs: Callable[[], tuple[str, ...]]
    """Real paths of the folders where the agent may work; the first is the project."""
    state: Path
    """A private folder of this session. The first tool that writes there creates it."""
    plan: Path | None = None
    """The plan file; None = `plan.md` in that folder."""
    hidden: Callable[[str], bool] = nothing_hidden
    """Whether a rule forbids reading this real path, so that searches leave it out."""
    delegate: Delegate | None = None
    """Runs sub-agents; None = there are none."""
    skills: Skills | None = None
    """Loads skills; None = there are none."""
    sandbox: Sandbox | None = None
    """The sandbox of commands; None = they are not sandboxed."""
    undo: "Undo | None" = None
    """The undo journal of file changes."""
    background: bool = True
    """Whether commands may go on in the background."""
    output_quota: Callable[[], int] = usual_quota
    """How many bytes of output a command may write before it is stopped."""
    sorts_by_name: bool = False
    """Searches list files by name, not newest first: times differ in every copy of a project, and tapes must not."""

    @property
    def plan_file(self) -> Path:
        """The one file that may be written in plan mode."""
        return self.plan or self.state / "plan.md"
