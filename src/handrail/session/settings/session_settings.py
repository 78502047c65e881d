"""The settings of a running session and its policy; rules are parsed when the first call has to be decided."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from handrail.config.execution import unknown_features
from handrail.config.flags import NO_FLAGS_GIVEN, SettingsFlags
from handrail.config.places import SOURCES, SettingsPlaces, places_for
from handrail.config.remote_servers import remote_servers
from handrail.config.snapshot import NO_SETTINGS, TRUSTED
from handrail.config.watch import SettingsWatch
from handrail.errors import HandrailError, SettingsError
from handrail.extensions.places import SKILL_FAMILIES, config_folders
from handrail.lazy import lazy
from handrail.session.settings.caller_names import NO_NAMES, CallerNames
from handrail.session.settings.load import LoadedSettings, gather_settings, load, loaded_from
from handrail.tools.tool import McpInfo

if TYPE_CHECKING:
    from handrail.config import needs_trust, trust
    from handrail.config.managed import PolicySource
    from handrail.dispatch.approval.live import LivePolicy
    from handrail.permissions.policy import Policy
    from handrail.permissions.tool_index import ToolIndex
    from handrail.session.settings import policy as settings_policy
    from handrail.session.settings import rule_problems, start_check
    from handrail.session.settings import rules as settings_rules
else:
    needs_trust = lazy("handrail.config.needs_trust")
    rule_problems = lazy("handrail.session.settings.rule_problems")
    start_check = lazy("handrail.session.settings.start_check")
    settings_policy = lazy("handrail.session.settings.policy")
    settings_rules = lazy("handrail.session.settings.rules")
    trust = lazy("handrail.config.trust")


RUNNING_KEYS = ("hooks", "statusLine", "apiKeyHelper", "mcpServers", "lspServers")
"""Settings that start programs."""


def _scripts(loaded: LoadedSettings, places: SettingsPlaces) -> Iterator[str]:
    """The project's own files that hooks, servers and the like start: writing them means running them, unasked."""
    values: list[tuple[Mapping[str, Any], str]] = [({"mcpServers": loaded.settings.servers}, places.cwd)]
    values += [
        (layer.values, layer.document.file.folder if layer.source in SOURCES[:2] else places.cwd)
        for layer in loaded.settings.layers
    ]
    if any(value.get(key) for value, _ in values for key in RUNNING_KEYS):
        for value, folder in values:
            yield from needs_trust.files_named([value.get(key) for key in needs_trust.RUNS], folder)


def _has_definitions(places: SettingsPlaces) -> bool:
    """Whether the project has commands, agents or skills, which may need trust."""
    folders = config_folders(Path(places.cwd), {"HOME": places.home}, ("project",), SKILL_FAMILIES)
    return any((folder.path / kind).is_dir() for folder in folders for kind in ("commands", "agents", "skills"))


def removes_tool(rule: str) -> bool:
    """Whether a rule has no brackets, or nothing in them: as a deny rule it takes the tool away."""
    return "(" not in rule or rule.partition("(")[2].rstrip().removesuffix(")").strip() in ("", "*")


