"""What is kept of each sub-agent beside its transcript, so that it can go on after the session was resumed."""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import get_args

from handrail.files.private_folder import make_private_folder
from handrail.records import record
from handrail.tools.delegation import AgentStatus, AgentTask

VERSION = 1


@record
class AgentRecord:
    """What a sub-agent is, apart from its conversation. `parent` is the agent that it works for."""

    id: str
    kind: str
    description: str
    status: AgentStatus = "running"
    name: str = ""
    model: str = ""
    effort: str = ""
    parent: str = "main"
    depth: int = 1
    cwd: str = ""
    worktree: str = ""
    """The JSON of the worktree that it works in; empty = it shares the caller's folder."""
    team: str = ""


FIELDS = tuple(AgentRecord.__annotations__)


@record
class AgentRecords:
    """The records of a session's sub-agents, one file each; None = nothing is kept."""

    folder: Path | None

    def save(self, entry: AgentRecord) -> None:
        """Write a record; a reader sees the old one or the new one."""
        if self.folder is None:
            return
        path = make_private_folder(self.folder) / f"{entry.id}.json"
        draft = path.with_suffix(".draft")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump({"version": VERSION} | {name: getattr(entry, name) for name in FIELDS}, file)
        draft.replace(path)

    def load(self, agent_id: str) -> AgentRecord | None:
        """The record of an agent of an earlier run of the session; one that was at work then was killed."""
        if self.folder is None or "/" in agent_id:
            return None
        try:
            kept = json.loads((self.folder / f"{agent_id}.json").read_text("utf-8"))
            if kept["version"] > VERSION:
                return None
            entry = AgentRecord(**{name: kept[name] for name in FIELDS if name in kept})
        except (OSError, ValueError, LookupError, TypeError):
            return None
        status = "killed" if entry.status == "running" or entry.status not in get_args(AgentStatus) else entry.status
        return AgentRecord(**{**{name: getattr(entry, name) for name in FIELDS}, "status": status})

    def all_ids(self) -> tuple[str, ...]:
        """The ids of all sub-agents that were kept."""
        return () if self.folder is None else tuple(sorted(path.stem for path in self.folder.glob("agent-*.json")))


def resume_problem(task: AgentTask, kept: AgentRecord | None, known: Collection[str], kinds: Collection[str]) -> str:
    """Why the agent that a task names cannot go on; empty if it can. `known` are the ids of those at hand."""
    wanted = task.resume
    if kept is None:
        return f"There is no sub-agent {wanted!r} to resume. Known: {', '.join(known) or 'none'}."
    if kept.status == "running":
        return f"The sub-agent {wanted!r} is still at work. Wait for its end."
    if kept.kind not in kinds:
        return f"The sub-agent {wanted!r} is a {kept.kind!r}, which there is no more. Start another one."
    if kept.kind != task.kind:  # rules and hooks judge the kind that the call names
        return f"The sub-agent {wanted!r} is a {kept.kind!r}. To let it go on, say subagent_type {kept.kind!r}."
    return ""
