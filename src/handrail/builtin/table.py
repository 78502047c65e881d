"""The table of all built-in tools. A tool is imported when it is first called."""

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from handrail.builtin.definitions import stand_in
from handrail.builtin.services import ToolServices
from handrail.tools.pool import AnyTool, Environment, ToolEntry
from handrail.tools.search import Searching
from handrail.tools.stub import fetch

USUAL_FEATURES = frozenset({"background", "plan", "questions", "schedules", "task-list", "web"})
"""The tool families that work everywhere; sub-agents need a session that runs them."""
SEARCH_SERVICE = "search-service"
"""The feature of a run that has a service which searches the web."""
REMOTE_SERVERS = "remote-servers"
"""The feature of a run for which the person named servers that start runs elsewhere."""


def base_tools(catalog: Callable[[], Searching], services: Callable[[], ToolServices]) -> tuple[ToolEntry, ...]:
    """
    Every tool, enabled or not; the pool decides which of them a request gets.

    Both arguments are called late: the catalog is built from this table, and building services may take time.
    Run `make definitions` after adding or changing a tool; a tool that is not in that file is imported with the pool.
    """
    services = cache(services)  # the tools of a session share it
    return (
        _entry("Agent", "agent.AgentTool", services, feature="agents"),
        _entry("AskUserQuestion", "ask_user_question.AskUserQuestion", feature="questions", when=_can_ask),
        _entry("Bash", "bash.tool.Bash", services, simple=True, when=_not_by_repl),
        _entry("CronCreate", "schedules.cron_create.CronCreate", services, feature="schedules"),
        _entry("CronDelete", "schedules.cron_delete.CronDelete", services, feature="schedules"),
        _entry("CronList", "schedules.cron_list.CronList", services, feature="schedules"),
        _entry("Edit", "edit.Edit", services, simple=True),
        _entry("EnterPlanMode", "plan_mode.enter_plan_mode.EnterPlanMode", feature="plan", when=_can_ask),
        _entry("EnterWorktree", "worktree.enter_worktree.EnterWorktree", services, feature="worktrees"),
        _entry("ExitPlanMode", "plan_mode.exit_plan_mode.ExitPlanMode", services, feature="plan", when=_can_ask),
        _entry("ExitWorktree", "worktree.exit_worktree.ExitWorktree", services, feature="worktrees"),
        _entry("Glob", "glob.Glob", services, simple=True, when=_has_search),
        _entry("Grep", "grep.tool.Grep", services, simple=True, when=_has_search),
        _entry("LSP", "lsp.Lsp", services),
        _entry("ListAgents", "teams.list_agents.ListAgents", services, feature="agents"),
        _entry("Monitor", "background.monitor.Monitor", services, feature="background", when=_has_background),
        _entry("NotebookEdit", "notebook_edit.tool.NotebookEdit", services),
        _entry("PowerShell", "powershell.PowerShell", services, when=_has_pwsh),
        _entry("REPL", "repl.tool.REPL", services, simple=True, when=_has_repl),
        _entry("Read", "read.tool.Read", services, simple=True),
        _entry("RemoteTrigger", "remote_trigger.tool.RemoteTrigger", services, when=_has_remote_servers),
        _entry("ScheduleWakeup", "schedules.schedule_wakeup.ScheduleWakeup", services, feature="schedules"),
        _entry("SendMessage", "teams.send_message.SendMessage", services, feature="agents"),
        _entry("Skill", "skill.Skill", services),
        _entry("Sleep", "sleep.Sleep"),
        _entry("TaskCreate", "task_list.task_create.TaskCreate", services, feature="task-list", when=_has_task_list),
        _entry("TaskGet", "task_list.task_get.TaskGet", services, feature="task-list", when=_has_task_list),
        _entry("TaskList", "task_list.task_list.TaskList", services, feature="task-list", when=_has_task_list),
        _entry("TaskOutput", "background.task_output.TaskOutput", services, feature="background"),
        _entry("TaskStop", "background.task_stop.TaskStop", services, feature="background"),
        _entry("TaskUpdate", "task_list.task_update.TaskUpdate", services, feature="task-list", when=_has_task_list),
        _entry("TeamCreate", "teams.team_create.TeamCreate", services, feature="agents"),
        _entry("TeamDelete", "teams.team_delete.TeamDelete", services, feature="agents"),
        _entry("TodoWrite", "task_list.todo_write.TodoWrite", services, feature="task-list", when=_has_todo_list),
        _entry("ToolSearch", "tool_search.ToolSearch", catalog),
        _entry("WebFetch", "web_fetch.tool.WebFetch", services, feature="web"),
        _entry("WebSearch", "web_search.tool.WebSearch", services, feature="web", when=_has_search_service),
        _entry("Write", "write.Write", services, simple=True),
    )


