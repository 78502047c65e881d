"""An index over the rules of one behaviour, which finds matching rules without testing all of them."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from handrail.permissions.patterns import Anchors, PathIndex
from handrail.permissions.powershell import PowerShellIndex
from handrail.permissions.rules import (
    BASH,
    EDIT,
    FAMILIES,
    MCP,
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
from handrail.permissions.web import DomainIndex
from handrail.permissions.wildcards import WildcardPattern, parse_wildcards
from handrail.tools.mcp_names import normalise, server_name
from handrail.tools.tool import McpInfo

Filed = tuple[WildcardPattern, Rule]


class RuleIndex:
    """Finds rules by tool, MCP server, path, command, domain and parameter."""

    def __init__(self, rules: Iterable[Rule], behaviour: Behaviour, anchors: Anchors) -> None:
        self.behaviour = behaviour
        self.whole: dict[str, list[Rule]] = {}
        self.globs: list[Filed] = []
        self.mcp: dict[str, list[Rule]] = {}
        self.mcp_globs: dict[str, list[Filed]] = {}
        self.params: dict[str, dict[tuple[str, str], list[Rule]]] = {}
        self.own: dict[str, list[tuple[str, Rule]]] = {}
        """Rules with content for one tool, matched by the tool's own `permission_matcher`."""
        self.skills: dict[str, list[Rule]] = {}
        by_tool: dict[str, list[Rule]] = {}
        for rule in rules:
            if rule.spec is None:
                self.add_whole(rule)
            else:
                by_tool.setdefault(rule.tool, []).append(rule)
                self.add_spec(rule, rule.spec)
        narrow = behaviour is Behaviour.ALLOW
        self.read = PathIndex(by_tool.get(READ, ()), anchors, narrow=narrow)
        self.edit = PathIndex(by_tool.get(EDIT, ()), anchors, narrow=narrow)
        self.shell = ShellIndex(by_tool.get(BASH, ()))
        self.powershell = PowerShellIndex(by_tool.get(POWERSHELL, ()))
        self.domains = DomainIndex(by_tool.get(WEB_FETCH, ()))
        self.empty = not (self.whole or self.globs or self.mcp or self.mcp_globs or by_tool)

    def add_whole(self, rule: Rule) -> None:
        name = rule.tool
        server, _, tool = name.removeprefix(MCP).partition("__")
        if name.startswith(MCP) and self.behaviour is Behaviour.ALLOW and "*" in tool:
            self.mcp_globs.setdefault(server, []).append((parse_wildcards(tool), rule))
        elif "*" in name:
            self.globs.append((parse_wildcards(name), rule))
            if name.startswith(MCP):
                self.globs.append((parse_wildcards(re.sub(r"[^A-Za-z0-9_*-]", "_", name)), rule))
        elif name.startswith(MCP):
            for key in self.mcp_keys(name.removeprefix(MCP)):
                self.mcp.setdefault(key, []).append(rule)
        else:
            self.whole.setdefault(name, []).append(rule)

    def mcp_keys(self, name: str) -> Iterable[str]:
        """The keys of a rule. A deny or ask rule may also spell the names as they are configured."""
        if self.behaviour is Behaviour.ALLOW:
            return (name,)
        server, parted, tool = name.partition("__")
        normal = server_name(server) + (f"__{normalise(tool)}" if parted else "")
        return dict.fromkeys((name, normal, server_name(name)))

    def add_spec(self, rule: Rule, spec: str) -> None:
        if rule.tool == SKILL:
            self.skills.setdefault(spec, []).append(rule)
        elif rule.tool not in FAMILIES and rule.tool not in NEVER_BY_PATH:
            for name in self.names(rule.tool):
                self.own.setdefault(name, []).append((spec, rule))
        if self.behaviour is not Behaviour.ALLOW and (found := PARAMETER.match(spec)):
            for name in self.names(rule.tool):
                by_value = self.params.setdefault(name, {})
                by_value.setdefault((found[1], found[2].strip()), []).append(rule)

    def names(self, tool: str) -> Iterable[str]:
        """The names under which a rule for one tool is filed."""
        return [MCP + key for key in self.mcp_keys(tool.removeprefix(MCP))] if tool.startswith(MCP) else (tool,)

    def whole_tool(self, name: str, mcp: McpInfo | None) -> list[Rule]:
        """The rules without content that match a tool."""
        if mcp is not None:
            return self.mcp_tool(name, mcp)
        found = list(self.whole.get(name, ()))
        if name.startswith(MCP):
            found += self.mcp.get(name.removeprefix(MCP), ())
        return found + [rule for pattern, rule in self.globs if pattern.matches(name)]

    def names_of(self, name: str, mcp: McpInfo | None) -> tuple[str, ...]:
        """The names that rules may use for a tool. An allow rule for one server must not match the name of another."""
        if mcp is None:
            return (name,)
        server = MCP + server_name(mcp.server)
        known = (server, f"{server}__{normalise(mcp.tool)}")
        return known if self.behaviour is Behaviour.ALLOW else tuple(dict.fromkeys((*known, name)))

    def mcp_tool(self, name: str, mcp: McpInfo) -> list[Rule]:
        server, tool = server_name(mcp.server), normalise(mcp.tool)
        found = [rule for key in self.names_of(name, mcp) for rule in self.mcp.get(key.removeprefix(MCP), ())]
        found += [rule for pattern, rule in self.mcp_globs.get(server, ()) if pattern.matches(tool)]
        joined = (f"{MCP}{server}__{tool}", name)
        found += [rule for pattern, rule in self.globs if any(map(pattern.matches, joined))]
        return list(dict.fromkeys(found))

    def by_parameter(self, names: Iterable[str], values: Mapping[str, Any]) -> list[Rule]:
        """`Tool(param:value)`: a top-level scalar of the input has exactly this value."""
        filed = [known for name in names if (known := self.params.get(name))]
        if not filed:
            return []
        texts = [(name, text) for name, value in values.items() if (text := scalar(value)) is not None]
        return [rule for known in filed for each in texts for rule in known.get(each, ())]

    def by_subject(self, names: Iterable[str], matches: Callable[[str], bool | None]) -> list[Rule]:
        """`Tool(content)`: the tool tells whether it matches; where it cannot tell, only deny and ask rules match."""
        narrow = self.behaviour is Behaviour.ALLOW
        filed = [each for name in names for each in self.own.get(name, ())]
        return [rule for spec, rule in filed if (fits := matches(spec)) or (fits is None and not narrow)]

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
