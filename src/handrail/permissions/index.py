"""An index over the rules of one behaviour, which finds matching rules without testing all of them."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from handrail.permissions.patterns import Anchors, PathIndex
from handrail.permissions.powershell import PowerShellIndex
from handrail.permissions.rules import (
    BASH,
    EDIT,
    FAMILIES,
    NEVER_BY_PATH,
    PARAMETER,
    POWERSHELL,
    READ,
    SKILL,
    WEB_FETCH,
    Behaviour,
    Rule,
)
from handrail.permissions.shell import ShellIndex
from handrail.permissions.tool_index import ToolIndex
from handrail.permissions.web import DomainIndex
from handrail.permissions.wildcards import WildcardPattern, parse_wildcards


class RuleIndex(ToolIndex):
    """Finds rules by tool, MCP server, path, command, domain and parameter. A family is indexed when it is needed."""

    def __init__(self, rules: Iterable[Rule], behaviour: Behaviour, anchors: Anchors) -> None:
        super().__init__(behaviour)
        self._anchors = anchors
        self._by_tool: dict[str, list[Rule]] = {}
        self.params: dict[str, dict[tuple[str, str], list[Rule]]] = {}
        self._param_patterns: dict[str, list[tuple[str, WildcardPattern, Rule]]] = {}
        self.own: dict[str, list[tuple[str, Rule]]] = {}
        """Rules with content for one tool, matched by the tool's own `permission_matcher`."""
        self._own_paths: dict[tuple[str, ...], PathIndex] = {}
        self.skills: dict[str, list[Rule]] = {}
        by_tool = self._by_tool
        for rule in rules:
            if rule.spec is None:
                self.add_whole(rule)
            elif rule.tool in by_tool:
                by_tool[rule.tool].append(rule)
            else:
                by_tool[rule.tool] = [rule]
        for tool, filed in by_tool.items():
            self._file(tool, filed)
        self.empty = not (self.whole or self.globs or self.mcp or self.mcp_globs or by_tool)

    @cached_property
    def read(self) -> PathIndex:
        """The rules about files that are read."""
        return self._paths(READ)

    @cached_property
    def edit(self) -> PathIndex:
        """The rules about files that are changed."""
        return self._paths(EDIT)

    @cached_property
    def shell(self) -> ShellIndex:
        """The rules about commands."""
        return ShellIndex(self._by_tool.get(BASH, ()))

    @cached_property
    def powershell(self) -> PowerShellIndex:
        """The rules about commands of PowerShell."""
        return PowerShellIndex(self._by_tool.get(POWERSHELL, ()))

    @cached_property
    def domains(self) -> DomainIndex:
        """The rules about addresses."""
        return DomainIndex(self._by_tool.get(WEB_FETCH, ()))

    def prepare(self) -> None:
        """Index the families that calls look at most often, before one does."""
        _ = self.read, self.edit, self.shell

    def _paths(self, family: str) -> PathIndex:
        return PathIndex(self._by_tool.get(family, ()), self._anchors, narrow=self.behaviour is Behaviour.ALLOW)

    def _file(self, tool: str, rules: list[Rule]) -> None:
        """File the rules with content of one tool by what is not looked up in a family."""
        if tool == SKILL:
            for rule in rules:
                self.skills.setdefault(rule.spec or "", []).append(rule)
        elif tool not in FAMILIES and tool not in NEVER_BY_PATH:
            for name in self.names(tool):
                self.own.setdefault(name, []).extend((rule.spec or "", rule) for rule in rules)
        if self.behaviour is Behaviour.ALLOW:
            return
        for rule in rules:
            if found := PARAMETER.match(rule.spec or ""):
                parameter, value = found[1], found[2].strip()
                for name in self.names(tool):
                    self.params.setdefault(name, {}).setdefault((parameter, value), []).append(rule)
                    if "*" in value and tool not in FAMILIES and tool != SKILL:  # `Bash(git:*)` is about commands
                        self._param_patterns.setdefault(name, []).append((parameter, parse_wildcards(value), rule))

    def by_parameter(self, names: Iterable[str], values: Mapping[str, Any]) -> list[Rule]:
        """`Tool(param:value)`: a top-level scalar of the input has this value. `*` is any text, except in families."""
        filed = [(name, known) for name in names if (known := self.params.get(name))]
        if not filed:
            return []
        texts = {name: text for name, value in values.items() if (text := scalar(value)) is not None}
        exact = [rule for _, known in filed for each in texts.items() for rule in known.get(each, ())]
        patterns = [each for name, _ in filed for each in self._param_patterns.get(name, ())]
        return exact + [
            rule
            for parameter, pattern, rule in patterns
            if rule not in exact and parameter in texts and pattern.matches(texts[parameter])
        ]

    def by_subject(self, names: Iterable[str], matches: Callable[[str], bool | None]) -> list[Rule]:
        """`Tool(content)`: the tool tells whether it matches; where it cannot tell, only deny and ask rules match."""
        narrow = self.behaviour is Behaviour.ALLOW
        filed = [each for name in names for each in self.own.get(name, ())]
        return [rule for spec, rule in filed if (fits := matches(spec)) or (fits is None and not narrow)]

    def by_subject_path(self, names: tuple[str, ...]) -> PathIndex:
        """The rules `Tool(content)` for a tool that is about a file: their content is a path, as in `Read(content)`."""
        if names not in self._own_paths:
            rules = [rule for name in names for _, rule in self.own.get(name, ())]
            self._own_paths[names] = PathIndex(rules, self._anchors, narrow=self.behaviour is Behaviour.ALLOW)
        return self._own_paths[names]

    def skill(self, values: Mapping[str, Any]) -> list[Rule]:
        """`name` without arguments (deny and ask: with any), `name *` with any, `name:*` also the skills below it."""
        found, name, arguments = self.skills, values.get("skill"), values.get("args")
        if not found or not isinstance(name, str):
            return []
        name = name.removeprefix("/")
        with_arguments = isinstance(arguments, str) and arguments.strip()
        rules = list(found.get(name, ())) if not with_arguments or self.behaviour is not Behaviour.ALLOW else []
        rules += found.get(f"{name} *", ())
        rules += found.get(f"{name}:*", ())
        parent, colon, _ = name.partition(":")
        return rules + list(found.get(f"{parent}:*", ())) if colon else rules


def scalar(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else None
