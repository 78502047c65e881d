"""An index over the rules about whole tools, with all that is needed to tell which tools a rule takes away."""

import re
from collections.abc import Iterable

from handrail.permissions.rules import MCP, Behaviour, Rule
from handrail.permissions.wildcards import WildcardPattern, parse_wildcards
from handrail.tools.mcp_names import normalise, server_name
from handrail.tools.tool import McpInfo

Filed = tuple[WildcardPattern, Rule]


class ToolIndex:
    """Finds the rules without content by tool and MCP server."""

    def __init__(self, behaviour: Behaviour, rules: Iterable[Rule] = ()) -> None:
        self.behaviour = behaviour
        self.whole: dict[str, list[Rule]] = {}
        self.globs: list[Filed] = []
        self.mcp: dict[str, list[Rule]] = {}
        self.mcp_globs: dict[str, list[Filed]] = {}
        for rule in rules:
            self.add_whole(rule)

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
        return found + [rule for pattern, rule in self.globs if pattern.matches(name)] if self.globs else found

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
