"""
The names of tools that rules and hook matchers may use, and what a name that is not known may have meant.

A name is known if a tool of this session has it, if the conventions of settings files have it (its tool may come later,
or be switched off), or if it can be a tool of an MCP server.
"""

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import TYPE_CHECKING

from handrail.lazy import lazy, lazy_pattern
from handrail.permissions.wildcards import parse_wildcards

if TYPE_CHECKING:
    import difflib
else:
    difflib = lazy("difflib")  # only names that are wrong need it

CONVENTIONAL = frozenset(
    (
        "Agent", "Artifact", "AskUserQuestion", "Bash", "Cd", "CronCreate", "CronDelete", "CronList", "Edit",
        "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "LSP", "ListAgents",
        "ListMcpResourcesTool", "Monitor", "NotebookEdit", "PowerShell", "PushNotification", "REPL", "Read",
        "ReadMcpResourceDirTool", "ReadMcpResourceTool", "RemoteTrigger", "ReportFindings", "ScheduleWakeup",
        "SendMessage", "Skill", "Sleep", "StructuredOutput", "TaskCreate", "TaskGet", "TaskList", "TaskOutput",
        "TaskStop", "TaskUpdate", "TeamCreate", "TeamDelete", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch",
        "Workflow", "Write",
    )
)  # fmt: skip
OLD = frozenset(
    (
        "AgentOutputTool", "BashOutput", "KillBash", "KillShell", "LS", "MultiEdit", "NotebookRead", "Task",
        "TodoRead",
    )
)  # fmt: skip
"""Names that old settings have. A rule for a tool that is gone forbids nothing: no call can have its name."""
GONE = frozenset(("MultiEdit", "TodoRead"))
_SHELLS, _CODE = ("Bash", "PowerShell", "Monitor"), ("Bash", "PowerShell", "Monitor", "REPL")
_CHANGES, _WEB, _SEARCH = ("Edit", "Write", "NotebookEdit"), ("WebFetch", "WebSearch"), ("Grep", "Glob")
# What people and other programs call our tools: letters and digits only, in lower case.
SYNONYMS = {
    **dict.fromkeys(("shell", "shelltool", "terminal", "sh", "zsh", "cmd", "console", "localshell"), _SHELLS),
    **dict.fromkeys(("command", "commands", "runcommand", "runshellcommand", "executecommand", "process"), _SHELLS),
    **dict.fromkeys(("exec", "execute", "run", "code", "python", "script", "eval", "codeexecution"), _CODE),
    **dict.fromkeys(("readfile", "viewfile", "openfile", "view", "cat", "reading", "notebook"), ("Read",)),
    **dict.fromkeys(("writefile", "createfile", "create", "save", "writing"), ("Write", "Edit")),
    **dict.fromkeys(("editfile", "editing", "strreplace", "strreplaceeditor", "strreplacebasededittool"), _CHANGES),
    **dict.fromkeys(("applypatch", "patch", "update", "modify", "replace", "multiedit", "change"), _CHANGES),
    **dict.fromkeys(("file", "files", "filesystem", "fs"), ("Read", *_CHANGES)),
    **dict.fromkeys(("fetch", "http", "https", "url", "request", "download", "browser", "browse"), _WEB),
    **dict.fromkeys(("web", "internet", "network", "net", "curl", "wget"), (*_WEB, *_SHELLS)),
    **dict.fromkeys(("search", "find", "searchfiles", "codesearch"), (*_SEARCH, "WebSearch")),
    **dict.fromkeys(("list", "listfiles", "listdirectory", "dir", "readfolder"), _SEARCH),
    **dict.fromkeys(("subagent", "subagents", "agents", "delegate", "spawn"), ("Agent",)),
    **dict.fromkeys(("todo", "todos"), ("TodoWrite", "TaskCreate", "TaskUpdate")),
    **dict.fromkeys(("cron", "schedule"), ("CronCreate", "CronDelete", "ScheduleWakeup")),
    **dict.fromkeys(("worktree",), ("EnterWorktree", "ExitWorktree")),
}
MCP, ANY_MCP = "mcp__", "mcp__*"
WORD = lazy_pattern(r"[A-Za-z0-9_-]+")
MAX_WORDS = 100
"""The most words that a text about one tool can have."""
Matches = Callable[[str], bool]


def is_known(name: str, tools: Collection[str] = ()) -> bool:
    """Whether a rule may be about a tool of this name, which may contain `*`."""
    if name in CONVENTIONAL or name in OLD or name in tools:
        return True
    if name.startswith(MCP):
        return bool(name.removeprefix(MCP).strip("_"))
    return "*" in name and fits_known(name, parse_wildcards(name).matches, tools)


def fits_known(text: str, matches: Matches, tools: Collection[str] = ()) -> bool:
    """
    Whether a pattern fits a tool: one that is known, or one of a server that may come later.

    The tools of servers can have any name. A pattern counts as about them if it says so, or if nothing in it resembles
    a tool that is known; one of more words than any name has is about none.
    """
    if MCP in text or any(matches(name) for known in (CONVENTIONAL, OLD, tools) for name in known):
        return True
    words = WORD.findall(text)
    return (
        len(words) <= MAX_WORDS
        and not any(possible_tools(word, tools) for word in words)
        and any(matches(f"{MCP}server__{word}") for word in (*words, "tool"))
    )


def possible_tools(name: str, tools: Collection[str] = ()) -> tuple[str, ...]:
    """The known tools that a name may have meant, the name itself if it is known; none if no name is near."""
    return _possible_tools(name, frozenset(tools))


@lru_cache(maxsize=512)
def _possible_tools(name: str, tools: frozenset[str]) -> tuple[str, ...]:
    if name in CONVENTIONAL or name in tools or (name.startswith(MCP) and is_known(name)):
        return (name,)
    plain = re.sub(r"[^a-z0-9]", "", name.casefold())
    if not plain:
        return ()
    by_plain: dict[str, list[str]] = {}
    for known in sorted(CONVENTIONAL | tools):
        by_plain.setdefault(re.sub(r"[^a-z0-9]", "", known.casefold()), []).append(known)
    if plain in by_plain:
        return tuple(by_plain[plain])
    if plain in SYNONYMS:
        return SYNONYMS[plain]
    if plain.startswith("mcp"):
        return (ANY_MCP,)
    near = [
        each
        for each in difflib.get_close_matches(plain, by_plain, n=8, cutoff=0.75)
        if abs(len(each) - len(plain)) <= 2
    ]
    if not near and plain.endswith("tool"):
        return _possible_tools(plain.removesuffix("tool"), tools)
    return tuple(known for each in near for known in by_plain[each])
