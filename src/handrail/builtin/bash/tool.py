"""Bash: run a command line and leave no process behind."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from handrail.builtin.bash.destructive import is_destructive
from handrail.builtin.bash.left_out import left_out_notice
from handrail.builtin.bash.permission import check_command, confirm_standing
from handrail.builtin.bash.preconditions import Preconditions
from handrail.builtin.bash.shell import PreparedCommand, Shell, may_change_folder, only_reads
from handrail.builtin.bash.shown_file import glance, remember
from handrail.builtin.services import ToolServices
from handrail.builtin.support.live_output import OutputCapture, run_with_progress
from handrail.conversation.blocks import Json
from handrail.errors import ToolError
from handrail.lazy import lazy
from handrail.processes.sandbox_contract import Where
from handrail.processes.spawn import End, Running, start_stored
from handrail.processes.start_problem import start_problem
from handrail.tools.access import Access, Width
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import Check, Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import PromptView, Tool

if TYPE_CHECKING:
    from handrail.builtin.bash import background, exit_codes, result
    from handrail.builtin.support import background_tasks, command_output
else:  # together 2 ms, for which a first command need not wait
    background = lazy("handrail.builtin.bash.background")
    background_tasks = lazy("handrail.builtin.support.background_tasks")
    command_output = lazy("handrail.builtin.support.command_output")
    exit_codes = lazy("handrail.builtin.bash.exit_codes")
    result = lazy("handrail.builtin.bash.result")

DEFAULT_MS = 120_000
MAX_MS = 600_000
REPORT_BYTES = 8_192
NO_BACKGROUND = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"


class BashInput(PlainInput):
    command: str = Field(description="The command line.")
    timeout: float | None = Field(default=None, gt=0, description="Milliseconds until it is stopped (120000).")
    description: str | None = Field(default=None, description="What it does, in a few words.")
    run_in_background: bool = Field(default=False, description="Return at once; TaskOutput shows what it says.")
    dangerouslyDisableSandbox: bool = Field(  # noqa: N815  # the name that models know
        default=False, description="Run outside the sandbox, if there is one. The user has to agree."
    )


class Bash(Tool[BashInput]):
    name = "Bash"
    search_hint = "shell command terminal execute program script git"
    input_model = BashInput
    error_cancels_siblings = True
    max_result_chars = None
    always_load = True
    subject = "command"
    shell: ClassVar[type[Shell]] = Shell
    language: ClassVar[Literal["bash", "powershell"]] = "bash"

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._shell = self.shell(services)
        self._needs = Preconditions(services)

    def description(self, args: BashInput, view: PromptView) -> str:
        return args.description or self.summary(args)

    def summary(self, args: BashInput) -> str:
        first, newline, _ = args.command.partition("\n")
        return f"{self.name}({first[:80]}{'...' if newline or len(first) > 80 else ''})"

    def classifier_text(self, args: BashInput) -> str:
        return args.command

    def is_read_only(self, args: BashInput) -> bool:
        return only_reads(self._shell.analyse(args.command)) and not args.run_in_background

    def is_concurrency_safe(self, args: BashInput) -> bool:
        return self.is_read_only(args) and not may_change_folder(self._shell.analyse(args.command))

    def is_destructive(self, args: BashInput) -> bool:
        return is_destructive(self._shell.analyse(args.command))

    def access(self, args: BashInput, run: RunContext) -> Access:
        width: Width = "shared" if self.is_concurrency_safe(args) else "exclusive"
        return Access.of(runs=args.command, shell=self.language, width=width)

    def permission_matcher(self, args: BashInput) -> Callable[[str], bool]:
        """Rules match the programs of a command line, never its whole text."""
        return lambda _content: False

    async def validate(self, args: BashInput, ctx: ToolContext) -> Refuse | None:
        if not args.command.strip():
            return Refuse("The command is empty. Give a command line.")
        if "\0" in args.command:
            return Refuse("The command holds a NUL character, which no program can be given. Leave it out.")
        if args.run_in_background and (switch := self._background_switch()):
            return Refuse(f"Background tasks are switched off ({switch}). Run it without run_in_background.")
        return None

    def _background_switch(self) -> str:
        """What switches background tasks off; empty = nothing does."""
        if self._services.env.get(NO_BACKGROUND, "") in {"1", "true"}:
            return NO_BACKGROUND
        return "" if self._services.background else "the feature `background`"

    async def check_permission(self, args: BashInput, ctx: ToolContext) -> Check:
        return await check_command(
            self._shell, self._needs, args.command, ctx, wants_out=args.dangerouslyDisableSandbox
        )

    async def call(self, args: BashInput, ctx: ToolContext) -> Output:
        if args.run_in_background:
            return await self._in_background(args, ctx)
        analysis = self._shell.analyse(args.command)
        standing = await confirm_standing(self._shell, args.command, ctx, wants_out=args.dangerouslyDisableSandbox)
        cwd = self._shell.start_folder(ctx.cwd)
        left_out = ctx.decision.left_out if ctx.decision else ()
        seen = glance(analysis, cwd)
        seconds = self.seconds(args)
        kept = OutputCapture(self._services.state / "output")
        report = _FolderPipe() if self._shell.tells_folder and may_change_folder(analysis) else None
        try:
            prepared = await self._shell.prepare(
                args.command,
                str(cwd),
                seconds,
                report=report.fd if report else None,
                inside=standing.where is Where.INSIDE,
                left_out=[name for name, _ in left_out],
            )
            end = await self._run(prepared, kept, ctx)
            change, notices = self._folder_change(ctx.cwd, cwd, report.read() if report else "")
            meant = "" if end.why else exit_codes.exit_code_meaning(analysis, end.code)
            limit = command_output.output_limit(self._services.env.get("BASH_MAX_OUTPUT_LENGTH", ""))
            failed = bool(end.why) or (end.code != 0 and not meant)
            shown = command_output.read_output(kept.path, end.stored, limit // 3 if failed else limit, limit // 3)
            kept.wanted = shown.cut
        finally:
            kept.close()
            if report:
                report.close()
        if left_out:
            notices.append(left_out_notice(path.removeprefix(f"{cwd}/") for _, path in left_out))
        if standing.reason and not args.dangerouslyDisableSandbox:
            notices.append(standing.reason)
        box = self._services.sandbox if prepared.sandboxed else None
        if box and (why := box.explain(shown.text, end.code)):
            notices.append(why)
        if seen and end.code == 0:
            remember(seen, ctx.files)
        path = kept.path if shown.cut else None
        return result.command_output(
            result.FinishedCommand(
                self.name, args.command, end, shown, path, meant, seconds, notices, ctx.options.tools() if path else ()
            ),
            change,
        )

    async def _run(self, prepared: PreparedCommand, kept: OutputCapture, ctx: ToolContext) -> End:
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        running: Running | None = None
        try:
            running = await start_stored(prepared.command, nothing, kept.fd, self._services.output_quota())
            return await run_with_progress(running.wait(), kept.fd, ctx)
        except OSError as error:
            raise ToolError(f"The command could not be started: {start_problem(error)}") from error
        except asyncio.CancelledError:
            if running:
                await running.stop_and_wait()
                kept.leave(ctx)
            raise
        finally:
            os.close(nothing)
            await prepared.finish()

    def _folder_change(self, before: Path, start: Path, report: str) -> tuple[ContextChange | None, list[str]]:
        """The folder where later calls start, and notices about it."""
        if self._shell.stays or (before == start and not report):
            return None, []
        now = report.removesuffix("\n") or str(start)
        notices = [] if before == start else [f"{before} is not there any more; the working folder is {start}"]
        if os.path.realpath(now) == os.path.realpath(before):
            return None, notices
        if now != str(start) and not self._shell.inside(os.path.realpath(now)):
            notices.append(f"the working folder is {start} again, because {now} lies outside the working folders")
            now = str(start)
        return ContextChange(cwd=Path(now)), notices

    def seconds(self, args: BashInput) -> float:
        """How long the command may take."""
        default = self._shell.milliseconds("BASH_DEFAULT_TIMEOUT_MS", DEFAULT_MS)
        most = max(default, self._shell.milliseconds("BASH_MAX_TIMEOUT_MS", MAX_MS))
        return min(args.timeout or default, most) / 1000

    async def _in_background(self, args: BashInput, ctx: ToolContext) -> Output:
        task = await background.start_background(
            self._shell,
            background_tasks.tasks_of(self._services),
            "local_bash",
            args.command,
            ctx,
            description=args.description or "",
            wants_out=args.dangerouslyDisableSandbox,
        )
        return Output(
            text=f"It runs in the background as task {task.id}; its output goes to {task.output}. You are told when it "
            "ends.",
            data={"stdout": "", "stderr": "", "interrupted": False, "isImage": False, "backgroundTaskId": task.id},
            card=Card(title=f"{self.name} {result.first_line(args.command)}", detail=f"background task {task.id}"),
        )

    def output_from_data(self, data: Json) -> Output:
        said = "\n".join(str(data[name]).rstrip("\n") for name in ("stdout", "stderr") if data.get(name))
        return Output(text=said or result.SILENT, data=data)

    def use_card(self, partial: Json) -> Card:
        command = partial.get("command")
        text = command if isinstance(command, str) else ""
        return Card(title=self.name, detail=result.first_line(text), body=text, body_kind="code")

    def tag(self, args: BashInput) -> str:
        return "background" if args.run_in_background else f"{args.timeout / 1000:g} s" if args.timeout else ""


class _FolderPipe:
    """A pipe on which the shell reports its last working folder."""

    def __init__(self) -> None:
        self._ours, self.fd = os.pipe()
        os.set_blocking(self._ours, False)

    def read(self) -> str:
        try:
            return os.fsdecode(os.read(self._ours, REPORT_BYTES))
        except BlockingIOError:
            return ""

    def close(self) -> None:
        os.close(self._ours)
        os.close(self.fd)
