"""A worker behind the control protocol: what a program around it may ask, and what it asks that program."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.errors import ControlError, HandrailError
from handrail.headless.control import Control, Handler, Payload
from handrail.headless.delegated import ended
from handrail.headless.lines import Lines, kept_ids
from handrail.headless.serve import ClientOptions, Prompt
from handrail.headless.wire import system
from handrail.loop.events import LoopEvent, RequestSent
from handrail.records import record
from handrail.session.prompts import Prompts
from handrail.session.work import Work, Worker
from handrail.tools.events import CallFinished
from handrail.tools.pool import definition_json
from handrail.tools.tool import PLAIN_VIEW

if TYPE_CHECKING:
    from handrail.hooks.specs import HookCallback


HUMAN_PATIENCE = 3600.0
HOOK_PATIENCE = 600.0
CALL_PATIENCE = 600.0
MODE_NAMES = {"manual": "default"}

Lead: TypeAlias = Callable[[Work, Mapping[str, Any]], tuple[Work, Mapping[str, Any]]]
Hear: TypeAlias = Callable[[LoopEvent], None]


def nobody_leads(work: Work, options: Mapping[str, Any]) -> tuple[Work, Mapping[str, Any]]:
    """For conversations that no agent leads."""
    return work, options


def nobody_listens(_worker: Worker) -> Hear | None:
    """For conversations that only the program hears."""
    return None


@record
class Spec:
    """
    What the command line wants. `ask`: who is asked for permission, "" nobody, `stdio`, or an MCP tool by name.

    `lead` changes work and options once all agents are known, for one that leads. `listener` makes somebody who hears
    every event, once there is a worker.
    """

    work: Work
    options: Mapping[str, Any]
    ask: str = ""
    partial: bool = False
    hook_events: bool = False
    slash: bool = True
    lead: Lead = nobody_leads
    listener: Callable[[Worker], Hear | None] = nobody_listens


async def open_conversation(
    spec: Spec, env: Mapping[str, str], wishes: ClientOptions, control: Control
) -> "Conversation":
    """
    A conversation whose permissions, hooks and servers reach the program around it.

    Raises:
        HandrailError: it cannot be begun with these wishes.
    """
    asking = Asking(control)
    callbacks = callbacks_of(wishes.hooks, control, spec.work.told) if wishes.hooks else {}
    work = replace(
        spec.work,
        callbacks=callbacks,
        agents={**spec.work.agents, **wishes.agents},
        carry=asking.carry,
        can_use_tool={"": None, "stdio": asking.can_use_tool}.get(spec.ask, asking.prompt_tool),
    )
    work, options = spec.lead(work, spec.options)
    worker = Worker(work, env, **options)
    asking.worker, asking.tool = worker, spec.ask
    try:
        hear = spec.listener(worker)
        await worker.connect()
    except BaseException:
        await worker.aclose()
        raise
    prompts = Prompts(worker, slash=spec.slash)
    lines = Lines(
        worker.id,
        partial=spec.partial,
        hook_events=spec.hook_events,
        whole_agents=wishes.fields.get("forwardSubagentText") is True,
        facts=prompts.facts,
        uuid_of=kept_ids(worker.session.writer if worker.session else None),
    )
    return Conversation(prompts, lines, control, hear)


class Asking:
    """Questions to the program around us. Without an answer the answer is no."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.worker: Worker | None = None
        self.tool = ""

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
            )
        except ControlError as error:
            return {"behavior": "deny", "message": f"Nobody answered whether this may run: {error}"}

    async def prompt_tool(self, name: str, given: Mapping[str, Any], question: Any) -> Payload:
        """Ask an MCP tool, which answers with the same object as text."""
        tool = self.worker.agent.tools.find(self.tool) if self.worker else None
        servers = self.worker.servers if self.worker else None
        if tool is None or tool.mcp is None or servers is None:
            return {"behavior": "deny", "message": f"There is no MCP tool {self.tool!r} that could be asked."}
        asked = {"tool_name": name, "input": dict(given), "tool_use_id": question.use.id}
        text = await servers.ask(tool.mcp.server, tool.mcp.tool, asked)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if isinstance(answer, dict):
            return answer
        return {"behavior": "deny", "message": f"{self.tool} gave no answer that can be understood."}

    async def carry(self, server: str, message: dict[str, Any]) -> dict[str, Any]:
        """Bring a message to a server that lives in the program around us."""
        try:
            answer = await self._control.ask("mcp_message", patience=CALL_PATIENCE, server_name=server, message=message)
        except ControlError as error:
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32000, "message": str(error)}}
        said = answer.get("mcp_response")
        return said if isinstance(said, dict) else {}


def callbacks_of(
    hooks: Mapping[str, Any], control: Control, told: Callable[[str], None]
) -> "dict[str, Sequence[HookCallback]]":
    """Hooks that are functions of the program around us."""
    from handrail.hooks.events import EVENTS  # noqa: PLC0415  # only programs with hooks pay for it
    from handrail.hooks.specs import HookCallback  # noqa: PLC0415

    made: dict[str, list[HookCallback]] = {}
    for event, matchers in hooks.items():
        if event not in EVENTS:
            told(f"hooks of the event {event!r} are not supported and never run")
            continue
        for matcher in matchers or ():
            patience = float(matcher.get("timeout") or HOOK_PATIENCE)
            for name in matcher.get("hookCallbackIds") or ():
                asked = _asked(control, str(name), patience)
                strict = matcher.get("onFailure") not in (None, "continue")
                made.setdefault(event, []).append(
                    HookCallback(asked, str(matcher.get("matcher") or ""), "", patience, strict)
                )
    return dict(made)


