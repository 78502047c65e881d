"""What the tools of one session are handed by the program that runs them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.processes.sandbox_contract import Sandbox
from handrail.records import record
from handrail.tools.delegation import Delegate

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
    """The surroundings of a session's tools. Nothing in it has touched the disk yet."""

    env: Mapping[str, str]
    home: str
    working_dirs: Callable[[], tuple[str, ...]]
    """Real paths of the folders that the agent may work in; the first is the project."""
    state: Path
    """A folder of this session alone, for its owner only. Whoever writes first makes it."""
    hidden: Callable[[str], bool] = nothing_hidden
    """Whether a rule keeps the file at this real path from being read, so that searches leave it out."""
    delegate: Delegate | None = None
    """Who runs sub-agents; None = there are none."""
    sandbox: Sandbox | None = None
    """Where commands run. None = they are not sandboxed."""
    undo: "Undo | None" = None
    """Where changes of files are kept so that they can be undone."""
    output_quota: Callable[[], int] = usual_quota
    """How many bytes of output a command may write now, before it is stopped."""
