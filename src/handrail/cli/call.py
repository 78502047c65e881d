"""`handrail call`: one governed tool call."""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from handrail.cli.permission_flags import rule_problems, settings_flags, warn, without_effect
from handrail.conversation.blocks import Json, Text
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError
from handrail.headless.ways_out import allowing_flags
from handrail.lazy import lazy
from handrail.session.settings.session_settings import open_settings
from handrail.session.single_call import call_tool
from handrail.session.state_folder import state_folder
from handrail.tools.outcome import Cause, Outcome, Status

if TYPE_CHECKING:
    from handrail.cli import tools
else:
    tools = lazy("handrail.cli.tools")

EXIT_BY_CAUSE = {Cause.TIMED_OUT: 4, Cause.UNKNOWN_TOOL: 2, Cause.INVALID_INPUT: 2, Cause.REFUSED_INPUT: 2}
EXIT_BY_STATUS = {Status.OK: 0, Status.ERROR: 1, Status.DENIED: 3, Status.CANCELLED: 130, Status.DISCARDED: 1}


def run(chosen: argparse.Namespace) -> int:
    """The exit code says how the call ended: 0 ok, 1 error, 2 bad input, 3 denied, 4 timed out, 130 interrupted."""
    if forbidding := rule_problems(chosen)[0]:
        raise HandrailError(f"--disallowedTools: {forbidding[0]}")  # a limit would be lost
    raw = parse_input(sys.stdin.read() if chosen.input == "-" else chosen.input)
    for warning in without_effect(chosen):
        warn(warning)
    call = asyncio.run(call_tool(chosen.tool, raw, Path.cwd(), flags=settings_flags(chosen), on_warning=warn))
    outcome = call.outcome
    if chosen.json:
        read = {"read": as_json(call.read, content=False)} if call.read else {}
        print(plain_json(as_json(outcome) | read, exact=True))
    else:
        if call.read:
            warn(read_note(chosen.tool, call.read))
        stream = sys.stderr if outcome.result.is_error else sys.stdout
        parts = [b.text if isinstance(b, Text) else f"[{type(b).__name__}]" for b in outcome.result.content]
        text = "\n".join(parts).replace("<tool_use_error>", "").replace("</tool_use_error>", "")
        print(plain(text) if stream.isatty() or outcome.result.is_error else text, file=stream)
        if outcome.cause is Cause.UNKNOWN_TOOL:
            why = asyncio.run(why_held_back(chosen))
            warn(f"{chosen.tool} is held back here: {why}" if why else "`handrail tools` lists the tools")
        if outcome.decision is not None and (flags := allowing_flags(outcome.decision.remedy)):
            print(f"handrail: To allow it: add {plain(flags)}.", file=sys.stderr)  # not wrapped: it is copied
    return EXIT_BY_CAUSE.get(outcome.cause, EXIT_BY_STATUS[outcome.status])


async def why_held_back(chosen: argparse.Namespace) -> str:
    """Why a run here does not offer a built-in tool; empty if there is no such tool, or only a call does not."""
    settings = open_settings(Path.cwd(), os.environ, state_folder(os.environ), settings_flags(chosen), _say_nothing)
    rows, _ = await tools.look(argparse.Namespace(tools=None, connect=False), settings)
    return next((row["why"] for row in rows if row["name"] == chosen.tool and "why" in row), "")


def _say_nothing(warning: str) -> None:
    """What is wrong with the settings was said before the call."""


def read_note(tool: str, read: Outcome) -> str:
    """What is said about the call of Read that came first."""
    path = read.use.input["file_path"]
    if read.result.is_error:
        return f"{tool} changes only what was read, and {path} could not be read:"
    return f"read {path} first: {tool} changes only what was read"


def parse_input(text: str) -> Json:
    """Parse the input as a JSON object; the error says where it stops being one."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise HandrailError(
            f"the input is not JSON: {error.msg} (line {error.lineno}, column {error.colno}, near "
            f"{text[max(error.pos - 10, 0) : error.pos + 10]!r}). Give an object, for example '{{}}'."
        ) from error
    except RecursionError as error:
        raise HandrailError("the input is nested too deeply. Give a flatter object.") from error
    if not isinstance(value, dict):
        raise HandrailError(f"the input is a JSON {type(value).__name__}, and an object is needed, for example '{{}}'.")
    return value


def as_json(outcome: Outcome, *, content: bool = True) -> dict[str, Any]:
    """The whole outcome as JSON, for programs; without `content` what it says about the call, not what it returned."""
    decision = outcome.decision
    returned = {
        "content": [
            {"type": type(block).__name__.lower()} | to_jsonable_python(block) for block in outcome.result.content
        ],
        "data": to_jsonable_python(outcome.output.data, fallback=str) if outcome.output else None,
    }
    return {
        "tool": outcome.use.name,
        "status": outcome.status.value,
        "cause": outcome.cause.value,
        "is_error": outcome.result.is_error,
        **(returned if content else {}),
        "decision": decision
        and {
            "verdict": decision.verdict.value,
            "reason": decision.reason,
            "opinions": [
                {"layer": o.layer, "verdict": o.verdict.value, "reason": o.reason, "source": o.source}
                for o in decision.opinions
            ],
        },
        "seconds": to_jsonable_python(outcome.timings),
    }