class SessionSettings:
    """The settings of a running session. Each question checks whether a file changed; no thread watches them."""

    def __init__(
        self,
        places: SettingsPlaces,
        env: Mapping[str, str],
        flags: SettingsFlags = NO_FLAGS_GIVEN,
        *,
        policies: "Iterable[PolicySource]" = (),
        on_warning: Callable[[str], None] = lambda _note: None,
        names: CallerNames = NO_NAMES,
    ) -> None:
        self.places = places
        self.names = names
        self._told: set[str] = set()
        self._remarks_due = False
        self._start_env = env
        self.flags = flags
        self._policies = tuple(policies)
        self._on_warning = on_warning
        self.on_change: list[Callable[[str], None]] = []
        """Called after each change with its source. Tools look for changes too, in their threads."""
        self._watch = SettingsWatch(places, flags)
        nothing = self._watch.empty and not flags.settings and not self._policies and not _has_definitions(places)
        nothing = nothing and not places.claude_state.exists()
        settings = NO_SETTINGS if nothing else gather_settings(places, env, flags, self._policies)
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
        self._building = Lock()
        self._prepared: tuple[LoadedSettings, Policy] | None = None
        self._denied_tools: tuple[LoadedSettings, ToolIndex] | None = None
        self._built: Policy | None = None
        self._given: Policy | None = None
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
        """Whether a hook can refuse a change of this source: policy and lost trust always count."""
        return source not in ("policy", "trust")

    def policy(self) -> "Policy":
        """The policy in force now: what the files say, and what was changed in this session."""
        return self.in_force()()

    def in_force(self) -> "LivePolicy":
        """What gives the policy in force, and takes changes of it."""
        if self._in_force is None:
            self._in_force = settings_policy.live_policy(self._of_files, self, writes=bool(self.flags.sources))
        return self._in_force

    def _of_files(self) -> "Policy":
        if self.fresh:
            self.fresh = False
        else:
            self.look()
        self._given = self._built or self._build_policy()
        return self._given

    @property
    def mode(self) -> str:
        """The permission mode in force."""
        return self._in_force.last.mode if self._in_force else self.loaded.mode.name

    def set_mode(self, mode: str) -> str:
        """Change the mode of this session; the mode in force then. HandrailError if it cannot be entered."""
        try:
            policy = self.in_force().apply(lambda policy: policy.with_mode(mode))
        except ValueError as error:
            raise HandrailError(str(error)) from error
        if policy.mode != mode:
            raise HandrailError(
                f"The mode {mode!r} cannot be entered here; {policy.mode!r} stays. "
                "Settings rule it out, or the flag that permits it was not given at the start."
            )
        return policy.mode

    def is_trusted(self, folder: str = "") -> bool:
        """Whether the user trusts a folder as it is (by default the working one), so that programs may start there."""
        if self.flags.wideners != "trusted":
            return False
        folder = folder or self.places.cwd
        state = self.loaded.settings.trust_by_folder.get(folder)
        if state is not None:
            return state == TRUSTED
        if self.flags.trust:
            return True
        file = self.places.trust_file  # the folder brings nothing that needs trust, and may be trusted all the same
        known = os.access(file, os.F_OK)  # after every turn: a stat of what is not there would raise inside
        return known and trust.TrustStore(self.places.state).record_of(folder) is not None

    def folders(self) -> tuple[str, ...]:
        """The working folders now."""
        return self._in_force.last.working_dirs if self._in_force else self.loaded.folders

    def denies_tool(self, name: str, mcp: McpInfo | None) -> bool:
        """Whether a deny rule takes the tool away. The permission language is only loaded if there is such a rule."""
        rules = self.loaded.settings.get("permissions", "deny") or ()
        if not self.flags.disallowed and not any(map(removes_tool, rules)):
            return False
        if self._in_force is not None:  # a pool asks for each of its tools: the last look at the files counts
            policy = self._in_force.last if self._given is self._built else self.policy()
            return policy.denies_tool(name, mcp)
        if self._denied_tools is None or self._denied_tools[0] is not self.loaded:
            index = settings_rules.tool_denials(filter(removes_tool, rules), self.flags)
            self._denied_tools = self.loaded, index  # before the first call, no other rule is parsed
        return bool(self._denied_tools[1].whole_tool(name, mcp))

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
        self.check_rules()
        if self._built:
            self._build_policy()
        for source in changed:
            for listener in self.on_change:
                listener(source)

    def prepare_policy(self) -> "Policy":
        """Make the policy that the first call will need, and index its rules. Meant for a thread."""
        policy = self._make_policy()
        for index in policy.index.values():
            index.prepare()
        return policy

    def _make_policy(self) -> "Policy":
        """The policy of the settings as they are loaded, made once."""
        with self._building:
            loaded = self.loaded
            if self._prepared is None or self._prepared[0] is not loaded:
                scripts = _scripts(loaded, self.places)
                policy = settings_policy.build_policy(loaded, self.flags, self.places, scripts, self.names)
                self._prepared = loaded, policy
            return self._prepared[1]

    def _build_policy(self) -> "Policy":
        policy = self._built = self._make_policy()
        self._tell(rule_problems.notes_of(policy.problems, self.loaded.settings))
        if self._remarks_due:
            self._remarks_due = False
            self._tell(filter(None, [start_check.remarks_note(policy, self.names)]))
            start_check.keep_told(self.loaded, self.flags, self.places, self.names)
        return policy

    def check_rules(self, *, keep: bool = False) -> None:
        """Tell what is wrong with rules and hooks, each problem once; `keep` what was found, for the next start."""
        flags = self.flags
        given = flags.allowed or flags.ask or flags.disallowed or self.names.matchers
        if not self.loaded.settings.layers and not given:
            return
        found = start_check.check_rules(self.loaded, self.flags, self.places, self.names, keep=keep)
        self._remarks_due = self._remarks_due or found.remarks_due
        self._tell(found.notes)

    def _tell(self, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self._told:
                self._told.add(note)
                self._on_warning(note)


def open_settings(
    cwd: Path | str,
    env: Mapping[str, str],
    state: Path,
    flags: SettingsFlags,
    on_warning: Callable[[str], None],
    *,
    names: CallerNames | None = None,
) -> SessionSettings:
    """
    The settings of a folder; what a person should know about them is told at once.

    For a session, `names` are those that its caller brings, and what is found is kept for its next start.
    """
    places = places_for(cwd, env, state, flags.root)
    if not flags.managed_policy:
        places = replace(places, policy=())
    settings = SessionSettings(places, env, flags, on_warning=on_warning, names=names or NO_NAMES)
    loaded = settings.loaded
    unusable = remote_servers(loaded.settings, loaded.env).problems
    for note in (*loaded.notes(), *unknown_features(loaded.settings, loaded.env), *unusable):
        on_warning(note)
    settings.check_rules(keep=names is not None)
    return settings
