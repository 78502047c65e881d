"""EnterWorktree: work in a copy of the repository, on a branch of its own."""

from pathlib import Path

from handrail.builtin.worktree.base import WorktreeTool
from handrail.lazy import lazy_pattern
from handrail.tools.cards import Card
from handrail.tools.context import ToolContext
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import Refuse
from handrail.tools.plain_input import Field, PlainInput

NAME = lazy_pattern(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*")


class EnterWorktreeInput(PlainInput):
    name: str = Field(default="", max_length=64, description="What the worktree and its branch are called.")
    path: str = Field(default="", description="A worktree of this repository that exists already.")


class EnterWorktree(WorktreeTool[EnterWorktreeInput]):
    name = "EnterWorktree"
    search_hint = "isolated copy of the git repository, branch"
    input_model = EnterWorktreeInput

    def summary(self, args: EnterWorktreeInput) -> str:
        return f"EnterWorktree({args.name or args.path})"

    async def validate(self, args: EnterWorktreeInput, ctx: ToolContext) -> Refuse | None:
        if self._worktrees is None or not ctx.agent.is_main:
            return Refuse("There are no worktrees to enter here. Work in the folder that you are in.")
        if self._worktrees.current:
            return Refuse(f"You are in the worktree {self._worktrees.current} already. Leave it first: ExitWorktree.")
        if args.name and args.path:
            return Refuse("Give a name for a new worktree, or the path of one that exists, not both.")
        if args.name and not NAME.fullmatch(args.name):
            return Refuse(f"{args.name!r} cannot be its name. Use letters, digits, dots, dashes and underscores.")
        return None

    async def call(self, args: EnterWorktreeInput, ctx: ToolContext) -> Output:
        assert self._worktrees is not None
        move = await self._worktrees.enter(args.name, args.path, ctx.run)
        return Output(
            text=move.note,
            data={"worktreePath": move.folder, "worktreeBranch": move.branch, "message": move.note},
            card=Card(title="Worktree", detail=move.folder),
            context_change=ContextChange(cwd=Path(move.folder)),
        )
