"""What a tool returns, and how it is written for a model."""

import json
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.conversation.blocks import Json, ResultBlock
from handrail.conversation.messages import Message
from handrail.conversation.stream import Usage
from handrail.lazy import lazy
from handrail.records import record
from handrail.tools.cards import Card

if TYPE_CHECKING:
    import pydantic_core
else:
    pydantic_core = lazy("pydantic_core")  # 25 ms, and no first request needs it


@record
class ContextChange:
    """
    What a call changes for later calls: the current folder, the mode, working folders, tools.

    `leave_plan` restores the mode before plan mode. `add_tools` are appended to the tools of the next request. What
    widens permission (a wider mode, another working folder) is only done if a person agreed to the call and the tool
    has `requires_user_interaction`, so that no rule could have agreed instead. The rules of the session still apply.
    """

    cwd: Path | None = None
    mode: str = ""
    leave_plan: bool = False
    add_directories: tuple[str, ...] = ()
    add_tools: tuple[Any, ...] = ()
    """Each is a `Tool`; that module knows this one, so the type cannot say it."""


@record
class McpMeta:
    """What an MCP server sent beside the content, handed on untouched."""

    meta: Json = field(default_factory=dict)
    structured_content: Any = None
    """Any JSON value; None if there is none."""


@record
class Output:
    """
    Text or blocks for the model, a card for the person, data for programs.

    `context_change` is honoured only for calls that ran alone; `is_error` marks a failure that has output to show.
    """

    text: str = ""
    blocks: tuple[ResultBlock, ...] = ()
    data: Any = None
    card: Card | None = None
    messages: tuple[Message, ...] = ()
    context_change: ContextChange | None = None
    mcp: McpMeta | None = None
    is_error: bool = False
    used: tuple[tuple[str, Usage], ...] = ()
    """Tokens of models that the call itself used, by answer; they count towards the cost of the run."""


def json_text(data: object) -> str:
    """Data as JSON. What JSON cannot express becomes text: bytes as base64, NaN as a string, objects by `str`."""
    try:
        return pydantic_core.to_json(data, fallback=str, bytes_mode="base64", inf_nan_mode="strings").decode()
    except pydantic_core.PydanticSerializationError:
        return json.dumps(data, default=str)  # lone surrogates, for example of file names, are written out


def sendable(text: str) -> str:
    """The text with lone surrogates written out, because they cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
