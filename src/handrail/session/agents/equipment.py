"""
What the definition of an agent wants to have ready before it begins: skills, servers, hooks, notes.

Hooks and servers of its own live as long as its work. Nothing here is done for a definition that wants nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from handrail.agents.definitions import AgentDefinition
from handrail.agents.notes import notes_prompt, notes_tools, open_notes
from handrail.config.needs_trust import folder_of
from handrail.conversation.messages import Attachment
from handrail.errors import HandrailError
from handrail.extensions.commands import CommandFile
from handrail.extensions.definition_files import UnreadFile
from handrail.hooks.runner import Hooks
from handrail.hooks.specs import HookSource
from handrail.loop.complete_prompt import PromptRefusal
from handrail.mcp.resource_tools import JoinedServers, resource_tools
from handrail.records import record
from handrail.session.command_turn import complete_command
from handrail.session.conversation import Conversation
from handrail.session.servers.offers import ServerOffers
from handrail.session.servers.servers import Servers
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.skill_use import PLACEHOLDER, skill_attachment, text_of
from handrail.session.skills.notes import SessionSkills
from handrail.tools.abort import AbortSignal
from handrail.tools.context import McpResource
from handrail.tools.pool import AnyTool

OpenServers = Callable[[Mapping[str, Any]], Servers | None]
"""Opens servers that an agent brings along, not connected yet; None = the settings allow none."""


@record
class EquipmentDoors:
    """What equipment is made from."""

    settings: SessionSettings
    hooks: Hooks
    skills: SessionSkills | None
    open_servers: OpenServers
    session_tools: Callable[[], tuple[AnyTool, ...]]
    """The tools of the session's own servers."""
    session_offers: Callable[[], ServerOffers | None] = lambda: None
    """What else those servers offer."""


@dataclass(slots=True, eq=False)
class AgentEquipment:
    """What one agent has besides its conversation. Leave it with `aclose`."""

    doors: EquipmentDoors
    definition: AgentDefinition
    folder: Path | None = None
    index: str = ""
    servers: Servers | None = None
    source: HookSource | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def system(self) -> tuple[str, ...]:
        """What its system prompt ends with."""
        return () if self.folder is None else (notes_prompt(self.folder, self.index),)

    @property
    def notes(self) -> str:
        """The real path of the folder of its notes; empty = it keeps none."""
        return "" if self.folder is None else str(self.folder)

    @property
    def tools(self) -> tuple[str, ...] | None:
        """The tools of its definition, with those that its notes need."""
        tools = self.definition.tools
        if tools is None or self.folder is None:
            return tools
        named = {each.partition("(")[0].strip() for each in tools}
        return (*tools, *(each for each in notes_tools(self.folder) if each.partition("(")[0] not in named))

    @property
    def server_tools(self) -> tuple[AnyTool, ...]:
        """The tools of the servers that it brings along; those for resources also reach the session's servers."""
        if self.servers is None:
            return ()
        session = self.doors.session_offers()
        offers = [each for each in (session, self.servers.offers) if each is not None]
        return (*self.servers.tools, *resource_tools(JoinedServers(*offers))())

    def resources(self) -> dict[str, tuple[McpResource, ...]]:
        """What the servers that it brings along offer to read."""
        return self.servers.offers.resources() if self.servers else {}

    def gives(self, tool: str) -> bool:
        """Whether it brings a tool that the list of the definition does not name."""
        if self.folder is not None and tool in ("Read", "Edit", "Write"):
            return True
        names = {each.name for each in self.server_tools}
        for each in self.doors.session_tools():
            if each.mcp is not None and each.mcp.server in self.definition.servers:
                names.add(each.name)
        return tool in names

    async def skill_notes(self, conversation: Conversation, abort: AbortSignal) -> tuple[Attachment, ...]:
        """The texts of its skills; what one runs is run under the rules, and nothing of an untrusted one."""
        notes: list[Attachment] = []
        for name in self.definition.skills:
            note = await self._skill_note(name, conversation, abort)
            if isinstance(note, str):
                self.problems.append(f"The skill {name!r} was not loaded: {note}")
            else:
                notes.append(note)
        return tuple(notes)

    async def _skill_note(self, name: str, conversation: Conversation, abort: AbortSignal) -> Attachment | str:
        skills = self.doors.skills
        skill = skills.skills.get(name) if skills else None
        if skills is None or skill is None:
            return "there is none of this name."
        if not self._may_start(skill):
            return "it runs or allows something, and the folder of the agent's definition is not trusted."
        whole = skills.loader.read(skill)
        if isinstance(whole, UnreadFile):
            return str(whole)
        turn = skills.loader.open_turn(whole, "")
        done = await complete_command(
            turn, PLACEHOLDER, conversation, self.doors.settings, abort, run=conversation.state.context
        )
        return done.text if isinstance(done, PromptRefusal) else skill_attachment(whole, text_of(done))

    def _may_start(self, skill: CommandFile) -> bool:
        """Whether it may begin with a skill: a project that is not trusted cannot start what a skill of others runs."""
        settings = self.doors.settings
        if self.definition.origin != "project" or not skill.widens:
            return True
        return settings.is_trusted(folder_of(self.definition.source, settings.places.folders))

    async def aclose(self) -> None:
        """End its servers, and take its hooks back."""
        if self.source is not None:
            self.doors.hooks.remove(self.source)
        if self.servers is not None:
            await self.servers.aclose()


