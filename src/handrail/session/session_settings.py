"""
The settings of a running session: the policy they make, what a person agrees to meanwhile, and files that change.

A start only reads and merges files. Rules are parsed, and lines counted, when the first call has to be decided.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.builtin.services import ToolServices, usual_quota
from handrail.config.execution import features_of, unknown_features
from handrail.config.flags import NO_FLAGS_GIVEN, SettingsFlags
from handrail.config.places import SettingsPlaces, places_for
from handrail.config.snapshot import NO_SETTINGS, Settings
from handrail.config.watch import SettingsWatch
from handrail.errors import HandrailError, SettingsError
from handrail.lazy import lazy
from handrail.session.load_settings import LoadedSettings, gathered, load, loaded_from
from handrail.session.sandbox import make_sandbox
from handrail.session.state_folder import default_services
from handrail.tools.tool import McpInfo

if TYPE_CHECKING:
    from handrail.config import needs_trust, server_lists
    from handrail.config.managed import PolicySource
    from handrail.dispatch.approval import live
    from handrail.dispatch.approval.live import LivePolicy
    from handrail.permissions import hidden_files, rules
    from handrail.permissions import policy as policies
    from handrail.permissions.policy import Policy
    from handrail.permissions.rules import Behaviour, Rule, RuleProblem
    from handrail.session import rule_writer
else:
    needs_trust = lazy("handrail.config.needs_trust")
    server_lists = lazy("handrail.config.server_lists")
    live = lazy("handrail.dispatch.approval.live")
    hidden_files = lazy("handrail.permissions.hidden_files")
    policies = lazy("handrail.permissions.policy")
    rules = lazy("handrail.permissions.rules")
    rule_writer = lazy("handrail.session.rule_writer")


def build_policy(loaded: LoadedSettings, given: SettingsFlags, places: SettingsPlaces) -> "Policy":
    """The rules of all sources with file and line, the mode and the folders, as one snapshot."""
    modes = policies.ModeAvailability(
        bypass_available=loaded.mode.bypass_available, auto_available=loaded.mode.auto_available
    )
    empty = policies.Policy.empty(places.cwd, places.home).with_availability(modes).with_mode(loaded.mode.name)
    own = (*map(os.path.realpath, (places.state, places.user, places.claude)), *_scripts(loaded, places))
    return empty.with_directories(loaded.folders).with_own(own).with_rules(_rules(loaded, given))


def _scripts(loaded: LoadedSettings, places: SettingsPlaces) -> Iterator[str]:
    """The project's own files that hooks, servers and the like start: writing them means running them, unasked."""
    values = [layer.values for layer in loaded.settings.layers] + [{"mcpServers": loaded.settings.servers}]
    if any(value.get(key) for value in values for key in ("hooks", "statusLine", "apiKeyHelper", "mcpServers")):
        for value in values:
            yield from needs_trust.files_named([value.get(key) for key in needs_trust.RUNS], places.cwd)


def _rules(loaded: LoadedSettings, flags: SettingsFlags) -> "list[Rule | RuleProblem]":
    behaviour, parse = rules.Behaviour, rules.parse_rule
    found: list[Rule | RuleProblem] = []
    managed_only = loaded.managed_rules_only
    for layer in loaded.settings.layers:
        file, section = layer.document.file, layer.values.get("permissions", {})
        for kind in behaviour:
            if kind is behaviour.ALLOW and managed_only and layer.source != "policy":
                continue
            texts = section.get(kind.value, ())
            lines = layer.document.lines(("permissions", kind.value)) if texts else []
            lines += [0] * (len(texts) - len(lines))
            found += [
                parse(text, kind, rules.RuleSource(layer.source, file.shown, line, file.folder))
                for text, line in zip(texts, lines, strict=False)
            ]
    given: list[tuple[Behaviour, Sequence[str]]] = [(behaviour.DENY, flags.disallowed), (behaviour.ASK, flags.ask)]
    if flags.flags_widen and not managed_only and not loaded.settings.doubtful:
        given.append((behaviour.ALLOW, flags.allowed))
    for kind, words in given:
        found += [parse(text, kind, rules.RuleSource("cli")) for word in words for text in rules.split_rules(word)]
    return found


