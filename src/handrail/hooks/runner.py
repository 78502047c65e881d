"""
Runs the hooks that match an event, side by side, and folds their results into one.

    hooks = Hooks(callbacks={"PreToolUse": [guard]})
    result = await hooks.fire("PreToolUse", {"tool_name": "Bash", ...}, run)

With no hook for an event, firing it costs one dictionary lookup.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from handrail.conversation.blocks import Json
from handrail.hooks.condition import holds, takes_time
from handrail.hooks.events import EVENTS
from handrail.hooks.fold import fold_results, weigh
from handrail.hooks.invoke import HookEnvironment, HookInput, HookReturn, invoke
from handrail.hooks.news import HookNews, OnNews, ignore
from handrail.hooks.parsing import parse_callbacks, parse_hooks
from handrail.hooks.results import BLOCKED, NOTHING, HookOutput, HookResult
from handrail.hooks.specs import Function, Hook, HookCallback, HookProblem, HookSource
from handrail.hooks.texts import bound_text
from handrail.tools.context import RunContext
from handrail.tools.output import json_text
from handrail.tools.permission import Deny
from handrail.tools.request import CallRequest

SESSION = HookSource("session")
MAX_TITLE = 200
AT_ONCE = 64
"""How many hooks of one event run side by side, because each takes a process and pipes."""


class Hooks:
    """
    The hooks of a session.

    `settings` is a `hooks` section, `sources` are sections with the places they come from, `callbacks` are functions by
    event. `problems` lists everything in them that does not work. After `aclose` no hook runs any more.

    Raises:
        HandrailError: a callback is for an event that does not exist, or its matcher or condition is not understood.
    """

    def __init__(
        self,
        settings: object = None,
        *,
        callbacks: Mapping[str, Iterable[Function | HookCallback]] | None = None,
        sources: Iterable[tuple[HookSource, object]] = (),
        environment: HookEnvironment | None = None,
        strict: bool = True,
    ) -> None:
        self.problems: tuple[HookProblem, ...] = ()
        self.environment = environment or HookEnvironment(os.environ)
        self.on_wake: OnNews = ignore
        """Called when a hook that ran in the background wants the agent to continue (`asyncRewake`)."""
        self.on_context: OnNews = ignore
        """Called with what a background hook adds to the next request of the model."""
        self.on_late_message: OnNews = ignore
        """Called with messages of background hooks for the user, whose calls may be over."""
        self.mode: Callable[[], str] = str
        """The permission mode in force; empty = the mode that the run began with."""
        self.on_title: Callable[[str], object] = str
        """Called with the title that hooks give the session."""
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
        self, event: str, fields: Json, run: RunContext, *, request: CallRequest | None = None, on_news: OnNews = ignore
    ) -> HookResult:
        """Run the hooks that match and return their folded result. Conditions are about the request."""
        if event not in self._by_event:
            return NOTHING
        chosen = await self.matching(event, fields, run, request=request)
        if not chosen:
            return NOTHING
        self._done.update(hook for hook in chosen if hook.once)
        body = HookInput(event, str(run.cwd), json_text(self._input(event, fields, run)).encode())
        waiting = [hook for hook in chosen if not hook.background]
        for hook in chosen:
            if hook.background:
                self._run_in_background(self._finish_in_background(hook, body, on_news))
        result = _send_messages(await self._together(waiting, body, on_news), event, on_news)
        if result.title:
            self.on_title(result.title)
        return result

    async def _together(self, hooks: Sequence[Hook], body: HookInput, on_news: OnNews) -> HookResult:
        if len(hooks) == 1:
            return (await self._invoke(hooks[0], body, on_news)).result
        places = asyncio.Semaphore(AT_ONCE)

        async def ask_in_turn(hook: Hook) -> HookResult:
            async with places:
                return (await self._invoke(hook, body, on_news)).result

        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(ask_in_turn(hook)) for hook in hooks]
        return fold_results([task.result() for task in asked])

    def announce(
        self, event: str, fields: Json, run: RunContext, *, request: CallRequest | None = None, on_news: OnNews = ignore
    ) -> None:
        """Run hooks for something that they cannot change, in the background."""
        if event in self._by_event:
            self._run_in_background(self._announce(event, fields, run, request, on_news))

    async def _announce(
        self, event: str, fields: Json, run: RunContext, request: CallRequest | None, on_news: OnNews
    ) -> None:
        self._remember(event, "", await self.fire(event, fields, run, request=request, on_news=on_news))

    def _remember(self, event: str, name: str, result: HookResult) -> None:
        for text in result.context:
            self.on_context(HookNews(text, event=event, name=name))

    async def aclose(self) -> None:
        """Cancel the hooks that still run in the background, and wait for their end."""
        for task in self._background:
            task.cancel()
        await self.wait_idle()

    async def wait_idle(self) -> None:
        """Wait until no hook runs in the background."""
        while self._background:
            await asyncio.wait(self._background)

    async def matching(
        self, event: str, fields: Json, run: RunContext, *, request: CallRequest | None = None
    ) -> list[Hook]:
        """The hooks that an event would run, in order; of identical ones only the strictest."""
        subject = EVENTS[event].matches
        value = str(fields.get(subject, "")) if subject else ""
        found: dict[object, Hook] = {}
        for hook in self._by_event.get(event, ()):
            if not hook.matcher.matches(value):
                continue
            if hook.condition is not None and request is not None:
                test = partial(holds, hook.condition, request, str(run.cwd), self._home())
                if not (await asyncio.to_thread(test) if takes_time(request) else test()):
                    continue
            if hook.once and hook in self._done:
                continue
            key = (hook.handler, hook.source.own, hook.background)
            known = found.get(key)
            found[key] = hook if known is None or _severity(hook) > _severity(known) else known
        return list(found.values())

    def _home(self) -> str:
        return self.environment.env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  # a text is due

    def _input(self, event: str, fields: Json, run: RunContext) -> dict[str, Any]:
        about: dict[str, Any] = {
            "session_id": self.environment.session_id,
            "transcript_path": self.environment.transcript,
            "cwd": str(run.cwd),
            "hook_event_name": event,
            "permission_mode": self.mode() or run.permissions.mode,
        }
        if not run.agent.is_main:
            about |= {"agent_id": run.agent.id, "agent_type": run.agent.type}
        return about | dict(fields)

    async def _invoke(self, hook: Hook, body: HookInput, on_news: OnNews) -> HookReturn:
        news = HookNews(hook.status, None, "started", hook.event, hook.name, os.urandom(8).hex())
        on_news(news)
        try:
            asked = await invoke(hook, body, self.environment)
        except asyncio.CancelledError:
            on_news(replace(news, stage="response", outcome="cancelled"))
            raise
        result = _bound_texts(weigh(hook, asked.result, strict=self.strict), self.environment.folder)
        on_news(_response(news, result, asked.output))
        return HookReturn(result, asked.output)

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _finish_in_background(self, hook: Hook, body: HookInput, on_news: OnNews) -> None:
        """Run a hook whose result comes too late to decide; its messages and context still count."""
        result, output = await self._invoke(hook, body, on_news)
        self._remember(
            hook.event,
            hook.name,
            _send_messages(result, hook.event, on_news if self.on_late_message is ignore else self.on_late_message),
        )
        if hook.rewakes and output is not None and output.code == BLOCKED:
            text = result.block or result.reason or output.errors.strip()
            self.on_wake(HookNews(bound_text(text, self.environment.folder), event=hook.event, name=hook.name))


def _severity(hook: Hook) -> tuple[bool, bool]:
    return hook.blocks_on_failure, hook.source.family == ".handrail"


def _send_messages(result: HookResult, event: str, on_news: OnNews) -> HookResult:
    for message in result.messages:
        on_news(HookNews(message, event=event))
    return result


def _response(news: HookNews, result: HookResult, output: HookOutput | None) -> HookNews:
    return replace(
        news,
        stage="response",
        stdout=bound_text(output.text, None) if output else "",
        stderr=bound_text(output.errors, None) if output else result.problem,
        exit_code=output.code if output else None,
        outcome="error" if result.problem or (output and output.code) else "success",
    )


def _bound_texts(result: HookResult, folder: Path | None) -> HookResult:
    """The result with all texts within bounds."""
    permission = result.permission
    if isinstance(permission, Deny):
        permission = replace(permission, message=bound_text(permission.message, folder))
    return replace(
        result,
        reason=bound_text(result.reason, folder),
        block=None if result.block is None else bound_text(result.block, folder),
        stop=None if result.stop is None else bound_text(result.stop, folder),
        context=tuple(bound_text(text, folder) for text in result.context),
        messages=tuple(bound_text(text, folder) for text in result.messages),
        permission=permission,
        first=bound_text(result.first, folder),
        title=" ".join(result.title.split())[:MAX_TITLE],
    )
