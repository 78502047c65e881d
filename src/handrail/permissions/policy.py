"""
The policy: the frozen set of rules, mode and folders that one decision looks at.

A policy never changes. Each change makes a new one with the next version, and a decision names the version it used.
Rules of all sources are pooled: a source says where a rule is written, not how strong it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from handrail.lazy import lazy
from handrail.permissions.index import RuleIndex
from handrail.permissions.modes import MODE_ALIASES, MODES
from handrail.permissions.patterns import Anchors
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, RuleSource, parse_rule
from handrail.records import record
from handrail.tools.permission import Decision, RulesBySource
from handrail.tools.pool import AnyTool
from handrail.tools.tool import McpInfo

deciding = lazy("handrail.permissions.decide")  # it looks at policies, and loads what reads command lines: 60 ms

Indexes = Mapping[Behaviour, RuleIndex]


@record
class ModeAvailability:
    """Which of the restricted modes can be entered."""

    bypass_available: bool = False
    auto_available: bool = False


NO_EXTRA_MODES = ModeAvailability()


@record
class Policy:
    """
    One policy snapshot. `cwd`, `home`, `working_dirs`, `kept` and `own` are absolute real paths.

    `kept` are folders of the session's own files, such as big results: they may be read, and nothing else.
    `own` are the folders of our records and settings, wherever they are: writes there are protected.
    """

    cwd: str
    home: str
    working_dirs: tuple[str, ...] = ()
    worktrees: tuple[tuple[str, str], ...] = ()
    """Repositories, each with a worktree of it: what rules deny or ask about there holds in the worktree too."""
    rules: tuple[Rule, ...] = ()
    problems: tuple[RuleProblem, ...] = ()
    mode: str = "default"
    pre_plan_mode: str = ""
    plan_file: str = ""
    can_ask: bool = False
    """Whether plan mode asks about what does not only read, or refuses it."""
    availability: ModeAvailability = NO_EXTRA_MODES
    version: int = 0
    kept: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    tool_names: frozenset[str] = frozenset()
    """The tools of this session beside those that conventions name, for rules that come later."""
    agent_tools: tuple[tuple[str, ...], ...] = ()
    """The lists of tools of the calling agent and of those that it works for; forms with brackets limit a tool."""
    notes: str = ""
    """The folder of the calling agent's own notes, which it may read and write; empty = it has none."""
    former: tuple[str, ...] = ()
    """Working folders that the session has moved away from: rules about them still hold."""
    settings_files: tuple[str, ...] = ()
    """The settings files that it was made from, as messages name them, the highest first."""
    index: Indexes = field(default_factory=dict, repr=False, compare=False)
    prefixes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """The working folders as beginnings of paths that end with a slash."""
    read_prefixes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """The same, with the folders that may only be read."""

    @classmethod
    def empty(cls, cwd: str = "", home: str = "/") -> "Policy":
        """No rules, mode default; the current folder, if there is one, is the only working folder."""
        return _build_index(cls(cwd or "/", home, (cwd,) if cwd else ()))

    def with_rules(self, rules: Iterable[Rule | RuleProblem]) -> "Policy":
        """These rules and no others."""
        parsed = tuple(dict.fromkeys(rules))
        return _build_index(
            replace(
                self,
                rules=tuple(rule for rule in parsed if isinstance(rule, Rule)),
                problems=tuple(rule for rule in parsed if isinstance(rule, RuleProblem)),
                version=self.version + 1,
            )
        )

    def adding(self, behaviour: Behaviour, texts: Iterable[str], source: RuleSource) -> "Policy":
        """More rules of one kind from one source."""
        return self.with_rules((*self.rules, *self.problems, *(parse_rule(text, behaviour, source) for text in texts)))

    def with_mode(self, mode: str) -> "Policy":
        """Another mode, or ValueError. Entering plan remembers the mode before it; unavailable modes change nothing."""
        wanted = MODE_ALIASES.get(mode, mode)
        if wanted not in MODES:
            raise ValueError(f"there is no mode {mode!r}. Use one of {', '.join(MODES)}.")
        if wanted == self.mode or not is_available(wanted, self.availability):
            return self
        before = self.mode if wanted == "plan" else ""
        return replace(self, mode=wanted, pre_plan_mode=before, version=self.version + 1)

    def leaving_plan(self) -> "Policy":
        """The mode that was in force before plan mode."""
        return self.with_mode(self.pre_plan_mode or "default") if self.mode == "plan" else self

    def with_availability(self, availability: ModeAvailability) -> "Policy":
        """Other available modes. A mode that is no longer available falls back to default."""
        mode = self.mode if is_available(self.mode, availability) else "default"
        before = self.pre_plan_mode if is_available(self.pre_plan_mode, availability) else ""
        return replace(self, availability=availability, mode=mode, pre_plan_mode=before, version=self.version + 1)

    def with_directories(self, folders: Iterable[str]) -> "Policy":
        """These working folders, the first of which is the main one."""
        return _build_index(replace(self, working_dirs=tuple(dict.fromkeys(folders)), version=self.version + 1))

    def with_kept(self, folders: Iterable[str]) -> "Policy":
        """These folders of the session's own files."""
        kept = tuple(dict.fromkeys(folders))
        readable = self.prefixes + _beginnings(kept)
        return replace(self, kept=kept, read_prefixes=readable, version=self.version + 1)

    def with_plan_file(self, path: str, *, can_ask: bool) -> "Policy":
        """The file that may be written in plan mode, and whether there is a person to ask about anything else."""
        return replace(self, plan_file=path, can_ask=can_ask, version=self.version + 1)

    def with_own(self, folders: Iterable[str]) -> "Policy":
        """These folders of our own records and settings."""
        return replace(self, own=tuple(dict.fromkeys(folders)), version=self.version + 1)

    def with_files(self, files: Iterable[str]) -> "Policy":
        """Made from these settings files."""
        return replace(self, settings_files=tuple(files))

    def with_tool_names(self, names: Iterable[str]) -> "Policy":
        """Rules may be about tools of these names, too."""
        return replace(self, tool_names=frozenset(names))

    def with_cwd(self, cwd: str) -> "Policy":
        """Another current folder; the working folders stay."""
        return self if cwd == self.cwd else _build_index(replace(self, cwd=cwd, version=self.version + 1))

    def moved_to(self, folder: str) -> "Policy":
        """The session works in another folder in the place of its main one; rules hold in both."""
        here = self.working_dirs[:1]
        former = tuple(dict.fromkeys((*self.former, *here)))
        moved = replace(self, cwd=folder, working_dirs=(folder, *self.working_dirs[1:]), former=former)
        return _build_index(replace(moved, version=self.version + 1))

    def for_agent(self, tools: tuple[tuple[str, ...], ...], notes: str) -> "Policy":
        """The policy for the calls of an agent with these lists of tools and this folder of notes."""
        return self if not tools and not notes else replace(self, agent_tools=tools, notes=notes)

    def with_worktree(self, repository: str, worktree: str) -> "Policy":
        """Rules that deny or ask about files of a repository hold in this worktree of it too."""
        known = (repository, worktree)
        if known in self.worktrees:
            return self
        return _build_index(replace(self, worktrees=(*self.worktrees, known), version=self.version + 1))

    @property
    def allow_rules(self) -> RulesBySource:
        """The texts of the allow rules by source, as tools may know them."""
        return self._texts(Behaviour.ALLOW)

    @property
    def ask_rules(self) -> RulesBySource:
        """The texts of the ask rules by source."""
        return self._texts(Behaviour.ASK)

    @property
    def deny_rules(self) -> RulesBySource:
        """The texts of the deny rules by source."""
        return self._texts(Behaviour.DENY)

    @property
    def bypass_available(self) -> bool:
        """Whether the mode bypassPermissions could be entered."""
        return self.availability.bypass_available

    @property
    def auto_available(self) -> bool:
        """Whether the mode auto could be entered."""
        return self.availability.auto_available

    def _texts(self, behaviour: Behaviour) -> RulesBySource:
        found: dict[str, tuple[str, ...]] = {}
        for rule in self.rules:
            if rule.behaviour is behaviour:
                found[rule.source.name] = (*found.get(rule.source.name, ()), rule.text)
        return MappingProxyType(found)

    def decide(self, tool: AnyTool, values: Mapping[str, Any]) -> Decision:
        """
        What this policy says of a call, with every opinion. Nothing runs, no question is asked, and no hook starts.

        The input may be incomplete. What the tool's own `validate` and `check_permission` would say is left out.

        Raises:
            HandrailError: `tool` is no tool, or `values` is no object.
        """
        decision: Decision = deciding.decide_call(self, tool, values)
        return decision

    def denies_tool(self, name: str, mcp: McpInfo | None = None) -> bool:
        """Whether a rule denies a whole tool, which then does not exist for the model (a `tools.pool.Denied`)."""
        return bool(self.index[Behaviour.DENY].whole_tool(name, mcp))

    def asks_about_tool(self, name: str, mcp: McpInfo | None = None) -> bool:
        """Whether a rule asks about every call of a tool."""
        return bool(self.index[Behaviour.ASK].whole_tool(name, mcp))


def is_available(mode: str, availability: ModeAvailability) -> bool:
    return (mode != "bypassPermissions" or availability.bypass_available) and (
        mode != "auto" or availability.auto_available
    )


def _build_index(policy: Policy) -> Policy:
    anchors = Anchors(policy.cwd, policy.home, (*policy.working_dirs, *policy.former), policy.worktrees)
    rules = (*policy.rules, *(rule for problem in policy.problems for rule in problem.meant))
    index = {kind: RuleIndex([r for r in rules if r.behaviour is kind], kind, anchors) for kind in Behaviour}
    prefixes = _beginnings(policy.working_dirs)
    return replace(
        policy,
        index=MappingProxyType(index),
        prefixes=prefixes,
        read_prefixes=prefixes + _beginnings(policy.kept),
    )


def _beginnings(folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(folder if folder.endswith("/") else folder + "/" for folder in folders)
