"""The worktree of a sub-agent: made before it begins, ended after it. Loaded with the first isolated agent."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from handrail.agents.pending_worktrees import forget_pending
from handrail.agents.worktrees import Worktree, end_worktree
from handrail.builtin.services import ToolServices
from handrail.files.memory import FileMemory
from handrail.hooks.runner import Hooks
from handrail.permissions.policy import Policy
from handrail.session.agents.records import AgentRecord
from handrail.session.agents.state import Subagent
from handrail.session.parts import SharedParts
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


async def enter_worktree(agent: Subagent, folder: Path, services: ToolServices, parts: SharedParts) -> None:
    """Let an agent work in a worktree of its own, its previous one or a new one; ToolError if it cannot be had."""
    place = await worktree_for(agent.record, folder, services, parts.hooks)
    if place.as_json() != agent.record.worktree:
        agent.files = FileMemory()
    agent.cwd = Path(place.cwd)
    if agent.forget_worktree is None:
        agent.forget_worktree = parts.settings.in_force().lend(policy_for(place))
    agent.record = replace(agent.record, cwd=place.cwd, worktree=place.as_json())


def settle_worktree(agent: Subagent) -> None:
    """The record of the agent is written, so that its worktree is not lost any more."""
    forget_pending(Worktree.from_json(agent.record.worktree).path)


async def leave_worktree(agent: Subagent, services: ToolServices) -> tuple[str, ...]:
    """The agent has ended: what its caller has to know of its worktree, which goes if nothing was done in it."""
    notes = await end_worktree_of_agent(agent.record, services)
    if agent.forget_worktree is not None and not agent.cwd.is_dir():
        agent.forget_worktree()
        agent.forget_worktree = None
    return notes


async def end_worktree_of_agent(entry: AgentRecord, services: ToolServices) -> tuple[str, ...]:
    """Remove a worktree in which nothing was done; else what there is to know of it."""
    worktree = Worktree.from_json(entry.worktree)
    if worktree.branch == BY_HOOK:
        return (f"[It worked in the folder {worktree.path}, which a WorktreeCreate hook made and which is kept.]",)
    note = await asyncio.to_thread(end_worktree, worktree, services.env)
    return (note,) if note else ()


def with_note(entry: AgentRecord, prompt: str) -> str:
    """The first prompt of an agent, with what it has to know of the place where it works."""
    return f"{prompt}\n\n{Worktree.from_json(entry.worktree).note_for_agent()}"
