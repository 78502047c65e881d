"""
Runs the hooks that match an event, side by side, and folds their results into one.

    hooks = Hooks(callbacks={"PreToolUse": [guard]})
    result = await hooks.fire("PreToolUse", {"tool_name": "Bash", ...}, run)

With no hook for an event, firing it costs one dictionary lookup.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.conversation.blocks import Json
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.news import HookNews, OnNews, ignore
from handrail.hooks.texts import bound_text
from handrail.lazy import lazy
from handrail.tools.context import RunContext
from handrail.tools.output import json_text
from handrail.tools.request import CallRequest

if TYPE_CHECKING:
    from handrail.hooks import ask, parsing
    from handrail.hooks.results import HookResult
    from handrail.hooks.specs import Function, Hook, HookCallback, HookProblem, HookSource
else:
    ask = lazy("handrail.hooks.ask")
    parsing = lazy("handrail.hooks.parsing")

Refresh: TypeAlias = Callable[[RunContext, OnNews], Awaitable[None]]


async def keep_hooks(_run: RunContext, _on_news: OnNews) -> None:
    """The refresh of hooks that never change."""


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
        callbacks: "Mapping[str, Iterable[Function | HookCallback]] | None" = None,
        sources: "Iterable[tuple[HookSource, object]]" = (),
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
        self.refresh: Refresh = keep_hooks
        """Awaited before a prompt or a call is judged: settings may have changed, and with them the hooks."""
        self.strict = strict
        self._own = [*sources, *([(parsing.SESSION, settings)] if settings is not None else [])]
        self._callbacks = parsing.parse_callbacks(callbacks) if callbacks else []
        self._by_event: Mapping[str, tuple[Hook, ...]] = {}
        self._added: list[tuple[HookSource, object]] = []
        self._sections: tuple[tuple[HookSource, object], ...] = ()
        self._done: set[Hook] = set()
        self._background: set[asyncio.Task[None]] = set()
        self.reload(())

    def reload(self, sections: "Iterable[tuple[HookSource, object]]") -> None:
        """Put these sections of settings in the place of the former ones, beside the hooks that were given at first."""
        self._sections = tuple(sections)
        given = (*self._own, *self._added, *self._sections)
        parsed = [parsing.parse_hooks(section, source) for source, section in given]
        every = [hook for each in parsed for hook in each.hooks] + self._callbacks
        self.problems = tuple(problem for each in parsed for problem in each.problems)
        self._by_event = {
            name: tuple(hook for hook in every if hook.event == name) for name in {hook.event for hook in every}
        }

    def add(self, source: "HookSource", section: object) -> None:
        """Add the hooks of a skill or an agent, once. Those of settings go before them."""
        if (source, section) not in self._added:
            self._added.append((source, section))
            self.reload(self._sections)

    def remove(self, source: "HookSource") -> None:
        """Take back the hooks that were added for a source."""
        self._added = [each for each in self._added if each[0] != source]
        self.reload(self._sections)

    def wants(self, *events: str) -> bool:
        """Whether there is a hook for one of these events."""
        return not self._by_event.keys().isdisjoint(events)

    def matchers(self, event: str) -> list[str]:
        """The matchers of the hooks for an event, as they are written."""
        return [hook.matcher.text for hook in self._by_event.get(event, ())]

    async def fire(
        self, event: str, fields: Json, run: RunContext, *, request: CallRequest | None = None, on_news: OnNews = ignore
    ) -> "HookResult":
        """Run the hooks that match and return their folded result. Conditions are about the request."""
        hooks = self._by_event.get(event)
        if hooks is None:
            return ask.NOTHING
        env = self.environment
        chosen = await ask.matching_hooks(hooks, fields, run, request, home=env.home, done=self._done)
        if not chosen:
            return ask.NOTHING
        body = ask.HookInput(event, str(run.cwd), json_text(self._input(event, fields, run)).encode())
        for hook in chosen:
            if hook.background:
                self._run_in_background(self._finish_in_background(hook, body, on_news))
        waiting = [hook for hook in chosen if not hook.background]
        result = await ask.ask_hooks(waiting, body, env, on_news, strict=self.strict)
        _send_messages(result, event, on_news)
        if result.title:
            self.on_title(result.title)
        return result

    async def matching(
        self, event: str, fields: Json, run: RunContext, *, request: CallRequest | None = None
    ) -> "list[Hook]":
        """The hooks that an event would run now, in order. None of them runs, and none counts as having run."""
        hooks, home = self._by_event.get(event, ()), self.environment.home
        return await ask.matching_hooks(hooks, fields, run, request, home=home, done=set(self._done))

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

    def _remember(self, event: str, name: str, result: "HookResult") -> None:
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

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _finish_in_background(self, hook: "Hook", body: "ask.HookInput", on_news: OnNews) -> None:
        """Run a hook whose result comes too late to decide; its messages and context still count."""
        env = self.environment
        result, output = await ask.ask_hook(hook, body, env, on_news, strict=self.strict)
        _send_messages(result, hook.event, on_news if self.on_late_message is ignore else self.on_late_message)
        self._remember(hook.event, hook.name, result)
        if hook.rewakes and output is not None and output.code == ask.BLOCKED:
            text = result.block or result.reason or output.errors.strip()
            self.on_wake(HookNews(bound_text(text, env.folder), event=hook.event, name=hook.name))


def _send_messages(result: "HookResult", event: str, on_news: OnNews) -> None:
    for message in result.messages:
        on_news(HookNews(message, event=event))
