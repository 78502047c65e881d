"""The teams of a session: who they are is written with the agents, that there is one is a file here."""

import json
import os
import re
from pathlib import Path

from handrail.files.private_folder import make_private_folder
from handrail.records import record

VERSION = 1
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
LEAD = "main"
LEAD_NAMES = frozenset(("main", "lead", "team-lead"))
EVERYONE = frozenset(("*", "all"))


@record
class Team:
    """A team of sub-agents; the main agent leads it."""

    name: str
    description: str = ""


@record
class TeamFiles:
    """The teams of a session, one file each."""

    folder: Path

    def save(self, team: Team) -> None:
        """Write a team; a reader sees all of it or nothing."""
        path = make_private_folder(self.folder) / f"{team.name}.json"
        draft = path.with_suffix(".draft")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump({"version": VERSION, "name": team.name, "description": team.description}, file)
        draft.replace(path)

    def all(self) -> dict[str, Team]:
        """The teams there are, by name."""
        found: dict[str, Team] = {}
        for path in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            try:
                kept = json.loads(path.read_text("utf-8"))
                if kept["version"] <= VERSION:
                    found[kept["name"]] = Team(kept["name"], kept["description"])
            except (OSError, ValueError, LookupError, TypeError):
                continue
        return found

    def remove(self, name: str) -> None:
        """Forget a team."""
        (self.folder / f"{name}.json").unlink(missing_ok=True)


def name_problem(name: str) -> str:
    """Why an agent or a team cannot have this name; empty if it can."""
    if name in LEAD_NAMES | EVERYONE:
        return f"The name {name!r} means the lead or all agents. Choose another one."
    if not re.fullmatch(NAME, name) or name.startswith("agent-"):
        return f"{name!r} cannot be a name. Use letters, digits, dots and dashes, and do not begin with 'agent-'."
    return ""