def rule_note(problem: "RuleProblem", settings: Settings) -> str:
    """What is wrong with a rule, where: `settings.json:12: permissions.allow[2] is 'Bash(' - ...`."""
    source = problem.source
    for layer in settings.layers:
        section = layer.values.get("permissions", {}) if layer.document.file.shown == source.file else {}
        for kind in ("deny", "ask", "allow"):
            if problem.text in section.get(kind, ()):
                at = section[kind].index(problem.text)
                what = f"permissions.{kind}[{at}] is {problem.text!r} - {problem.message}. It matches nothing."
                return f"{source.file}:{source.line}: {what}"
    return f"{source}: {problem.text!r} - {problem.message}. It matches nothing."


def removes_tool(rule: str) -> bool:
    """Whether a rule has no brackets, or nothing in them: as a deny rule it takes the tool away."""
    return "(" not in rule or rule.rstrip().endswith(("()", "(*)"))


class SessionSettings:
    """
    The settings of a running session. Each question looks whether a file changed; there is no thread that watches.

    `on_warning` gets what a person should know.
    """

    def __init__(
        self,
        places: SettingsPlaces,
        env: Mapping[str, str],
        flags: SettingsFlags = NO_FLAGS_GIVEN,
        *,
        policies: "Iterable[PolicySource]" = (),
        on_warning: Callable[[str], None] = lambda _note: None,
    ) -> None:
        self.places = places
        self._start_env = env
        self.flags = flags
        self._policies = tuple(policies)
        self._on_warning = on_warning
        self.on_change: list[Callable[[str], None]] = []
        """Called after each change with its source. Tools look for changes too, in their threads."""
        self._watch = SettingsWatch(places, flags)
        nothing = self._watch.empty and not flags.settings and not self._policies
        settings = NO_SETTINGS if nothing else gathered(places, env, flags, self._policies, None)
        self.loaded = loaded_from(settings, places, env, flags)
        self._watch.follow(_scripts(self.loaded, places))
        self.confirm_change: Callable[[], bool] = bool
        """Whether a hook wants to be asked before other settings count."""
        self.waiting: dict[str, int] = {}
        """The sources that have changed and wait for an answer, each with the number of its change."""
        self.files: dict[str, str] = {}
        """By source, the file that changed last."""
        self.fresh = False
        """The files have just been looked at, so that the next call of `policy` need not."""
        self._held: set[str] = set()
        self._number = 0
        self._built: Policy | None = None
        self._in_force: LivePolicy | None = None

    def look(self) -> None:
        """Look whether files changed. With `confirm_change` a change waits, and does not count until `settle`."""
        self.fresh = False
        changed = self._watch.changes()
        if not changed:
            return
        self.files |= changed
        asked = [source for source in changed if self.may_refuse(source)] if self.confirm_change() else []
        for source in asked:
            self._number += 1
            self.waiting[source] = self._number
            self._held.add(source)
        if rest := tuple(source for source in changed if source not in asked):
            self._reload(rest)

    def settle(self, source: str, number: int, refusal: str | None) -> str:
        """What waited counts now, or is refused, which the text says. Nothing happens if it has changed again."""
        self.look()
        if self.waiting.get(source) != number:
            return ""
        del self.waiting[source]
        if refusal is not None:
            text = f"A hook refused the change of the {source} settings: {refusal}. Those of before still count."
            self._on_warning(text)
            return text
        self._held.discard(source)
        self._reload((source,))
        return ""

    @staticmethod
    def may_refuse(source: str) -> bool:
        """Whether a change of this source can be refused: nobody stands above policy, or keeps trust from going."""
        return source not in ("policy", "trust")

    def policy(self) -> "Policy":
        """The policy in force now: what the files say, and what was changed in this session."""
        return self.in_force()()

    def in_force(self) -> "LivePolicy":
        """What gives the policy in force, and takes changes of it."""
        if self._in_force is None:
            # where no settings files count, none is written: what a person agrees to holds for the session
            writer = rule_writer.RuleWriter(self) if self.flags.sources else None
            self._in_force = live.LivePolicy(self._of_files, writer)
        return self._in_force

    def _of_files(self) -> "Policy":
        if self.fresh:
            self.fresh = False
        else:
            self.look()
        if self._built is None:
            self._built = build_policy(self.loaded, self.flags, self.places)
            self._tell_problems(self._built, set())
        return self._built

    @property
    def mode(self) -> str:
        """The permission mode in force."""
        return self._in_force.last.mode if self._in_force else self.loaded.mode.name

    def set_mode(self, mode: str) -> str:
        """
        Change the mode of this session; the mode that is in force then.

        Raises:
            HandrailError: there is no such mode, or it cannot be entered.
        """
        try:
            policy = self.in_force().apply(lambda policy: policy.with_mode(mode))
        except ValueError as error:
            raise HandrailError(str(error)) from error
        if policy.mode != mode:
            raise HandrailError(f"The mode {mode!r} cannot be entered here; {policy.mode!r} stays.")
        return policy.mode

    def folders(self) -> tuple[str, ...]:
        """The working folders now."""
        return self._in_force.last.working_dirs if self._in_force else self.loaded.folders

    def denied(self, name: str, mcp: McpInfo | None) -> bool:
        """Whether a deny rule takes the tool away. The permission language is only loaded if there is such a rule."""
        rules = self.loaded.settings.get("permissions", "deny") or ()
        if not self.flags.disallowed and not any(map(removes_tool, rules)):
            return False
        return self.policy().denies_tool(name, mcp)

    def refuses_server(self, name: str, forms: Sequence[Mapping[str, Any]]) -> str:
        """Why an MCP server may not be used; empty if it may."""
        return server_lists.refusal_reason(self.loaded.settings, name, forms)

    def _reload(self, changed: tuple[str, ...]) -> None:
        self._watch = SettingsWatch(self.places, self.flags)  # there may be new drop-ins to look at
        try:
            loaded = load(
                self.places,
                self._start_env,
                self.flags,
                policies=self._policies,
                before=self.loaded.settings,
                frozen_sources=frozenset(self._held),
            )
        except SettingsError as error:
            self._on_warning(f"{error} The settings that were in force before still are.")
            self._watch.follow(_scripts(self.loaded, self.places))
            return
        self._watch.follow(_scripts(loaded, self.places))
        known = set(self.loaded.notes())
        self.loaded = loaded
        for note in loaded.notes():
            if note not in known:
                self._on_warning(note)
        if self._built:
            known = {problem.text for problem in self._built.problems}
            self._built = build_policy(loaded, self.flags, self.places)
            self._tell_problems(self._built, known)
        for source in changed:
            for listener in self.on_change:
                listener(source)

    def _tell_problems(self, policy: "Policy", known: set[str]) -> None:
        for problem in policy.problems:
            if problem.text not in known:
                self._on_warning(rule_note(problem, self.loaded.settings))


