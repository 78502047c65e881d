"""
From settings, flags and environment to what a session works with: policy, mode, folders, variables, hooks, model.

    for rules           all sources are pooled; deny, then ask, then allow
    for the mode        --permission-mode > settings
    for variables       the `env` of settings goes before the environment that handrail was started with
    for the model       flags > variables (ANTHROPIC_MODEL, OPENAI_BASE_URL ...) > settings (model, baseUrl ...)
    for the credential  variables > apiKeyHelper

A start only reads and merges the files. Rules are parsed, and lines counted, when the first call has to be decided.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.app.gate import hider
from handrail.app.state import plain_outfit
from handrail.builtin.outfit import Outfit
from handrail.config.asked import NOTHING_ASKED, Asked
from handrail.config.places import Places, places_for
from handrail.config.problems import Problem
from handrail.config.snapshot import NO_SETTINGS, Settings
from handrail.config.watch import Watch
from handrail.conversation.request import Thinking
from handrail.errors import ProviderSetupError, SettingsError
from handrail.providers.choose import Wishes
from handrail.records import record
from handrail.tools.tool import McpInfo

if TYPE_CHECKING:
    from handrail.config.managed import PolicySource
    from handrail.permissions.policy import Policy
    from handrail.permissions.rules import Rule, RuleProblem
    from handrail.permissions.update import UpdateProblem

BYPASS = "bypassPermissions"
BEYOND_DEFAULT = ("acceptEdits", "auto", BYPASS)
NEXT_MOVE = "See them with: handrail trust --show. Trust the folder with: handrail trust, or for one run with --trust."


@record
class HookSection:
    """The `hooks` of one file, as they are written. `family` is .handrail or .claude."""

    source: str
    family: str
    file: str
    folder: str
    section: Mapping[str, Any]


@record
class Mode:
    """The mode of a session, and which other ones it may enter."""

    name: str = "default"
    bypass_available: bool = False
    auto_available: bool = True


@record
class Loaded:
    """What counts now. The policy is not in it: `Live` builds it when it is first needed."""

    settings: Settings
    mode: Mode
    folders: tuple[str, ...]
    """Real paths of the working folders, the project first."""
    env: Mapping[str, str]
    hooks: tuple[HookSection, ...]
    problems: tuple[Problem, ...]

    @property
    def sandbox(self) -> Mapping[str, Any]:
        """The section of that name."""
        section: Mapping[str, Any] = self.settings.get("sandbox") or {}
        return section

    @property
    def managed_rules_only(self) -> bool:
        """Whether policy wants no allow rules but its own."""
        return bool(self.settings.managed("allowManagedPermissionRulesOnly"))

    def notes(self) -> tuple[str, ...]:
        """What a person should be told: problems, and what waits for trust."""
        return (*map(str, self.problems), *ignored_note(self.settings))


def load(
    places: Places,
    env: Mapping[str, str],
    asked: Asked = NOTHING_ASKED,
    *,
    policies: "Iterable[PolicySource]" = (),
    before: Settings | None = None,
) -> Loaded:
    """
    What counts in a folder for somebody with this environment.

    Raises:
        SettingsError: policy or a flag cannot be used; nothing may run.
    """
    settings = _gathered(places, env, asked, policies, before)
    return _loaded(settings, places, env, asked)


def _gathered(
    places: Places,
    env: Mapping[str, str],
    asked: Asked,
    policies: "Iterable[PolicySource]",
    before: Settings | None,
) -> Settings:
    from handrail.config.gather import gather  # noqa: PLC0415  # who has no settings files does not pay for it

    return gather(places, env, asked.wanted, policies=policies, before=before)


def _loaded(settings: Settings, places: Places, env: Mapping[str, str], asked: Asked) -> Loaded:
    problems = list(settings.problems)
    mode = mode_of(settings, asked, env, problems)
    folders = folders_of(settings, asked, places, problems)
    variables = {**env, **(settings.get("env") or {})}
    return Loaded(settings, mode, folders, variables, hooks_of(settings), tuple(problems))


def mode_of(settings: Settings, asked: Asked, env: Mapping[str, str], problems: list[Problem]) -> Mode:
    """
    The mode to start in. A mode from settings that cannot be had falls back to default; one that was asked for fails.

    Raises:
        SettingsError: the command line asks for a mode that is switched off or not safe here.
    """
    wished = BYPASS if asked.bypass else asked.mode or settings.get("permissions", "defaultMode") or "default"
    name = "default" if wished == "manual" else wished
    obstacles = {BYPASS: bypass_obstacle(settings, env), "auto": auto_obstacle(settings)}
    bypass = not obstacles[BYPASS] and (asked.allow_bypass or name == BYPASS)
    if asked.allow_bypass and obstacles[BYPASS]:
        problems.append(Problem("cli", "--allow-dangerously-skip-permissions", 0, obstacles[BYPASS]))
    if obstacle := obstacles.get(name, ""):
        if asked.bypass or asked.mode:
            raise SettingsError(f"the mode {name} cannot be used: {obstacle}")
        problems.append(Problem("", "permissions.defaultMode", 0, f"{name} cannot be used: {obstacle}"))
        name = "default"
    if settings.doubtful and name in BEYOND_DEFAULT:
        problems.append(Problem("", name, 0, "this mode is not used while a settings file is broken."))
        name = "default"
    return Mode(name, bypass and not settings.doubtful, not obstacles["auto"])


def bypass_obstacle(settings: Settings, env: Mapping[str, str]) -> str:
    """Why nobody may bypass permissions here; empty if they may."""
    if settings.get("permissions", "disableBypassPermissionsMode") == "disable":
        return "disableBypassPermissionsMode is set in the settings."
    if os.geteuid() == 0 and env.get("IS_SANDBOX") != "1":
        return "you are root. Use another user, or set IS_SANDBOX=1 if this machine is a sandbox."
    return ""


def auto_obstacle(settings: Settings) -> str:
    """Why mode auto may not be used; empty if it may."""
    switched_off = settings.get("permissions", "disableAutoMode") == "disable"
    return "disableAutoMode is set in the settings." if switched_off else ""


def folders_of(settings: Settings, asked: Asked, places: Places, problems: list[Problem]) -> tuple[str, ...]:
    """
    The project, the folders of settings, and those of the command line.

    Raises:
        SettingsError: --add-dir names no folder.
    """
    found = {places.cwd: None}
    managed_only = bool(settings.managed("allowManagedPermissionRulesOnly"))
    for layer in settings.layers:
        if managed_only and layer.source != "policy":
            continue
        for name in layer.values.get("permissions", {}).get("additionalDirectories", ()):
            folder = _folder(name, places)
            if os.path.isdir(folder):  # noqa: PTH112  # costs less
                found[folder] = None
            else:
                path = ("permissions", "additionalDirectories")
                problems.append(layer.document.problem(path, f"names {name!r}, which is not a folder."))
    for name in asked.folders:
        folder = _folder(name, places)
        if not os.path.isdir(folder):  # noqa: PTH112
            raise SettingsError(f"--add-dir: {name!r} is not a folder.")
        found[folder] = None
    return tuple(found)


def _folder(name: str, places: Places) -> str:
    home = places.home + name[1:] if name == "~" or name.startswith("~/") else name
    return os.path.realpath(os.path.join(places.cwd, home))  # noqa: PTH118  # may be absolute


def hooks_of(settings: Settings) -> tuple[HookSection, ...]:
    """All hooks that may run, file by file."""
    if not settings.get("hooks") or settings.managed("disableAllHooks"):
        return ()
    managed_only = settings.managed("allowManagedHooksOnly") or settings.get("disableAllHooks")
    return tuple(
        HookSection(layer.source, f".{spot.family or 'handrail'}", spot.shown, spot.folder, section)
        for layer in settings.layers
        if (section := layer.values.get("hooks")) and (layer.source == "policy" or not managed_only)
        for spot in (layer.document.spot,)
    )


def ignored_note(settings: Settings) -> tuple[str, ...]:
    """One sentence about what waits for trust, if anything does."""
    if not settings.ignored:
        return ()
    counts: dict[str, int] = {}
    for item in settings.ignored:
        name = ".".join(str(step) for step in item.path[:2] if isinstance(step, str))
        counts[name] = counts.get(name, 0) + 1
    listed = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in counts.items())
    do = "does" if len(settings.ignored) == 1 else "do"
    why = "is not trusted" if settings.trust == "untrusted" else "changed since it was trusted"
    return (f"this folder {why}, so {len(settings.ignored)} of its settings {do} not count: {listed}. {NEXT_MOVE}",)


# The model


def wishes_of(loaded: Loaded, flags: Wishes) -> Wishes:
    """What flags and settings want of a model; variables go before settings."""
    settings, env = loaded.settings, loaded.env
    model, url, provider = ("", "", "")
    if not any(env.get(name) for name in ("ANTHROPIC_MODEL", "OPENAI_MODEL")):
        model = settings.get("model") or ""
    if not any(env.get(name) for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")) and not flags.base_url:
        url, provider = settings.get("baseUrl") or "", settings.get("provider") or ""
    return replace(
        flags,
        model=flags.model or model,
        base_url=flags.base_url or url,
        provider=flags.provider or provider,
        api_key=flags.api_key or credential(loaded),
        fallback_models=flags.fallback_models or tuple(settings.get("fallbackModel") or ()),
    )


def credential(loaded: Loaded) -> str:
    """
    What apiKeyHelper prints; empty if there is none, or the environment holds a key.

    Raises:
        ProviderSetupError: it does not give one.
    """
    command = loaded.settings.get("apiKeyHelper")
    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")
    if not command or any(loaded.env.get(name) for name in names):
        return ""
    from handrail.config.commands import output_of  # noqa: PLC0415  # few have one

    try:
        printed = output_of(("/bin/sh", "-c", command), cwd=_helper_folder(loaded), env=loaded.env, timeout=30)
    except OSError as error:
        raise ProviderSetupError(f"apiKeyHelper gave no credential: {error}. Run it by hand: {command!r}.") from error
    key = printed.decode("utf-8", "replace").strip()
    if not key:
        raise ProviderSetupError(f"apiKeyHelper printed nothing. Run it by hand: {command!r}.")
    return key


def _helper_folder(loaded: Loaded) -> str:
    """A trusted project's helper runs in the project; anybody else's must not find the project's files by accident."""
    layer = next(layer for layer in loaded.settings.layers if "apiKeyHelper" in layer.values)
    return loaded.folders[0] if layer.source in ("local", "project") else "/"


