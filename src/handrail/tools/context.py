"""What a call is given: the context of its run, and its own."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.conversation.blocks import ToolUse
from handrail.conversation.messages import AssistantMessage, Message
from handrail.files.memory import FileMemory
from handrail.records import record
from handrail.tools.abort import AbortSignal
from handrail.tools.permission import NO_RULES, Decision, PermissionSnapshot

if TYPE_CHECKING:
    from handrail.files.journal import UndoJournal
    from handrail.files.paths import Place


@record
class Progress:
    """Progress of a running call. Tools may subclass it to carry more than a message."""

    message: str = ""
    fraction: float | None = None


ProgressCallback: TypeAlias = Callable[[Progress], None]


@record
class AgentIdentity:
    """
    Which agent is calling: the main one, or a sub-agent of some type.

    `mode` is the widest permission mode it may use; `transcript` is the file of its conversation, if there is one.
    `path` names the agents from the first sub-agent down to this one; `background`: no one waits for its answer.
    `name` and `team` are what other agents call it, if it has a name.
    `tools` are the lists of tools of its definition and of those it works for, where they give a tool only in part;
    `notes` is the real path of the folder of its own notes.
    """

    id: str = "main"
    type: str = "main"
    mode: str = ""
    transcript: str = ""
    path: tuple[str, ...] = ()
    background: bool = False
    name: str = ""
    team: str = ""
    tools: tuple[tuple[str, ...], ...] = ()
    notes: str = ""

    @property
    def is_main(self) -> bool:
        """Whether it is the main agent."""
        return self.id == "main"


@record
class AgentType:
    """A type of sub-agents, and what it is for."""

    name: str
    description: str = ""


@record
class McpResource:
    """
    A resource that an MCP server offers, as the server describes it.

    The `uri` of a template has parts in braces, which the reader fills in (RFC 6570).
    """

    uri: str
    name: str = ""
    description: str = ""
    mime_type: str = ""
    is_template: bool = False


@record
class RunOptions:
    """
    What was chosen for the run, and what its session offers. Whatever can change during the run is a function.

    `tools` gives names, `commands` and `agents` give descriptions too; `mcp_servers` gives the status of each server by
    its name (`connected`, `pending`, `failed`, `disabled`), `mcp_resources` what each connected server offers to read.
    """

    model: str = ""
    thinking: str = ""
    interactive: bool = False
    debug: bool = False
    verbose: bool = False
    tools: Callable[[], tuple[str, ...]] = tuple
    commands: Callable[[], Mapping[str, str]] = dict
    agents: Callable[[], tuple[AgentType, ...]] = tuple
    mcp_servers: Callable[[], Mapping[str, str]] = dict
    mcp_resources: Callable[[], Mapping[str, tuple[McpResource, ...]]] = dict
    mcp_instructions: Callable[[], Mapping[str, str]] = dict
    """What each connected server says about the use of its tools."""


@record
class Budget:
    """What was left of the limits of the run when the model was asked. None = no such limit."""

    turns: int | None = None
    dollars: float | None = None
    tokens: int | None = None
    seconds: float | None = None


NO_BUDGET = Budget()


class StateStore:
    """State that the tools of a run share. It is replaced, never changed in place."""

    def __init__(self, initial: Mapping[str, Any] | None = None) -> None:
        self._state: Mapping[str, Any] = initial or {}
        self._lock = Lock()

    def get(self) -> Mapping[str, Any]:
        """The present state."""
        return self._state

    def update(self, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Replace the state by one made from it. Blocking tools may call this from their threads."""
        with self._lock:
            self._state = change(self._state)


def no_undo() -> None:
    """For a run whose file changes are not kept for undo."""


def message_of_one_call(use: ToolUse) -> AssistantMessage:
    """The message of a call that did not come from a model."""
    return AssistantMessage((use,))


