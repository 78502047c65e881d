"""`handrail -p`: run an agent without a terminal."""

import argparse
import asyncio
import logging
import os
import select
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from handrail.cli.display import NO_DISPLAY, display_for, folder_warning
from handrail.cli.flags import Flags, read_flags
from handrail.cli.permission_flags import warn
from handrail.cli.result_guard import ResultGuard
from handrail.cli.session_flags import session_spec
from handrail.cli.signals import on_signals
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.plain import plain
from handrail.errors import ClosedError, FlagError, HandrailError
from handrail.headless.debug import DebugPrinter, file_printer, open_debug_file
from handrail.headless.piped_text import PipedText
from handrail.headless.printer import JsonPrinter, Printer, print_news, printer_for
from handrail.headless.ways_out import DENYING_EVENTS, denials_of
from handrail.lazy import lazy
from handrail.loop.events import LoopEvent, RunEnded
from handrail.session.build import open_session
from handrail.session.facts import session_facts
from handrail.session.session import Session
from handrail.session.spec import SessionHost
from handrail.session.turns import all_turns
from handrail.stdio.pipe import watch_reader

if TYPE_CHECKING:
    from handrail.cli import live, questions, serve_stdio
    from handrail.dispatch.approval.question import Handler
    from handrail.headless import lines as json_lines
    from handrail.headless import task_watch
else:
    json_lines = lazy("handrail.headless.lines")  # text needs nothing of it
    task_watch = lazy("handrail.headless.task_watch")
    questions = lazy("handrail.cli.questions")
    live = lazy("handrail.cli.live")
    serve_stdio = lazy("handrail.cli.serve_stdio")

NO_PROMPT = 'there is no prompt. Give one: handrail -p "What does this project do?", or pipe it in.'
FAILED, USAGE, DENIED = 1, 2, 3
MAX_STDIN = 10_000_000
STDIN_PATIENCE = 3.0
"""How long an idle pipe is waited for, in seconds, when there is a prompt already."""


def run(arguments: Sequence[str]) -> int:
    """
    The exit code of a run.

    0 = answered, 1 = it failed, was left or had no prompt, 2 = bad flags, 3 = answered, but a call was refused and
    --fail-on-denial was given; after a signal 128 and its number.
    """
    result = ResultGuard(arguments)
    try:
        return dispatch(arguments, result)
    except FlagError as error:
        result.fail(str(error))
        sys.stderr.write(error.usage)
        warn(f"error: {error}")
        return USAGE
    except HandrailError as error:
        result.fail(str(error))
        warn(f"{error} handrail demo needs no model." if "There is no key" in str(error) else str(error))
        return FAILED
    except Exception as error:
        result.fail(f"handrail failed: {type(error).__name__}: {error}. Standard error says more.")
        raise


def dispatch(arguments: Sequence[str], result: ResultGuard) -> int:
    """Serve a program that drives the agent, or work on one prompt."""
    flags = read_flags(arguments)
    chosen = flags.chosen
    if chosen.record and chosen.replay:
        raise FlagError("--record and --replay cannot be used together: a replay has nothing new to record.", "")
    for warning in flags.warnings:
        warn(warning)
    if chosen.resume is False:
        raise FlagError("--resume needs the id of a session here. `handrail sessions list` shows them.", "")
    if is_interactive(chosen):
        hint = 'Give a prompt: handrail -p "What does this project do?"'
        raise FlagError(f"a conversation needs a terminal for input and output. {hint}", "")
    plain_log()
    with open_debug_file(chosen.debug_file) as chosen.debug_out:
        if chosen.input_format == "stream-json":
            if chosen.ask_at or chosen.answer_at:
                raise FlagError("--ask-at and --answer-at do not go with stream-json input: the client is asked.", "")
            if chosen.prompt or any(chosen.words):
                warn("the prompt is not used: with --input-format stream-json, messages come from standard input")
            return asyncio.run(serve_stdio.serve(flags))
        if warning := folder_warning(os.path.realpath("."), os.path.realpath(os.environ.get("HOME") or "/")):
            warn(warning)
        prompt = prompt_of(chosen)
        if not prompt and not (chosen.resume or chosen.newest):
            raise HandrailError(NO_PROMPT)
        return asyncio.run(show(flags, prompt, result))


def is_interactive(chosen: argparse.Namespace) -> bool:
    """Whether the flags ask for a conversation on the terminal: no prompt, and no format that only programs read."""
    return chosen.prompt is None and not chosen.words and chosen.output_format == chosen.input_format == "text"


def plain_log() -> None:
    """Print log records without a handler to standard error, with control characters removed."""

    class Plain(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return f"handrail: {plain(super().format(record))}"

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Plain())


async def show(flags: Flags, prompt: str, result: ResultGuard) -> int:
    """Let the agent work on the prompt; on a terminal, what happens is drawn and the person may be asked."""
    display = display_for(flags.chosen)
    if not display.needs_terminal:
        return await answer(flags, prompt, result)
    with live.open_terminal(flags.chosen, display) as terminal:
        return await answer(flags, prompt, result, terminal)


