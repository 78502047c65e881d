"""The worktree of a sub-agent: made before it begins, ended after it. Loaded with the first agent that works apart."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from handrail.agents.worktrees import Worktree, end_worktree
from handrail.builtin.services import ToolServices
from handrail.hooks.runner import Hooks
from handrail.permissions.policy import Policy
from handrail.session.agent_records import AgentRecord
from handrail.session.worktrees import BY_HOOK, is_folder, make_worktree
from handrail.tools.context import RunContext


async def worktree_for(entry: AgentRecord, folder: Path, services: ToolServices, hooks: Hooks) -> Worktree:
    """The worktree that the agent had, or a new one from the HEAD of a folder; ToolError if it cannot be had."""
    if entry.worktree:
        before = Worktree.from_json(entry.worktree)
        if is_folder(before.path):
            return before
        folder = Path(before.repository)
    return await make_worktree(entry.id, RunContext(folder), services, hooks)


def policy_for(place: Worktree) -> Callable[[Policy], Policy]:
    """Rules of the repository hold in a worktree; one that a hook made elsewhere is a working folder."""

    def change(now: Policy) -> Policy:
        if place.branch == BY_HOOK:
            now = now.with_directories((*now.working_dirs, place.path))
        return now.with_worktree(place.repository, place.path)

    return change


async def leave_worktree(entry: AgentRecord, services: ToolServices) -> tuple[str, ...]:
    """What the caller has to know of the worktree of an agent that has ended."""
    worktree = Worktree.from_json(entry.worktree)
    if worktree.branch == BY_HOOK:
        return (f"[It worked in the folder {worktree.path}, which a WorktreeCreate hook made and which is kept.]",)
    note = await asyncio.to_thread(end_worktree, worktree, services.env)
    return (note,) if note else ()


def with_note(entry: AgentRecord, prompt: str) -> str:
    """The first prompt of an agent, with what it has to know of the place where it works."""
    return f"{prompt}\n\n{Worktree.from_json(entry.worktree).note_for_agent()}"
