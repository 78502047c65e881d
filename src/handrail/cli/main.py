"""What the arguments of `handrail` ask for, the module that does it, and how errors become exit codes."""

import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from errno import EAGAIN
from importlib import import_module
from typing import TYPE_CHECKING, Any

from handrail.errors import HandrailError, advice_on
from handrail.lazy import LOADING_OBJECTS, lazy

if TYPE_CHECKING:
    import argparse

    from handrail.cli import commands
    from handrail.processes import start_problem
    from handrail.tools import wording
else:
    commands = lazy("handrail.cli.commands")
    start_problem = lazy("handrail.processes.start_problem")
    wording = lazy("handrail.tools.wording")

FAILED, USAGE, INTERRUPTED = 1, 2, 130
NO_THREAD = "can't start new thread"
"""What Python says when the limit of processes and threads is reached."""


def _is_run(arguments: Sequence[str]) -> bool:
    """Whether the arguments are a prompt for an agent: a sentence, or flags of a run."""
    first = arguments[0]
    if first in {"help", "-h", "--help", "-v", "--version"}:
        return False
    if first.startswith("-") or len(first.split()) > 1:
        return True
    return bool({"-p", "--print"} & set(arguments)) and first not in commands.COMMANDS


ONE_SHOT = (
    "-p",
    "--print",
    "--output-format",
    "--json",
    "--input-format",
    "--json-schema",
    "--quiet",
    "--no-ask",
    "--ask",
)
"""Flags of a run that answers and leaves, also on a terminal."""


def _is_conversation(arguments: Sequence[str]) -> bool:
    """Whether a person at a terminal wants to converse: no flag asks for a run that answers and leaves."""
    if any(word.partition("=")[0] in (*ONE_SHOT, "-h", "--help", "--fail-on-denial") for word in arguments):
        return False
    return (not arguments or _is_run(arguments)) and os.isatty(0) and os.isatty(1)


def _do(arguments: Sequence[str]) -> int:
    if _is_conversation(arguments):
        converse: Callable[[Sequence[str]], int] = _import_command("handrail.cli.conversation").run
        return converse(arguments)
    if not arguments:
        commands.parser().print_help(sys.stderr)
        sys.stderr.write(
            "\nhandrail: nothing was asked for. Give a prompt in quotes, a command, or piped input with -p.\n"
        )
        return USAGE
    if _is_run(arguments):
        prompted: Callable[[Sequence[str]], int] = _import_command("handrail.cli.run").run
        return prompted(arguments)
    if arguments[0] == "help":
        return _do([*arguments[1:], "--help"])
    if arguments[0] not in commands.COMMANDS and not arguments[0].startswith("-"):
        raise HandrailError(_unknown_command(arguments[0]))
    chosen = commands.parser(arguments[0]).parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = _import_command(commands.COMMANDS[chosen.command][2]).run
    return command(chosen)


def _unknown_command(word: str) -> str:
    hint = wording.did_you_mean(word, [*commands.COMMANDS, "help"])
    ways = 'Put a prompt in quotes (handrail "Say hello."), and one of a single word after -p (handrail -p hello).'
    return f"there is no command {word!r}.{hint} {ways}"


SWITCH_SECONDS = 0.001
"""How long the thread that loads tools may hold up the one that talks to the model; 5 ms is usual."""


def _import_command(module: str) -> Any:
    """Import a module with garbage collection paused, because what is imported stays, and less often afterwards."""
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.set_threshold(LOADING_OBJECTS)
        gc.enable()


def _file_problem(error: OSError) -> str:
    try:
        os.getcwd()  # noqa: PTH109  # pathlib may not be loaded yet
    except FileNotFoundError:
        return "the folder that you are in does not exist any more. Change to another one: cd FOLDER"
    if (too_many := start_problem.TOO_MANY.get(error.errno or 0)) is not None:
        return f"{too_many}. Raise the limit, or close other programs."
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror}{where}. {advice_on(error)}"


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name, and return the exit code."""
    sys.setswitchinterval(SWITCH_SECONDS)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character still gets the rest
    if sys.stdout.isatty() or sys.stderr.isatty():
        _import_command("handrail.cli.terminal_stream").guard_terminals()
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
        _report(arguments, str(error))
        return USAGE
    except OSError as error:
        _report(arguments, _file_problem(error))
        return FAILED
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        _report(arguments, _file_problem(OSError(EAGAIN, NO_THREAD)))
        return FAILED
    return code


def _report(arguments: Sequence[str], problem: str) -> None:
    """Say why a command failed; a run prints a result of its own where JSON is asked for."""
    as_json = "--json" in arguments and arguments[0] in commands.COMMANDS
    _import_command("handrail.cli.permission_flags").report_failure(problem, as_json=as_json)
