"""Agent definitions: built in, read from files, or given by the host program."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from handrail.files.frontmatter import MarkdownFile, parse_frontmatter, split_names
from handrail.lazy import lazy
from handrail.permissions.modes import MODE_ALIASES, MODES
from handrail.permissions.wildcards import parse_wildcards
from handrail.records import record
from handrail.tools.mcp_names import server_name
from handrail.tools.wording import with_hints

if TYPE_CHECKING:
    from handrail.files import nested_values
    from handrail.permissions import agent_limits, known_tools, rules
else:  # the first request does not need them
    agent_limits = lazy("handrail.permissions.agent_limits")
    nested_values = lazy("handrail.files.nested_values")
    known_tools = lazy("handrail.permissions.known_tools")
    rules = lazy("handrail.permissions.rules")

NAME = r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"
NOT_FOR_SUBAGENTS = frozenset(
    ("AskUserQuestion", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "TeamCreate", "TeamDelete")
)


@record
class AgentDefinition:
    """
    One kind of sub-agent. `prompt` is its system prompt.

    `tools` are names or rules (None = all that sub-agents may use); `mcp__server` means all tools of a server. The
    `model` may be a short name; without one, or with `inherit`, it is that of the caller. `mode` is the widest mode it
    works in; one wider than the caller's has no effect. `servers` are MCP servers by name: None for one of the session,
    a configuration for one of its own. `hooks` hold while it works. `memory` says where its notes are kept.
    """

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    disallowed: tuple[str, ...] = ()
    model: str = ""
    mode: str = ""
    max_turns: int | None = None
    source: str = "built-in"
    effort: str = ""
    background: bool = False
    isolation: str = ""
    skills: tuple[str, ...] = ()
    servers: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    hooks: Mapping[str, Any] = field(default_factory=dict)
    memory: str = ""
    color: str = ""
    initial_prompt: str = ""
    """What a conversation that it leads (`--agent`) begins with."""
    origin: str = "built-in"
    """policy, flags, project, user, plugin or built-in."""

    @property
    def needs_equipment(self) -> bool:
        """Whether something has to be prepared before it begins."""
        return bool(self.skills or self.servers or self.hooks or self.memory)

    def may_use(self, tool: str, *, gives: bool = False) -> bool:
        """
        Whether it may use a tool of this name; `gives`: besides its list, because its notes or servers bring the tool.

        A misspelt name that is disallowed takes away what it may mean.
        """
        if tool in NOT_FOR_SUBAGENTS or _names_tool(self.disallowed, tool) or tool in self.misspelt_limits():
            return False
        return self.tools is None or gives or _names_tool(self.tools, tool)

    def hides_server(self, server: str) -> bool:
        """Whether its limits take away everything that an MCP server of this name offers."""
        return _names_tool(self.disallowed, f"{rules.MCP}{server_name(server)}__")

    def misspelt_limits(self) -> dict[str, str]:
        """The tools that misspelt names among the disallowed ones may mean, each with that name."""
        names = [name.partition("(")[0].strip() for name in self.disallowed]
        wrong = [name for name in names if not known_tools.is_known(name)]
        return {tool: name for name in wrong for tool in known_tools.possible_tools(name)}

    def has_only(self, is_wanted: Callable[[str], bool]) -> bool:
        """Whether it names its tools, and every one of them is wanted."""
        if self.tools is None or self.servers or self.memory:
            return False
        return all(is_wanted(tool.partition("(")[0].strip()) for tool in self.tools)


BUILT_IN = (
    AgentDefinition(
        "general-purpose",
        "Works on a task of several steps by itself, with all tools.",
        "You are a sub-agent that was handed one task. Work on it with your tools until it is done, without asking "
        "back. Your last message is all that the caller sees: say what you found or did, with paths and facts.",
    ),
    AgentDefinition(
        "Explore",
        "Finds out how something works in the files at hand. Reads and searches only.",
        "You are a sub-agent that explores files and changes nothing. Search broadly, then read what matters. Your "
        "last message is all that the caller sees: answer the question with paths and line numbers.",
        tools=("Glob", "Grep", "Read"),
        model="haiku",  # where the server is known to have it, else the caller's
    ),
    AgentDefinition(
        "Plan",
        "Works out how to make a change: which files, which steps, which risks. Reads and searches only.",
        "You are a sub-agent that plans a change and makes none. Read what it would touch, then decide on one way. "
        "Your last message is all that the caller sees: the steps in order, with paths, risks, and how to check.",
        tools=("Glob", "Grep", "Read"),
    ),
)


def partial_tools(tools: tuple[str, ...] | None) -> tuple[tuple[str, ...], ...]:
    """A list of tools in a tuple, if it gives one of them only in part; else an empty tuple."""
    return (tools,) if tools is not None and any("(" in each for each in tools) else ()


def is_built_in(name: str) -> bool:
    """Whether the name is that of a built-in agent, in any case."""
    return name.casefold() in {agent.name.casefold() for agent in BUILT_IN}


EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
ISOLATIONS = ("worktree",)
MEMORIES = ("user", "project", "local")
COLORS = ("red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan")
MAX_NAMES = 500
"""Tools, skills or servers that one definition may name."""
CHOICES = {"effort": EFFORTS, "isolation": ISOLATIONS, "memory": MEMORIES}
"""A field with another value would lose what it was meant to do, so that the definition cannot be used."""
NEEDS_TRUST = ("hooks", "mcpServers", "memory")
"""What a project's file runs, connects to or may write counts only in a trusted folder."""
NOT_FOR_PLUGINS = ("hooks", "mcpServers", "permissionMode")
USED = frozenset(
    (
        *("name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "skills"),
        *("effort", "background", "isolation", "mcpServers", "hooks", "memory", "color", "initialPrompt"),
    )
)


def values_to_trust(head: MarkdownFile, text: str) -> dict[str, Any]:
    """The fields of a file that count only where it is trusted; the names of servers start nothing."""
    found: dict[str, Any] = {}
    for name in NEEDS_TRUST:
        if name in head.values:
            value, problem = nested_values.nested_value(text, name)
            found[name] = str(head.values[name]) if problem else value
    servers = _servers(found.get("mcpServers"))
    if "mcpServers" in found and not isinstance(servers, str) and not any(servers.values()):
        del found["mcpServers"]
    return found


def unused_fields(head: MarkdownFile) -> str:
    """The fields of a definition that have no effect, with those that were probably meant."""
    names = [name for name in head.values if name not in USED]
    return with_hints(names, USED) if names else ""


def definition_notes(agent: AgentDefinition, tools: Collection[str] = ()) -> Iterator[str]:
    """What a person should know about a definition that can be used. `tools`: the caller's own, which are known too."""
    if agent.color and agent.color not in COLORS:
        yield f"the agent {agent.name!r} has the color {agent.color!r}. Use one of {', '.join(COLORS)}."
    for listed in partial_tools(agent.tools):
        for problem in agent_limits.limit_problems(listed):
            yield f"the agent {agent.name!r} gets nothing by {problem}"
    for name in dict.fromkeys(listed.partition("(")[0].strip() for listed in agent.tools or ()):
        if not known_tools.is_known(name, tools):
            meant = known_tools.possible_tools(name, tools)
            hint = f" Did you mean {meant[0]!r}?" if meant else ""
            yield f"the agent {agent.name!r} lists {name!r} in tools, which is not a tool.{hint}"
    if wrong := agent.misspelt_limits() if agent.disallowed else {}:
        names, tools = ", ".join(map(repr, dict.fromkeys(wrong.values()))), ", ".join(wrong)
        yield f"the agent {agent.name!r} disallows {names}, which is not a tool; it has no {tools}"


def parse_file(text: str, source: str) -> AgentDefinition | str:
    """The definition in the text of a Markdown file, or what is wrong with it."""
    return parse_definition(parse_frontmatter(text), source, text)


def parse_definition(head: MarkdownFile, source: str, text: str = "", *, origin: str = "user") -> AgentDefinition | str:
    """The definition in a Markdown file, or what is wrong with it."""
    value: dict[str, object] = {key: head.text(key) for key in TEXTS}
    value |= {key: head.names(key) for key in ("tools", "disallowedTools", "skills")}
    turns = head.text("maxTurns")
    value["background"] = head.flag("background", default=False)
    value |= {"prompt": head.body, "maxTurns": int(turns) if turns.isdecimal() else turns or None}
    for key in ("mcpServers", "hooks"):
        if key in head.values:
            value[key], wrong = nested_values.nested_value(text, key)
            if wrong:
                return f"{source}: {key}: {wrong}"
    found = parse_json(head.text("name"), value, source, origin=origin)
    return f"{source}: {head.problem}" if isinstance(found, str) and head.problem else found


TEXTS = ("description", "permissionMode", "model", "effort", "isolation", "memory", "color", "initialPrompt")


def parse_json(name: str, value: object, source: str, *, origin: str = "flags") -> AgentDefinition | str:
    """The definition in a JSON value of a host program, or what is wrong with it."""
    if not isinstance(value, Mapping):
        return f"{source}: the agent {name!r} is {value!r} instead of an object"
    mode, turns = value.get("permissionMode") or "", value.get("maxTurns")
    servers, hooks = _servers(value.get("mcpServers")), value.get("hooks") or {}
    if problem := _problem(name, value.get("description"), mode, origin) or _field_problem(name, value):
        return f"{source}: {problem}"
    if isinstance(servers, str):
        return f"{source}: the agent {name!r}: {servers}"
    return AgentDefinition(
        name,
        str(value["description"]),
        value["prompt"],
        _names(value.get("tools")),
        _names(value.get("disallowedTools")) or (),
        value["model"] if isinstance(value.get("model"), str) else "",
        str(mode),
        turns,
        source,
        str(value.get("effort") or ""),
        value.get("background") is True,
        str(value.get("isolation") or ""),
        _names(value.get("skills")) or (),
        servers,
        hooks,
        str(value.get("memory") or ""),
        str(value.get("color") or ""),
        str(value.get("initialPrompt") or ""),
        origin,
    )


def _field_problem(name: str, value: Mapping[str, Any]) -> str:
    if not isinstance(value.get("prompt"), str):
        return f"the agent {name!r} has no prompt. Say in it how to work."
    for key, choices in CHOICES.items():
        if (chosen := value.get(key)) and chosen not in choices:
            return f"the agent {name!r} has the {key} {chosen!r}. Use one of {', '.join(choices)}, or leave it out."
    for key in ("tools", "disallowedTools", "skills", "mcpServers"):
        listed = value.get(key)
        if len(listed if isinstance(listed, Mapping) else _names(listed) or ()) > MAX_NAMES:
            return f"the agent {name!r} names more than {MAX_NAMES} {key}. Name fewer."
    turns = value.get("maxTurns")
    if turns is not None and (not isinstance(turns, int) or isinstance(turns, bool) or turns < 1):
        return f"the agent {name!r} has the maxTurns {turns!r}. Use a whole number, or leave it out."
    if not isinstance(value.get("hooks") or {}, Mapping):  # one of them may be a guard
        return f"the agent {name!r} has hooks that are no map from events to hooks"
    return ""


def _servers(value: Any) -> dict[str, Mapping[str, Any] | None] | str:
    """Servers by name: a list of names and of maps, or a map; or what is wrong with them."""
    match value:
        case None | "":
            return {}
        case str():
            return dict.fromkeys(split_names(value))
        case Mapping() if all(isinstance(each, Mapping) for each in value.values()):
            return dict(value)
        case list() | tuple():
            found: dict[str, Mapping[str, Any] | None] = {}
            for each in value:
                inner = {each: None} if isinstance(each, str) else _servers(each) if isinstance(each, Mapping) else ""
                if isinstance(inner, str):
                    break
                found |= inner
            else:
                return found
    return f"mcpServers is {value!r}. Give names of servers, or configurations by name."


def _names_tool(names: tuple[str, ...], tool: str) -> bool:
    """Whether one of these names or rules is about a tool; `*` matches any text."""
    for name in names:
        plain = rules.ALIASES.get(each := name.partition("(")[0].strip(), each)
        server = plain.startswith(rules.MCP) and "__" not in plain.removeprefix(rules.MCP)
        if parse_wildcards(plain).matches(tool) or (server and parse_wildcards(f"{plain}__*").matches(tool)):
            return True
    return False


def _problem(name: object, description: object, mode: object, origin: str) -> str:
    form = f"{NAME}:{NAME}" if origin == "plugin" else NAME
    if not isinstance(name, str) or not re.fullmatch(form, name):
        if not name:
            return "an agent needs a name. `handrail agents new NAME` shows the form of such a file."
        return f"{name!r} cannot be the name of an agent. Use letters, digits and single dashes."
    if not isinstance(description, str) or not description:
        return f"the agent {name!r} has no description. Say in it when to hand a task to the agent."
    if not mode or (isinstance(mode, str) and MODE_ALIASES.get(mode, mode) in MODES):
        return ""
    return f"the agent {name!r} has the permissionMode {mode!r}. Use one of {', '.join(MODES)}."


def _names(value: Any) -> tuple[str, ...] | None:
    match value:
        case None:
            return None
        case str():
            return split_names(value)
        case list() | tuple():
            return tuple(str(each) for each in value)
        case _:
            return ()
