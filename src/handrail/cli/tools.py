"""`handrail tools`: the tools that a run here offers, those that wait to be searched for, and those it holds back."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.cli.permission_flags import settings_flags, warn
from handrail.cli.session_flags import warn_of_unknown_tools
from handrail.cli.terminal import ReportScreen
from handrail.config.execution import run_features
from handrail.conversation.plain import plain_json
from handrail.permissions.rules import Behaviour
from handrail.session.language_servers import SessionLanguageServers
from handrail.session.servers.servers import Servers, refused_by
from handrail.session.services import default_services
from handrail.session.settings.session_settings import SessionSettings, open_settings
from handrail.session.skills.notes import SessionSkills
from handrail.session.state_folder import state_folder
from handrail.session.tools import LSP_TOOL, SKILL_TOOL, builtin_names, deferral_of, make_catalog, unwanted_tools
from handrail.session.web.configured_search import configured_search
from handrail.tools.access import EXCLUSIVE, SHARED
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.flags import whatever_the_input
from handrail.tools.pool import NO_DEFERRAL, AnyTool, Pool
from handrail.tools.tool import FLAGS, PLAIN_VIEW


def run(chosen: argparse.Namespace) -> int:
    """Print the pool of a run as a table or as JSON."""
    settings = open_settings(Path.cwd(), os.environ, state_folder(os.environ), settings_flags(chosen), warn)
    rows, servers = asyncio.run(look(chosen, settings))
    if chosen.json:
        print(plain_json(rows, indent=2))
    else:
        print(format_rows(rows, servers, ReportScreen(sys.stdout)))
    return 0


async def look(chosen: argparse.Namespace, settings: SessionSettings) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The tools as data, and how the MCP servers stand. Servers are started only with `--connect`."""
    loaded = settings.loaded
    servers = Servers(loaded.env, Path.cwd(), refuses=refused_by(settings))
    servers.add(loaded.settings.servers, "project")
    named = None if chosen.tools == ("default",) else chosen.tools
    warn_of_unknown_tools(named or (), builtin_names())
    unwanted = unwanted_tools(named)
    language_servers = SessionLanguageServers(settings, lambda: default_services(loaded.env), dict, warn)
    try:
        for note in await servers.connect() if chosen.connect else ():
            warn(note)
        catalog = make_catalog(
            variables=loaded.env,
            denied=lambda name, mcp: name in unwanted or settings.denies_tool(name, mcp),
            planning=lambda: settings.mode == "plan",
            features=run_features(loaded.settings, loaded.env, configured_search(loaded)),
            deferral=deferral_of(loaded.env, settings=loaded.settings) if named is None else NO_DEFERRAL,
            mcp=servers.tools,
            offers={SKILL_TOOL: SessionSkills(Path.cwd(), settings).has_any, LSP_TOOL: language_servers.is_available},
        )
        rows = [about(tool, catalog.pool) for tool in catalog.pool]
        held = held_back(catalog, settings, unwanted)
        return [
            *rows,
            *({"name": name, "loaded": "never", "why": why} for name, why in held.items()),
        ], servers.by_status()
    finally:
        await servers.aclose()


def held_back(catalog: Catalog, settings: SessionSettings, unwanted: frozenset[str]) -> dict[str, str]:
    """The built-in tools that a run does not offer, each with the reason."""
    left_out = catalog.left_out()
    if SKILL_TOOL in left_out:
        left_out[SKILL_TOOL] = "there is no skill that the model may load"
    if LSP_TOOL in left_out:
        here = "no language server is installed" if settings.is_trusted() else "language servers need a trusted folder"
        left_out[LSP_TOOL] = f"{here}: see handrail doctor"
    if settings.mode == "plan":
        left_out |= {tool.name: "plan mode offers only tools that read" for tool in catalog.pool.disabled}
    for name in left_out:
        if name in unwanted:
            left_out[name] = "--tools does not name it"
        elif settings.denies_tool(name, None):
            rules = settings.policy().index[Behaviour.DENY].whole_tool(name, None)
            left_out[name] = f"denied by {rules[0].written}" if rules else "a deny rule takes it away"
    return left_out


def about(tool: AnyTool, pool: Pool) -> dict[str, Any]:
    """One tool, as data."""
    access = whatever_the_input(lambda args: tool.access(args, RunContext(Path.cwd())))
    return {
        "name": tool.name,
        "aliases": list(tool.aliases),
        "description": tool.prompt(PLAIN_VIEW),
        **{name.removeprefix("is_"): whatever_the_input(getattr(tool, name)) for name in FLAGS},
        "runs": {SHARED: "beside others", EXCLUSIVE: "alone"}.get(access, "by what it touches"),
        "loaded": "when searched for" if tool.name in pool.deferred else "always",
        "interrupt": tool.interrupt or "by read_only",
        "timeout": tool.timeout,
        "max_result_chars": tool.max_result_chars,
        "server": tool.mcp.server if tool.mcp else None,
        "input_schema": tool.input_schema,
    }


TITLES = {
    "always": "offered with every request",
    "when searched for": "offered by name, and loaded when the model searches for them",
    "never": "held back",
}
STATES = {"connected": "its tools stand above", "pending": "not asked for its tools; --connect does"}
READS = {True: "reads", False: "changes", "depends": "depends"}


def format_rows(rows: list[dict[str, Any]], servers: Mapping[str, str], screen: ReportScreen) -> str:
    """The tools in columns, section by section, with the first sentence of each description or the reason."""
    lines: list[str] = []
    for loaded, title in TITLES.items():
        cells = [cells_of(row) for row in rows if row["loaded"] == loaded]
        lines += [screen.heading(title), *screen.table(cells), ""] if cells else []
    names = [(row["name"], ", ".join(row["aliases"])) for row in rows if row.get("aliases")]
    lines += [screen.heading("known by other names too"), *screen.table(names), ""] if names else []
    states = [(name, STATES.get(state, state)) for name, state in servers.items()]
    lines += [screen.heading("MCP servers"), *screen.table(states), ""] if states else []
    return "\n".join(lines[:-1])


def cells_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    if row["loaded"] == "never":
        return row["name"], row["why"]
    return row["name"], READS.get(row["read_only"], "changes"), first_sentence(row["description"])


def first_sentence(text: str) -> str:
    return text.partition("\n")[0].partition(". ")[0]
