"""
One rule: `Tool` or `Tool(spec)`, what it does, and where it is written.

Every text parses to a Rule or a RuleProblem. A problem is reported; until it is corrected, what a deny or ask rule may
have meant is asked for.
"""

import re
from enum import Enum

from handrail.lazy import lazy_pattern
from handrail.permissions.known_tools import MAX_WORDS, possible_tools
from handrail.records import record
from handrail.tools.tool import McpInfo, is_name


class Behaviour(Enum):
    """What a rule does to the calls it matches."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    __hash__ = object.__hash__  # fast: every decision looks rules up by them


@record
class RuleSource:
    """
    Where a rule is written. `folder` is what a pattern like `/src/**` starts from; empty = the working folder.

    In the file of a folder `above` the working folder, a pattern like `src/**` starts from that folder too.
    """

    name: str
    """policy, flag, local, project, user, session, cli or command."""
    file: str = ""
    line: int = 0
    folder: str = ""
    above: bool = False

    def __str__(self) -> str:
        place = f" {self.file}:{self.line}" if self.file and self.line else f" {self.file}" if self.file else ""
        return f"{NAMES.get(self.name, self.name)}{place}"


NAMES = {
    "policy": "policy",
    "flag": "settings of this run",
    "local": "local settings",
    "project": "project settings",
    "user": "user settings",
    "session": "this session",
    "cli": "command line",
    "program": "rules of the program",
    "command": "front matter of the command",
}
SESSION = RuleSource("session")


@record
class Rule:
    """A rule that can be matched. `spec` None is the whole tool."""

    text: str
    tool: str
    spec: str | None
    behaviour: Behaviour
    source: RuleSource = SESSION
    broken: str = ""
    """Why the rule as it is written cannot work; this one is what it may have meant."""

    def __hash__(self) -> int:
        return hash(self.text)  # fast: the hash of a text is cached, and calls wait while rules are put into sets

    @property
    def written(self) -> str:
        """The rule with its source, as opinions show it."""
        return f"{self.source}: {self.text}"


HARMLESS = "It has no effect."
"""What is said of an allow rule that cannot work."""


@record
class RuleProblem:
    """
    A rule that cannot work, and why.

    What a deny or ask rule may have meant is asked for: calls that the rules `meant` match or, if it is `broad`, every
    call that does not only read. An allow rule allows nothing, so nothing has to be asked in its place.
    """

    text: str
    source: RuleSource
    message: str
    behaviour: Behaviour = Behaviour.ALLOW
    kind: str = "malformed"
    """malformed, never or mistake, as `lint` calls it."""
    meant: tuple[Rule, ...] = ()
    broad: bool = False

    @property
    def consequence(self) -> str:
        """What happens until it is corrected."""
        if self.broad:
            return "Until it is corrected, every call that does more than read needs consent."
        if self.meant:
            names = dict.fromkeys(
                rule.tool if rule.spec is None else f"{rule.tool}({rule.spec})" for rule in self.meant
            )
            return f"Until it is corrected, calls of {', '.join(names)} need consent."
        return HARMLESS


def rule_problem(
    text: str, source: RuleSource, message: str, behaviour: Behaviour, *, name: str = "", kind: str = "malformed"
) -> RuleProblem:
    """
    The problem of a rule that should have been about the tool `name`, or tools of similar names.

    One of more words than a name can have may have meant any tool.
    """
    if behaviour is Behaviour.ALLOW:
        return RuleProblem(text, source, message, behaviour, kind)
    words = [name] if NAME_GLOB.match(name) else re.split(r"[^\w*-]+", name)
    too_many, words = len(words) > MAX_WORDS, words[:MAX_WORDS]
    near = [tool for word in words for tool in possible_tools(ALIASES.get(word, word))]
    globs = [word for word in words if "*" in word]
    meant = tuple(
        Rule(text, tool, None, Behaviour.ASK, source, message)
        for tool in dict.fromkeys([*near, *globs, *(word for word in words if word)])
    )
    return RuleProblem(text, source, message, behaviour, kind, meant, broad=too_many or not (near or globs))


# Old names of tools, which rules and calls may still use.
ALIASES = {
    "Task": "Agent",
    "BashOutput": "TaskOutput",
    "AgentOutputTool": "TaskOutput",
    "KillShell": "TaskStop",
    "KillBash": "TaskStop",
    "LS": "Glob",
    "NotebookRead": "Read",
    "SlashCommand": "Skill",
}
# Rule families: a rule of such a name covers every tool that does this (reads files, changes them, runs, reaches).
READ, EDIT, BASH, POWERSHELL, WEB_FETCH = FAMILIES = ("Read", "Edit", "Bash", "PowerShell", "WebFetch")
# Old settings give these names a path. Such a rule never matches: the family behind it covers all file tools.
NEVER_BY_PATH = {"Write": EDIT, "NotebookEdit": EDIT, "Glob": READ, "Grep": READ, "LSP": READ}
# No tool of this name is installed yet; the content of its rules has a grammar of its own: name, `name *`, `name:*`.
SKILL = "Skill"

NAME_GLOB = lazy_pattern(r"[^\s()\x00-\x1f]+\Z")
PARAMETER = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_]*):(.*)\Z", re.DOTALL)
MCP = "mcp__"


def parse_rule(text: str, behaviour: Behaviour, source: RuleSource = SESSION) -> Rule | RuleProblem:
    """Parse a rule, or say what is wrong with the text."""
    plain = text.strip()
    name, bracket, rest = plain.partition("(")
    tool, inside = ALIASES.get(name, name), rest[:-1].strip()
    inside = inside.removeprefix("/") if name == "SlashCommand" else inside  # it named commands as people type them
    spec = None if inside in ("", "*") else inside
    problem = shape_problem(plain, name, bracket, rest)
    if not problem:
        problem = glob_problem(name, behaviour) if spec is None else spec_problem(tool, spec, behaviour)
    if problem:
        return rule_problem(text, source, problem, behaviour, name=name)
    return Rule(text, tool, spec, behaviour, source)


def shape_problem(plain: str, name: str, bracket: str, rest: str) -> str:
    if not plain:
        return "the rule is empty; name a tool: Bash(npm test *)"
    if not name:
        return "the rule names no tool before the bracket; write Bash(...)"
    if bracket and not rest.endswith(")"):
        return "the bracket is not closed; add )" if ")" not in rest else "there is text after the closing bracket"
    if not NAME_GLOB.match(name):
        return f"{name!r} is not the name of a tool"
    return ""


def glob_problem(name: str, behaviour: Behaviour) -> str:
    """Wildcards in tool names: deny and ask rules anywhere, allow rules only after a literal server."""
    if "*" not in name or behaviour is not Behaviour.ALLOW:
        return ""
    server, _, tool = name.removeprefix(MCP).partition("__")
    if name.startswith(MCP) and server and tool and "*" not in server:
        return ""
    return "an allow rule may use * only behind a literal server: mcp__server__prefix*"


def spec_problem(tool: str, spec: str, behaviour: Behaviour) -> str:
    if "*" in tool:
        return f"a tool name with * takes no brackets; write {tool}"
    if tool in (READ, EDIT):
        return path_problem(spec)
    if tool == WEB_FETCH:
        found = PARAMETER.match(spec)
        if found and (found[1] != "domain" or not found[2].strip(". ")):
            return "" if found[1] != "domain" and behaviour is not Behaviour.ALLOW else "write WebFetch(domain:host)"
        return "" if found else "write WebFetch(domain:host)"
    if tool in FAMILIES or tool in NEVER_BY_PATH or tool == SKILL:
        return ""
    if near := next((name for name in FAMILIES if name.lower() == tool.lower()), ""):
        return f"{tool} is not the name of a tool; names are case-sensitive: {near}"
    if not tool.startswith(MCP) and not is_name(tool):  # servers may have odd names
        return f"{tool!r} is not the name of a tool"
    found = PARAMETER.match(spec)
    if found and behaviour is Behaviour.ALLOW and not found[2].startswith("//"):  # that is an address
        return "parameter:value works only in deny and ask rules"
    return ""


def path_problem(spec: str) -> str:
    if spec.startswith("!"):
        return "a pattern cannot be negated with !; write a separate rule for the exception"
    if spec[:1] == "~" and spec[1:2] not in ("", "/"):
        return "the home folder of another user is not looked up; write its path: //home/name/**"
    if "\0" in spec:
        return "a path cannot hold a NUL character; remove it"
    return ""


def split_rules(text: str) -> tuple[str, ...]:
    """The rules of a list as `--allowedTools` takes it: split at commas and blanks outside brackets."""
    found, depth, current = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")" and depth > 0)
        if depth == 0 and (char == "," or char.isspace()):
            found.append(current)
            current = ""
        else:
            current += char
    return tuple(rule for rule in (*found, current) if rule)


def mcp_of(tool_name: str) -> McpInfo | None:
    """The server and tool in a wire name, for calls without recorded MCP information."""
    if not tool_name.startswith(MCP):
        return None
    server, _, tool = tool_name.removeprefix(MCP).partition("__")
    return McpInfo(server, tool) if server and tool else None
