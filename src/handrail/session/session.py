"""A session: everything that was opened for one conversation in a folder, and what front ends do with it."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, UserMessage
from handrail.conversation.redact import Redactor
from handrail.errors import HandrailError
from handrail.hooks.runner import Hooks
from handrail.hooks.texts import reminder
from handrail.lazy import lazy
from handrail.loop.events import LoopEvent, RequestSent
from handrail.records import mutable_record
from handrail.session.agents.definitions import public_source
from handrail.session.background import end_tasks
from handrail.session.background_work import BackgroundWork
from handrail.session.context.session_context import SessionContext
from handrail.session.conversation import Conversation
from handrail.session.drive import drive
from handrail.session.language_servers import SessionLanguageServers
from handrail.session.models.choose import ChosenModel, SessionModel, cost_for
from handrail.session.models.facts import ModelFacts
from handrail.session.retention import tidy
from handrail.session.schedules import SessionSchedules
from handrail.session.scratch import ScratchFolder
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.skills.notes import SessionSkills
from handrail.session.skills.output_style import StyleNotes
from handrail.session.spec import SessionSpec
from handrail.session.state_folder import state_folder, undo_folder
from handrail.session.usage import SessionUsage
from handrail.session.warm_up import WarmUp
from handrail.tools.abort import AbortSignal
from handrail.transcripts.store import OpenTranscript

if TYPE_CHECKING:
    from handrail.files import restore
    from handrail.session import plugin_switch, slash_commands
    from handrail.session import worktrees as session_worktrees
    from handrail.session.agents import equipment as agent_equipment
    from handrail.session.agents import subagents
    from handrail.session.live import questions as live_questions
    from handrail.session.live import text as live_text
    from handrail.session.servers import prompts as server_prompts
    from handrail.session.servers import servers as mcp_servers
    from handrail.session.servers import tools as server_tools
    from handrail.telemetry.observer import SessionTelemetry
else:
    live_text = lazy("handrail.session.live.text")
    plugin_switch = lazy("handrail.session.plugin_switch")
    restore = lazy("handrail.files.restore")
    server_prompts = lazy("handrail.session.servers.prompts")
    server_tools = lazy("handrail.session.servers.tools")
    slash_commands = lazy("handrail.session.slash_commands")

WORKTREES = "handrail.session.worktrees"


def _look_again(session: "Session") -> None:
    """A prompt begins: what changed in files of agents and in plugins counts."""
    session.agents.definitions.look_again()
    follow_plugins(session)


def follow_plugins(session: "Session") -> None:
    """Let plugins count that settings switch on by now; a tool's thread leaves that to the next prompt."""
    is_wanted = session.skills.plugins is not None or session.settings.loaded.settings.get("enabledPlugins")
    if not is_wanted or not session.spec.flags.flags_widen:
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if session.plugin_switch is None:
        session.plugin_switch = plugin_switch.PluginSwitch(session)
    session.plugin_switch.follow()


