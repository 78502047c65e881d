"""
The hooks of a session: loaded with the first one there is, reloaded when settings change, free while there is none.

Settings may change at any time. Their files are looked at before a call, a prompt or a tool's permission is judged; a
hook of the event ConfigChange may refuse what was changed, and then the settings of before still count.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.conversation.blocks import Json
from handrail.dispatch.gate import NO_ANSWER, HookAnswer
from handrail.hooks.news import HookNews, OnNews, ignore
from handrail.lazy import lazy
from handrail.session.hook_setup import HookSetup
from handrail.session.session_settings import SessionSettings
from handrail.tools.context import RunContext
from handrail.tools.output import Output
from handrail.tools.permission import Allow, Deny, Update
from handrail.tools.request import CallRequest

if TYPE_CHECKING:
    from handrail.dispatch.call_hooks import CallHooks
    from handrail.hooks.results import HookResult
    from handrail.hooks.runner import Hooks
    from handrail.session import hooks as hook_settings
else:
    hook_settings = lazy("handrail.session.hooks")

ROUNDS = 8
"""How often hooks are asked in a row about files that change while they are asked: a hook may write them itself."""
RESTLESS = "The {} settings change each time that hooks are asked about them. Those of before still count."


class SessionHooks:
    """Follows the settings: opens the hooks as soon as there are some. `now` are those there are."""

    def __init__(self, settings: SessionSettings, setup: HookSetup, on_warning: Callable[[str], None]) -> None:
        self.now: Hooks | None = None
        self._listeners: tuple[OnNews, OnNews, OnNews] = (ignore, ignore, ignore)
        self._calls: CallHooks | None = None
        self._settings = settings
        self._setup = setup
        self._on_warning = on_warning
        self._known: frozenset[str] = frozenset()
        self._announcements: list[str] = []
        self._lock = asyncio.Lock()
        settings.confirm_change = lambda: self.wants("ConfigChange")
        settings.on_change.insert(0, self.reload)
        if settings.loaded.hooks or setup.given:
            self.load()

    @property
    def env_file(self) -> Path | None:
        """Where hooks at the session's start leave variables for later commands."""
        return None if self.now is None else self.now.environment.env_file

    def folders(self) -> tuple[Path, ...]:
        """Where the whole of long hook texts lies."""
        folder = None if self.now is None else self.now.environment.folder
        return () if folder is None else (folder,)

    def listen(self, on_wake: OnNews, on_context: OnNews, on_late_message: OnNews) -> None:
        """Have these called with what background hooks say; see `Hooks` for what each is about."""
        self._listeners = (on_wake, on_context, on_late_message)
        if self.now is not None:
            self.now.on_wake, self.now.on_context, self.now.on_late_message = self._listeners

    def load(self) -> None:
        """Load the hooks that the settings name now."""
        if self.now is None:
            self.now = hook_settings.open_hooks(self._settings.loaded, self._setup)
            self.now.on_wake, self.now.on_context, self.now.on_late_message = self._listeners
            self._calls = hook_settings.CallHooks(self.now)
        else:
            hook_settings.reload_hooks(self.now, self._settings.loaded)
        problems = [str(problem) for problem in self.now.problems]
        for problem in problems:
            if problem not in self._known:
                self._on_warning(problem)
        self._known = frozenset(problems)

    def reload(self, source: str) -> None:
        """Follow a change of settings. It may be called in a thread, for tools look too."""
        if self.now is None and not self._settings.loaded.hooks:
            return
        self.load()
        if not self._settings.may_refuse(source):
            self._announcements.append(source)

    async def _ask_about_changes(self, run: RunContext, on_news: OnNews) -> None:
        """Look for changed settings, ask the hooks that may refuse them, and announce what cannot be refused."""
        self._settings.look()
        while self._announcements:
            self.announce("ConfigChange", self._change(self._announcements.pop(0)), run)
        for _ in range(ROUNDS):
            if not self._settings.waiting:
                return
            async with self._lock:
                for source, number in tuple(self._settings.waiting.items()):
                    await self._ask(source, number, run, on_news)
        if self._settings.waiting:
            self._on_warning(RESTLESS.format(" and ".join(self._settings.waiting)))

    async def _ask(self, source: str, number: int, run: RunContext, on_news: OnNews) -> None:
        answer = None if self.now is None else await self.now.fire("ConfigChange", self._change(source), run)
        refusal = None if answer is None else answer.block
        if (text := self._settings.settle(source, number, refusal)) and on_news is not ignore:
            on_news(HookNews(text, event="ConfigChange"))

    def _change(self, source: str) -> Json:
        file = self._settings.files.get(source)
        return {"source": f"{source}_settings", **({"file_path": file} if file else {})}

    # In a run

    def wants(self, *events: str) -> bool:
        """Whether there is a hook for one of these events."""
        if "UserPromptSubmit" in events:
            self._settings.look()  # a session that waits for its next prompt has not looked for a while
        return self.now is not None and self.now.wants(*events)

    async def fire(
        self,
        event: str,
        fields: Json,
        run: RunContext,
        *,
        request: CallRequest | None = None,
        on_news: OnNews = ignore,
    ) -> "HookResult":
        """Ask the hooks that this concerns."""
        if self._settings.waiting or self._announcements:
            await self._ask_about_changes(run, on_news)
        if self.now is None:
            return hook_settings.NOTHING
        return await self.now.fire(event, fields, run, request=request, on_news=on_news)

    def announce(self, event: str, fields: Json, run: RunContext) -> None:
        """Run hooks for something that they cannot change, in the background."""
        if self.now is not None:
            self.now.announce(event, fields, run)

    async def aclose(self) -> None:
        """Stop what still runs in the background."""
        if self.now is not None:
            await self.now.aclose()

    # Around a call

    async def before(self, request: CallRequest) -> HookAnswer:
        settings = self._settings
        settings.look()
        if settings.waiting or self._announcements:
            await self._ask_about_changes(request.ctx.run, request.ctx.progress)
        if self._calls is None or not self.wants("PreToolUse"):
            settings.fresh = True  # the gate, which decides next, need not look again
            return NO_ANSWER
        return await self._calls.before(request)

    async def after(self, request: CallRequest, output: Output | None, error: str, seconds: float) -> HookAnswer:
        return NO_ANSWER if self._calls is None else await self._calls.after(request, output, error, seconds)

    async def permission_request(self, request: CallRequest, suggestions: Sequence[Update]) -> Allow | Deny | None:
        return None if self._calls is None else await self._calls.permission_request(request, suggestions)

    def about_to_ask(self, request: CallRequest, reason: str) -> None:
        if self._calls is not None:
            self._calls.about_to_ask(request, reason)
