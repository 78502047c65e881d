"""`handrail -p`: run an agent without a terminal."""

import argparse
import asyncio
import logging
import os
import select
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from handrail.cli.flags import Flags, read_flags
from handrail.cli.permission_flags import warn
from handrail.cli.session_flags import session_spec
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.plain import plain
from handrail.errors import HandrailError
from handrail.headless.debug import DebugPrinter, open_debug_file
from handrail.headless.lines import Lines, kept_ids
from handrail.headless.printer import Printer, printer_for
from handrail.lazy import lazy
from handrail.loop.events import RunEnded
from handrail.session.build import open_session
from handrail.session.session import Session
from handrail.session.spec import SessionHost
from handrail.session.transcript import mirror_folder

if TYPE_CHECKING:
    from handrail.headless import engine, streams
    from handrail.headless import mirror as mirrors
    from handrail.headless import serve as serving
else:
    engine = lazy("handrail.headless.engine")
    mirrors = lazy("handrail.headless.mirror")
    serving = lazy("handrail.headless.serve")
    streams = lazy("handrail.headless.streams")

NO_PROMPT = 'there is no prompt. Give one: handrail -p "What does this project do?", or pipe it in.'
FAILED, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
MAX_STDIN = 10_000_000
STDIN_PATIENCE = 3.0
"""How long an idle pipe is waited for, in seconds, when there is a prompt already."""
AT_ONCE = 0.5
"""Signals that come so soon, in seconds, after the first mean the same."""
STATES_WANTED = "CLAUDE_CODE_SDK_READS_SESSION_STATE"


def run(arguments: Sequence[str]) -> int:
    """0 = answered, 1 = the run failed or there was no prompt, 2 = bad flags, 130 = interrupted, 143 = terminated."""
    flags = read_flags(arguments)
    if flags.chosen.record and flags.chosen.replay:
        warn("--record and --replay cannot be used together: a replay has nothing new to record.")
        return USAGE
    for warning in flags.warnings:
        warn(warning)
    if flags.chosen.prompt is None and flags.chosen.output_format == flags.chosen.input_format == "text":
        warn("the interactive terminal has not come yet. Use -p with a prompt.")
        return USAGE
    plain_log()
    try:
        with open_debug_file(flags.chosen.debug_file) as flags.chosen.debug_out:
            return dispatch(flags)
    except HandrailError as error:
        warn(str(error))
        return FAILED


def dispatch(flags: Flags) -> int:
    """Let a program drive the agent, or work on the one prompt."""
    if flags.chosen.input_format == "stream-json":
        return asyncio.run(serve(flags))
    prompt = prompt_of(flags.chosen)
    if not prompt and not (flags.chosen.resume or flags.chosen.newest):
        warn(NO_PROMPT)
        return FAILED
    return asyncio.run(answer(flags, prompt))


def plain_log() -> None:
    """Print log records without a handler to standard error, with control characters removed."""

    class Plain(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return f"handrail: {plain(super().format(record))}"

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Plain())


async def answer(flags: Flags, prompt: str) -> int:
    """Let the agent work on the prompt and print what happens."""
    chosen = flags.chosen
    session = open_session(session_spec(chosen), host=SessionHost(on_warning=warn))
    printers = printers_for(chosen, session)
    code = on_signals(session.conversation.interrupt)
    ended: RunEnded | None = None
    try:
        message = UserMessage((Text(prompt),) if prompt else ())  # a deferred call needs no words
        if not prompt and session.conversation.deferred is None:
            raise HandrailError(NO_PROMPT)
        async with aclosing(session.drive(message)) as events:
            async for event in events:
                if code() is not None and not isinstance(event, RunEnded):
                    session.conversation.interrupt()  # the signal may have come before there was a run
                for printer in printers:
                    printer.hear(event)
                if isinstance(event, RunEnded):
                    ended = event
    finally:
        await session.aclose()
    if (stopped := code()) is not None:
        return stopped
    return FAILED if ended is None or ended.is_error else 0


def on_signals(stop: Callable[[], None]) -> Callable[[], int | None]:
    """
    Have `stop` called at the first signal; the exit code that it means, once there was one.

    A second signal ends the process at once. Two within half a second count as one: wrappers pass on what we got.
    """
    loop = asyncio.get_running_loop()
    heard: list[tuple[int, float]] = []

    def hear(number: int) -> None:
        heard.append((TERMINATED if number == signal.SIGTERM else INTERRUPTED, loop.time()))
        code, first = heard[0]
        if len(heard) == 1:
            stop()
        elif loop.time() - first > AT_ONCE:
            os._exit(code)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, hear, number)
    return lambda: heard[0][0] if heard else None


async def serve(flags: Flags) -> int:
    """Let another program drive the agent over standard input and output."""
    chosen = flags.chosen
    spec = session_spec(chosen)
    plain_out = streams.FileOut(sys.stdout.fileno())
    mirror = mirrors.MirroredOut(plain_out, mirror_folder(spec.cwd, os.environ)) if chosen.session_mirror else None
    host = SessionHost(on_warning=warn, mirror=mirror.hear if mirror else None)
    options = engine.EngineOptions(
        ask=chosen.permission_prompt_tool,
        partial=chosen.include_partial_messages,
        hook_events=chosen.include_hook_events,
        listener=lambda session: debug_printer(chosen, session).hear if chosen.debug_file else None,
    )
    service = serving.Service(
        mirror or plain_out,
        lambda client, control: engine.open_engine(spec, os.environ, host, client, control, options=options),
        serving.Serving(replay=chosen.replay_user_messages, states=os.environ.get(STATES_WANTED) == "1"),
    )

    def stop() -> None:
        service.stop()
        plain_out.hurry()

    stopped = on_signals(stop)
    code = await service.serve(streams.FileLines(sys.stdin.fileno()))
    if mirror is not None:
        await mirror.rest()
    by_signal = stopped()
    return code if by_signal is None else by_signal


def printers_for(chosen: argparse.Namespace, session: Session) -> list[Printer]:
    """What prints the events of the run."""
    lines = Lines(
        session.id,
        partial=chosen.include_partial_messages,
        hook_events=chosen.include_hook_events,
        facts=session.facts,
        uuid_of=kept_ids(session.transcript.writer if session.transcript else None),
    )
    printers: list[Printer] = [printer_for(chosen.output_format, lines, sys.stdout, sys.stderr)]
    if chosen.debug_file:
        printers.append(debug_printer(chosen, session))
    elif chosen.debug or chosen.verbose:
        notices = chosen.output_format != "text"  # there they are told in any case
        printers.append(DebugPrinter(sys.stderr, everything=bool(chosen.debug), notices=notices))
    return printers


def debug_printer(chosen: argparse.Namespace, session: Session) -> DebugPrinter:
    """Writes what happens to the file of --debug-file, without the secrets that are known."""
    return DebugPrinter(chosen.debug_out, everything=True, clean=session.redactor.text)


def prompt_of(chosen: argparse.Namespace) -> str:
    """The words of the command line, then what is piped in."""
    said = " ".join(part for part in (chosen.prompt or "", *chosen.words) if part)
    if any("\udc80" <= char <= "\udcff" for char in said):  # bytes that mean nothing in the language of the terminal
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
