"""The demo's throw-away project, its two own tools, and the person who watches over them."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from handrail.dispatch.gate import CarefulGate, Request
from handrail.errors import ToolError
from handrail.shell import Verdict as Reading
from handrail.shell import analyse
from handrail.tools.access import EXCLUSIVE, SHARED, Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Check, Decision, Opinion, Strength, Verdict
from handrail.tools.schema import Input
from handrail.tools.tool import PromptView, Tool

FILES = {
    "prices.py": '''"""Prices with a discount."""


def discounted(price: float, percent: float) -> float:
    return price + price * percent / 100


def total(prices: list[float]) -> float:
    return round(sum(prices), 2)
''',
    "test_prices.py": """import unittest

from prices import discounted, total


class Prices(unittest.TestCase):
    def test_a_discount_makes_things_cheaper(self) -> None:
        self.assertEqual(discounted(200, 10), 180)

    def test_a_total_adds_up(self) -> None:
        self.assertEqual(total([0.1, 0.2]), 0.3)
""",
    "README.md": "A tiny shop. Run the tests with: python -m unittest\n",
}
TESTS = "python -m unittest"


class EditInput(Input):
    file_path: str = Field(description="The file to change.")
    old: str = Field(description="Text that occurs once in it.")
    new: str = Field(description="What takes its place.")


class DemoEdit(Tool[EditInput]):
    """A small stand-in for the real Edit, which comes later."""

    name = "DemoEdit"
    input_model = EditInput

    def prompt(self, view: PromptView) -> str:
        return "Replace one piece of text in a file."

    def access(self, args: EditInput, run: RunContext) -> Access:
        return Access.of(writes=[str((run.cwd / args.file_path).resolve())])

    def summary(self, args: EditInput) -> str:
        return f"DemoEdit({args.file_path})"

    async def call(self, args: EditInput, ctx: ToolContext) -> Output:
        path = ctx.cwd / args.file_path
        text = path.read_text()
        if text.count(args.old) != 1:
            raise ToolError(f"{args.old!r} occurs {text.count(args.old)} times in {args.file_path}. Give more of it.")
        path.write_text(text.replace(args.old, args.new))
        return Output(text=f"Changed {args.file_path}.")


class ShellInput(Input):
    command: str = Field(description="The command line.")


class DemoShell(Tool[ShellInput]):
    """A small stand-in for the real Bash, which comes later. It reads commands with the real analysis."""

    name = "DemoShell"
    input_model = ShellInput
    error_cancels_siblings = True
    timeout = 30

    def prompt(self, view: PromptView) -> str:
        return "Run a command in the project folder."

    def is_read_only(self, args: ShellInput) -> bool:
        return analyse(args.command).verdict is Reading.READ_ONLY

    def access(self, args: ShellInput, run: RunContext) -> Access:
        return SHARED if self.is_read_only(args) else EXCLUSIVE

    def summary(self, args: ShellInput) -> str:
        return f"DemoShell({args.command})"

    async def check_permission(self, args: ShellInput, ctx: ToolContext) -> Check:
        analysis = analyse(args.command)
        if analysis.verdict is Reading.READ_ONLY:
            return Check()
        return Check(Verdict.ASK, f"it is not read-only ({analysis.reasons[0].text})")

    async def call(self, args: ShellInput, ctx: ToolContext) -> Output:
        command = f"{sys.executable}{args.command.removeprefix('python')}" if args.command == TESTS else args.command
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=ctx.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        text = printed.decode("utf-8", "replace").strip()
        return Output(text=f"Exit code {process.returncode}\n{text}", is_error=process.returncode != 0)


class Watcher:
    """The person of the demo: agrees to edits and to the project's tests, to nothing else."""

    async def approve(self, request: Request, decision: Decision) -> Decision:
        """Yes to what the task needs."""
        wanted = request.tool.name == "DemoEdit" or getattr(request.args, "command", "") == TESTS
        verdict = Verdict.ALLOW if wanted else Verdict.DENY
        reason = "the person agreed" if wanted else decision.reason
        said = Opinion(Strength.PERSON, verdict, "person", reason)
        return replace(decision, verdict=verdict, reason=reason, opinions=(*decision.opinions, said))


def demo_gate() -> CarefulGate:
    """What only reads may pass; the rest is asked for."""
    return CarefulGate(Watcher())


def lay_out(folder: Path) -> None:
    """Write the project."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
