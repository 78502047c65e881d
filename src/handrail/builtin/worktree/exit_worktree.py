"""ExitWorktree: go back to where the session came from, and keep or remove the worktree."""

from pathlib import Path
from typing import Literal

from handrail.builtin.worktree.base import WorktreeTool
from handrail.errors import ToolError
from handrail.tools.cards import Card
from handrail.tools.context import ToolContext
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import Check, Refuse, Strength, Verdict
from handrail.tools.plain_input import Field, PlainInput


class ExitWorktreeInput(PlainInput):
    action: Literal["keep", "remove"] = Field(default="keep", description="What becomes of its folder and branch.")
    discard_changes: bool = Field(default=False, description="Remove also what exists nowhere else.")


class ExitWorktree(WorktreeTool[ExitWorktreeInput]):
    name = "ExitWorktree"
    search_hint = "leave, keep or remove the isolated copy, go back"
    input_model = ExitWorktreeInput

    def is_destructive(self, args: ExitWorktreeInput) -> bool:
        return args.action == "remove"

    def summary(self, args: ExitWorktreeInput) -> str:
        return f"ExitWorktree({args.action}{', discard changes' if args.discard_changes else ''})"

    async def validate(self, args: ExitWorktreeInput, ctx: ToolContext) -> Refuse | None:
        if self._worktrees is None or not ctx.agent.is_main or not self._worktrees.current:
            return Refuse("You are in no worktree that EnterWorktree or --worktree began, so there is none to leave.")
        if args.action == "remove" and not args.discard_changes and (lost := await self._worktrees.unsaved_work()):
            return Refuse(
                f"The worktree {self._worktrees.current} is not removed: {lost}. Keep it, commit and merge first, or "
                "tell the user what would be lost and pass discard_changes."
            )
        return None

    async def check_permission(self, args: ExitWorktreeInput, ctx: ToolContext) -> Check:
        lost = await self._unsaved_work(args)
        return Check(Verdict.ASK, f"removing the worktree loses work: {lost}") if lost else Check()

    async def call(self, args: ExitWorktreeInput, ctx: ToolContext) -> Output:
        assert self._worktrees is not None
        if (lost := await self._unsaved_work(args)) and not _said_yes(ctx):  # whatever the mode lets pass
            raise ToolError(f"The worktree is not removed: {lost}, and no one was asked. Keep it, or ask the user.")
        move = await self._worktrees.leave(ctx.run, remove=args.action == "remove")
        return Output(
            text=move.note,
            data={"action": args.action, "originalCwd": move.folder, "message": move.note},
            card=Card(title="Worktree", detail=f"left: {args.action}"),
            context_change=ContextChange(cwd=Path(move.folder)),
        )

    async def _unsaved_work(self, args: ExitWorktreeInput) -> str:
        if self._worktrees is None or args.action != "remove":
            return ""
        return await self._worktrees.unsaved_work()


def _said_yes(ctx: ToolContext) -> bool:
    opinions = ctx.decision.opinions if ctx.decision else ()
    return any(each.strength is Strength.PERSON and each.verdict is Verdict.ALLOW for each in opinions)
