"""A session behind the control protocol: what the client program may request, and what it is asked."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.conversation.messages import UserMessage
from handrail.errors import ControlError, HandrailError
from handrail.headless.control import Control, Handler, Payload
from handrail.headless.lines import Lines, transcript_ids
from handrail.headless.serve import ClientOptions, Prompt
from handrail.headless.task_watch import TaskWatch
from handrail.hooks.events import EVENTS
from handrail.lazy import lazy
from handrail.loop.events import LoopEvent
from handrail.records import record
from handrail.session.build import open_session
from handrail.session.facts import session_facts
from handrail.session.session import Session
from handrail.session.spec import SessionHost, SessionSpec
from handrail.tools.delegation import AgentNews
from handrail.tools.pool import definition_json
from handrail.tools.tool import PLAIN_VIEW

if TYPE_CHECKING:
    from handrail.hooks import specs
else:
    specs = lazy("handrail.hooks.specs")


HUMAN_PATIENCE = 3600.0
HOOK_PATIENCE = 600.0
CALL_PATIENCE = 600.0
MODE_NAMES = {"manual": "default"}

OnEvent: TypeAlias = Callable[[LoopEvent], None]


@record
class EngineOptions:
    """
    How a client drives a session. `ask`: who is asked for permission: "" no one, `stdio` the client, or an MCP tool.

    `listener` is called with the opened session and may return a function that also gets every event.
    """

    ask: str = ""
    partial: bool = False
    hook_events: bool = False
    listener: Callable[[Session], OnEvent | None] = lambda _session: None


async def open_engine(
    spec: SessionSpec,
    env: Mapping[str, str],
    host: SessionHost,
    client: ClientOptions,
    control: Control,
    *,
    options: EngineOptions,
) -> "SessionEngine":
    """Open a session whose permissions, hooks and servers reach the program around it; raises HandrailError."""
    asking = ClientQuestions(control, options.ask)
    spec = replace(spec, tools=replace(spec.tools, agents={**spec.tools.agents, **client.agents}))
    callback = {"": None, "stdio": asking.can_use_tool}.get(options.ask, asking.prompt_tool)
    host = replace(
        host,
        hooks=callbacks_of(client.hooks, control, host.on_warning) if client.hooks else {},
        mcp_transport=asking.carry,
        can_use_tool=callback,
        stays=True,
    )
    session = open_session(spec, env, host)
    asking.session = session
    try:
        on_event = options.listener(session)
        await session.connect()
    except BaseException:
        await session.aclose()
        raise
    lines = Lines(
        session.id,
        partial=options.partial,
        hook_events=options.hook_events,
        whole_agents=client.fields.get("forwardSubagentText") is True,
        facts=partial(session_facts, session),
        uuid_of=transcript_ids(session.transcript.writer if session.transcript else None),
        window=session.model_facts.window,
        mode=lambda: session.mode,
    )
    return SessionEngine(session, lines, control, on_event)


class ClientQuestions:
    """Sends questions to the client. Without an answer, the answer is no."""

    def __init__(self, control: Control, tool: str) -> None:
        self._control = control
        self._tool = tool
        self.session: Session | None = None

    async def can_use_tool(self, name: str, given: Mapping[str, Any], question: Any) -> Payload:
        """Ask whether a call may run."""
        try:
            return await self._control.ask(
                "can_use_tool",
                patience=HUMAN_PATIENCE,
                tool_name=name,
                input=dict(given),
                tool_use_id=question.use.id,
                permission_suggestions=[dict(each) for each in question.suggestions] or None,
                blocked_path=question.blocked_path or None,
                decision_reason=question.reason,
                title=question.summary,
                display_name=question.name,
                description=question.description,
                agent_id=None if question.agent.id == "main" else question.agent.id,
                **({"agent_path": list(question.agent.path)} if question.agent.path else {}),
            )
        except ControlError as error:
            return {"behavior": "deny", "message": f"The permission request was not answered: {error}"}

    async def prompt_tool(self, name: str, given: Mapping[str, Any], question: Any) -> Payload:
        """Ask an MCP tool, which answers with the same object as text."""
        tool = self.session.conversation.tools.find(self._tool) if self.session else None
        servers = self.session.servers if self.session else None
        if tool is None or tool.mcp is None or servers is None:
            return {
                "behavior": "deny",
                "message": f"There is no MCP tool {self._tool!r} to ask. Name it as mcp__server__tool.",
            }
        asked = {"tool_name": name, "input": dict(given), "tool_use_id": question.use.id}
        text = await servers.ask(tool.mcp.server, tool.mcp.tool, asked)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if isinstance(answer, dict):
            return answer
        return {"behavior": "deny", "message": f"{self._tool} did not answer with a JSON object that has a behavior."}

    async def carry(self, server: str, message: dict[str, Any]) -> dict[str, Any]:
        """Pass a message to an MCP server that lives in the client."""
        try:
            answer = await self._control.ask("mcp_message", patience=CALL_PATIENCE, server_name=server, message=message)
        except ControlError as error:
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32000, "message": str(error)}}
        said = answer.get("mcp_response")
        return said if isinstance(said, dict) else {}


def callbacks_of(
    hooks: Mapping[str, Any], control: Control, on_warning: Callable[[str], None]
) -> "dict[str, Sequence[specs.HookCallback]]":
    """The hooks that call functions of the client."""
    made: dict[str, list[specs.HookCallback]] = {}
    for event, matchers in hooks.items():
        if event not in EVENTS:
            on_warning(f"hooks of the event {event!r} are not supported and never run")
            continue
        for matcher in matchers or ():
            patience = float(matcher.get("timeout") or HOOK_PATIENCE)
            for name in matcher.get("hookCallbackIds") or ():
                asked = _callback(control, str(name), patience)
                strict = matcher.get("onFailure") not in (None, "continue")
                made.setdefault(event, []).append(
                    specs.HookCallback(asked, str(matcher.get("matcher") or ""), "", patience, strict)
                )
    return dict(made)


def _callback(control: Control, name: str, patience: float) -> Callable[[Mapping[str, Any]], Awaitable[Payload]]:
    async def ask(given: Mapping[str, Any]) -> Payload:
        return await control.ask(
            "hook_callback",
            patience=patience,
            callback_id=name,
            input=dict(given),
            tool_use_id=given.get("tool_use_id"),
        )

    ask.__qualname__ = name
    return ask


class SessionEngine:
    """A session, its lines and its commands. `on_event` gets every event, `control` what happens between prompts."""

    def __init__(self, session: Session, lines: Lines, control: Control, on_event: OnEvent | None = None) -> None:
        self.session = session
        self.writer = lines
        self._on_event = on_event
        self._control = control
        self._watch = TaskWatch(session, self._tell)
        self._telling: set[asyncio.Task[None]] = set()
        session.agents.listeners.append(self._on_agent_news)

    def greeting(self) -> Payload:
        """The response to the client's `initialize` request."""
        model, types = self.session.model.name, self.session.agents.types()
        commands = self.session.commands.by_name() if self.session.spec.slash_commands else {}
        return {
            "commands": [
                {"name": name, "description": each.description, "argumentHint": each.hint}
                for name, each in commands.items()
            ],
            "agents": [{"name": each.name, "description": each.description} for each in types],
            "models": [{"value": model, "displayName": model, "description": ""}],
            "output_style": "default",
            "available_output_styles": ["default"],
            "account": {},
            "pid": os.getpid(),
            "hook_on_failure_supported": True,
        }

    async def run(self, prompt: Prompt) -> AsyncGenerator[LoopEvent, None]:
        """Work on a prompt, or run the slash command that it begins with."""
        events = self.session.drive(prompt.message, literal=prompt.literal, prompt_id=prompt.id)
        async with aclosing(events):
            async for event in events:
                if self._on_event is not None:
                    self._on_event(event)
                await self._watch.on_event(event)
                yield event

    async def next_notification(self, *, only_agents: bool = False) -> UserMessage | None:
        """A message about background work that has ended, as soon as some has; None if none runs."""
        return await self.session.background.next_notification(only_agents=only_agents)

    async def next_scheduled(self) -> UserMessage:
        """The next prompt that a schedule starts, as soon as it is due."""
        return await self.session.schedules.next_prompt()

    def _on_agent_news(self, news: AgentNews) -> None:
        """Report what a sub-agent in the background does, in order."""
        for line in self.writer.agents.on_news(news.call, news):
            task = asyncio.get_running_loop().create_task(self._tell(line))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell(self, line: Payload) -> None:
        await self._control.tell(self.writer.sign(line))

    def interrupt(self) -> None:
        """Interrupt the running prompt."""
        self.session.conversation.interrupt()

    async def aclose(self) -> None:
        """Close the session."""
        await self._watch.aclose()
        await self.session.aclose()
        await asyncio.gather(*self._telling, return_exceptions=True)

    def handlers(self) -> Mapping[str, Handler]:
        """The handlers of control requests, by name."""
        return {
            "set_permission_mode": self._set_mode,
            "set_model": self._set_model,
            "mcp_status": self._mcp_status,
            "mcp_reconnect": self._mcp_reconnect,
            "mcp_toggle": self._mcp_toggle,
            "get_context_usage": self._context_usage,
            "stop_task": self._stop_task,
            "rewind_files": self._rewind,
        }

    async def _set_mode(self, request: Mapping[str, Any]) -> Payload:
        mode = str(request["mode"])
        chosen = self.session.set_mode(MODE_NAMES.get(mode, mode))
        for line in self.writer.mode_lines():
            await self._tell(line)
        return {"mode": chosen}

    async def _set_model(self, request: Mapping[str, Any]) -> None:
        await self.session.set_model(str(request.get("model") or ""))

    async def _mcp_status(self, _request: Mapping[str, Any]) -> Payload:
        if self.session.servers is None:
            return {"mcpServers": []}
        words = {
            (tool.mcp.server, tool.mcp.tool): tool.prompt(PLAIN_VIEW) for tool in self.session.servers.tools if tool.mcp
        }
        servers = self.session.servers.status()
        for server in servers:
            for tool in server.get("tools", ()):
                tool["description"] = words.get((server["name"], tool["name"]), "")
        return {"mcpServers": servers}

    async def _mcp_reconnect(self, request: Mapping[str, Any]) -> None:
        await self._servers().reconnect(str(request["serverName"]))
        self.session.conversation.set_mcp_tools(self._servers().offered)

    async def _mcp_toggle(self, request: Mapping[str, Any]) -> None:
        await self._servers().toggle(str(request["serverName"]), enabled=request.get("enabled") is True)
        self.session.conversation.set_mcp_tools(self._servers().offered)

    def _servers(self) -> Any:
        if self.session.servers is None:
            raise HandrailError("There are no MCP servers in this session. Give some with --mcp-config or .mcp.json.")
        return self.session.servers

    async def _context_usage(self, _request: Mapping[str, Any]) -> Payload:
        usage, pool = self.session.context_usage(), self.session.conversation.tools
        active = {tool.name for tool in pool.active}
        sizes = {tool.name: len(definition_json(tool, PLAIN_VIEW)) // 4 for tool in pool.listed if tool.mcp}
        words = {each.name: each.description for each in self.session.agents.types()}
        for each in usage["mcpTools"]:
            each |= {"tokens": sizes[each["name"]], "isLoaded": each["name"] in active}
        for each in usage["agents"]:
            each["tokens"] = len(words[each["agentType"]]) // 4
        return usage

    async def _stop_task(self, request: Mapping[str, Any]) -> None:
        await self.session.background.stop_task(str(request["task_id"]))

    async def _rewind(self, request: Mapping[str, Any]) -> Payload:
        return self.session.rewind(str(request["user_message_id"]))
