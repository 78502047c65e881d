"""
How a session runs its calls: the tool families, how calls overlap, how long results may be.

    policy files > flags > variables (HANDRAIL_MAX_PARALLEL ...) > other settings files > defaults
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, get_args

from handrail.builtin.table import REMOTE_SERVERS, SEARCH_SERVICE, USUAL_FEATURES
from handrail.config.remote_servers import remote_servers
from handrail.config.snapshot import Settings
from handrail.dispatch.results import DEFAULT_LIMITS, ResultLimits
from handrail.dispatch.schedule import EarlyStart, Scheduling, SiblingErrors
from handrail.errors import SettingsError
from handrail.loop.limits import Limits
from handrail.records import record
from handrail.tools.web import WebOptions

Value = TypeVar("Value")

DEFAULT_FEATURES = USUAL_FEATURES | {"agents", "worktrees"}
"""The tool families of a session, unless settings switch them off."""


def features_of(settings: Settings, env: Mapping[str, str]) -> frozenset[str]:
    """The enabled tool families. HANDRAIL_FEATURES names them, with a minus those to switch off."""
    chosen: dict[str, bool] = dict.fromkeys(DEFAULT_FEATURES, True)
    chosen |= settings.get("features") or {}
    for word in env.get("HANDRAIL_FEATURES", "").split(","):
        if name := word.strip():
            chosen[name.removeprefix("-")] = not name.startswith("-")
    chosen |= settings.get_managed("features") or {}
    return frozenset(name for name, on in chosen.items() if on)


def run_features(settings: Settings, env: Mapping[str, str], search: "SearchChoice | None") -> frozenset[str]:
    """The enabled tool families, and whether there are services that search the web, and that start runs elsewhere."""
    services = {SEARCH_SERVICE: search, REMOTE_SERVERS: remote_servers(settings, env).servers}
    return features_of(settings, env) | {name for name, found in services.items() if found}


def unknown_features(settings: Settings, env: Mapping[str, str]) -> tuple[str, ...]:
    """Warnings about names of tool families that do not exist, in settings and in HANDRAIL_FEATURES."""
    words = (word.strip().removeprefix("-") for word in env.get("HANDRAIL_FEATURES", "").split(","))
    named = {"features": settings.get("features") or {}, "HANDRAIL_FEATURES": dict.fromkeys(filter(None, words))}
    known = ", ".join(sorted(DEFAULT_FEATURES))
    return tuple(
        f"{place} names {name!r}, which is not a family of tools and has no effect. Known: {known}."
        for place, names in named.items()
        for name in names
        if name not in DEFAULT_FEATURES
    )


class _Section:
    """One section of the settings, with the variables that override it."""

    def __init__(self, name: str, settings: Settings, env: Mapping[str, str]) -> None:
        self._name = name
        self._settings = settings
        self._env = env

    def value(self, key: str, variable: str, parse: Callable[[str, str], Value], default: Value) -> Value:
        """The value in force for a key; `parse` reads the text of its variable."""
        managed: Any = self._settings.get_managed(self._name, key)
        if managed is not None:
            return cast("Value", managed)
        if text := self._env.get(variable):
            return parse(variable, text)
        written: Any = self._settings.get(self._name, key)
        return default if written is None else cast("Value", written)


def scheduling_of(settings: Settings, env: Mapping[str, str], early_start: str = "") -> Scheduling:
    """How calls may overlap; `early_start` is that of a flag. Raises SettingsError if a variable cannot be used."""
    env = {**env, "HANDRAIL_EARLY_START": early_start} if early_start else env
    usual, section = Scheduling(), _Section("scheduling", settings, env)
    early, sibling = _one_of(get_args(EarlyStart)), _one_of(get_args(SiblingErrors))
    return Scheduling(
        early_start=section.value("earlyStart", "HANDRAIL_EARLY_START", early, usual.early_start),
        max_parallel=section.value("maxParallel", "HANDRAIL_MAX_PARALLEL", _number, usual.max_parallel),
        max_parallel_by_tool=section.value("maxParallelByTool", "HANDRAIL_MAX_PARALLEL_BY_TOOL", _numbers, {}),
        sibling_errors=section.value("siblingErrors", "HANDRAIL_SIBLING_ERRORS", sibling, usual.sibling_errors),
    )


@record
class AgentSettings:
    """What sub-agents of a session may use. `background` None = where something is told of their end."""

    limits: Limits = Limits(turns=200, dollars=20.0, seconds=3600.0)
    depth: int = 3
    concurrent: int = 10
    background: bool | None = None
    question_seconds: float = 600.0
    """How long a sub-agent waits for an answer to a question; then the answer is no."""


USUAL_AGENTS = AgentSettings()


def agent_settings(settings: Settings) -> AgentSettings:
    """What the settings say about sub-agents. A limit of 0 means none."""
    usual, limits = USUAL_AGENTS, USUAL_AGENTS.limits

    def limit(name: str, otherwise: float | None) -> Any:
        written = settings.get("agentLimits", name)
        return otherwise if written is None else written or None

    return AgentSettings(
        Limits(limit("turns", limits.turns), limit("dollars", limits.dollars), None, limit("seconds", limits.seconds)),
        settings.get("agentLimits", "depth") or usual.depth,
        settings.get("maxConcurrentAgents") or usual.concurrent,
        settings.get("agentsInBackground"),
        settings.get("agentQuestionSeconds") or usual.question_seconds,
    )


def web_options(settings: Settings) -> WebOptions:
    """What the settings say about fetching pages."""
    usual = WebOptions()
    robots = settings.get("webFetch", "robots")
    return WebOptions(
        usual.robots if robots is None else robots,
        settings.get("webFetch", "requestsPerMinute") or usual.per_minute,
        settings.get("webFetch", "maxBytes") or usual.max_bytes,
        settings.get("webFetch", "seconds") or usual.seconds,
    )


@record
class SearchChoice:
    """The service that searches the web: its name, its address (empty = the usual one) and its key."""

    backend: str
    url: str = ""
    key: str = ""


SEARCH_KEYS = {"brave": ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"), "tavily": ("TAVILY_API_KEY",)}


def search_choice(settings: Settings, env: Mapping[str, str], *, by_provider: bool) -> SearchChoice | None:
    """
    The search service that the settings name, else the first that is set up; None = there is none.

    `by_provider`: the provider of the model searches itself.
    """
    wanted = settings.get("webSearch", "backend") or ""
    written = settings.get("webSearch", "url") or ""
    searxng = written if wanted in ("", "searxng") else ""
    keys = {name: next(filter(None, map(env.get, names)), "") for name, names in SEARCH_KEYS.items()}
    choices = (
        SearchChoice("searxng", searxng or env.get("SEARXNG_URL", "")),
        SearchChoice("brave", written, keys["brave"] or ""),
        SearchChoice("tavily", written, keys["tavily"] or ""),
        SearchChoice("provider", key="of the model" if by_provider else ""),
    )
    usable = (each for each in choices if each.key or (each.backend == "searxng" and each.url))
    return next((each for each in usable if wanted in ("", each.backend)), None)


def most_searches(settings: Settings, env: Mapping[str, str]) -> int:
    """How many searches a session may make."""
    wanted = env.get("CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION", "")
    usual = int(wanted) if wanted.isdecimal() and int(wanted) else 200
    return settings.get("webSearch", "maxPerSession") or usual


def result_limits(settings: Settings, env: Mapping[str, str]) -> ResultLimits:
    """How long results may be, and how much of them is kept. Raises SettingsError if a variable cannot be used."""
    usual, section = DEFAULT_LIMITS, _Section("results", settings, env)
    limits = ResultLimits(
        quota_bytes=section.value("quotaBytes", "HANDRAIL_RESULT_QUOTA", _number, usual.quota_bytes),
        retention_days=section.value("retentionDays", "HANDRAIL_RESULT_DAYS", _number, usual.retention_days),
        max_chars=section.value("maxChars", "HANDRAIL_MAX_RESULT_CHARS", _number, 0) or None,
        max_chars_by_tool=section.value("maxCharsByTool", "HANDRAIL_MAX_RESULT_CHARS_BY_TOOL", _numbers, {}),
    )
    return usual if limits == usual else limits


def _number(variable: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise SettingsError(f"the variable {variable} is {text!r}. Give a whole number, 1 or more.")
    return int(text)


def _numbers(variable: str, text: str) -> Mapping[str, int]:
    """`Bash=2,Read=8`."""
    pairs = [word.partition("=") for word in text.split(",") if word.strip()]
    if not all(name.strip() and sign for name, sign, _ in pairs):
        raise SettingsError(f"the variable {variable} is {text!r}. Write it like Bash=2,Read=8.")
    return {name.strip(): _number(variable, number) for name, _, number in pairs}


def _one_of(known: tuple[Any, ...]) -> Callable[[str, str], Any]:
    def parse(variable: str, text: str) -> Any:
        if text not in known:
            raise SettingsError(f"the variable {variable} is {text!r}. Use one of {', '.join(known)}.")
        return text

    return parse