async def answer(flags: Flags, prompt: str, result: ResultGuard, terminal: "live.TerminalRun | None" = None) -> int:
    """Let the agent work on the prompt and print what happens."""
    chosen = flags.chosen
    handler: Handler | None = terminal.handler if terminal else None
    between = bool(chosen.ask_at or chosen.answer_at)
    handler = questions.handler_for(chosen, handler) if between else handler
    session = open_session(session_spec(chosen), host=SessionHost(on_warning=warn, handler=handler))
    if terminal is not None:
        terminal.show_drafts(lambda: session.conversation.tools)
    out = PipedText.of(sys.stdout)
    printers = printers_for(chosen, session, out, terminal)
    code = on_signals(lambda: _stop(session, out))
    ended: RunEnded | None = None
    denied = False
    try:
        if between:
            await questions.answer_others(chosen, handler, session)
        if out is not None:
            watch_reader(out.descriptor, lambda: _stop(session, None))
        message = UserMessage((Text(prompt),) if prompt else ())  # a deferred call needs no words
        if not prompt and session.conversation.deferred is None:
            raise HandrailError(NO_PROMPT)
        async with aclosing(_events(session, message, printers, code)) as events:
            async for event in events:
                # one JSON object is that of the last turn
                is_shown = chosen.output_format != "json" or not isinstance(event, RunEnded) or is_last_turn(session)
                for printer in printers if is_shown else ():
                    printer.on_event(event)
                denied = denied or (isinstance(event, DENYING_EVENTS) and bool(denials_of(event)))
                if isinstance(event, RunEnded):
                    ended = event
                    result.is_printed = is_shown
                if out is not None and out.tell():
                    await out.drain()
    except ClosedError as error:
        _warn_of_output(error)
        result.is_printed = True  # it has no reader any more
        ended = None
    finally:
        await session.aclose()
    return _exit_code(code(), ended, denied=denied and chosen.fail_on_denial)


def _warn_of_output(error: ClosedError) -> None:
    """Say why the output cannot be written, unless its reader has left."""
    if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, BrokenPipeError):
        warn(str(error))


def _events(
    session: Session, message: UserMessage, printers: Sequence[Printer], code: Callable[[], int | None]
) -> AsyncGenerator[LoopEvent, None]:
    """The events of all turns; a printer of lines gets those of background tasks too."""
    events = all_turns(session, message, lambda: code() is not None)
    lines = next((printer for printer in printers if isinstance(printer, JsonPrinter)), None)
    return events if lines is None else task_watch.TaskWatch(session, lines.tell).follow(events)


def _exit_code(stopped: int | None, ended: RunEnded | None, *, denied: bool) -> int:
    if stopped is not None:
        return stopped
    return FAILED if ended is None or ended.is_error else DENIED if denied else 0


def is_last_turn(session: Session) -> bool:
    """Whether no sub-agent in the background will begin another turn."""
    return not session.background.has_agents()


def _stop(session: Session, out: PipedText | None) -> None:
    session.conversation.interrupt()
    session.agents.stop_all()
    if out is not None:
        out.hurry()


def printers_for(
    chosen: argparse.Namespace, session: Session, out: PipedText | None, terminal: "live.TerminalRun | None"
) -> list[Printer]:
    """The printers of the events of a run; `out` is what they print to, None = the terminal."""
    display = terminal.display if terminal else NO_DISPLAY
    lines = None if chosen.output_format == "text" else _lines(chosen, session)
    printers: list[Printer] = [terminal.view] if terminal and terminal.view else []
    text, is_kept = None if display.streams else out or sys.stdout, session.transcript is not None
    calls = display.shows_calls
    printers.append(
        printer_for(chosen.output_format, lines, text, sys.stderr, can_continue=is_kept, shows_calls=calls, tell=warn)
    )
    if lines is not None and chosen.output_format == "stream-json":
        session.agents.listeners.append(partial(print_news, lines, text or sys.stdout))
    if chosen.debug_file:
        printers.append(file_printer(chosen.debug_out, session.redactor))
    elif chosen.debug or (chosen.verbose and not display.shows_calls):
        notices = chosen.output_format != "text"  # the text printer shows notices anyway
        printers.append(DebugPrinter(sys.stderr, everything=bool(chosen.debug), notices=notices))
    return printers


def _lines(chosen: argparse.Namespace, session: Session) -> "json_lines.Lines":
    """What makes lines of JSON of events, as the flags ask for them."""
    return json_lines.Lines(
        session.id,
        partial=chosen.include_partial_messages,
        hook_events=chosen.include_hook_events,
        facts=partial(session_facts, session),
        uuid_of=json_lines.transcript_ids(session.transcript.writer if session.transcript else None),
        window=session.model_facts.window,
        mode=lambda: session.mode,
    )


def prompt_of(chosen: argparse.Namespace) -> str:
    """The prompt: the words of the command line, then what is piped in."""
    said = " ".join(part for part in (chosen.prompt or "", *chosen.words) if part)
    if any("\udc80" <= char <= "\udcff" for char in said):  # bytes that are invalid in the encoding of the terminal
        said = os.fsencode(said).decode("utf-8", "replace")
    return "\n\n".join(part for part in (said, read_pipe(patient=not said)) if part)


def read_pipe(*, patient: bool) -> str:
    """Standard input, if it is a pipe or a file; an idle pipe is not waited for forever."""
    try:
        kind = os.fstat(0).st_mode
    except OSError:
        return ""
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""
    if not patient and not stat.S_ISREG(kind) and not select.select([0], [], [], STDIN_PATIENCE)[0]:
        warn("nothing was piped in for 3 seconds, so standard input is left alone. Use < /dev/null to skip the wait.")
        return ""
    with open(0, "rb", closefd=False) as source:
        data = source.read(MAX_STDIN + 1)
    if len(data) > MAX_STDIN:
        raise HandrailError(
            f"more than {MAX_STDIN:,} bytes were piped in. Put them in a file and name it in the prompt."
        )
    return data.decode("utf-8", "replace").strip()