def tool_names(*, simple: bool = False) -> frozenset[str]:
    """The names of all built-in tools, or of the few that simple runs have."""
    return frozenset(entry.name for entry in base_tools(_no_parts, _no_parts) if entry.simple or not simple)


def _no_parts() -> Any:
    raise AssertionError("only the names are asked for")


def _can_ask(environment: Environment) -> bool:
    return environment.can_ask


def _has_background(environment: Environment) -> bool:
    return environment.variables.get("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "") not in {"1", "true"}


def _has_search(environment: Environment) -> bool:
    """Our search tools are redundant where the shell has its own."""
    embedded = environment.variables.get("HANDRAIL_EMBEDDED_SEARCH", "") in {"1", "true"}
    return not embedded and _not_by_repl(environment)


def _has_search_service(environment: Environment) -> bool:
    return SEARCH_SERVICE in environment.features


def _has_remote_servers(environment: Environment) -> bool:
    return REMOTE_SERVERS in environment.features


def _has_task_list(environment: Environment) -> bool:
    """Either the task list or the todo list is offered, because two lists would contradict each other."""
    return environment.variables.get("CLAUDE_CODE_ENABLE_TASKS", "") not in {"0", "false"}


def _has_todo_list(environment: Environment) -> bool:
    return not _has_task_list(environment)


def _has_repl(environment: Environment) -> bool:
    return environment.variables.get("HANDRAIL_REPL", "") in {"1", "true"}


def _not_by_repl(environment: Environment) -> bool:
    """In simple mode, the REPL replaces the tools that run programs and search files."""
    return not (environment.simple and _has_repl(environment))


def _has_pwsh(environment: Environment) -> bool:
    folders = environment.variables.get("PATH", "").split(":")
    return any(folder.startswith("/") and os.access(f"{folder}/pwsh", os.X_OK) for folder in folders)


NEEDS: Mapping[Callable[[Environment], bool], str] = {
    _can_ask: "someone to ask (a terminal, or a program that answers)",
    _has_background: "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS unset",
    _has_search: "HANDRAIL_EMBEDDED_SEARCH unset, and no REPL in its place",
    _has_search_service: "a search service: set webSearch.url, BRAVE_API_KEY or TAVILY_API_KEY",
    _has_remote_servers: "a handrail serve of another machine: set remoteServers",
    _has_task_list: "CLAUDE_CODE_ENABLE_TASKS unset",
    _has_todo_list: "CLAUDE_CODE_ENABLE_TASKS=0, which takes the task list away",
    _has_repl: "HANDRAIL_REPL=1",
    _not_by_repl: "no REPL in its place",
    _has_pwsh: "the program pwsh",
}
"""What the conditions look for, in words."""


def _entry(
    name: str,
    path: str,
    *given: Callable[[], Any],
    feature: str = "",
    simple: bool = False,
    when: Callable[[Environment], bool] = lambda _environment: True,
) -> ToolEntry:
    """A line of the table: `path` is the tool's class below `handrail.builtin`, `given` make its arguments."""
    module, _, kind = f"handrail.builtin.{path}".rpartition(".")

    build = _ToolMaker(module, kind, given)
    return ToolEntry(name, lambda: stand_in(name, module, build) or build(), feature, when, simple, NEEDS.get(when, ""))


class _ToolMaker:
    """Makes one tool of the table, once. A session has many, so they have to be cheap."""

    __slots__ = ("_given", "_kind", "_module", "_tool")

    def __init__(self, module: str, kind: str, given: tuple[Callable[[], Any], ...]) -> None:
        self._module, self._kind, self._given = module, kind, given
        self._tool: AnyTool | None = None

    def __call__(self) -> AnyTool:
        if self._tool is None:
            self._tool = getattr(fetch(self._module), self._kind)(*(make() for make in self._given))
        return self._tool
