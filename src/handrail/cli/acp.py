"""`handrail acp`: an editor runs handrail as its agent, over standard input and output."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from handrail.acp.service import AcpService
from handrail.cli.flags import PROVIDERS
from handrail.cli.permission_flags import rule_problems, settings_flags, warn, without_effect
from handrail.cli.run import plain_log
from handrail.cli.signals import on_signals
from handrail.errors import HandrailError
from handrail.providers.choose import ModelOptions
from handrail.session.spec import SessionSpec
from handrail.stdio.own_output import own_output
from handrail.stdio.pipe import watch_reader
from handrail.stdio.streams import FileLines, FileOut


def run(chosen: argparse.Namespace) -> int:
    """0 when the editor has closed its side; after a signal 128 and its number."""
    if forbidding := rule_problems(chosen)[0]:
        raise HandrailError(f"--disallowedTools: {forbidding[0]}")  # a limit would be lost
    if chosen.provider and chosen.provider not in PROVIDERS:
        raise HandrailError(f"--provider: {chosen.provider!r} is not one of {', '.join(PROVIDERS)}.")
    for warning in without_effect(chosen):
        warn(warning)
    if os.isatty(0):
        warn("this is for editors, which speak the Agent Client Protocol; see docs/acp.md. Ctrl+D leaves.")
    plain_log()
    spec = SessionSpec(
        cwd=Path.cwd(),
        model=ModelOptions(chosen.provider, chosen.model, chosen.base_url),
        flags=settings_flags(chosen),
        interactive=True,
    )
    with own_output() as descriptor:
        return asyncio.run(_serve(spec, descriptor))


async def _serve(spec: SessionSpec, descriptor: int) -> int:
    out = FileOut(descriptor)
    service = AcpService(out, spec, os.environ)

    def stop() -> None:
        service.stop()
        out.hurry()

    def leave() -> None:
        service.stop()
        out.close()

    stopped = on_signals(stop)
    watch_reader(descriptor, leave)
    await service.serve(FileLines(sys.stdin.fileno()))
    return stopped() or 0