@mutable_record
class Session:
    """What `open_session` opened, in the order it was opened. Leave it with `aclose`."""

    spec: SessionSpec
    settings: SessionSettings
    redactor: Redactor
    """Takes out the secrets of environment, settings and servers, and the model's key."""
    transcript: OpenTranscript | None
    id: str
    model: SessionModel
    model_facts: ModelFacts
    choose_model: Callable[[str], ChosenModel]
    """Opens another model by its name."""
    services: Callable[[], ToolServices]
    hooks: Hooks
    context: SessionContext | None
    agents: "subagents.Subagents"
    skills: SessionSkills
    style: StyleNotes
    servers: "mcp_servers.Servers | None"
    language_servers: SessionLanguageServers
    schedules: SessionSchedules
    conversation: Conversation
    auto_compact: bool
    on_warning: Callable[[str], None]
    open_servers: "Callable[[], mcp_servers.Servers]"
    """Opens servers where there were none, for plugins that are switched on later."""
    open_next: "Callable[[], Session]"
    """Opens the session that replaces this one."""
    scratch: ScratchFolder | None = None
    """Where its files lie if it keeps none."""
    worktrees: "Callable[[], session_worktrees.SessionWorktrees] | None" = None
    """What moves it into a worktree and back."""
    equipment: "agent_equipment.AgentEquipment | None" = None
    """What the agent that leads wants to have ready, until the first prompt has it."""
    live: "live_questions.LiveQuestions | None" = None
    """Its questions, for pages that show them."""
    telemetry: "SessionTelemetry | None" = None
    """What sends spans and metrics of it."""

    def __post_init__(self) -> None:
        self.on_close: list[Callable[[], Awaitable[None]]] = []
        """What ends with the session, the last first."""
        self._has_moved = False
        self.server_tools: server_tools.ServerTools | None = None
        """What connects the servers and offers their tools; None if there are no servers."""
        self.background = BackgroundWork(self.agents, self.services, self.schedules, self.conversation)
        self.usage = SessionUsage(self.conversation, self.model_facts.window)
        self._live_text = live_text.LiveText(self.live) if self.live is not None else None
        if self._live_text is not None:
            self.agents.observers.append(self._live_text.on_news)
        self.warm_up = WarmUp(self.conversation, self.services, self.settings.prepare_policy)
        if self.servers is not None:
            self.server_tools = server_tools.ServerTools(
                self.servers,
                self.settings,
                self.conversation,
                self.on_warning,
                wait_for_all=self.spec.tools.wait_for_servers,
            )

    def connect_parts(self) -> None:
        """Let the parts know whom to tell what happens."""
        self.plugin_switch: plugin_switch.PluginSwitch | None = None
        self.settings.on_change.append(lambda _source: follow_plugins(self))
        self.skills.on_prompt = partial(_look_again, self)
        self.schedules.on_warning, self.schedules.on_missed = self.on_warning, self._note_missed
        if self.servers is not None or self.equipment is not None or self._wants_worktree or self.live is not None:
            self.conversation.config = replace(self.conversation.config, prepare=self._prepare)

    # Prompts

    def drive(
        self, message: UserMessage, *, literal: bool = False, prompt_id: str = ""
    ) -> AsyncGenerator[LoopEvent, None]:
        """Work on a prompt or, unless `literal`, do its slash command; `prompt_id` names the message for `rewind`."""
        self.skills.begin_prompt()
        if prompt_id and self.transcript is not None:
            self.transcript.writer.begin_prompt(prompt_id)

        def on_event(event: LoopEvent) -> None:
            kind = type(event)
            if kind in SessionUsage.EVENTS:
                self.usage.count(event)
            if kind in WarmUp.EVENTS:
                self.warm_up.on_event(event)
            if self._live_text is not None:
                self._live_text.on_event(event)
            if isinstance(event, RequestSent) and (event.turn, event.attempt) == (1, 1):
                self._note_prompt(prompt_id)

        first = message.content[0] if message.content and self.spec.slash_commands and not literal else None
        is_command = isinstance(first, Text) and (first.text.lstrip().startswith("/") or "@" in first.text)
        begin = self.commands.begin if is_command else None
        return drive(self.conversation, message, begin=begin, on_event=on_event, on_end=self._end_prompt)

    async def _end_prompt(self) -> None:
        self.skills.end_turn()
        await self.model.close_replaced()

    def _note_prompt(self, prompt_id: str) -> None:
        journal = self.services().undo if prompt_id else None
        if journal is not None:
            journal.point(prompt_id)

    @cached_property
    def commands(self) -> "slash_commands.SlashCommands":
        """The slash commands of this session."""
        return slash_commands.SlashCommands(self)

    # What may change

    @property
    def mode(self) -> str:
        """The permission mode in force."""
        return self.settings.mode

    def set_mode(self, mode: str) -> str:
        """Change the permission mode; the mode in force then. HandrailError if it cannot be entered."""
        return self.settings.set_mode(mode)

    async def set_model(self, name: str) -> None:
        """Ask another model from the next prompt on ("" = the one of the start); ProviderSetupError if that fails."""
        await self.exchange_model(self.choose_model(name))

    async def exchange_model(self, chosen: ChosenModel) -> None:
        """Ask this model from the next prompt on."""
        chosen = replace(chosen, cost=cost_for(chosen.name, self.model_facts.price))
        self.model.exchange(chosen)
        self.conversation.set_model(chosen)
        if not self.conversation.running:
            await self.model.close_replaced()

    async def begin_next(self) -> None:
        """
        End this session and begin another in its place: what was said, the id and all files of it are new.

        The model, the mode and the rules of the session stay, and so does the worktree. What runs in the background
        ends. HandrailError while a prompt is being worked on, and in a run of a server, which is one session.
        """
        if "run" in self.spec.origin:
            raise HandrailError("This run is one session from its beginning to its end. Start another run.")
        before, conversation = copy(self), self.conversation
        await conversation.end_for_next()
        following = self.open_next()
        following.agents.listeners = self.agents.listeners
        following.usage.spent = self.usage.spent
        state = following.conversation.state
        following.conversation.config = replace(following.conversation.config, options=conversation.config.options)
        state.start_source = "clear"
        if self.transcript is not None and following.transcript is not None:
            following.transcript.writer.ids = self.transcript.writer.ids
        if self._used_worktrees is not None and following.worktrees is not None:
            folder = following.worktrees().take_over(self._used_worktrees)
            state.context = replace(state.context, cwd=folder or state.context.cwd)
        if self.server_tools is not None and following.server_tools is not None:
            following.server_tools.on_change = self.server_tools.on_change
        kept = {name: getattr(self, name) for name in ("on_close", "_has_moved")}
        self.__dict__.update({**vars(following), **kept})
        self.connect_parts()
        before.on_close = []
        await before._disconnect_parts()
        await before._close_files()

    @property
    def _wants_worktree(self) -> bool:
        """Whether it is to work in a worktree: a new one, or that of the run that it goes on with."""
        return self.spec.worktree is not None or (
            self.transcript is not None
            and bool(self.transcript.messages)
            and (state_folder(self.settings.loaded.env) / "runs" / self.id / "worktree.json").exists()
        )

    async def _enter_worktree(self) -> None:
        assert self.worktrees is not None
        self._has_moved, state = True, self.conversation.state
        folder = await self.worktrees().resume(state.context)
        if folder is None and self.spec.worktree is not None:
            folder = Path((await self.worktrees().enter(self.spec.worktree, "", state.context)).folder)
        if folder is not None:
            state.context = replace(state.context, cwd=folder)

    async def _prepare(self) -> None:
        if self.live is not None:
            await self.live.listen()
        if self._wants_worktree and not self._has_moved:
            await self._enter_worktree()
        await self.connect()
        equipment, self.equipment = self.equipment, None
        if equipment is not None and not self.conversation.messages:
            for note in await equipment.skill_notes(self.conversation, AbortSignal()):
                self.conversation.state.mailbox.note(note)
            for problem in equipment.problems:
                self.on_warning(problem)

    async def connect(self, *, patient: bool = False) -> None:
        """
        Connect the MCP servers, once, and offer their tools. Those of a server that is slow to answer come later.

        If `patient`, wait for them as long as a search for tools does.
        """
        if self.server_tools is not None:
            await self.server_tools.connect(patient=patient)

    def _note_missed(self, text: str) -> None:
        """Something was due when no session was open: the person hears it now, the model with the next prompt."""
        self.on_warning(text)
        self.conversation.state.mailbox.note(Attachment("schedule", (Text(reminder(text)),)))

    def server_commands(self) -> "dict[str, slash_commands.BuiltIn]":
        """The prompts of the connected MCP servers, as slash commands."""
        return server_prompts.prompt_commands(self.servers) if self.servers else {}

    # What programs ask

    def context_usage(self) -> dict[str, Any]:
        """How full the model's window is, and what of it is known."""
        listed, env = self.conversation.tools.listed, self.settings.loaded.env
        return {
            **self.usage.window(),
            "isAutoCompactEnabled": self.auto_compact,
            "memoryFiles": self.context.memory_files() if self.context else [],
            "mcpTools": [{"name": tool.name, "serverName": tool.mcp.server} for tool in listed if tool.mcp],
            "agents": [
                {"agentType": name, "source": public_source(each, self.spec.cwd, env)}
                for name, each in self.agents.definitions().items()
            ],
        }

    def rewind(self, message_id: str) -> dict[str, Any]:
        """Bring files back to before this message; HandrailError if it is unknown, or another program changed one."""
        folder = undo_folder(self.settings.loaded.env) / self.id
        done = restore.go_back_to_message(folder, message_id)
        return {"restored": list(done.restored)}

    async def aclose(self) -> None:
        """Stop what runs, also in the background, and close servers, connections and the transcript."""
        self.conversation.check_stop()
        while self.on_close:
            await self.on_close.pop()()
        await self.disconnect()
        await self._close_files()

    @property
    def _used_worktrees(self) -> "session_worktrees.SessionWorktrees | None":
        return self.worktrees() if self.worktrees is not None and WORKTREES in sys.modules else None

    async def _close_files(self) -> None:
        used = self._used_worktrees
        if used is not None and (note := await used.aclose(self.conversation.state.context)):
            self.on_warning(note)
        if self.live is not None:
            self.live.close()
        self.conversation.config.rails.close()
        if self.transcript is not None:
            self.conversation.is_closed = True
            self.transcript.writer.close()
            tidy(self.settings.loaded.env, self.settings.loaded.settings.get("cleanupPeriodDays"))
        if self.scratch is not None:
            self.scratch.remove()
        if self.telemetry is not None:
            await self.telemetry.aclose()

    async def disconnect(self) -> None:
        """Stop what runs, also in the background, and close servers and connections; the next prompt reconnects."""
        self.conversation.check_stop()
        await self._disconnect_parts()
        await self.model.aclose(answered=self.conversation.state.has_answer)

    async def _disconnect_parts(self) -> None:
        if self.context is not None:
            self.context.close()
        if self.servers is None:
            await self._stop()
        elif self.conversation.running:  # calls of servers end before these do
            await self._stop()
            await self.servers.aclose()
        else:
            await asyncio.gather(self._stop(), self.servers.aclose())
        if self.server_tools is not None:
            self.server_tools.is_connected = False

    async def _stop(self) -> None:
        await self.conversation.stop()
        await self.agents.aclose()
        await self.hooks.aclose()
        await self.language_servers.aclose()
        await end_tasks(self.services)
