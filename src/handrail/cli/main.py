"""The commands, and what they have in common."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TypeAlias

from handrail import __version__
from handrail.errors import HandrailError

FAILED, USAGE, INTERRUPTED = 1, 2, 130

Run: TypeAlias = Callable[[argparse.Namespace], int]


def _call(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tool", metavar="TOOL", help="name of the tool, see `handrail tools`")
    parser.add_argument("input", metavar="JSON", help="its input as a JSON object; - reads it from standard input")
    parser.add_argument("--json", action="store_true", help="print the whole outcome as one JSON object")


def _shell(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "line", metavar="LINE", help="the command line, as one argument; - reads it from standard input"
    )
    parser.add_argument("--json", action="store_true", help="print the whole analysis as one JSON object")
    parser.add_argument("--workspace", metavar="DIR", action="append", help="a folder it may read (default: --cwd)")
    parser.add_argument("--cwd", metavar="DIR", help="the folder it would run in (default: this one)")
    parser.add_argument("--home", metavar="DIR", help="the home folder of whoever would run it (default: yours)")


def _tools(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array with everything known about each tool")


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--width", type=int, default=0, help="columns of the drawing (default: the terminal's)")


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON object")


COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], str]] = {
    "call": ("run one governed tool call, no model", _call, "handrail.cli.call"),
    "demo": ("watch an agent repair a small project, offline", _demo, "handrail.cli.demo"),
    "doctor": ("say what is installed, what protects you and what is wrong", _doctor, "handrail.cli.doctor"),
    "shell": ("say what a shell command would do, without running it", _shell, "handrail.cli.shell"),
    "tools": ("list the tools and how they behave", _tools, "handrail.cli.tools"),
}
"""Name -> help, arguments, and the module whose `run` does it; only the chosen one is imported."""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="handrail",
        usage="handrail -p PROMPT [flags]\n       handrail COMMAND ...",
        description="The tool system for AI agents: hands for the model, rails for the people.",
        epilog="handrail -p --help lists the flags of a run. The interactive terminal has not come yet.",
    )
    top.add_argument("-v", "--version", action="version", version=f"handrail {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="handrail")
    for name, (text, arguments, _module) in COMMANDS.items():
        arguments(commands.add_parser(name, help=text, description=text.capitalize() + "."))
    return top


def _is_run(arguments: Sequence[str]) -> bool:
    """A prompt for an agent, not a command."""
    return arguments[0].startswith("-") or bool({"-p", "--print"} & set(arguments))


def _do(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] not in {*COMMANDS, "-h", "--help", "-v", "--version"} and _is_run(arguments):
        prompted: Callable[[Sequence[str]], int] = import_module("handrail.cli.run").run
        return prompted(arguments)
    chosen = parser().parse_args(arguments)
    command: Run = import_module(COMMANDS[chosen.command][2]).run
    return command(chosen)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character still gets the rest
    try:
        code = _do(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # the reader has left; Python would complain once more when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except HandrailError as error:
        sys.stderr.write(f"handrail: {error}\n")
        return USAGE
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        sys.stderr.write(f"handrail: {error.strerror}{where}\n")
        return FAILED
    return code