def thought(loaded: Loaded, options: Mapping[str, Any]) -> dict[str, Any]:
    """How hard the model should think, where the options leave it open."""
    chosen: dict[str, Any] = {}
    if options.get("effort") is None and (effort := loaded.settings.get("effortLevel")):
        chosen["effort"] = effort
    enabled = loaded.settings.get("alwaysThinkingEnabled")
    thinking = options.get("thinking", Thinking())
    if enabled is not None and thinking.mode == "default":
        chosen["thinking"] = replace(thinking, mode="adaptive" if enabled else "off")
    return chosen


# The policy


def build_policy(loaded: Loaded, asked: Asked, places: Places) -> "Policy":
    """The rules of all sources with file and line, the mode and the folders, as one snapshot."""
    from handrail.permissions.policy import Flags, Policy  # noqa: PLC0415  # no first request waits for it

    flags = Flags(bypass_available=loaded.mode.bypass_available, auto_available=loaded.mode.auto_available)
    empty = Policy.empty(places.cwd, places.home).with_flags(flags).with_mode(loaded.mode.name)
    return empty.with_directories(loaded.folders).with_rules(_rules(loaded, asked))


def _rules(loaded: Loaded, asked: Asked) -> "list[Rule | RuleProblem]":
    from handrail.permissions.rules import Behaviour, Source, parse_rule, split_rules  # noqa: PLC0415

    made: list[Rule | RuleProblem] = []
    managed_only = loaded.managed_rules_only
    for layer in loaded.settings.layers:
        spot, section = layer.document.spot, layer.values.get("permissions", {})
        for kind in Behaviour:
            if kind is Behaviour.ALLOW and managed_only and layer.source != "policy":
                continue
            texts = section.get(kind.value, ())
            lines = layer.document.lines(("permissions", kind.value)) if texts else []
            lines += [0] * (len(texts) - len(lines))
            made += [
                parse_rule(text, kind, Source(layer.source, spot.shown, line, spot.folder))
                for text, line in zip(texts, lines, strict=False)
            ]
    given: list[tuple[Behaviour, Sequence[str]]] = [(Behaviour.DENY, asked.disallowed)]
    if not managed_only and not loaded.settings.doubtful:
        given.append((Behaviour.ALLOW, asked.allowed))
    for kind, words in given:
        made += [parse_rule(text, kind, Source("cli")) for word in words for text in split_rules(word)]
    return made


