"""The worktree of a sub-agent: made before it begins, ended after it. Loaded with the first agent that works apart."""

import asyncio
from pathlib import Path

from handrail.agents.worktrees import Worktree, add_worktree, end_worktree
from handrail.builtin.services import ToolServices
from handrail.session.agent_records import AgentRecord


async def worktree_for(entry: AgentRecord, folder: Path, services: ToolServices) -> Worktree:
    """The worktree that the agent had, or a new one from the HEAD of a folder; ToolError if it cannot be had."""
    return await asyncio.to_thread(_worktree_for, entry, folder, services)


def _worktree_for(entry: AgentRecord, folder: Path, services: ToolServices) -> Worktree:
    if entry.worktree:
        before = Worktree.from_json(entry.worktree)
        if Path(before.path).is_dir():
            return before
        folder = Path(before.repository)
    project = Path(services.working_dirs()[0])
    return add_worktree(folder, project, entry.id, services.state, services.env, is_hidden=services.hidden)


async def leave_worktree(entry: AgentRecord, services: ToolServices) -> tuple[str, ...]:
    """What the caller has to know of the worktree of an agent that has ended."""
    note = await asyncio.to_thread(end_worktree, Worktree.from_json(entry.worktree), services.env)
    return (note,) if note else ()


def with_note(entry: AgentRecord, prompt: str) -> str:
    """The first prompt of an agent, with what it has to know of the place where it works."""
    return f"{prompt}\n\n{Worktree.from_json(entry.worktree).note_for_agent()}"
