"""
The hooks of a session that may get its first ones while it runs: until then they cost a look at an attribute.

Settings may change at any time. Before a call, a prompt or a tool's permission is judged, somebody looks; a hook of the
event ConfigChange may refuse what was changed, and then the settings of before still count.
"""

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from handrail.conversation.blocks import Json
from handrail.dispatch.gate import NO_ANSWER, CallRequest, HookAnswer
from handrail.hooks.news import HookNews, Tell, nobody
from handrail.tools.access import DeclaredUse
from handrail.tools.context import RunContext
from handrail.tools.output import Output
from handrail.tools.permission import Allow, Deny, Update

if TYPE_CHECKING:
    from handrail.dispatch.call_hooks import CallHooks
    from handrail.hooks.answers import Answer
    from handrail.hooks.runner import Hooks
    from handrail.session.session_settings import SessionSettings

ROUNDS = 8
"""How often hooks are asked in a row about files that change while they are asked: a hook may write them itself."""
RESTLESS = "The {} settings change each time that hooks are asked about them. Those of before still count."


class LateHooks:
    """Stands wherever hooks stand. `make` makes them as soon as there are some; `now` are those there are."""

    def __init__(self, live: "SessionSettings", make: "Callable[[], Hooks]", told: Callable[[str], None]) -> None:
        self.now: Hooks | None = None
        self.on_wake: OnNews = ignore
        self.on_context: OnNews = ignore
        self.on_late_message: OnNews = ignore
        self._calls: CallHooks | None = None
        self._live = live
        self._make = make
        self._told = told
        self._known: frozenset[str] = frozenset()
        self._untold: list[str] = []
        self._asking = asyncio.Lock()
        live.asks = lambda: self.wants("ConfigChange")

    def fill(self) -> None:
        """There are hooks, or other ones than before."""
        if self.now is None:
            self.now = self._make()
            self.now.wake, self.now.remark, self.now.later = self._wake, self._remark, self._later
            self._calls = import_module("handrail.dispatch.call_hooks").CallHooks(self.now)
        else:
            import_module("handrail.session.hooks").reload_hooks(self.now, self._live.loaded)
        problems = [str(problem) for problem in self.now.problems]
        for problem in problems:
            if problem not in self._known:
                self._told(problem)
        self._known = frozenset(problems)

    def _wake(self, news: HookNews) -> None:
        self.on_wake(news)

    def _remark(self, news: HookNews) -> None:
        self.on_context(news)

    def _later(self, news: HookNews) -> None:
        self.on_late_message(news)

    def changed(self, source: str) -> None:
        """Other settings count from now on. May be called in a thread, for tools look too."""
        if self.now is None and not self._live.loaded.hooks:
            return
        self.fill()
        if not self._live.may_refuse(source):
            self._untold.append(source)

    async def _heed(self, run: RunContext, on_news: OnNews) -> None:
        """Look for changed settings, ask those who may refuse them, and tell of what nobody may refuse."""
        self._live.look()
        while self._untold:
            self.announce("ConfigChange", self._change(self._untold.pop(0)), run)
        for _ in range(ROUNDS):
            if not self._live.waiting:
                return
            async with self._asking:
                for source, number in tuple(self._live.waiting.items()):
                    await self._ask(source, number, run, on_news)
        if self._live.waiting:
            self._told(RESTLESS.format(" and ".join(self._live.waiting)))

    async def _ask(self, source: str, number: int, run: RunContext, on_news: OnNews) -> None:
        answer = None if self.now is None else await self.now.fire("ConfigChange", self._change(source), run)
        refusal = None if answer is None else answer.block
        if (text := self._live.settle(source, number, refusal)) and on_news is not ignore:
            on_news(HookNews(text, event="ConfigChange"))

    def _change(self, source: str) -> Json:
        file = self._live.files.get(source)
        return {"source": f"{source}_settings", **({"file_path": file} if file else {})}

    # In a run

    def wants(self, *events: str) -> bool:
        """Whether there is a hook for one of these events."""
        if "UserPromptSubmit" in events:
            self._live.look()  # a session that waits for its next prompt has not looked for a while
        return self.now is not None and self.now.wants(*events)

    async def fire(
        self, event: str, fields: Json, run: RunContext, *, use: DeclaredUse | None = None, on_news: OnNews = ignore
    ) -> "HookResult":
        """Ask the hooks that this concerns."""
        if self._live.waiting or self._untold:
            await self._heed(run, on_news)
        if self.now is None:
            return import_module("handrail.hooks.results").NOTHING  # type: ignore[no-any-return]  # loaded late
        return await self.now.fire(event, fields, run, use=use, on_news=on_news)

    def announce(self, event: str, fields: Json, run: RunContext) -> None:
        """Tell hooks of something without waiting for them."""
        if self.now is not None:
            self.now.announce(event, fields, run)

    async def aclose(self) -> None:
        """Stop what still runs in the background."""
        if self.now is not None:
            await self.now.aclose()

    # Around a call

    async def before(self, request: CallRequest) -> HookAnswer:
        live = self._live
        live.look()
        if live.waiting or self._untold:
            await self._heed(request.ctx.run, request.ctx.progress)
        if self._calls is None or not self.wants("PreToolUse"):
            live.fresh = True  # whoever decides next need not look again
            return NO_ANSWER
        return await self._calls.before(request)

    async def after(self, request: CallRequest, output: Output | None, error: str, seconds: float) -> HookAnswer:
        return NO_ANSWER if self._calls is None else await self._calls.after(request, output, error, seconds)

    async def permission_request(self, request: CallRequest, suggestions: Sequence[Update]) -> Allow | Deny | None:
        return None if self._calls is None else await self._calls.permission_request(request, suggestions)

    def about_to_ask(self, request: CallRequest, reason: str) -> None:
        if self._calls is not None:
            self._calls.about_to_ask(request, reason)
