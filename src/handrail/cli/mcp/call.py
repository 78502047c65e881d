"""`handrail mcp call`: one call of a tool of a server, without a model. Deny rules and pins count."""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from handrail.cli.mcp.targets import Target, find_target, settings_here
from handrail.cli.permission_flags import warn
from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError, InputError, ToolDefinitionError
from handrail.mcp.host import ClientHost, Elicitation, ElicitationAnswer
from handrail.mcp.offers import RemoteTool
from handrail.mcp.server import Server
from handrail.mcp.tools import McpTool, progress_of
from handrail.permissions.decide import case_of
from handrail.permissions.matching import matching_rules
from handrail.permissions.rules import Behaviour
from handrail.session.settings.session_settings import SessionSettings
from handrail.tools.context import RunContext
from handrail.tools.mcp_names import tool_name
from handrail.tools.output import Output
from handrail.tools.request import CallRequest
from handrail.tools.tool import McpInfo
from handrail.tools.wording import did_you_mean

CALL_ID = "handrail-mcp-call"


def run(chosen: argparse.Namespace) -> int:
    """Print what the tool answers; exit code 1 if it answers with an error."""
    output = asyncio.run(call(chosen))
    if chosen.json:
        print(plain_json({**(output.data if isinstance(output.data, dict) else {}), "isError": output.is_error}))
        return int(output.is_error)
    for block in output.blocks:
        print(plain(block.text) if isinstance(block, Text) else f"[{type(block).__name__.lower()}; --json prints it]")
    return int(output.is_error)


async def call(chosen: argparse.Namespace) -> Output:
    """The answer of the tool; HandrailError if it cannot be called."""
    target = find_target(chosen.server, settings_here(), chosen.header, chosen.transport)
    given = read_input(chosen.input)
    async with target.connect(ClientHost(elicit=partial(answer, chosen.elicitation))) as server:
        tool = McpTool(server, usable_tool(chosen.tool, target, server))
        try:
            checked = tool.parse(given)
        except (InputError, ToolDefinitionError) as error:
            raise HandrailError(str(error)) from error
        check_input(tool, given, target.settings)
        return await server.call(tool.remote.name, checked, CALL_ID, show_progress)


def read_input(text: str) -> dict[str, Any]:
    """The input of a call; HandrailError if it is not a JSON object."""
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise HandrailError(f"the input is not JSON: {error}. Give an object, such as '{{}}'.") from error
    if not isinstance(value, dict):
        raise HandrailError(f"the input must be a JSON object, and is {str(value)[:100]!r}.")
    return value


def usable_tool(name: str, target: Target, server: Server) -> RemoteTool:
    """The tool with that name, or that name for models; HandrailError if there is none, or it may not be called."""
    tools, notes = target.usable_tools(server.tools)
    found = next((tool for tool in tools if name in (tool.name, tool_name(target.name, tool.name))), None)
    if found is None:
        if held := next((note for note in notes if repr(name) in note), ""):
            raise HandrailError(f"{name!r} of {target.name!r} may not be used: {held}")
        known = [tool.name for tool in tools]
        hint = did_you_mean(name, known)
        raise HandrailError(f"{target.name!r} has no tool {name!r}.{hint} It has: {', '.join(known) or 'none'}.")
    wire = tool_name(target.name, found.name)
    if target.settings.denies_tool(wire, McpInfo(target.name, found.name)):
        raise HandrailError(f"{wire} is refused by a deny rule. See: handrail permissions explain {wire} '{{}}'")
    return found


def check_input(tool: McpTool, given: Mapping[str, Any], settings: SessionSettings) -> None:
    """Raise HandrailError if a deny rule is about a file or an address that the input names, or about the server's."""
    policy, use = settings.policy(), ToolUse(CALL_ID, tool.name, given)
    case = case_of(CallRequest.hypothetical(use, tool, RunContext(Path(policy.cwd))), policy)
    if found := matching_rules(case, Behaviour.DENY):
        raise HandrailError(f"this call of {tool.remote.name!r} is refused by a deny rule: {found[0].written}.")


async def answer(way: str, question: Elicitation) -> ElicitationAnswer:
    """The answer to a server's question in the chosen way. No address is visited, and only defaults are accepted."""
    message = question.message.partition("\n")[0]
    if way == "accept-defaults" and question.mode == "form":
        warn(f"the server asks: {message} It gets the defaults of its form.")
        return ElicitationAnswer("accept", {})
    warn(f"the server asks: {message} It gets no answer; --elicitation accept-defaults gives the defaults.")
    return ElicitationAnswer("decline" if way == "decline" else "cancel")


def show_progress(notification: Mapping[str, Any]) -> None:
    """Show on a terminal how far a call is."""
    if sys.stderr.isatty():
        progress = progress_of(notification)
        share = f"{progress.fraction:.0%} " if progress.fraction is not None else ""
        sys.stderr.write(f"\r\x1b[K{share}{plain(progress.message)[:100]}")
