"""What a call is given: the run it belongs to, and what is its own."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.conversation.blocks import ToolUse
from handrail.conversation.messages import Message
from handrail.files.memory import FileMemory
from handrail.records import record
from handrail.tools.abort import AbortSignal
from handrail.tools.permission import Decision, NoRules, PermissionSnapshot

if TYPE_CHECKING:
    from handrail.files.paths import Place


@record
class Progress:
    """News of a running call. Tools may subclass it to carry more than a line."""

    message: str = ""
    fraction: float | None = None


ProgressCallback: TypeAlias = Callable[[Progress], None]


@record
class AgentIdentity:
    """
    Which agent is calling: the main one, or a sub-agent of some type.

    `mode` is the widest one it may work in; `transcript` is where its words are kept, if they are.
    """

    id: str = "main"
    type: str = "main"
    mode: str = ""
    transcript: str = ""

    @property
    def is_main(self) -> bool:
        """Whether it is no sub-agent."""
        return self.id == "main"


@record
class RunOptions:
    """What was chosen for the whole run."""

    model: str = ""
    thinking: str = ""
    interactive: bool = False
    debug: bool = False
    verbose: bool = False
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


class StateStore:
    """State shared by the tools of a run. It is replaced, never changed in place."""

    def __init__(self, initial: Mapping[str, Any] | None = None) -> None:
        self._state: Mapping[str, Any] = initial or {}
        self._lock = Lock()

    def get(self) -> Mapping[str, Any]:
        """The present state."""
        return self._state

    def update(self, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Put a new state, made from the present one, in its place. Blocking tools call this from their threads."""
        with self._lock:
            self._state = change(self._state)


@record
class RunContext:
    """What all calls of a run share. An exclusive call may hand back a changed one for the calls after it."""

    cwd: Path
    files: FileMemory = field(default_factory=FileMemory)
    state: StateStore = field(default_factory=StateStore)
    permissions: PermissionSnapshot = field(default_factory=NoRules)
    agent: AgentIdentity = field(default_factory=AgentIdentity)
    options: RunOptions = field(default_factory=RunOptions)
    history: Sequence[Message] = ()
    abort: AbortSignal = field(default_factory=AbortSignal)


MayUse: TypeAlias = Callable[[ToolUse, RunContext], Awaitable[Decision]]


class ToolContext:
    """What one call gets besides its input."""

    __slots__ = ("_may_use", "abort", "decision", "progress", "run", "use")

    def __init__(
        self,
        run: RunContext,
        use: ToolUse,
        abort: AbortSignal,
        progress: ProgressCallback,
        may_use: MayUse,
        *,
        decision: Decision | None = None,
    ) -> None:
        self.run = run
        self.use = use
        self.abort = abort
        self.progress = progress
        self._may_use = may_use
        self.decision = decision
        """Why the call may run; None while that is still being found out."""

    def varied(
        self,
        *,
        use: ToolUse | None = None,
        progress: ProgressCallback | None = None,
        decision: Decision | None = None,
    ) -> "ToolContext":
        """The same context for a changed request, another listener, or once it was decided."""
        return ToolContext(
            self.run,
            use or self.use,
            self.abort,
            progress or self.progress,
            self._may_use,
            decision=decision or self.decision,
        )

    def decided_place(self, spelling: str) -> "Place | None":
        """Where a path of the input led when the call was decided. None = nobody looked."""
        places = self.decision.places if self.decision else ()
        return next((place for place in places if place.spelling == spelling), None)

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
        """State shared by the tools of the run."""
        return self.run.state

    @property
    def permissions(self) -> PermissionSnapshot:
        """The rules in force when the call was decided."""
        return self.run.permissions

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
        """The conversation up to the answer that asked for this call."""
        return self.run.history

    async def may_use(self, use: ToolUse) -> Decision:
        """Whether this tool may use another one; the answer comes from the same rails."""
        return await self._may_use(use, self.run)
