"""Prompts of MCP servers as slash commands: `/mcp__server__prompt first "second argument"`."""

import shlex
from functools import partial

from handrail.conversation.blocks import Image, Text
from handrail.conversation.messages import UserMessage
from handrail.errors import McpError
from handrail.loop.run import Run
from handrail.mcp.connection import ServerConnection
from handrail.mcp.offers import RemotePrompt
from handrail.mcp.server import PartialArgument
from handrail.session.servers.servers import Servers
from handrail.session.slash_commands import BuiltIn, CommandSession, Listed
from handrail.tools.mcp_names import tool_name


def prompt_commands(servers: Servers) -> dict[str, BuiltIn]:
    """The prompts of the connected servers by the names of their commands; of two of one name the first counts."""
    found: dict[str, BuiltIn] = {}
    for link, prompt in servers.offers.prompts():
        hint = " ".join(f"<{each.name}>" if each.required else f"[{each.name}]" for each in prompt.arguments)
        act = partial(_use, link, prompt)
        about = prompt.description or f"A prompt of the MCP server {link.name}."
        found.setdefault(tool_name(link.name, prompt.name), BuiltIn(about, act, hint))
    return found


async def argument_values(servers: Servers, text: str) -> tuple[str, tuple[str, ...]]:
    """What was begun of an argument at the end of `/mcp__server__prompt ...`, and the values its server proposes."""
    name, space, words = text.removeprefix("/").partition(" ")
    before, _, begun = words.rpartition(" ")
    if not space or '"' in words or "'" in words:  # inside of quotes it is not clear what was begun
        return begun, ()
    given = before.split()
    for link, prompt in servers.offers.prompts():
        if tool_name(link.name, prompt.name) == name and len(given) < len(prompt.arguments):
            names = [each.name for each in prompt.arguments]
            argument = PartialArgument(names[len(given)], begun, dict(zip(names, given, strict=False)))
            found = await link.complete({"type": "ref/prompt", "name": prompt.name}, argument)
            return begun, tuple(shlex.quote(each) for each in found)
    return begun, ()


async def _use(
    link: ServerConnection, prompt: RemotePrompt, session: CommandSession, words: str, _known: Listed
) -> str | Run:
    name = tool_name(link.name, prompt.name)
    try:
        given = shlex.split(words)
    except ValueError as error:
        return f"/{name} was not started: its arguments are not understood: {error}."
    if len(given) > len(prompt.arguments) and prompt.arguments:
        last = len(prompt.arguments) - 1
        given = [*given[:last], " ".join(given[last:])]
    values = dict(zip((each.name for each in prompt.arguments), given, strict=False))
    if missing := [each.name for each in prompt.arguments if each.required and each.name not in values]:
        return f"/{name} was not started: it needs {', '.join(missing)}."
    try:
        messages = await link.prompt(prompt.name, values)
    except McpError as error:
        return f"/{name} was not started: {error}"
    blocks = [
        Text(f"[as the assistant:] {block.text}") if role == "assistant" and isinstance(block, Text) else block
        for role, block in messages
        if isinstance(block, Text | Image)
    ]
    if not blocks:
        return f"/{name} was not started: the MCP server {link.name!r} gave an empty prompt."
    return session.conversation.run(UserMessage(tuple(blocks)))
