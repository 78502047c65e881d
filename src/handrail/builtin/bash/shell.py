"""Prepares a command line for the shell: program, folder, environment and sandbox."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from handrail.builtin.bash.environment import (
    clean_environment,
    own_program,
    project_folders,
    user_environment,
    with_hook_exports,
)
from handrail.builtin.bash.left_out import search_functions
from handrail.builtin.services import ToolServices
from handrail.errors import SandboxError, ToolError
from handrail.processes.sandbox_contract import UNCONFINED, Sandbox, Standing, WrappedCommand
from handrail.processes.spawn import ProcessSpec
from handrail.processes.trace_context import trace_variables
from handrail.records import record
from handrail.shell.analysis import analyse
from handrail.shell.model import Analysis, CommandVerdict

PLACES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash")
MOVERS = frozenset({"cd", "pushd", "popd", "mv"})
"""The programs of the clean environment that leave the shell in another folder, or its folder in another place."""
SECOND = 1000


@record
class PreparedCommand:
    """A command that is ready to start; `close` is called when it has ended."""

    command: ProcessSpec
    sandboxed: bool
    close: Callable[[], None]

    async def finish(self) -> None:
        """Close it; in a thread where all working folders are looked at again."""
        if self.sandboxed:
            await asyncio.to_thread(self.close)
        else:
            self.close()


class Shell:
    """The shell of a session."""

    name: ClassVar[str] = "bash"
    tells_folder: ClassVar[bool] = True
    """Whether it can report its last working folder."""

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self.program = self.find_program()

    def find_program(self) -> str:
        """The path of the shell; empty if there is none."""
        return next((place for place in PLACES if os.access(place, os.X_OK)), "")

    def analyse(self, text: str) -> Analysis:
        """Analyse what the command line would do."""
        return analyse(text)

    def argv(self, text: str, report: int | None) -> list[str]:
        """The program and its arguments."""
        return [self.program, "-c", text if report is None else f"trap 'pwd -P >&{report}' EXIT; {text}"]

    async def standing(self, text: str, *, wants_out: bool = False) -> Standing:
        """Where a command line would run."""
        box = self._services.sandbox
        return UNCONFINED if box is None else await box.standing(programs(self.analyse(text)), wants_out=wants_out)

    async def prepare(
        self,
        text: str,
        cwd: str,
        seconds: float | None,
        *,
        report: int | None = None,
        inside: bool,
        left_out: Iterable[str] = (),
    ) -> PreparedCommand:
        """
        Prepare the command line; the shell writes its last working folder to the descriptor `report`.

        Searches leave out files of the names `left_out`.
        """
        if not self.program:
            raise ToolError(f"{self.name} is not installed here. Install it, or use other tools.")
        analysis = self.analyse(text)
        env = self._environment(analysis, with_hook_exports(self._services.env)) | search_functions(left_out)
        fds = () if report is None else (report,)
        command = ProcessSpec(
            self.argv(text, report), cwd, {**env, "PWD": cwd, **trace_variables()}, seconds, pass_fds=fds
        )
        return await wrap_in_sandbox(command, self._services.sandbox if inside else None)

    def _environment(self, analysis: Analysis, given: Mapping[str, str]) -> dict[str, str]:
        """The clean environment; the user's own for what was approved, also for programs of the project."""
        folders = project_folders(self._services.working_dirs(), self._services.home)
        names = [name for segment in analysis.segments for name in segment.names]
        if not analysis.runs_clean or own_program(names, given.get("PATH", ""), folders):
            return user_environment(given, self._services.programs())
        return clean_environment(given, analysis.requires, folders)

    def start_folder(self, cwd: Path) -> Path:
        """The start folder: the working folder, or the project if that is configured or the folder is gone."""
        if self.stays or not cwd.is_dir():
            return Path(self._services.working_dirs()[0])
        return cwd

    @property
    def stays(self) -> bool:
        """Whether every command starts in the project folder."""
        return self._services.env.get("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "") in {"1", "true"}

    def inside(self, folder: str) -> bool:
        """Whether a folder lies in the working folders."""
        return any(folder == top or folder.startswith(f"{top}/") for top in self._services.working_dirs())

    def milliseconds(self, name: str, default: int) -> int:
        """A time limit from the environment."""
        value = self._services.env.get(name, "")
        return int(value) if value.isdecimal() and int(value) else default


async def wrap_in_sandbox(command: ProcessSpec, sandbox: Sandbox | None) -> PreparedCommand:
    """The command in the sandbox, if there is one; in a thread, because all working folders are looked at."""
    if sandbox is None:
        return PreparedCommand(command, False, lambda: None)
    work = asyncio.ensure_future(asyncio.to_thread(sandbox.wrap, list(command.argv), command.cwd))
    try:
        wrapped = await asyncio.shield(work)
    except SandboxError as error:
        raise ToolError(f"Nothing was run. {error}") from error
    except asyncio.CancelledError:
        work.add_done_callback(close_unused)
        raise
    changed: dict[str, str | None] = {**command.env, **wrapped.env}
    env = {name: value for name, value in changed.items() if value is not None}
    fds = (*command.pass_fds, *wrapped.pass_fds)
    confined = replace(command, argv=wrapped.argv, env=env, pass_fds=fds, restrictions=wrapped.restrictions)
    return PreparedCommand(confined, True, wrapped.close)


def close_unused(work: asyncio.Future[WrappedCommand]) -> None:
    """Free what a cancelled call has no use for."""
    if not work.cancelled() and work.exception() is None:
        work.result().close()


def only_reads(analysis: Analysis) -> bool:
    """Whether the command line certainly changes nothing."""
    return analysis.verdict is CommandVerdict.READ_ONLY and bool(analysis.segments)


def programs(analysis: Analysis) -> list[list[str]] | None:
    """The words of each program that the line starts; None if the line is not fully understood."""
    if analysis.problems:
        return None
    return [[word.literal or str(word) for word in segment.argv] for segment in analysis.segments]


def may_change_folder(analysis: Analysis) -> bool:
    """Whether the command line may change the working folder."""
    return not analysis.runs_clean or any(segment.name in MOVERS for segment in analysis.segments)
