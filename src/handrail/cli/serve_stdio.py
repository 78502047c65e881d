"""`handrail --input-format stream-json`: another program drives the agent over standard input and output."""

import os
import sys

from handrail.cli.flags import Flags
from handrail.cli.permission_flags import warn
from handrail.cli.session_flags import session_spec
from handrail.cli.signals import on_signals
from handrail.headless.debug import file_printer
from handrail.headless.engine import EngineOptions, open_engine
from handrail.headless.mirror import MirroredOut
from handrail.headless.serve import Service, Serving
from handrail.session.spec import SessionHost
from handrail.session.transcript import mirror_folder
from handrail.stdio.pipe import watch_reader
from handrail.stdio.streams import FileLines, FileOut

STATES_WANTED = "CLAUDE_CODE_SDK_READS_SESSION_STATE"


async def serve(flags: Flags) -> int:
    """Serve a client over standard input and output; returns the exit code."""
    chosen = flags.chosen
    spec = session_spec(chosen)
    plain_out = FileOut(sys.stdout.fileno())
    mirror = MirroredOut(plain_out, mirror_folder(spec.cwd, os.environ)) if chosen.session_mirror else None
    host = SessionHost(on_warning=warn, mirror=mirror.hear if mirror else None)
    options = EngineOptions(
        ask=chosen.permission_prompt_tool,
        partial=chosen.include_partial_messages,
        hook_events=chosen.include_hook_events,
        listener=lambda session: (
            file_printer(chosen.debug_out, session.redactor).on_event if chosen.debug_file else None
        ),
    )
    service = Service(
        mirror or plain_out,
        lambda client, control: open_engine(spec, os.environ, host, client, control, options=options),
        Serving(replay=chosen.replay_user_messages, states=os.environ.get(STATES_WANTED) == "1"),
    )

    def stop() -> None:
        service.stop()
        plain_out.hurry()

    def leave() -> None:
        service.stop()
        plain_out.close()

    stopped = on_signals(stop)
    watch_reader(sys.stdout.fileno(), leave)
    code = await service.serve(FileLines(sys.stdin.fileno()))
    if mirror is not None:
        await mirror.rest()
    by_signal = stopped()
    return code if by_signal is None else by_signal
