"""What a session gives to its tools."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.records import record
from handrail.tools.context import RunContext
from handrail.tools.delegation import Delegate
from handrail.tools.hidden_files import HiddenFiles
from handrail.tools.remote import RemoteServer
from handrail.tools.web import PageReader, SearchBackend, WebOptions

if TYPE_CHECKING:
    from handrail.files.undo import Undo
    from handrail.processes.sandbox_contract import Sandbox
    from handrail.tools.code_questions import LanguageServers
    from handrail.tools.schedules import Schedules
    from handrail.tools.skills import Skills
    from handrail.tools.worktrees import Worktrees

ObjectToTask: TypeAlias = Callable[[str, Mapping[str, Any], RunContext], Awaitable[str]]
"""Called with TaskCreated or TaskCompleted and the task's fields; returns why not, or an empty text."""


def nothing_hidden() -> HiddenFiles:
    """For programs without rules."""
    return HiddenFiles(lambda _folder, _name: False, lambda _folder: False, lambda _name: False)


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
    hidden_files: Callable[[], HiddenFiles] = nothing_hidden
    """The files that a rule forbids reading now, so searches leave them out."""
    delegate: Delegate | None = None
    """Runs sub-agents; None = there are none."""
    worktrees: "Callable[[], Worktrees] | None" = None
    """Gives what moves the session into a worktree; None = it stays where it is."""
    skills: "Skills | None" = None
    """Loads skills; None = there are none."""
    language_servers: "LanguageServers | None" = None
    """Answer questions about code; None = there are none."""
    schedules: "Schedules | None" = None
    """Schedules prompts; None = there are no schedules."""
    sandbox: "Sandbox | None" = None
    """The sandbox of commands; None = they are not sandboxed."""
    undo: "Undo | None" = None
    """The undo journal of file changes."""
    programs: Callable[[], tuple[str, ...]] = tuple
    """Folders of programs that approved commands find, behind those of PATH."""
    background: bool = True
    """Whether commands may go on in the background."""
    object_to_task: ObjectToTask | None = None
    """Asks hooks whether a task may be created or completed; None = there are none."""
    output_quota: Callable[[], int] = usual_quota
    """How many bytes of output a command may write before it is stopped."""
    readable_services: Callable[[], tuple[str, ...]] = tuple
    """What commands may ask with the user's sign-in because they only read: `cluster:CONTEXT`, `forge:HOST`."""
    web: WebOptions = WebOptions()
    page_reader: PageReader | None = None
    """Answers questions about pages of the web; None = their text is given."""
    search: SearchBackend | None = None
    """Searches the web; None = there is no search service."""
    max_searches: int = 200
    remote_servers: Mapping[str, RemoteServer] = field(default_factory=dict)
    """Servers of other machines that start runs, by name."""
    sorts_by_name: bool = False
    """Searches list files by name, not newest first: times differ in every copy of a project, and tapes must not."""

    def is_hidden(self, path: str) -> bool:
        """Whether a rule forbids reading this real path."""
        folder, _, name = path.rpartition("/")
        return self.hidden_files().is_hidden(folder, name)

    @property
    def plan_file(self) -> Path:
        """The one file that may be written in plan mode."""
        return self.plan or self.state / "plan.md"
