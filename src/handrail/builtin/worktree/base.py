"""What the tools that enter and leave a worktree have in common."""

from typing import TypeVar

from handrail.builtin.services import ToolServices
from handrail.tools.access import Access
from handrail.tools.context import RunContext
from handrail.tools.plain_input import PlainInput
from handrail.tools.tool import Tool
from handrail.tools.worktrees import Worktrees

In = TypeVar("In", bound=PlainInput)


class WorktreeTool(Tool[In]):
    """A tool that moves the session to another folder, with no other call beside it."""

    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._open_worktrees = services.worktrees

    @property
    def _worktrees(self) -> Worktrees | None:
        return self._open_worktrees() if self._open_worktrees else None

    def access(self, args: In, run: RunContext) -> Access:
        return Access.bookkeeping(writes="working folder", width="exclusive")
