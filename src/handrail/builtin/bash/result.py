"""The result of a command for the model, programs and the user."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handrail.builtin.support.command_output import ShownOutput
from handrail.builtin.support.exit_notes import exit_notes, shell_code
from handrail.processes.spawn import End
from handrail.records import record
from handrail.tools.cards import Card
from handrail.tools.output import ContextChange, Output

LONGER = "Give a longer timeout, or set run_in_background"
SILENT = "(The command printed nothing.)"


@record
class FinishedCommand:
    """A command that has ended."""

    tool: str
    command: str
    end: End
    said: ShownOutput
    path: Path | None
    """The file with the whole output, if only a part is shown."""
    meaning: str = ""
    """The meaning of its exit code, if it is not a failure."""
    seconds: float | None = None
    notices: Sequence[str] = ()
    tools: Sequence[str] = ()
    """The names of the tools of the run; empty = not known."""


def command_output(done: FinishedCommand, change: ContextChange | None) -> Output:
    """What the tool returns."""
    code = shell_code(done.end.code)
    failed = (code != 0 and not done.meaning) or bool(done.end.why)
    meant = [f"exit code {done.end.code}: {done.meaning}"] if done.meaning else []
    longer = f". {LONGER}" if done.end.why == "timeout" else ""
    notices = [*(f"{each}{longer}" for each in exit_notes(done.end, done.seconds)), *meant, *done.notices]
    parts = [f"Exit code {code}"] if failed else []
    if done.path:
        parts.append(done.said.notice(str(done.path), done.tools))
    parts.append(done.said.text.rstrip("\n"))
    parts += [f"({notice})" for notice in notices]
    text = "\n".join(part for part in parts if part)
    return Output(
        text=text or ("" if done.said.image else SILENT),
        blocks=(done.said.image,) if done.said.image else (),
        data=result_data(done),
        card=Card(
            title=f"{done.tool} {first_line(done.command)}",
            detail=f"exit code {code}" if failed else done.meaning,
            body=done.said.text,
            body_kind="code",
            tone="bad" if failed else "plain",
        ),
        context_change=change,
        is_error=failed,
    )


def result_data(done: FinishedCommand) -> dict[str, Any]:
    """The result as programs expect it."""
    found: dict[str, Any] = {
        "stdout": done.said.text,
        "stderr": "",
        "interrupted": bool(done.end.why),
        "isImage": done.said.image is not None,
        "noOutputExpected": False,
    }
    if done.meaning:
        found["returnCodeInterpretation"] = done.meaning
    if done.path:
        found |= {"persistedOutputPath": str(done.path), "persistedOutputSize": done.end.stored}
    return found


def first_line(command: str) -> str:
    """The command as a title."""
    return command.partition("\n")[0][:200]
