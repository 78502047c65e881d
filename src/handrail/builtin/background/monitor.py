"""Monitor: watch a command; each line it writes is an event."""

from collections.abc import Callable
from typing import Any

from handrail.builtin.bash.background import start_background
from handrail.builtin.bash.permission import check_command
from handrail.builtin.bash.preconditions import Preconditions
from handrail.builtin.bash.shell import Shell
from handrail.builtin.services import ToolServices
from handrail.builtin.support.background_tasks import tasks_of
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Check, Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool

DEFAULT_MS = 300_000
MAX_MS = 3_600_000


class MonitorInput(PlainInput):
    description: str = Field(description="What is watched, in a few words.")
    timeout_ms: float = Field(default=DEFAULT_MS, gt=0, le=MAX_MS, description="Milliseconds until it ends.")
    persistent: bool = Field(default=False, description="Watch until the session ends.")
    command: str | None = Field(default=None, description="The command line whose lines are events.")
    ws: dict[str, Any] | None = Field(default=None, description="Not supported; give a command.")


class Monitor(Tool[MonitorInput]):
    name = "Monitor"
    search_hint = "watch follow background log lines events notify"
    input_model = MonitorInput
    subject = "command"
    should_defer = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._shell = Shell(services)
        self._needs = Preconditions(services)

    def classifier_text(self, args: MonitorInput) -> str:
        return args.command or ""

    def access(self, args: MonitorInput, run: RunContext) -> Access:
        return Access.of(runs=args.command or "")

    def permission_matcher(self, args: MonitorInput) -> Callable[[str], bool]:
        """Rules match the programs of a command line, never its whole text."""
        return lambda _content: False

    async def validate(self, args: MonitorInput, ctx: ToolContext) -> Refuse | None:
        if args.ws is not None:
            return Refuse("Monitor cannot listen to a WebSocket. Give a command that writes its messages line by line.")
        if not (args.command or "").strip():
            return Refuse("There is nothing to watch. Give a command whose output lines are the events.")
        return None

    async def check_permission(self, args: MonitorInput, ctx: ToolContext) -> Check:
        return await check_command(self._shell, self._needs, args.command or "", ctx)

    async def call(self, args: MonitorInput, ctx: ToolContext) -> Output:
        task = await start_background(
            self._shell,
            tasks_of(self._services),
            "monitor",
            args.command or "",
            ctx,
            description=args.description,
            seconds=None if args.persistent else args.timeout_ms / 1000,
        )
        text = f"Watching as task {task.id}. Its lines reach you with later turns; TaskStop ends it."
        return Output(
            text=text,
            data={"taskId": task.id},
            card=Card(title=f"Monitor {args.description}", detail=f"background task {task.id}"),
        )