def tool_services(settings: SessionSettings, session_id: str = "") -> ToolServices:
    """What tools are given: the variables of the settings, and the working folders as they are at the time."""
    services = default_services(settings.loaded.env, Path(settings.places.cwd), session_id)
    return replace(
        services,
        home=settings.places.home,
        working_dirs=settings.folders,
        hidden=_hidden_files(settings.policy),
        sandbox=make_sandbox(settings, services.state),
        background="background" in features_of(settings.loaded.settings, settings.loaded.env),
        output_quota=partial(_output_quota, settings),
    )


def _output_quota(settings: SessionSettings) -> int:
    """How many bytes of output a command may write now."""
    quota: int | None = settings.loaded.settings.get("commandOutputQuota")
    return usual_quota() if quota is None else quota


def _hidden_files(policy: "Callable[[], Policy]") -> Callable[[str], bool]:
    """Whether a search leaves out the file at a real path, by the policy in force."""
    known: list[tuple[Policy, Callable[[str], bool]]] = []

    def is_hidden(path: str) -> bool:
        now = policy()
        if not known or known[0][0] is not now:
            known[:] = [(now, hidden_files.hidden_file_check(now))]
        return known[0][1](path)

    return is_hidden


def open_settings(
    cwd: Path | str,
    env: Mapping[str, str],
    state: Path,
    flags: SettingsFlags,
    on_warning: Callable[[str], None],
) -> SessionSettings:
    """The settings of a session in a folder; what a person should know about them is told at once."""
    places = places_for(cwd, env, state)
    if not flags.managed_policy:
        places = replace(places, policy=())
    settings = SessionSettings(places, env, flags, on_warning=on_warning)
    for note in (*settings.loaded.notes(), *unknown_features(settings.loaded.settings, settings.loaded.env)):
        on_warning(note)
    return settings