@record
class RunContext:
    """What all calls of a run share. An exclusive call may change some of it for the calls after it."""

    cwd: Path
    files: FileMemory = field(default_factory=FileMemory)
    undo: "Callable[[], UndoJournal | None]" = no_undo
    """Returns the undo journal of file changes; None = there is none."""
    state: StateStore = field(default_factory=StateStore)
    """State of this agent's tools; a sub-agent has its own."""
    session_state: StateStore = field(default_factory=StateStore)
    """State of the whole session, which every agent of it may update; that of the main agent's tools is the same."""
    policy: "Callable[[RunContext], PermissionSnapshot]" = lambda _run: NO_RULES
    """Returns the policy in force for this run."""
    agent: AgentIdentity = field(default_factory=AgentIdentity)
    options: RunOptions = field(default_factory=RunOptions)
    history: Sequence[Message] = ()
    abort: AbortSignal = field(default_factory=AbortSignal)
    budget: Budget = NO_BUDGET
    message: Callable[[ToolUse], AssistantMessage] = message_of_one_call
    """Returns the model's message that holds a call, as far as it has arrived."""
    refresh_tools: Callable[[], tuple[str, ...]] = tuple
    """Asks every tool again whether it is enabled; returns the names of the tools of the next request."""

    @property
    def permissions(self) -> PermissionSnapshot:
        """The policy in force now."""
        return self.policy(self)


MayUse: TypeAlias = Callable[[ToolUse, RunContext], Awaitable[Decision]]


def _forget(_text: str) -> None:
    """For a context whose call no one stops."""


class ToolContext:
    """What one call gets besides its input."""

    __slots__ = ("_may_use", "_permissions", "abort", "decision", "leave", "progress", "run", "use")

    def __init__(
        self,
        run: RunContext,
        use: ToolUse,
        abort: AbortSignal,
        progress: ProgressCallback,
        may_use: MayUse,
        *,
        leave: Callable[[str], None] = _forget,
        decision: Decision | None = None,
        permissions: PermissionSnapshot | None = None,
    ) -> None:
        self.run = run
        self.use = use
        self.abort = abort
        self.progress = progress
        self.leave = leave
        """Leaves a text of a call that is about to be stopped, such as its output so far; the result then holds it."""
        self._may_use = may_use
        self.decision = decision
        """Why the call may run; None until that is decided."""
        self._permissions = permissions

    def replace(
        self,
        *,
        use: ToolUse | None = None,
        progress: ProgressCallback | None = None,
        decision: Decision | None = None,
        permissions: PermissionSnapshot | None = None,
    ) -> "ToolContext":
        """The same context for a changed request, another listener, or with the decision and its policy."""
        return ToolContext(
            self.run,
            use or self.use,
            self.abort,
            progress or self.progress,
            self._may_use,
            leave=self.leave,
            decision=decision or self.decision,
            permissions=permissions or self._permissions,
        )

    def settle(self, decision: Decision, permissions: PermissionSnapshot | None) -> None:
        """The call was decided on, under this policy."""
        self.decision = decision
        self._permissions = permissions or self._permissions

    def decided_place(self, spelling: str) -> "Place | None":
        """Where a path of the input led when the call was decided on. None = it was not resolved then."""
        for place in self.decision.places if self.decision is not None else ():
            if place.spelling == spelling:
                return place
        return None

    @property
    def cwd(self) -> Path:
        """The working folder."""
        return self.run.cwd

    @property
    def files(self) -> FileMemory:
        """What this agent has read."""
        return self.run.files

    @property
    def state(self) -> StateStore:
        """State shared by the tools of the run. What a sub-agent's tools change here, its caller does not see."""
        return self.run.state

    @property
    def session_state(self) -> StateStore:
        """State of the whole session: the way for tools of a sub-agent to change something for all agents."""
        return self.run.session_state

    @property
    def permissions(self) -> PermissionSnapshot:
        """The policy that the call was decided on; until then the policy in force."""
        return self._permissions or self.run.permissions

    @property
    def agent(self) -> AgentIdentity:
        """Who is calling."""
        return self.run.agent

    @property
    def options(self) -> RunOptions:
        """What was chosen for the run."""
        return self.run.options

    @property
    def history(self) -> Sequence[Message]:
        """The conversation up to the message that holds this call."""
        return self.run.history

    @property
    def message(self) -> AssistantMessage:
        """The model's message that holds this call, as far as it has arrived."""
        return self.run.message(self.use)

    @property
    def budget(self) -> Budget:
        """What is left of the limits of the run."""
        return self.run.budget

    def refresh_tools(self) -> tuple[str, ...]:
        """Ask every tool again whether it is enabled; the names of the tools of the next request."""
        return self.run.refresh_tools()

    async def may_use(self, use: ToolUse) -> Decision:
        """Whether this tool may use another one, decided by the same rails."""
        return await self._may_use(use, self.run)
