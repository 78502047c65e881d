"""`handrail mcp`: configure MCP servers, look at them, call their tools, pin them, sign in."""

import argparse
from collections.abc import Callable
from importlib import import_module

from handrail.cli.mcp_arguments import SUBCOMMANDS


def run(chosen: argparse.Namespace) -> int:
    """Do what was chosen; the exit code is that of the sub-command."""
    module = import_module(f"handrail.cli.mcp.{SUBCOMMANDS[chosen.what][2]}")
    command: Callable[[argparse.Namespace], int] = module.run
    return command(chosen)
