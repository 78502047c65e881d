"""`handrail permissions`: explain a decision, test a policy, lint rules, decide recorded calls again."""

import argparse
from collections.abc import Callable
from importlib import import_module


def run(chosen: argparse.Namespace) -> int:
    """Do what was chosen; the exit code is that of the sub-command."""
    command: Callable[[argparse.Namespace], int] = import_module(f"handrail.cli.permissions.{chosen.what}").run
    return command(chosen)