def rule_note(problem: "RuleProblem", settings: Settings) -> str:
    """What is wrong with a rule, where: `settings.json:12: permissions.allow[2] is 'Bash(' - ...`."""
    source = problem.source
    for layer in settings.layers:
        section = layer.values.get("permissions", {}) if layer.document.spot.shown == source.file else {}
        for kind in ("deny", "ask", "allow"):
            if problem.text in section.get(kind, ()):
                at = section[kind].index(problem.text)
                what = f"permissions.{kind}[{at}] is {problem.text!r} - {problem.message}. It matches nothing."
                return f"{source.file}:{source.line}: {what}"
    return f"{source}: {problem.text!r} - {problem.message}. It matches nothing."


def whole_tool(rule: str) -> bool:
    """Whether a rule has no brackets, or nothing in them: as a deny rule it takes the tool away."""
    return "(" not in rule or rule.rstrip().endswith(("()", "(*)"))


class Live:
    """
    The settings of a running session. Each question looks whether a file changed; there is no thread that watches.

    `told` hears what a person should know, `heard` every change by its source: policy, local, project, user or trust.
    """

    def __init__(
        self,
        places: Places,
        env: Mapping[str, str],
        asked: Asked = NOTHING_ASKED,
        *,
        policies: "Iterable[PolicySource]" = (),
        told: Callable[[str], None] = lambda _note: None,
        heard: Callable[[str], None] = lambda _source: None,
    ) -> None:
        self.places = places
        self._start_env = env
        self._asked = asked
        self._policies = tuple(policies)
        self._told = told
        self._heard = heard
        self._watch = Watch(places, asked.wanted)
        nothing = self._watch.empty and not asked.settings and not self._policies
        settings = NO_SETTINGS if nothing else _gathered(places, env, asked, self._policies, None)
        self.loaded = _loaded(settings, places, env, asked)
        self._policy: Policy | None = None
        self._updates: list[Mapping[str, Any]] = []

    def policy(self) -> "Policy":
        """The policy in force now."""
        changed = self._watch.changed()
        if changed:
            self._reload(changed)
        if self._policy is None:
            self._build(0)
        assert self._policy
        return self._policy

    def apply(self, update: Mapping[str, Any]) -> "Policy | UpdateProblem":
        """A permission update: in force at once, and written down where it is meant for."""
        from handrail.config.persist import persist  # noqa: PLC0415  # comes with the permission language
        from handrail.permissions.update import UpdateProblem, apply_update  # noqa: PLC0415

        if self.loaded.managed_rules_only and update.get("behavior") == "allow":
            return UpdateProblem("policy allows no allow rules but its own")
        made = apply_update(self.policy(), update)
        if isinstance(made, UpdateProblem):
            return made
        if made == self._policy:
            return made  # a mode that is not available, a rule that is there: nothing to write
        try:
            written = persist(update, self.places)
        except SettingsError as error:
            written = None
            self._told(str(error))
        if written is None or update.get("type") not in ("removeRules", "replaceRules"):
            self._updates.append(update)  # those two are done by the file alone
        self._policy = made
        return made

    def folders(self) -> tuple[str, ...]:
        """The working folders now."""
        return self._policy.working_dirs if self._policy else self.loaded.folders

    def denied(self, name: str, mcp: McpInfo | None) -> bool:
        """Whether a deny rule takes the tool away. The permission language is only loaded if there is such a rule."""
        rules = self.loaded.settings.get("permissions", "deny") or ()
        if not self._asked.disallowed and not any(map(whole_tool, rules)):
            return False
        return self.policy().denies_tool(name, mcp)

    def _reload(self, changed: tuple[str, ...]) -> None:
        self._watch = Watch(self.places, self._asked.wanted)  # there may be new drop-ins to look at
        try:
            loaded = load(
                self.places, self._start_env, self._asked, policies=self._policies, before=self.loaded.settings
            )
        except SettingsError as error:
            self._told(f"{error} The settings that were in force before still are.")
            return
        known = set(self.loaded.notes())
        self.loaded = loaded
        for note in loaded.notes():
            if note not in known:
                self._told(note)
        if self._policy:
            self._build(self._policy.version + 1)
        for source in changed:
            self._heard(source)

    def _build(self, version: int) -> None:
        from handrail.permissions.policy import Policy  # noqa: PLC0415
        from handrail.permissions.update import apply_update  # noqa: PLC0415

        before = {problem.text for problem in self._policy.problems} if self._policy else set[str]()
        made = build_policy(self.loaded, self._asked, self.places)
        for update in self._updates:
            updated = apply_update(made, update)
            made = updated if isinstance(updated, Policy) else made
        self._policy = replace(made, version=max(version, made.version))
        for problem in made.problems:
            if problem.text not in before:
                self._told(rule_note(problem, self.loaded.settings))


def outfit_of(live: Live) -> Callable[[], Outfit]:
    """What tools are handed: the variables of the settings, and the working folders as they are at the time."""
    return lambda: replace(
        plain_outfit(live.loaded.env, Path(live.places.cwd)),
        home=live.places.home,
        working_dirs=live.folders,
        hidden=hider(live.policy),
    )


def on_standard_error(note: str) -> None:
    """Where notes go if nobody says otherwise."""
    sys.stderr.write(f"handrail: {note}\n")


def live_settings(
    cwd: Path | str, env: Mapping[str, str], state: Path, asked: Asked, told: Callable[[str], None]
) -> Live:
    """The settings of a session in a folder; what a person should know is told at once."""
    live = Live(places_for(cwd, env, state), env, asked, told=told)
    for note in live.loaded.notes():
        told(note)
    return live
