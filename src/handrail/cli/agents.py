"""`handrail agents`: the agents that hold in this folder, one in full, a new one, and what is wrong with them."""

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.agents.definitions import NAME, AgentDefinition
from handrail.cli.permission_flags import warn
from handrail.cli.terminal import count_of
from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError
from handrail.session.agents.definitions import session_agents
from handrail.session.settings.session_settings import SessionSettings, open_settings
from handrail.session.skills.notes import SessionSkills
from handrail.session.state_folder import state_folder
from handrail.tools.wording import did_you_mean

NEW = """---
name: {name}
description: What it does, and when to hand a task to it. This is all that the caller sees before it does.
tools: Read, Grep, Glob
---
You are handed one task. Say here how to work on it, and what the last message, which is all that the caller sees, says.
"""


def run(chosen: argparse.Namespace) -> int:
    """Do what was asked for; 1 if `check` found a problem."""
    if chosen.what == "new":
        return _new(chosen.name, user=chosen.user)
    cwd = Path.cwd()
    settings = open_settings(cwd, os.environ, state_folder(os.environ), NO_FLAGS_GIVEN, warn)
    agents, problems = session_agents(cwd, os.environ, {}, settings)
    if chosen.what == "show":
        return _show(agents, chosen.name, as_json=chosen.json)
    if chosen.what == "check":
        return _check([*problems, *_missing(agents, cwd, settings)], len(agents), as_json=chosen.json)
    rows = [agent_row(each) for each in agents.values()]
    if chosen.json:
        print(plain_json(rows, indent=2))
        return 0
    for row in rows:
        print(plain(f"{row['name']} ({row['origin']})\n    {row['description'][:200]}"))
    for problem in problems:
        warn(problem)
    return 0


def agent_row(agent: AgentDefinition) -> dict[str, Any]:
    """A definition as data: its name, where it comes from, and each field that it has."""
    fields = {
        "tools": agent.tools,
        "disallowedTools": agent.disallowed,
        "model": agent.model,
        "permissionMode": agent.mode,
        "maxTurns": agent.max_turns,
        "effort": agent.effort,
        "background": agent.background,
        "isolation": agent.isolation,
        "skills": agent.skills,
        "mcpServers": dict(agent.servers),
        "hooks": dict(agent.hooks),
        "memory": agent.memory,
        "color": agent.color,
        "initialPrompt": agent.initial_prompt,
    }
    given = {name: value for name, value in fields.items() if value or (name == "tools" and value is not None)}
    about = {"name": agent.name, "description": agent.description, "origin": agent.origin, "source": agent.source}
    return {**about, "fields": given}


def _show(agents: Mapping[str, AgentDefinition], name: str, *, as_json: bool) -> int:
    if name not in agents:
        raise HandrailError(f"there is no agent {name!r}.{did_you_mean(name, agents)} See `handrail agents list`.")
    row = agent_row(agents[name])
    if as_json:
        print(plain_json({**row, "prompt": agents[name].prompt}, indent=2))
        return 0
    where = ", ".join(dict.fromkeys((row["origin"], row["source"])))
    print(plain(f"{name} ({where})\n{row['description']}"))
    for field, value in row["fields"].items():
        print(plain(f"{field}: {value if isinstance(value, str) else plain_json(value)}"))
    print(plain(f"\n{agents[name].prompt}"))
    return 0


def _missing(agents: Mapping[str, AgentDefinition], cwd: Path, settings: SessionSettings) -> list[str]:
    """The skills and servers that definitions name and that are not here."""
    skills, servers = SessionSkills(cwd, settings).skills, settings.loaded.settings.servers
    found = []
    for agent in agents.values():
        found += [
            f"{agent.source}: the agent {agent.name!r} names the skill {name!r}, which is not here"
            for name in agent.skills
            if name not in skills
        ]
        found += [
            f"{agent.source}: the agent {agent.name!r} names the MCP server {name!r}, which is not configured here"
            for name, entry in agent.servers.items()
            if entry is None and name not in servers
        ]
    return found


def _new(name: str, *, user: bool) -> int:
    if not re.fullmatch(NAME, name):
        raise HandrailError(f"{name!r} cannot be the name of an agent. Use letters, digits and single dashes.")
    own = Path(os.environ.get("HANDRAIL_CONFIG_DIR") or Path.home() / ".handrail").expanduser()
    file = (own if user else Path(".handrail")) / "agents" / f"{name}.md"
    if os.path.lexists(file):
        raise HandrailError(f"{file} is there already. Choose another name, or edit it.")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(NEW.format(name=name), "utf-8")
    print(f"{file} was written. Describe in it how to work; --agent {name} lets it lead a conversation.")
    return 0


def _check(problems: list[str], count: int, *, as_json: bool) -> int:
    if as_json:
        print(plain_json({"agents": count, "problems": problems}, indent=2))
    else:
        for problem in problems:
            print(plain(problem))
        print(f"{count_of(count, 'agent')}, {count_of(len(problems), 'problem')}")
    return 1 if problems else 0
