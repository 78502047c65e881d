"""What a conversation can use besides its tools, as commands: agents, skills, plugins; and plan mode."""

import asyncio
from typing import TYPE_CHECKING

from handrail.lazy import lazy
from handrail.session.command_turn import is_trusted
from handrail.tui.interactive.chat import Chat, ChatCommand

if TYPE_CHECKING:
    from handrail.cli import plugins
    from handrail.config import plugin_store
else:
    plugins = lazy("handrail.cli.plugins")
    plugin_store = lazy("handrail.config.plugin_store")

MAX_DESCRIPTION = 200


async def show_agents(chat: Chat, _words: str) -> None:
    """The agents of this session, and the kinds that tasks can be handed to."""
    agents = chat.session.agents
    working = [
        f"{each.name or each.id}: {each.description} ({each.kind}, {each.status})" for each in agents.teams.all()
    ]
    kinds = [entry(each.name, each.origin, each.description) for each in agents.definitions().values()]
    started = ["Started in this session (Ctrl+T shows those at work):", *working, ""] if working else []
    chat.front.say("\n".join([*started, *kinds, "`handrail agents new NAME` writes another one."]))


async def show_skills(chat: Chat, _words: str) -> None:
    """The skills that the model and the person can use here."""
    session = chat.session
    rows = []
    for skill in session.skills.skills.values():
        marks = [
            skill.source,
            *(["not for the model"] if not skill.is_for_model else []),
            *(["not for people"] if not skill.is_listed else []),
            *(["not trusted"] if not is_trusted(skill, session.settings) else []),
        ]
        rows.append(entry(f"/{skill.name}", ", ".join(marks), skill.description))
    chat.front.say("\n".join(rows) or "There are no skills here. `handrail skills new NAME` writes one.")


async def show_plugins(chat: Chat, _words: str) -> None:
    """The plugins that were added, and how they stand."""
    settings = chat.session.settings
    store = plugin_store.PluginStore(settings.places.state)
    rows = await asyncio.to_thread(plugins.plugin_rows, store, settings)
    lines = []
    for row in rows:
        marks = ["on" if row["enabled"] else "off"]
        marks += ["its copy is damaged"] * (not row["intact"]) + ["changed since it was added"] * row["changed"]
        about = row.get("description") or row.get("problem") or row["source"]
        lines.append(entry(str(row["name"]), ", ".join(marks), str(about)))
    chat.front.say("\n".join(lines) or "No plugins were added. `handrail plugins add FOLDER` adds one.")


def entry(name: str, marks: str, description: str) -> str:
    """A row of a list: the name, how it stands, and what it is for."""
    return f"{name} ({marks}): {' '.join(description.split())[:MAX_DESCRIPTION]}"


async def plan(chat: Chat, words: str) -> None:
    """Enter plan mode, and work on what was typed; in plan mode without words, show the plan."""
    if not words and chat.session.mode == "plan":
        file = chat.session.services().plan_file
        text = await asyncio.to_thread(lambda: file.read_text("utf-8", "replace") if file.is_file() else "")
        chat.front.say(f"{file}\n\n{text.strip()}" if text.strip() else "There is no plan yet. Say what to plan.")
        return
    if chat.session.mode != "plan":
        chat.front.say(f"The mode is {chat.session.set_mode('plan')}.", dim=True)
    if words:
        await chat.work(words)


def extension_commands() -> dict[str, ChatCommand]:
    """The commands."""
    return {
        "agents": ChatCommand("Show the kinds of agents, and the agents of this session", show_agents),
        "plan": ChatCommand("Plan before making changes, or show the plan", plan, "[what]"),
        "plugins": ChatCommand("Show the plugins and their status", show_plugins),
        "skills": ChatCommand("Show the skills, and who may use them", show_skills),
    }
