"""Agent definitions: built in, read from files, or given by the host program."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from handrail.files.frontmatter import MarkdownFile, parse_frontmatter, split_names
from handrail.lazy import lazy
from handrail.permissions.modes import MODE_ALIASES, MODES
from handrail.permissions.wildcards import parse_wildcards
from handrail.records import record

if TYPE_CHECKING:
    from handrail.permissions import known_tools, rules
else:  # the first request does not need them
    known_tools = lazy("handrail.permissions.known_tools")
    rules = lazy("handrail.permissions.rules")

NAME = r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"
NOT_FOR_SUBAGENTS = frozenset({"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"})


@record
class AgentDefinition:
    """
    One kind of sub-agent. `prompt` is its system prompt.

    `tools` are names or rules (None = all that sub-agents may use); `mcp__server` means all tools of a server. The
    `model` may be a short name; without one, or with `inherit`, it is that of the caller. `mode` is the widest mode it
    works in; one wider than the caller's has no effect.
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

    def may_use(self, tool: str) -> bool:
        """Whether it may use a tool of this name. A misspelt name that is disallowed takes away what it may mean."""
        if tool in NOT_FOR_SUBAGENTS or _names_tool(self.disallowed, tool) or tool in self.misspelt_limits():
            return False
        return self.tools is None or _names_tool(self.tools, tool)

    def misspelt_limits(self) -> dict[str, str]:
        """The tools that misspelt names among the disallowed ones may mean, each with that name."""
        names = [name.partition("(")[0].strip() for name in self.disallowed]
        wrong = [name for name in names if not known_tools.is_known(name)]
        return {tool: name for name in wrong for tool in known_tools.possible_tools(name)}

    def has_only(self, is_wanted: Callable[[str], bool]) -> bool:
        """Whether it names its tools, and every one of them is wanted."""
        return self.tools is not None and all(is_wanted(tool.partition("(")[0].strip()) for tool in self.tools)


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
    ),
    AgentDefinition(
        "Plan",
        "Works out how to make a change: which files, which steps, which risks. Reads and searches only.",
        "You are a sub-agent that plans a change and makes none. Read what it would touch, then decide on one way. "
        "Your last message is all that the caller sees: the steps in order, with paths, risks, and how to check.",
        tools=("Glob", "Grep", "Read"),
    ),
)


def is_built_in(name: str) -> bool:
    """Whether the name is that of a built-in agent, in any case."""
    return name.casefold() in {agent.name.casefold() for agent in BUILT_IN}


EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
ISOLATIONS = ("worktree",)
USED = frozenset(
    (
        *("name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns"),
        *("effort", "background", "isolation"),
    )
)


def unused_fields(head: MarkdownFile) -> list[str]:
    """The fields of a definition that have no effect."""
    return [name for name in head.values if name not in USED]


def parse_file(text: str, source: str) -> AgentDefinition | str:
    """The definition in the text of a Markdown file, or what is wrong with it."""
    return parse_definition(parse_frontmatter(text), source)


def parse_definition(head: MarkdownFile, source: str) -> AgentDefinition | str:
    """The definition in a Markdown file, or what is wrong with it."""
    texts = ("description", "permissionMode", "model", "effort", "isolation")
    value: dict[str, object] = {key: head.text(key) for key in texts}
    value |= {key: head.names(key) for key in ("tools", "disallowedTools")}
    turns = head.text("maxTurns")
    value["background"] = head.flag("background", default=False)
    value |= {"prompt": head.body, "maxTurns": int(turns) if turns.isdecimal() else None}
    found = parse_json(head.text("name"), value, source)
    return f"{source}: {head.problem}" if isinstance(found, str) and head.problem else found


def parse_json(name: str, value: object, source: str) -> AgentDefinition | str:
    """The definition in a JSON value of a host program, or what is wrong with it."""
    if not isinstance(value, Mapping):
        return f"{source}: the agent {name!r} is {value!r} instead of an object"
    description, prompt = value.get("description"), value.get("prompt")
    mode = value.get("permissionMode") or ""
    if problem := _problem(name, description, mode):
        return f"{source}: {problem}"
    if not isinstance(prompt, str):
        return f"{source}: the agent {name!r} has no prompt"
    effort, isolation = value.get("effort") or "", value.get("isolation") or ""
    if effort and effort not in EFFORTS:
        return f"{source}: the agent {name!r} has the effort {effort!r}. Use one of {', '.join(EFFORTS)}."
    if isolation and isolation not in ISOLATIONS:  # it must not work where it was not meant to
        return f"{source}: the agent {name!r} has the isolation {isolation!r}. Use worktree, or leave it out."
    turns = value.get("maxTurns")
    return AgentDefinition(
        name,
        str(description),
        prompt,
        _names(value.get("tools")),
        _names(value.get("disallowedTools")) or (),
        value["model"] if isinstance(value.get("model"), str) else "",
        str(mode),
        turns if isinstance(turns, int) and turns > 0 else None,
        source,
        str(effort),
        value.get("background") is True,
        str(isolation),
    )


def _names_tool(names: tuple[str, ...], tool: str) -> bool:
    """Whether one of these names or rules is about a tool; `*` matches any text."""
    for name in names:
        plain = rules.ALIASES.get(each := name.partition("(")[0].strip(), each)
        server = plain.startswith(rules.MCP) and "__" not in plain.removeprefix(rules.MCP)
        if parse_wildcards(plain).matches(tool) or (server and parse_wildcards(f"{plain}__*").matches(tool)):
            return True
    return False


def _problem(name: object, description: object, mode: object) -> str:
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        return f"{name!r} cannot be the name of an agent. Use letters, digits and single dashes."
    if not isinstance(description, str) or not description:
        return f"the agent {name!r} has no description"
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
