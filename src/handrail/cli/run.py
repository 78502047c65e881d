"""`handrail -p`: run an agent without a terminal."""

import argparse
import asyncio
import logging
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.cli.flags import Flags, read_flags
from handrail.cli.permission_flags import settings_flags, warn
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.plain import plain
from handrail.conversation.request import ThinkingMode, ThinkingOptions
from handrail.errors import HandrailError
from handrail.headless.debug import DebugPrinter, open_debug_file
from handrail.headless.lines import Lines, kept_ids
from handrail.headless.printer import Printer, printer_for
from handrail.loop.events import LoopEvent, RequestSent, RunEnded
from handrail.loop.limits import Limits
from handrail.providers.choose import ModelOptions
from handrail.session.tools import builtin_names
from handrail.session.transcript import TranscriptOptions, mirror_folder
from handrail.session.work import Work, Worker
from handrail.tools.pool import NO_DEFERRAL

if TYPE_CHECKING:
    from handrail.headless.mirror import MirroredOut
    from handrail.headless.streams import Out

NO_PROMPT = 'there is no prompt. Give one: handrail -p "What does this project do?", or pipe it in.'
FAILED, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
MAX_STDIN = 10_000_000
STDIN_PATIENCE = 3.0
"""How long a pipe that nobody writes to is waited for when there is a prompt already."""
AT_ONCE = 0.5
"""Signals that come so soon, in seconds, after the first mean the same."""
ON_ITS_WAY = 0.05
"""By then the first request has left, and the model thinks: time to load the tools it may call."""

TASK_BUDGETS = "task-budgets-2026-03-13"
STATES_WANTED = "CLAUDE_CODE_SDK_READS_SESSION_STATE"

THINKING: dict[str | None, ThinkingMode] = {"adaptive": "adaptive", "disabled": "off", None: "default"}


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
            return worked(flags)
    except HandrailError as error:
        warn(str(error))
        return FAILED


def worked(flags: Flags) -> int:
    """Let a program drive the agent, or work on the one prompt."""
    if flags.chosen.input_format == "stream-json":
        return asyncio.run(serve(flags))
    prompt = prompt_of(flags.chosen)
    if not prompt and not (flags.chosen.resume or flags.chosen.newest):
        warn(NO_PROMPT)
        return FAILED
    return asyncio.run(work(flags, prompt))


def plain_log() -> None:
    """What is logged, and nobody takes, goes to standard error; what others said in it must not steer a terminal."""

    class Plain(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return f"handrail: {plain(super().format(record))}"

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Plain())


async def work(flags: Flags, prompt: str) -> int:
    """Let the agent work on the prompt and print what happens."""
    chosen = flags.chosen
    worker = worker_for(chosen)
    printers = printers_for(chosen, worker)
    loop = asyncio.get_running_loop()
    connecting = asyncio.ensure_future(worker.connect())

    def stop() -> None:
        connecting.cancel()
        worker.agent.interrupt()

    code = on_signals(stop)
    ended: RunEnded | None = None
    try:
        await asyncio.wait((connecting,))
        if not connecting.cancelled():
            connecting.result()
        async for event in events(prompt, chosen, worker):
            if code() is not None and not isinstance(event, RunEnded):
                worker.agent.interrupt()  # the signal may have come before there was a run
            for printer in printers:
                printer.hear(event)
            match event:
                case RequestSent(turn=1, attempt=1):
                    loop.call_later(ON_ITS_WAY, threading.Thread(target=worker.get_ready, daemon=True).start)
                case RunEnded():
                    ended = event
                case _:
                    pass
    finally:
        await worker.aclose()
    if (stopped := code()) is not None:
        return stopped
    return FAILED if ended is None or ended.is_error else 0


def worker_for(chosen: argparse.Namespace) -> Worker:
    """Who works."""
    wanted, given = led_by(chosen, work_for(chosen), options(chosen))
    return Worker(wanted, os.environ, **given)


