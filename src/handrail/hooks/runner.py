"""
Hooks at work: picks those that an event concerns, starts them side by side, and makes one answer of theirs.

    hooks = Hooks(callbacks={"PreToolUse": [guard]})
    answer = await hooks.fire("PreToolUse", {"tool_name": "Bash", ...}, run)

With no hook for an event, firing it costs a look into a table.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from handrail.conversation.blocks import Json
from handrail.hooks.answers import BLOCKED, NOTHING, Answer, Reply
from handrail.hooks.asking import Asked, Body, Surroundings, ask
from handrail.hooks.condition import holds
from handrail.hooks.events import EVENTS, Event
from handrail.hooks.fold import folded, weighed
from handrail.hooks.news import HookNews, Tell, nobody
from handrail.hooks.parsing import parse_callbacks, parse_hooks
from handrail.hooks.specs import Function, Hook, HookCallback, HookProblem, HookSource
from handrail.hooks.texts import bounded
from handrail.tools.access import DeclaredUse
from handrail.tools.context import RunContext
from handrail.tools.output import json_text
from handrail.tools.permission import Deny

SESSION = HookSource("session")
MAX_TITLE = 200
AT_ONCE = 64
"""How many hooks of one event run side by side; each takes a process and pipes, of which there is an end."""


class Hooks:
    """
    The hooks of a session.

    `settings` is a `hooks` section, `sources` are sections with the places they come from, `callbacks` are functions by
    event. `problems` names everything about them that does not work. Leave with `aclose`: then no hook runs any more.

    Raises:
        HandrailError: a callback is for an event that does not exist, or its matcher or condition is not understood.
    """

    def __init__(
        self,
        settings: object = None,
        *,
        callbacks: Mapping[str, Iterable[Function | HookCallback]] | None = None,
        sources: Iterable[tuple[HookSource, object]] = (),
        surroundings: Surroundings | None = None,
        strict: bool = True,
    ) -> None:
        self.problems: tuple[HookProblem, ...] = ()
        self.surroundings = surroundings or Surroundings(os.environ)
        self.wake: Tell = nobody
        """Told when a hook that ran in the background wants the agent to go on (`asyncRewake`)."""
        self.remark: Tell = nobody
        """Told what a hook that nobody waited for wants the model to know with the next request."""
        self.later: Tell = nobody
        """Told what a hook that ran in the background has to say to the person: its call may be long over."""
        self.mode: Callable[[], str] = str
        """The permission mode in force; empty = the one that the run was begun with."""
        self.titled: Callable[[str], object] = str
        """Told what hooks want the session to be called."""
        self.strict = strict
        self._own = [*sources, *([(SESSION, settings)] if settings is not None else [])]
        self._callbacks = parse_callbacks(callbacks or {})
        self._by_event: Mapping[str, tuple[Hook, ...]] = {}
        self._done: set[Hook] = set()
        self._background: set[asyncio.Task[None]] = set()
        self.reload(())

    def reload(self, sections: Iterable[tuple[HookSource, object]]) -> None:
        """Put these sections of settings in the place of the former ones, beside the hooks that were given at first."""
        parsed = [parse_hooks(section, source) for source, section in (*self._own, *sections)]
        every = [hook for each in parsed for hook in each.hooks] + self._callbacks
        self.problems = tuple(problem for each in parsed for problem in each.problems)
        self._by_event = {
            name: found for name in EVENTS if (found := tuple(hook for hook in every if hook.event == name))
        }

    def wants(self, *events: str) -> bool:
        """Whether there is a hook for one of these events."""
        return not self._by_event.keys().isdisjoint(events)

    async def fire(
        self, event: str, fields: Json, run: RunContext, *, use: DeclaredUse | None = None, tell: Tell = nobody
    ) -> Answer:
        """Ask the hooks that this concerns. `use` is the call that conditions are about."""
        hooks = self._by_event.get(event)
        if hooks is None:
            return NOTHING
        chosen = self._chosen(EVENTS[event], hooks, fields, run, use)
        if not chosen:
            return NOTHING
        body = Body(event, str(run.cwd), json_text(self._input(event, fields, run)).encode())
        waiting = [hook for hook in chosen if not hook.background]
        for hook in chosen:
            if hook.background:
                self._behind(self._finish_behind(hook, body, tell))
        answer = _told(await self._together(waiting, body, tell), event, tell)
        if answer.title:
            self.titled(answer.title)
        return answer

    async def _together(self, hooks: Sequence[Hook], body: Body, tell: Tell) -> Answer:
        if len(hooks) == 1:
            return await self._ask(hooks[0], body, tell)
        places = asyncio.Semaphore(AT_ONCE)

        async def ask_in_turn(hook: Hook) -> Answer:
            async with places:
                return await self._ask(hook, body, tell)

        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(ask_in_turn(hook)) for hook in hooks]
        return folded([task.result() for task in asked])

    def announce(
        self, event: str, fields: Json, run: RunContext, *, use: DeclaredUse | None = None, tell: Tell = nobody
    ) -> None:
        """Tell hooks of something that they cannot change. Nobody waits for them."""
        if event in self._by_event:
            self._behind(self._announce(event, fields, run, use, tell))

    async def _announce(self, event: str, fields: Json, run: RunContext, use: DeclaredUse | None, tell: Tell) -> None:
        self._remember(event, "", await self.fire(event, fields, run, use=use, tell=tell))

    def _remember(self, event: str, name: str, answer: Answer) -> None:
        for text in answer.context:
            self.remark(HookNews(text, event=event, name=name))

    async def aclose(self) -> None:
        """Stop what still runs in the background, and wait until it is gone."""
        for task in self._background:
            task.cancel()
        await self.quiet()

    async def quiet(self) -> None:
        """Wait until nothing runs in the background any more."""
        while self._background:
            await asyncio.wait(self._background)

    def _chosen(
        self, event: Event, hooks: Sequence[Hook], fields: Json, run: RunContext, use: DeclaredUse | None
    ) -> list[Hook]:
        """The hooks that match, in order; of identical ones only the strictest."""
        value = str(fields.get(event.matches, "")) if event.matches else ""
        found: dict[object, Hook] = {}
        for hook in hooks:
            if not hook.matcher.matches(value) or (hook.once and hook in self._done):
                continue
            if hook.condition is not None and use is not None:
                home = self.surroundings.env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  # a text is due
                if not holds(hook.condition, use, str(run.cwd), home):
                    continue
            key = (hook.handler, hook.source.own, hook.background)
            known = found.get(key)
            found[key] = hook if known is None or _severity(hook) > _severity(known) else known
            if hook.once:
                self._done.add(hook)
        return list(found.values())

    def _input(self, event: str, fields: Json, run: RunContext) -> dict[str, Any]:
        about: dict[str, Any] = {
            "session_id": self.surroundings.session_id,
            "transcript_path": self.surroundings.transcript,
            "cwd": str(run.cwd),
            "hook_event_name": event,
            "permission_mode": self.mode() or run.permissions.mode,
        }
        if not run.agent.is_main:
            about |= {"agent_id": run.agent.id, "agent_type": run.agent.type}
        return about | dict(fields)

    async def _ask(self, hook: Hook, body: Body, tell: Tell) -> Answer:
        return (await self._asked(hook, body, tell)).answer

    async def _asked(self, hook: Hook, body: Body, tell: Tell) -> Asked:
        news = HookNews(hook.status, None, "started", hook.event, hook.name, os.urandom(8).hex())
        tell(news)
        try:
            asked = await ask(hook, body, self.surroundings)
        except asyncio.CancelledError:
            tell(replace(news, stage="response", outcome="cancelled"))
            raise
        answer = _cut(weighed(hook, asked.answer, strict=self.strict), self.surroundings.folder)
        tell(_response(news, answer, asked.reply))
        return Asked(answer, asked.reply)

    def _behind(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _finish_behind(self, hook: Hook, body: Body, tell: Tell) -> None:
        """Its answer comes too late to decide anything; what it wants to say is said."""
        answer, reply = await self._asked(hook, body, tell)
        self._remember(hook.event, hook.name, _told(answer, hook.event, tell if self.later is nobody else self.later))
        if hook.rewakes and reply is not None and reply.code == BLOCKED:
            text = answer.block or answer.reason or reply.errors.strip()
            self.wake(HookNews(bounded(text, self.surroundings.folder), event=hook.event, name=hook.name))


def _severity(hook: Hook) -> tuple[bool, bool]:
    return hook.blocks_on_failure, hook.source.family == ".handrail"


def _told(answer: Answer, event: str, tell: Tell) -> Answer:
    for message in answer.messages:
        tell(HookNews(message, event=event))
    return answer


def _response(news: HookNews, answer: Answer, reply: Reply | None) -> HookNews:
    return replace(
        news,
        stage="response",
        stdout=bounded(reply.text, None) if reply else "",
        stderr=bounded(reply.errors, None) if reply else answer.problem,
        exit_code=reply.code if reply else None,
        outcome="error" if answer.problem or (reply and reply.code) else "success",
    )


def _cut(answer: Answer, folder: Path | None) -> Answer:
    """The answer with every text within bounds."""
    permission = answer.permission
    if isinstance(permission, Deny):
        permission = replace(permission, message=bounded(permission.message, folder))
    return replace(
        answer,
        reason=bounded(answer.reason, folder),
        block=None if answer.block is None else bounded(answer.block, folder),
        stop=None if answer.stop is None else bounded(answer.stop, folder),
        context=tuple(bounded(text, folder) for text in answer.context),
        messages=tuple(bounded(text, folder) for text in answer.messages),
        permission=permission,
        first=bounded(answer.first, folder),
        title=" ".join(answer.title.split())[:MAX_TITLE],
    )
