"""What is asked of a session before it is opened: a frozen specification, and what the program around it brings."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from handrail.config.flags import NO_FLAGS_GIVEN, SettingsFlags
from handrail.conversation.blocks import Json
from handrail.conversation.messages import Message
from handrail.conversation.plain import plain
from handrail.loop.limits import NO_LIMITS, Limits
from handrail.loop.run_config import ChooseAnswer, RequestOptions
from handrail.providers.choose import ModelOptions
from handrail.records import record
from handrail.session.models.choose import Streaming
from handrail.session.transcript import TranscriptOptions
from handrail.tools.context import AgentIdentity
from handrail.tools.pool import AnyTool, Deferral
from handrail.transcripts.log import Mirror

if TYPE_CHECKING:
    from pydantic import BaseModel

    from handrail.agents.definitions import AgentDefinition
    from handrail.dispatch.approval.question import Handler
    from handrail.dispatch.approval.sdk import CanUseTool
    from handrail.dispatch.gate import Gate
    from handrail.dispatch.held_places import HeldPlaces
    from handrail.dispatch.schedule import Scheduling
    from handrail.hooks.runner import Hooks
    from handrail.hooks.specs import HookCallback
    from handrail.mcp.open_peer import Carry

NOT_KEPT = TranscriptOptions(keep=False)


@record
class ToolOptions:
    """
    Which tools the model gets: `custom` ones, and the built-in ones of these names (None = all).

    `mcp_servers` are configurations by name; with `strict_mcp` those of settings files do not count. `agents` are
    sub-agents as programs describe them, `lsp_servers` language servers as settings describe them. `deferral` None = as
    environment and settings say, and where these are silent, as `defer` says ("" = those of servers always, own ones
    when they are many). With `wait_for_servers` the first request waits for the servers as long as a search for tools
    does.
    """

    custom: tuple[AnyTool, ...] = ()
    builtin: tuple[str, ...] | None = None
    deferral: Deferral | None = None
    mcp_servers: Mapping[str, Any] = field(default_factory=dict)
    strict_mcp: bool = False
    agents: Mapping[str, Any] = field(default_factory=dict)
    lsp_servers: Mapping[str, Any] = field(default_factory=dict)
    defer: Literal["", "auto", "on", "off"] = ""
    plugins: tuple[Path, ...] = ()
    """Folders of plugins that count for this session; naming one trusts it."""
    wait_for_servers: bool = False


@record
class PromptOptions:
    """
    What the model is told before the first prompt.

    `system` takes the place of our system prompt ("" = there is none), `append` is added to it. With `context` come
    facts about the folder and the memory files.
    """

    system: str | None = None
    append: str = ""
    context: bool = True
    first: str = ""
    """What stands before the first prompt of a new conversation, as if the user had said it."""


@record
class SessionSpec:
    """Everything that is asked of a session. Nothing of it has been looked up yet."""

    cwd: Path
    model: ModelOptions = ModelOptions()
    request: RequestOptions = RequestOptions()
    limits: Limits = NO_LIMITS
    prompt: PromptOptions = PromptOptions()
    tools: ToolOptions = ToolOptions()
    flags: SettingsFlags = NO_FLAGS_GIVEN
    transcript: TranscriptOptions = NOT_KEPT
    output: "Json | type[BaseModel] | None" = None
    """A JSON Schema or Pydantic model that the last answer must fit."""
    agent: str = ""
    """The agent definition that leads the conversation; empty = none."""
    lead: "AgentDefinition | None" = None
    """That definition, once it is found."""
    identity: AgentIdentity = AgentIdentity()
    origin: Mapping[str, str] = field(default_factory=dict)
    """Who started it from another place, and how; it stands with each decision in the audit log."""
    worktree: str | None = None
    """The name of the git worktree to work in; empty = one is made up, None = it works in its folder."""
    slash_commands: bool = True
    auto_compact: bool | None = None
    """None = as the settings say."""
    keep_files: bool = True
    """Whether the audit log, big results and output are kept in the state folder. False: what a run needs lies in a
    temporary folder that goes with the session, and there is no audit log. File changes can be undone in any case."""
    early_start: str = ""
    """Which calls start while an answer arrives: permitted, safe or off; empty = as the settings say."""
    interactive: bool = False
    live: bool = False
    """Whether its questions can also be answered on the page of `handrail view --live`."""
    debug: bool = False
    verbose: bool = False
    record: Path | None = None
    replay: Path | None = None
    replay_match: str = "conversation"
    """How much of a request must be as it was recorded: exact, conversation or loose."""


def print_warning(text: str) -> None:
    """Write a warning to standard error."""
    sys.stderr.write(f"handrail: {plain(text)}\n")


@record
class SessionHost:
    """
    The living things that the program around a session brings.

    `can_use_tool`, or the `handler` of a front end, is asked about what the rules leave open. `hooks` are functions by
    event, or hooks that were made already. `mcp_transport` reaches MCP servers that live in the program. `mirror` gets
    every record of the transcript. `model` is asked in the place of the one that the specification names. `gate` and
    `scheduling` take the place of those that the settings make. `places` are shared by sessions whose calls wait for
    each other where they name the same files.
    """

    on_warning: Callable[[str], None] = print_warning
    can_use_tool: "CanUseTool | None" = None
    handler: "Handler | None" = None
    hooks: "Mapping[str, Sequence[HookCallback]] | Hooks" = field(default_factory=dict)
    mcp_transport: "Carry | None" = None
    mirror: Mirror | None = None
    model: Streaming | None = None
    gate: "Gate | None" = None
    scheduling: "Scheduling | None" = None
    places: "HeldPlaces | None" = None
    choose_answer: ChooseAnswer | None = None
    history: Sequence[Message] = ()
    stays: bool = False
    """It stays open when a prompt is done and asks what wakes it, so that schedules start and ends are told."""


NO_HOST = SessionHost()