def led_by(chosen: argparse.Namespace, work: Work, options: Mapping[str, Any]) -> tuple[Work, Mapping[str, Any]]:
    """Work and options as the agent of --agent changes them, if there is one."""
    if not chosen.agent:
        return work, options
    from handrail.session.with_agent import with_agent  # noqa: PLC0415  # only those who name one pay for it

    return with_agent(work, options, chosen.agent, os.environ)


def on_signals(stop: Callable[[], None]) -> Callable[[], int | None]:
    """
    Have `stop` called at the first signal; the exit code that it means, once there was one.

    Whoever insists does not want to wait for anything. Two at once are one: wrappers pass on what we got already.
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
    from handrail.headless.engine import Spec, open_conversation  # noqa: PLC0415  # only programs pay for it
    from handrail.headless.serve import Service, Serving  # noqa: PLC0415
    from handrail.headless.streams import FileLines, FileOut  # noqa: PLC0415

    chosen = flags.chosen
    spec = Spec(
        work_for(chosen),
        options(chosen),
        ask=chosen.permission_prompt_tool,
        partial=chosen.include_partial_messages,
        hook_events=chosen.include_hook_events,
        slash=not chosen.disable_slash_commands,
        lead=partial(led_by, chosen),
        listener=lambda worker: debugging(chosen, worker).hear if chosen.debug_file else None,
    )
    plain = FileOut(sys.stdout.fileno())
    mirror = mirror_of(plain, spec.work) if chosen.session_mirror else None
    if mirror is not None:
        spec = replace(spec, work=replace(spec.work, mirror=mirror.hear))
    service = Service(
        mirror or plain,
        lambda wishes, control: open_conversation(spec, os.environ, wishes, control),
        Serving(replay=chosen.replay_user_messages, states=os.environ.get(STATES_WANTED) == "1"),
    )

    def stop() -> None:
        service.stop()
        plain.hurry()

    stopped = on_signals(stop)
    code = await service.serve(FileLines(sys.stdin.fileno()))
    if mirror is not None:
        await mirror.rest()
    by_signal = stopped()
    return code if by_signal is None else by_signal


def mirror_of(out: "Out", work: Work) -> "MirroredOut":
    """Lines for a program that keeps sessions itself."""
    from handrail.headless.mirror import MirroredOut  # noqa: PLC0415

    return MirroredOut(out, mirror_folder(work.cwd, os.environ))


def events(prompt: str, chosen: argparse.Namespace, worker: Worker) -> AsyncIterator[LoopEvent]:
    """What comes of the prompt, or of a command at its beginning."""
    if not prompt and worker.agent.deferred is None:
        raise HandrailError(NO_PROMPT)
    message = UserMessage((Text(prompt),) if prompt else ())  # a call that was put off needs no words
    if chosen.disable_slash_commands or not prompt.startswith("/"):
        return worker.agent.run(message)
    from handrail.session.prompts import Prompts  # noqa: PLC0415  # few prompts are commands

    return Prompts(worker).run(message)


def work_for(chosen: argparse.Namespace) -> Work:
    """Where to work, with which model, and what to tell it."""
    return Work(
        cwd=Path.cwd(),
        wishes=ModelOptions(chosen.provider, chosen.model, chosen.base_url, "", chosen.fallback_model),
        system=chosen.system_prompt if chosen.system_prompt_file is None else text_of(chosen.system_prompt_file),
        addition="\n\n".join(
            part
            for part in (
                chosen.append_system_prompt,
                text_of(chosen.append_system_prompt_file) if chosen.append_system_prompt_file else "",
            )
            if part
        ),
        session=TranscriptOptions(
            keep=not chosen.no_session_persistence and not chosen.replay,
            session_id=chosen.session_id,
            resume=chosen.resume or "",
            newest=chosen.newest,
            fork=chosen.fork_session,
            upto=chosen.resume_session_at,
            dropped=chosen.resume_drops_turn,
            name=chosen.name,
            mirror_folder=chosen.session_mirror,
        ),
        agents=chosen.agents,
        servers=servers_for(chosen),
        strict_servers=chosen.strict_mcp_config,
        record=chosen.record and Path(chosen.record),
        replay=chosen.replay and Path(chosen.replay),
        asked=settings_flags(chosen),
        told=warn,
        debug=bool(chosen.debug or chosen.debug_file),
        verbose=chosen.verbose,
    )


def servers_for(chosen: argparse.Namespace) -> dict[str, Any]:
    """The MCP servers of the command line."""
    servers: dict[str, Any] = {}
    for config in chosen.mcp_config:
        from handrail.session.mcp_servers import read_servers  # noqa: PLC0415  # only those who have some pay for it

        servers |= read_servers(config, Path.cwd())
    return servers


def options(chosen: argparse.Namespace) -> dict[str, Any]:
    """What the agent is given beside that."""
    mode = THINKING[chosen.thinking]
    every = builtin_names()
    wanted = every if chosen.tools is None or chosen.tools == ("default",) else chosen.tools
    for name in sorted({*wanted} - every):
        warn(f"--tools: there is no built-in tool {name!r} here; the others are used")
    # whoever names the tools wants them in full, and no search for others; those of servers may still be many
    deferral = {} if wanted is every or chosen.mcp_config else {"deferral": NO_DEFERRAL}
    return {
        **deferral,
        "limits": Limits(turns=chosen.max_turns, dollars=chosen.max_budget_usd),
        "output": chosen.json_schema,
        "builtin_tools": [name for name in wanted if name in every],
        "effort": chosen.effort,
        "thinking": ThinkingOptions("off")
        if chosen.max_thinking_tokens == 0
        else ThinkingOptions(mode, chosen.max_thinking_tokens, chosen.thinking_display),
        "betas": (*chosen.betas, *((TASK_BUDGETS,) if chosen.task_budget else ())),
        "task_budget": chosen.task_budget,
    }


def text_of(file: str) -> str:
    """
    What a file says.

    Raises:
        HandrailError: it cannot be read.
    """
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HandrailError(f"{file!r} cannot be read: {error}. Give a text file in UTF-8.") from error


def printers_for(chosen: argparse.Namespace, worker: Worker) -> list[Printer]:
    """Who hears the events of the run."""
    lines = Lines(
        worker.id,
        partial=chosen.include_partial_messages,
        hook_events=chosen.include_hook_events,
        facts=lambda: facts(worker, chosen),
        uuid_of=kept_ids(worker.session.writer if worker.session else None),
    )
    printers: list[Printer] = [printer_for(chosen.output_format, lines, sys.stdout, sys.stderr)]
    if chosen.debug_file:
        printers.append(debugging(chosen, worker))
    elif chosen.debug or chosen.verbose:
        notices = chosen.output_format != "text"  # there they are told in any case
        printers.append(DebugPrinter(sys.stderr, everything=bool(chosen.debug), notices=notices))
    return printers


def debugging(chosen: argparse.Namespace, worker: Worker) -> DebugPrinter:
    """Writes what happens to the file of --debug-file, without the secrets that are known."""
    return DebugPrinter(chosen.debug_out, everything=True, clean=worker.redactor.text)


def facts(worker: Worker, chosen: argparse.Namespace) -> dict[str, Any]:
    """What the first line of a stream tells."""
    from handrail.session.prompts import Prompts  # noqa: PLC0415  # other forms do not tell it

    return Prompts(worker, slash=not chosen.disable_slash_commands).facts()


def prompt_of(chosen: argparse.Namespace) -> str:
    """The words of the command line, then what is piped in."""
    said = " ".join(part for part in (chosen.prompt or "", *chosen.words) if part)
    if any("\udc80" <= char <= "\udcff" for char in said):  # bytes that mean nothing in the language of the terminal
        said = os.fsencode(said).decode("utf-8", "replace")
    return "\n\n".join(part for part in (said, piped(patient=not said)) if part)


def piped(*, patient: bool) -> str:
    """What stands in standard input if it is a pipe or a file; a pipe nobody writes to is not waited for forever."""
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
