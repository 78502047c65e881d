"""
The settings of a running session: the policy they make, what a person agrees to meanwhile, and files that change.

A start only reads and merges files. Rules are parsed, and lines counted, when the first call has to be decided.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.builtin.services import ToolServices, usual_quota
from handrail.config.flags import NO_FLAGS_GIVEN, SettingsFlags
from handrail.config.places import SettingsPlaces, places_for
from handrail.config.snapshot import NO_SETTINGS, Settings
from handrail.config.watch import SettingsWatch
from handrail.conversation.plain import plain
from handrail.errors import SettingsError
from handrail.session.gate import hider
from handrail.session.load_settings import LoadedSettings, gathered, load, loaded_from
from handrail.session.sandbox import make_sandbox
from handrail.session.state_folder import default_services
from handrail.tools.tool import McpInfo

if TYPE_CHECKING:
    from handrail.config.managed import PolicySource
    from handrail.dispatch.approval.live import LivePolicy
    from handrail.permissions.policy import Policy
    from handrail.permissions.rules import Rule, RuleProblem


def build_policy(loaded: LoadedSettings, asked: SettingsFlags, places: SettingsPlaces) -> "Policy":
    """The rules of all sources with file and line, the mode and the folders, as one snapshot."""
    from handrail.permissions.policy import ModeAvailability, Policy  # noqa: PLC0415  # no first request waits for it

    flags = ModeAvailability(bypass_available=loaded.mode.bypass_available, auto_available=loaded.mode.auto_available)
    empty = Policy.empty(places.cwd, places.home).with_availability(flags).with_mode(loaded.mode.name)
    own = (*map(os.path.realpath, (places.state, places.user, places.claude)), *_scripts(loaded, places))
    return empty.with_directories(loaded.folders).with_own(own).with_rules(_rules(loaded, asked))


def _scripts(loaded: LoadedSettings, places: SettingsPlaces) -> Iterator[str]:
    """The project's own files that hooks, servers and the like start: whoever writes them runs them, unasked."""
    values = [layer.values for layer in loaded.settings.layers] + [{"mcpServers": loaded.settings.servers}]
    if any(value.get(key) for value in values for key in ("hooks", "statusLine", "apiKeyHelper", "mcpServers")):
        from handrail.config.needs_trust import RUNS, files_named  # noqa: PLC0415  # most settings start nothing

        for value in values:
            yield from files_named([value.get(key) for key in RUNS], places.cwd)


