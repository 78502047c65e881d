"""What a server lists: tools, prompts, resources. Everything in it is untrusted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from handrail.mcp.messages import shown_text
from handrail.records import record
from handrail.tools.context import McpResource

MAX_WORDS = 2_000
"""The most characters of each text about a prompt or a resource."""
MAX_ARGUMENTS = 50
INSTRUCTIONS, MAX_INSTRUCTIONS = "(instructions)", 2_048
"""The name under which what a server says about all its tools is approved and pinned, as if it were one of them."""


@record
class RemoteTool:
    """A tool as its server describes it."""

    name: str
    description: str
    schema: Any
    annotations: Mapping[str, Any]
    meta: Mapping[str, Any]
    title: str = ""
    output_schema: Any = None


def instructions_of(text: str) -> RemoteTool:
    """What a server says about the use of its tools, in the form in which it is pinned."""
    return RemoteTool(INSTRUCTIONS, shown_text(text).strip()[:MAX_INSTRUCTIONS], {}, {}, {})


@record
class PromptArgument:
    """An argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


@record
class RemotePrompt:
    """A prompt as its server describes it."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


def parse_tool(value: object) -> RemoteTool | None:
    """A tool of a server's list; None if it has no name or no schema."""
    match value:
        case {"name": str(name), "inputSchema": Mapping() as schema, **rest} if name:
            annotations, meta = rest.get("annotations"), rest.get("_meta")
            return RemoteTool(
                name,
                _text(rest, "description"),
                schema,
                annotations if isinstance(annotations, Mapping) else {},
                meta if isinstance(meta, Mapping) else {},
                _text(rest, "title"),
                rest.get("outputSchema"),
            )
        case _:
            return None


def parse_prompt(value: object) -> RemotePrompt | None:
    """A prompt of a server's list; None if it has no name."""
    match value:
        case {"name": str(name), **rest} if name:
            listed = rest.get("arguments")
            found = [_argument(each) for each in (listed if isinstance(listed, list) else ())[:MAX_ARGUMENTS]]
            return RemotePrompt(name, _text(rest, "description"), tuple(each for each in found if each))
        case _:
            return None


def _argument(value: object) -> PromptArgument | None:
    match value:
        case {"name": str(name), **rest}:
            return PromptArgument(name[:MAX_WORDS], _text(rest, "description"), rest.get("required") is True)
        case _:
            return None


def parse_resource(value: object) -> McpResource | None:
    """A resource of a server's list; None if it has no address."""
    match value:
        case {"uri": str(uri), **rest}:
            return _resource(uri, rest)
        case {"uriTemplate": str(uri), **rest}:
            return replace(_resource(uri, rest), is_template=True)
        case _:
            return None


def _resource(uri: str, values: Mapping[Any, Any]) -> McpResource:
    return McpResource(uri, _text(values, "name"), _text(values, "description"), _text(values, "mimeType"))


def _text(values: Mapping[Any, Any], key: str) -> str:
    value = values.get(key)
    return shown_text(value)[:MAX_WORDS] if isinstance(value, str) else ""