def _asked(control: Control, name: str, patience: float) -> Callable[[Mapping[str, Any]], Awaitable[Payload]]:
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


class Conversation:
    """
    A worker, its lines and its commands. Through `control` it tells what happens while no prompt is worked on.

    `hear` is told every event beside that.
    """

    def __init__(self, prompts: Prompts, lines: Lines, control: Control, hear: Hear | None = None) -> None:
        self._hear = hear
        self.worker = prompts.worker
        self.writer = lines
        self._prompts = prompts
        self._control = control
        self._ready = False
        self._watched: dict[str, asyncio.Task[None]] = {}

    def greeting(self) -> Payload:
        """What the program learns when it says hello."""
        return {
            "commands": [
                {"name": name, "description": each.description, "argumentHint": each.hint}
                for name, each in self._prompts.listed().items()
            ],
            "agents": [{"name": name, "description": text} for name, text in self.worker.kinds().items()],
            "models": [{"value": self.worker.agent.model, "displayName": self.worker.agent.model, "description": ""}],
            "output_style": "default",
            "available_output_styles": ["default"],
            "account": {},
            "pid": os.getpid(),
            "hook_on_failure_supported": True,
        }

    async def run(self, prompt: Prompt) -> AsyncGenerator[LoopEvent, None]:
        """Work on a prompt, or do what a command at its beginning says."""
        if self.worker.session is not None:
            self.worker.session.writer.begin_prompt(prompt.id)
        async with aclosing(self._prompts.run(prompt.message, literal=prompt.literal)) as events:
            async for event in events:
                self._note(event, prompt.id)
                if self._hear is not None:
                    self._hear(event)
                if isinstance(event, CallFinished):
                    await self._watch(event.outcome.use.id)
                yield event

    async def _watch(self, call_id: str) -> None:
        """Tell of background tasks that have begun, and again when they end."""
        for task in self.worker.unheard_tasks():
            if task.id not in self._watched:
                about = {"task_id": task.id, "tool_use_id": call_id, "task_type": task.kind}
                await self._tell(system("task_started", description=task.description, **about))
                self._watched[task.id] = asyncio.create_task(self._until_over(task.id, call_id))

    async def _until_over(self, task_id: str, call_id: str) -> None:
        task = await self.worker.task_over(task_id)
        for line in ended(task.id, task.status, task.output, task.description, {"tool_use_id": call_id}):
            await self._tell(line)

    async def _tell(self, line: Payload) -> None:
        await self._control.tell(self.writer.signed(line))

    def _note(self, event: LoopEvent, prompt_id: str) -> None:
        match event:
            case RequestSent(turn=1, attempt=1):
                self.worker.mark(prompt_id)
                if not self._ready:
                    self._ready = True
                    threading.Thread(target=self.worker.get_ready, daemon=True).start()
            case _:
                pass

    def interrupt(self) -> None:
        self.worker.agent.interrupt()

    async def aclose(self) -> None:
        for task in self._watched.values():
            task.cancel()
        await asyncio.gather(*self._watched.values(), return_exceptions=True)
        await self.worker.aclose()

    def handlers(self) -> Mapping[str, Handler]:
        """What it can be asked while it works."""
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
        now = self.worker.set_mode(MODE_NAMES.get(mode, mode))
        return {"mode": now}

    async def _set_model(self, request: Mapping[str, Any]) -> None:
        await self.worker.set_model(str(request.get("model") or ""))

    async def _mcp_status(self, _request: Mapping[str, Any]) -> Payload:
        if self.worker.servers is None:
            return {"mcpServers": []}
        words = {
            (tool.mcp.server, tool.mcp.tool): tool.prompt(PLAIN_VIEW) for tool in self.worker.servers.tools if tool.mcp
        }
        servers = self.worker.servers.status()
        for server in servers:
            for tool in server.get("tools", ()):
                tool["description"] = words.get((server["name"], tool["name"]), "")
        return {"mcpServers": servers}

    async def _mcp_reconnect(self, request: Mapping[str, Any]) -> None:
        await self._servers().reconnect(str(request["serverName"]))
        self.worker.agent.offer(self._servers().tools)

    async def _mcp_toggle(self, request: Mapping[str, Any]) -> None:
        await self._servers().toggle(str(request["serverName"]), enabled=request.get("enabled") is True)
        self.worker.agent.offer(self._servers().tools)

    def _servers(self) -> Any:
        if self.worker.servers is None:
            raise HandrailError("There are no MCP servers in this session.")
        return self.worker.servers

    async def _context_usage(self, _request: Mapping[str, Any]) -> Payload:
        usage, pool = self._prompts.usage(), self.worker.agent.tools
        active = {tool.name for tool in pool.active}
        sizes = {tool.name: len(definition_json(tool, PLAIN_VIEW)) // 4 for tool in pool.listed if tool.mcp}
        words = self.worker.kinds()
        for each in usage["mcpTools"]:
            each |= {"tokens": sizes[each["name"]], "isLoaded": each["name"] in active}
        for each in usage["agents"]:
            each["tokens"] = len(words[each["agentType"]]) // 4
        return usage

    async def _stop_task(self, request: Mapping[str, Any]) -> None:
        await self.worker.stop_task(str(request["task_id"]))

    async def _rewind(self, request: Mapping[str, Any]) -> Payload:
        return self.worker.rewind(str(request["user_message_id"]))
