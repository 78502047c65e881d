"""Plugins that are switched while a session is open: what they bring counts from the next turn."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from handrail.conversation.redact import Redactor
from handrail.hooks.runner import Hooks
from handrail.session.agents.subagents import Subagents
from handrail.session.conversation import Conversation
from handrail.session.language_servers import SessionLanguageServers
from handrail.session.servers.servers import Servers
from handrail.session.servers.setup import PLUGIN
from handrail.session.servers.tools import ServerTools
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.skills.notes import SessionSkills
from handrail.session.skills.plugins import NO_PLUGINS, SessionPlugins, plugins_mark, session_plugins
from handrail.session.spec import SessionSpec


class SwitchedSession(Protocol):
    """A session, as far as its plugins are concerned."""

    spec: SessionSpec
    settings: SessionSettings
    redactor: Redactor
    hooks: Hooks
    agents: Subagents
    skills: SessionSkills
    servers: Servers | None
    server_tools: ServerTools | None
    language_servers: SessionLanguageServers
    conversation: Conversation
    on_close: list[Callable[[], Awaitable[None]]]

    @property
    def on_warning(self) -> Callable[[str], None]: ...

    @property
    def open_servers(self) -> Callable[[], Servers]: ...


class PluginSwitch:
    """
    Follows what the settings of a session switch on and off.

    Skills, commands, agents and styles are read when they are next needed, and the model is told what changed; hooks
    count at once; servers connect and end in the background.
    """

    def __init__(self, session: SwitchedSession) -> None:
        self._session = session
        self._work: set[asyncio.Task[None]] = set()
        session.on_close.append(self.aclose)

    def follow(self) -> None:
        """Look whether plugins were added, removed or switched since the last time."""
        before = self._session.skills.plugins or NO_PLUGINS
        if plugins_mark(self._session.settings) != before.mark:
            self._switch(before)

    def _switch(self, before: SessionPlugins) -> None:
        session = self._session
        now, left_out = _without_new_secrets(session_plugins(session.settings, session.spec.tools.plugins), session)
        for problem in (*now.problems, *left_out):
            if problem not in before.problems:
                session.on_warning(problem)
        session.skills.set_plugins(now)
        session.agents.definitions.look_again()
        before.remove_hooks(session.hooks)
        now.add_hooks(session.hooks, session.settings)
        task = asyncio.get_running_loop().create_task(self._switch_servers(before, now))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _switch_servers(self, before: SessionPlugins, now: SessionPlugins) -> None:
        session = self._session
        if before.language_servers() != now.language_servers():
            await session.language_servers.aclose()  # the next question starts those that count then
        old, new = before.servers(), now.servers()
        if old == new:
            return
        if session.servers is None or session.server_tools is None:
            session.servers = session.open_servers()
            session.server_tools = ServerTools(
                session.servers, session.settings, session.conversation, session.on_warning
            )
        await _exchange(session.servers, old, new)
        await session.server_tools.connect_new()

    async def aclose(self) -> None:
        """Wait for servers that connect or end."""
        await asyncio.gather(*self._work)


def _without_new_secrets(now: SessionPlugins, session: SwitchedSession) -> tuple[SessionPlugins, list[str]]:
    """The plugins without those whose secrets the session could not keep out of its transcript, and why."""
    hidden = {value for _name, value in session.redactor.secrets}
    doubtful = [each for each in now.plugins if not hidden.issuperset(each.secrets)]
    notes = [
        f"the plugin {each.id} has a secret that was set after this session began. It takes effect at the next start."
        for each in doubtful
    ]
    return now.without(doubtful), notes


async def _exchange(servers: Servers, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    for name in changed:
        if name in old:
            await servers.drop(name)
    servers.add({name: new[name] for name in changed if name in new}, PLUGIN)
