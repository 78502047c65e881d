"""
From the hooks sections of settings to the hooks of a session, reloaded when the settings change.

Settings may change at any time. Their files are looked at before a prompt or a call is judged; a hook of the event
ConfigChange may refuse what was changed, and then the settings of before still count.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from handrail.conversation.blocks import Json
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.news import HookNews, OnNews, ignore
from handrail.hooks.runner import Hooks
from handrail.lazy import lazy
from handrail.records import record
from handrail.session.settings.load import HookSection, LoadedSettings
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.state_folder import state_folder
from handrail.tools.context import RunContext

if TYPE_CHECKING:
    from handrail.hooks import specs
    from handrail.hooks.specs import HookCallback, HookSource
else:
    specs = lazy("handrail.hooks.specs")

ROUNDS = 8
"""How often hooks are asked in a row about files that change while they are asked: a hook may write them itself."""
RESTLESS = "The {} settings change each time that hooks are asked about them. Those of before still count."
SETS_VARIABLES = ("SessionStart", "CwdChanged")

# Of several hooks that rewrite one input the last counts: nearer files come after farther ones, the policy last of all.
ORDER = ("user", "plugin", "project", "local", "skill", "agent", "flag", "session", "callback", "policy")


@record
class HookOptions:
    """What settings say about hooks besides the hooks; `urls` and `variables` limit HTTP hooks, None = no limit."""

    strict: bool = True
    urls: tuple[str, ...] | None = None
    variables: tuple[str, ...] | None = None


def in_order(sources: "Iterable[tuple[HookSource, object]]") -> "list[tuple[HookSource, object]]":
    """The sections in the order in which they count."""
    return sorted(sources, key=lambda each: _rank(each[0]))


def _rank(source: "HookSource") -> tuple[int, int]:
    """The place of a source; of the files of nested folders, the nearest has the longest path."""
    kind = source.name.partition(":")[0]
    return (ORDER.index(kind) if kind in ORDER else 0), len(source.folder) if kind in ("local", "project") else 0


def open_hooks(
    loaded: LoadedSettings,
    project: Path,
    given: "Hooks | Mapping[str, Sequence[HookCallback]] | None" = None,
    *,
    session_id: str,
    transcript: str = "",
) -> Hooks:
    """The hooks that the settings of a session name, and those that the program around it gives."""
    options = hook_options(loaded)
    hooks = given if isinstance(given, Hooks) else Hooks(callbacks=given, strict=options.strict)
    if hooks is not given:
        hooks.environment = HookEnvironment(
            loaded.env,
            str(project),
            session_id=session_id,
            transcript=transcript,
            urls=options.urls,
            variables=options.variables,
        )
    if hooks.environment.folder is None:  # made with the first long text
        folder = state_folder(loaded.env) / "hooks" / f"{os.getpid()}-{os.urandom(4).hex()}"
        hooks.environment = replace(hooks.environment, folder=folder)
    hooks.reload(in_order(sources_of(loaded)))
    return hooks


def env_file(hooks: Hooks) -> Path | None:
    """Where hooks leave variables for later commands, if there are such hooks."""
    return hooks.environment.env_file if hooks.wants(*SETS_VARIABLES) else None


def follow_settings(hooks: Hooks, settings: SessionSettings, on_warning: Callable[[str], None]) -> None:
    """Keep the hooks of a session true to its settings from now on, and tell what is wrong with them."""
    changes = SettingsChanges(hooks, settings, on_warning)
    settings.confirm_change = lambda: hooks.wants("ConfigChange")
    settings.on_change.insert(0, changes.reload)
    hooks.refresh = changes.refresh


class SettingsChanges:
    """Reloads hooks when the settings of their session change, and asks those that may refuse the change."""

    def __init__(self, hooks: Hooks, settings: SessionSettings, on_warning: Callable[[str], None]) -> None:
        self._hooks = hooks
        self._settings = settings
        self._on_warning = on_warning
        self._announcements: list[str] = []
        self._known_problems: frozenset[str] = frozenset()
        self._lock = asyncio.Lock()
        self._report_problems()

    def reload(self, source: str) -> None:
        """Follow a change of settings. It may be called in a thread, for tools look too."""
        loaded = self._settings.loaded
        options = hook_options(loaded)
        self._hooks.strict = options.strict
        self._hooks.environment = replace(self._hooks.environment, urls=options.urls, variables=options.variables)
        self._hooks.reload(in_order(sources_of(loaded)))
        self._report_problems()
        if self._hooks.wants("ConfigChange") and not self._settings.may_refuse(source):
            self._announcements.append(source)

    def _report_problems(self) -> None:
        problems = [str(problem) for problem in self._hooks.problems]
        for problem in problems:
            if problem not in self._known_problems:
                self._on_warning(problem)
        self._known_problems = frozenset(problems)

    async def refresh(self, run: RunContext, on_news: OnNews) -> None:
        """Look for changed settings, ask the hooks that may refuse them, and announce what cannot be refused."""
        settings = self._settings
        settings.look()
        if settings.waiting or self._announcements:
            await self._ask_about_changes(run, on_news)
        settings.fresh = not self._hooks.wants("PreToolUse")  # then the gate, which decides next, need not look again

    async def _ask_about_changes(self, run: RunContext, on_news: OnNews) -> None:
        while self._announcements:
            self._hooks.announce("ConfigChange", self._change(self._announcements.pop(0)), run)
        for _ in range(ROUNDS):
            if not self._settings.waiting:
                return
            async with self._lock:
                for source, number in tuple(self._settings.waiting.items()):
                    answer = await self._hooks.fire("ConfigChange", self._change(source), run)
                    if (text := self._settings.settle(source, number, answer.block)) and on_news is not ignore:
                        on_news(HookNews(text, event="ConfigChange"))
        if self._settings.waiting:
            self._on_warning(RESTLESS.format(" and ".join(self._settings.waiting)))

    def _change(self, source: str) -> Json:
        file = self._settings.files.get(source)
        return {"source": f"{source}_settings", **({"file_path": file} if file else {})}


def sources_of(loaded: LoadedSettings) -> "list[tuple[HookSource, object]]":
    """The sections of the settings, each with its place. Those of folders that were never trusted are left out."""
    return [(_source(each), each.section) for each in loaded.hooks]


def _source(found: HookSection) -> "HookSource":
    family: Literal[".claude", ".handrail"] = ".claude" if found.family == ".claude" else ".handrail"
    return specs.HookSource(found.source, family, found.file, found.folder, found.trust)


def hook_options(loaded: LoadedSettings) -> HookOptions:
    """What the settings say about hooks besides the hooks themselves."""
    settings = loaded.settings
    urls, variables = settings.get("allowedHttpHookUrls"), settings.get("httpHookAllowedEnvVars")
    return HookOptions(
        strict=settings.get("strictHooks") is not False,
        urls=None if urls is None else tuple(urls),
        variables=None if variables is None else tuple(variables),
    )


async def object_to_task(hooks: Hooks, event: str, fields: Mapping[str, Any], run: RunContext) -> str:
    """Why hooks do not want a task created or completed; empty if they do."""
    if not hooks.wants(event):
        return ""
    answer = await hooks.fire(event, dict(fields), run)
    return answer.block or answer.stop or ("A hook stopped it." if answer.stop is not None else "")