def _rules(loaded: LoadedSettings, asked: SettingsFlags) -> "list[Rule | RuleProblem]":
    from handrail.permissions.rules import Behaviour, RuleSource, parse_rule, split_rules  # noqa: PLC0415

    made: list[Rule | RuleProblem] = []
    managed_only = loaded.managed_rules_only
    for layer in loaded.settings.layers:
        file, section = layer.document.file, layer.values.get("permissions", {})
        for kind in Behaviour:
            if kind is Behaviour.ALLOW and managed_only and layer.source != "policy":
                continue
            texts = section.get(kind.value, ())
            lines = layer.document.lines(("permissions", kind.value)) if texts else []
            lines += [0] * (len(texts) - len(lines))
            made += [
                parse_rule(text, kind, RuleSource(layer.source, spot.shown, line, spot.folder))
                for text, line in zip(texts, lines, strict=False)
            ]
    given: list[tuple[Behaviour, Sequence[str]]] = [(Behaviour.DENY, asked.disallowed)]
    if asked.flags_widen and not managed_only and not loaded.settings.doubtful:
        given.append((Behaviour.ALLOW, asked.allowed))
    for kind, words in given:
        made += [parse_rule(text, kind, RuleSource("cli")) for word in words for text in split_rules(word)]
    return made


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

    `told` hears what a person should know, `heard` every change by its source: policy, local, project, user or trust.
    """

    def __init__(
        self,
        places: SettingsPlaces,
        env: Mapping[str, str],
        asked: SettingsFlags = NO_FLAGS_GIVEN,
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
        self.heard = heard
        self._watch = SettingsWatch(places, asked)
        nothing = self._watch.empty and not asked.settings and not self._policies
        settings = NO_SETTINGS if nothing else gathered(places, env, asked, self._policies, None)
        self.loaded = loaded_from(settings, places, env, asked)
        self._watch.follow(_scripts(self.loaded, places))
        self.asks: Callable[[], bool] = bool
        """Whether somebody wants to be asked before other settings count."""
        self.waiting: dict[str, int] = {}
        """The sources that have changed and wait for an answer, each with the number of its change."""
        self.files: dict[str, str] = {}
        """By source, the file that changed last."""
        self.fresh = False
        """Somebody has just looked, so that the next who asks for the policy need not."""
        self._held: set[str] = set()
        self._number = 0
        self._built: Policy | None = None
        self._in_force: LivePolicy | None = None

    def look(self) -> None:
        """Look whether files changed. What somebody `asks` to judge first waits, and does not count until `settle`."""
        self.fresh = False
        changed = self._watch.changes()
        if not changed:
            return
        self.files |= changed
        asked = [source for source in changed if self.may_refuse(source)] if self.asks() else []
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
            self._told(text)
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
            from handrail.dispatch.approval.live import LivePolicy  # noqa: PLC0415
            from handrail.session.rule_writer import RuleWriter  # noqa: PLC0415  # comes with the permission language

            self._in_force = LivePolicy(self._of_files, RuleWriter(self))
        return self._in_force

    def _of_files(self) -> "Policy":
        if self.fresh:
            self.fresh = False
        else:
            self.look()
        if self._built is None:
            self._built = build_policy(self.loaded, self._asked, self.places)
            self._tell_problems(self._built, set())
        return self._built

    def folders(self) -> tuple[str, ...]:
        """The working folders now."""
        return self._in_force.last.working_dirs if self._in_force else self.loaded.folders

    def denied(self, name: str, mcp: McpInfo | None) -> bool:
        """Whether a deny rule takes the tool away. The permission language is only loaded if there is such a rule."""
        rules = self.loaded.settings.get("permissions", "deny") or ()
        if not self._asked.disallowed and not any(map(removes_tool, rules)):
            return False
        return self.policy().denies_tool(name, mcp)

    def refuses_server(self, name: str, forms: Sequence[Mapping[str, Any]]) -> str:
        """Why an MCP server may not be used; empty if it may."""
        from handrail.config.server_lists import refusal_reason  # noqa: PLC0415  # only those who have servers pay for it

        return refusal_reason(self.loaded.settings, name, forms)

    def _reload(self, changed: tuple[str, ...]) -> None:
        self._watch = SettingsWatch(self.places, self._asked)  # there may be new drop-ins to look at
        try:
            loaded = load(
                self.places,
                self._start_env,
                self._asked,
                policies=self._policies,
                before=self.loaded.settings,
                frozen_sources=frozenset(self._held),
            )
        except SettingsError as error:
            self._told(f"{error} The settings that were in force before still are.")
            self._watch.follow(_scripts(self.loaded, self.places))
            return
        self._watch.follow(_scripts(loaded, self.places))
        known = set(self.loaded.notes())
        self.loaded = loaded
        for note in loaded.notes():
            if note not in known:
                self._told(note)
        if self._built:
            known = {problem.text for problem in self._built.problems}
            self._built = build_policy(loaded, self._asked, self.places)
            self._tell_problems(self._built, known)
        for source in changed:
            self.heard(source)

    def _tell_problems(self, policy: "Policy", known: set[str]) -> None:
        for problem in policy.problems:
            if problem.text not in known:
                self._told(rule_note(problem, self.loaded.settings))


def output_quota(live: SessionSettings) -> int:
    """How many bytes of output a command may write now."""
    quota: int | None = live.loaded.settings.get("commandOutputQuota")
    return usual_quota() if quota is None else quota


def tool_services(live: SessionSettings, session: str = "", **more: Any) -> Callable[[], ToolServices]:
    """What tools are handed: the variables of the settings, and the working folders as they are at the time."""

    def made() -> ToolServices:
        plain = default_services(live.loaded.env, Path(live.places.cwd), session)
        common = {
            "home": live.places.home,
            "working_dirs": live.folders,
            "hidden": hider(live.policy),
            "sandbox": make_sandbox(live, plain.state),
            "output_quota": partial(output_quota, live),
        }
        return replace(plain, **{**common, **more})

    return made


def on_standard_error(note: str) -> None:
    """Where notes go if nobody says otherwise."""
    sys.stderr.write(f"handrail: {plain(note)}\n")


def open_settings(
    cwd: Path | str,
    env: Mapping[str, str],
    state: Path,
    asked: SettingsFlags,
    told: Callable[[str], None],
    *,
    heard: Callable[[str], None] = lambda _source: None,
) -> SessionSettings:
    """The settings of a session in a folder; what a person should know is told at once."""
    live = SessionSettings(places_for(cwd, env, state), env, asked, told=told, heard=heard)
    for note in live.loaded.notes():
        told(note)
    return live