async def equip(definition: AgentDefinition, agent_id: str, doors: EquipmentDoors) -> AgentEquipment:
    """Make ready what a definition wants; what cannot be had is named, except hooks, without which nothing begins."""
    made = AgentEquipment(doors, definition)
    if definition.hooks:
        made.source = add_hooks(definition, agent_id, doors)
    try:
        if definition.memory:
            made.folder, made.index = notes_of(definition, doors.settings)
        own = {name: entry for name, entry in definition.servers.items() if entry is not None}
        if own:
            await _connect(made, own)
        known = {each.mcp.server for each in doors.session_tools() if each.mcp is not None}
        for name in definition.servers:
            if name not in own and name not in known:
                made.problems.append(f"The MCP server {name!r} that it names has no tools here.")
    except BaseException:
        await made.aclose()
        raise
    return made


def notes_of(definition: AgentDefinition, settings: SessionSettings) -> tuple[Path, str]:
    """The folder of an agent's notes and its index."""
    places = settings.places
    return open_notes(definition.memory, definition.name, Path(places.cwd), places.user, places.claude)


async def _connect(made: AgentEquipment, own: Mapping[str, Any]) -> None:
    made.servers = made.doors.open_servers(own)
    if made.servers is None:
        made.problems.append("Its MCP servers are not used: the policy names the only ones.")
        return
    made.problems += await made.servers.connect()  # tools that come later would come too late


def add_hooks(definition: AgentDefinition, agent_id: str, doors: EquipmentDoors) -> HookSource | None:
    """Add the hooks of a definition for one agent and those below it; None if the settings switch hooks off."""
    settings = doors.settings.loaded.settings
    if settings.get("disableAllHooks") or settings.get_managed("disableAllHooks"):
        return None
    if settings.get_managed("allowManagedHooksOnly") and definition.origin != "policy":
        return None
    family: Literal[".claude", ".handrail"] = ".claude" if "/.claude/" in definition.source else ".handrail"
    source = HookSource(
        f"agent:{definition.name}", family, definition.source, doors.settings.places.cwd, agent=agent_id
    )
    is_main = agent_id == "main"
    section = {
        "SubagentStop" if event == "Stop" and not is_main else event: hooks for event, hooks in definition.hooks.items()
    }
    doors.hooks.add(source, section)
    if wrong := [str(each) for each in doors.hooks.problems if each.source == source]:
        doors.hooks.remove(source)
        raise HandrailError(f"The hooks of the agent {definition.name!r} cannot be used: {'; '.join(wrong)}")
    return source
