"""`handrail tools`: lists the tools of the pool and how each behaves."""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from handrail.cli.permission_flags import warn
from handrail.config.execution import features_of
from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.session.session_settings import open_settings
from handrail.session.state_folder import state_folder
from handrail.session.tools import deferral_of, make_catalog, whatever_the_input
from handrail.tools.access import EXCLUSIVE, SHARED
from handrail.tools.context import RunContext
from handrail.tools.pool import AnyTool, Pool
from handrail.tools.tool import FLAGS, PLAIN_VIEW


def run(chosen: argparse.Namespace) -> int:
    """Print the pool as a table or as JSON."""
    settings = open_settings(Path.cwd(), os.environ, state_folder(os.environ), NO_FLAGS_GIVEN, warn)
    env = settings.loaded.env
    pool = make_catalog(
        variables=env,
        denied=settings.denies_tool,
        features=features_of(settings.loaded.settings, env),
        deferral=deferral_of(env),
    ).pool
    rows = [about(tool, pool) for tool in pool]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(json.dumps(rows, ensure_ascii=False, indent=2) if chosen.json else table(rows, width))
    return 0


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


COLUMNS = ("name", "read_only", "runs", "loaded", "description")


def table(rows: list[dict[str, Any]], width: int | None = None) -> str:
    """The rows in columns, with the first sentence of each description; on a terminal, cut to its width."""
    cells = [[_cell(row[column]) for column in COLUMNS] for row in rows]
    titles = [column.replace("_", "-") for column in COLUMNS]
    widths = [max(len(line[i]) for line in [titles, *cells]) for i in range(len(COLUMNS) - 1)]
    lines = [
        [*(text.ljust(width) for text, width in zip(line, widths, strict=False)), line[-1]] for line in [titles, *cells]
    ]
    return "\n".join("  ".join(line).rstrip()[:width] for line in lines)


def _cell(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value).partition("\n")[0].partition(". ")[0]
