"""REPL: run Python code in an interpreter that remembers what earlier calls defined."""

import asyncio
from typing import Any

from handrail.builtin.bash.permission import objection
from handrail.builtin.bash.result import first_line
from handrail.builtin.repl.interpreter import CodeResult, interpreter_of
from handrail.builtin.services import ToolServices
from handrail.builtin.support.command_output import ShownOutput, output_limit, read_output
from handrail.builtin.support.exit_notes import signal_name
from handrail.builtin.support.live_output import OutputCapture
from handrail.conversation.blocks import Json
from handrail.tools.cards import Card
from handrail.tools.context import ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import NO_OPINION, Check, Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import PromptView, Tool

DEFAULT_MS = 30_000
MAX_MS = 600_000
SILENT = "(The code said nothing.)"
LOST = "What the interpreter knew is lost; the next call starts a new one"


class ReplInput(PlainInput):
    code: str = Field(description="Python code.")
    description: str | None = Field(default=None, description="What it does, in a few words.")
    timeout: float = Field(default=DEFAULT_MS, gt=0, le=MAX_MS, description="Milliseconds until it is stopped.")


class REPL(Tool[ReplInput]):
    name = "REPL"
    search_hint = "python code interpreter execute compute session state"
    input_model = ReplInput
    max_result_chars = None
    always_load = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def description(self, args: ReplInput, view: PromptView) -> str:
        return args.description or self.summary(args)

    def summary(self, args: ReplInput) -> str:
        first, newline, _ = args.code.strip().partition("\n")
        return f"REPL({first[:80]}{'...' if newline or len(first) > 80 else ''})"

    def classifier_text(self, args: ReplInput) -> str:
        return args.code

    async def validate(self, args: ReplInput, ctx: ToolContext) -> Refuse | None:
        return None if args.code.strip() else Refuse("There is no code. Give Python code to run.")

    async def check_permission(self, args: ReplInput, ctx: ToolContext) -> Check:
        return objection(await interpreter_of(self._services).standing()) or NO_OPINION

    async def call(self, args: ReplInput, ctx: ToolContext) -> Output:
        limit = output_limit(self._services.env.get("BASH_MAX_OUTPUT_LENGTH", ""))
        kept = OutputCapture(self._services.state / "output")
        try:
            try:
                answer = await interpreter_of(self._services).run(args.code, args.timeout / 1000, kept.fd, ctx)
            except asyncio.CancelledError:
                kept.leave(ctx)
                raise
            shown = read_output(kept.path, answer.stored, limit, limit // 3)
            kept.wanted = shown.cut
        finally:
            kept.close()
        path = str(kept.path) if shown.cut else ""
        return self._output(args, answer, shown, path, shown.notice(path, ctx.options.tools()) if path else "")

    def _output(self, args: ReplInput, answer: CodeResult, shown: ShownOutput, path: str, head: str) -> Output:
        failed = bool(answer.error or answer.why)
        parts = [head, shown.text.rstrip("\n"), answer.value, answer.error]
        parts += [f"({notice})" for notice in self._notices(answer, args.timeout / 1000, shown)]
        text = "\n".join(part for part in parts if part)
        return Output(
            text=text or ("" if shown.image else SILENT),
            blocks=(shown.image,) if shown.image else (),
            data=result_data(answer, shown, path),
            card=Card(
                title=f"REPL {first_line(args.code)}",
                detail=answer.why or ("failed" if failed else args.description or ""),
                body=text,
                body_kind="code",
                tone="bad" if failed else "plain",
            ),
            is_error=failed,
        )

    def _notices(self, answer: CodeResult, seconds: float, shown: ShownOutput) -> list[str]:
        found = [answer.notice] if answer.notice else []
        if answer.why == "timeout":
            found.append(f"it was stopped because it took longer than {seconds:g} seconds. {LOST}")
        elif answer.why == "full":
            found.append(f"it was stopped because it wrote more than {answer.stored:,} bytes. {LOST}")
        elif answer.why:
            how = f"with exit code {answer.code}" if answer.code >= 0 else f"by {signal_name(-answer.code)}"
            found.append(f"the interpreter ended {how}. {LOST}")
        if answer.lost and answer.why != "full":
            found.append(f"{answer.lost:,} bytes of output were lost, because they could not be written to the disk")
        sandbox = self._services.sandbox if answer.confined else None
        if sandbox and (answer.error or answer.why) and (why := sandbox.explain(f"{shown.text}\n{answer.error}", 1)):
            found.append(why)
        return found

    def use_card(self, partial: Json) -> Card:
        code, description = partial.get("code"), partial.get("description")
        body = code if isinstance(code, str) else ""
        return Card(title="REPL", detail=str(description or "")[:200], body=body, body_kind="code")

    def tag(self, args: ReplInput) -> str:
        return f"{args.timeout / 1000:g} s" if args.timeout != DEFAULT_MS else ""


def result_data(answer: CodeResult, shown: ShownOutput, path: str) -> dict[str, Any]:
    """The result as programs expect it."""
    found: dict[str, Any] = {
        "output": shown.text,
        "result": answer.value or None,
        "error": answer.error or None,
        "interrupted": bool(answer.why),
    }
    return {**found, "persistedOutputPath": path} if path else found
