"""Worktrees of a session: what the tools that enter and leave them need of it."""

from typing import Protocol

from handrail.records import record
from handrail.tools.context import RunContext


@record
class WorktreeMove:
    """Where the session works from now on, and what the model has to know of it."""

    folder: str
    note: str
    branch: str = ""


class Worktrees(Protocol):
    """Moves a session into a worktree and back."""

    @property
    def current(self) -> str:
        """The folder of the worktree that the session is in; empty if it is in none."""
        ...

    async def enter(self, name: str, path: str, run: RunContext) -> WorktreeMove:
        """Make a worktree and go there, or go to the one at `path`; ToolError if that cannot be had."""
        ...

    async def unsaved_work(self) -> str:
        """What would be lost if the worktree were removed; empty = nothing."""
        ...

    async def leave(self, run: RunContext, *, remove: bool) -> WorktreeMove:
        """Go back to where the session came from; `remove` the worktree with all that is in it."""
        ...
