"""Which sub-agents there are: built in, written down in files, or given by the program that drives us."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from handrail.files.frontmatter import read_head, split_names
from handrail.records import record

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.IGNORECASE)
NOT_FOR_SUBAGENTS = frozenset({"Agent", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode"})


@record
class AgentDefinition:
    """
    One kind of sub-agent. `prompt` is its system prompt.

    `tools` are names or rules (None = all that sub-agents may have), `mcp__server` means all tools of a server. `model`
    empty = that of the caller. `mode` is the widest one it works in; a wider one than the caller's has no effect.
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

    def may_use(self, tool: str) -> bool:
        """Whether a tool of this name is for it."""
        if tool in NOT_FOR_SUBAGENTS or _names_tool(self.disallowed, tool):
            return False
        return self.tools is None or _names_tool(self.tools, tool)

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
)


def from_file(text: str, source: str) -> AgentDefinition | str:
    """A definition from a Markdown file, or why it is none."""
    headed = read_head(text)
    name, description = headed.text("name"), headed.text("description")
    mode = headed.text("permissionMode")
    if problem := _problem(name, description, mode):
        return f"{source}: {headed.problem or problem}"
    turns = headed.text("maxTurns")
    return AgentDefinition(
        name,
        description,
        headed.body,
        headed.names("tools"),
        headed.names("disallowedTools") or (),
        _model(headed.text("model")),
        mode,
        int(turns) if turns.isdecimal() and int(turns) > 0 else None,
        source,
    )


def from_json(name: str, value: object, source: str) -> AgentDefinition | str:
    """A definition as programs give it, or why it is none."""
    if not isinstance(value, Mapping):
        return f"{source}: the agent {name!r} is {value!r} instead of an object"
    description, prompt = value.get("description"), value.get("prompt")
    mode = value.get("permissionMode") or ""
    if problem := _problem(name, description, mode):
        return f"{source}: {problem}"
    if not isinstance(prompt, str):
        return f"{source}: the agent {name!r} has no prompt"
    turns = value.get("maxTurns")
    return AgentDefinition(
        name,
        str(description),
        prompt,
        _names(value.get("tools")),
        _names(value.get("disallowedTools")) or (),
        _model(value.get("model")),
        str(mode),
        turns if isinstance(turns, int) and turns > 0 else None,
        source,
    )


def _names_tool(names: tuple[str, ...], tool: str) -> bool:
    """Whether one of these names or rules is about a tool; `*` stands for any text."""
    from handrail.permissions.globs import glob  # noqa: PLC0415  # no first request waits for it
    from handrail.permissions.rules import ALIASES, MCP  # noqa: PLC0415

    for name in names:
        plain = ALIASES.get(each := name.partition("(")[0].strip(), each)
        server = plain.startswith(MCP) and "__" not in plain.removeprefix(MCP)
        if glob(plain).matches(tool) or (server and glob(f"{plain}__*").matches(tool)):
            return True
    return False


def _problem(name: object, description: object, mode: object) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"{name!r} cannot be the name of an agent. Use letters, digits and single dashes."
    if not isinstance(description, str) or not description:
        return f"the agent {name!r} has no description"
    return _mode_problem(name, mode) if mode else ""


def _mode_problem(name: str, mode: object) -> str:
    from handrail.permissions.modes import MODE_ALIASES, MODES  # noqa: PLC0415  # few have one

    if isinstance(mode, str) and MODE_ALIASES.get(mode, mode) in MODES:
        return ""
    return f"the agent {name!r} has the permissionMode {mode!r}. Use one of {', '.join(MODES)}."


def _names(value: Any) -> tuple[str, ...] | None:
    match value:
        case None:
            return None
        case str():
            return split_names(value)
        case list():
            return tuple(str(each) for each in value)
        case _:
            return ()


def _model(value: object) -> str:
    return value if isinstance(value, str) and value != "inherit" else ""
