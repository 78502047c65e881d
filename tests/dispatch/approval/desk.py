"""A gate with a policy in a folder, tools to ask about, and people whose answers come when the test says so."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.audit import Audit
from handrail.dispatch.approval.classifier import Classification
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.approval.question import ApprovalAnswer, Question
from handrail.permissions.facts import NOTHING_SAID, Evidence
from handrail.permissions.policy import ModeAvailability, Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.shell.model import Analysis
from handrail.tools.abort import AbortSignal
from handrail.tools.access import Access
from handrail.tools.context import AgentIdentity, RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Decision, Update
from handrail.tools.pool import AnyTool
from handrail.tools.request import CallRequest
from handrail.tools.tool import Tool

ALL_MODES = ModeAvailability(bypass_available=True, auto_available=True)


class CommandInput(BaseModel):
    command: str


class Bash(Tool[CommandInput]):
    """Runs nothing; keeps what it was asked to run."""

    name = "Bash"
    input_model = CommandInput

    def __init__(self) -> None:
        self.ran: list[str] = []

    def prompt(self, view: object) -> str:
        return "Run a command."

    def classifier_text(self, args: CommandInput) -> str:
        return args.command

    def access(self, args: CommandInput, run: RunContext) -> Access:
        return Access.of(runs=args.command)

    async def call(self, args: CommandInput, ctx: ToolContext) -> Output:
        self.ran.append(args.command)
        return Output("done")


class FileInput(BaseModel):
    file_path: str


class Write(Tool[FileInput]):
    name = "Write"
    input_model = FileInput

    def prompt(self, view: object) -> str:
        return "Write a file."

    def access(self, args: FileInput, run: RunContext) -> Access:
        return Access.of(writes=args.file_path)

    async def call(self, args: FileInput, ctx: ToolContext) -> Output:
        return Output("done")


async def all_met(_analysis: Analysis, _cwd: str) -> tuple[str, ...]:
    return ()


@dataclass
class Someone:
    """A handler whose answer comes when its gate opens."""

    answer: ApprovalAnswer | None = None
    who: str = "person"
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[Question] = field(default_factory=list)
    updates: list[Question] = field(default_factory=list)
    taken_back: int = 0

    async def ask(self, question: Question) -> ApprovalAnswer | None:
        self.asked.append(question)
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.taken_back += 1
            raise
        return self.answer

    def update(self, question: Question) -> None:
        self.updates.append(question)

    def now(self, answer: ApprovalAnswer | None) -> "Someone":
        self.answer = answer
        self.opened.set()
        return self


@dataclass
class HookAnswers:
    """PermissionRequest hooks whose answer comes when their gate opens."""

    answer: ApprovalAnswer | None = None
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None
    suggested: Sequence[Update] = ()
    announced: list[tuple[str, str]] = field(default_factory=list)

    def about_to_ask(self, request: CallRequest, reason: str) -> None:
        self.announced.append((request.use.id, reason))

    async def permission_request(self, request: CallRequest, suggestions: Sequence[Update]) -> ApprovalAnswer | None:
        self.suggested = suggestions
        await self.opened.wait()
        if self.error:
            raise self.error
        return self.answer

    def now(self, answer: ApprovalAnswer | None) -> "HookAnswers":
        self.answer = answer
        self.opened.set()
        return self


@dataclass
class Classifier:
    """A judge whose ruling comes when its gate opens."""

    classification: Classification | None = None
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None
    classified: list[str] = field(default_factory=list)
    name: str = "a model"

    async def classify(self, text: str) -> Classification | None:
        self.classified.append(text)
        await self.opened.wait()
        if self.error:
            raise self.error
        return self.classification

    def now(self, classification: Classification | None) -> "Classifier":
        self.classification = classification
        self.opened.set()
        return self


@dataclass
class Desk:
    """One folder, one policy, one gate."""

    folder: Path
    mode: str = "default"
    allow: Sequence[str] = ()
    ask: Sequence[str] = ()
    deny: Sequence[str] = ()
    flags: ModeAvailability = ALL_MODES
    handler: Any = None
    hooks: Any = None
    classifier: Any = None
    audit: Audit | None = None
    persist: Any = None
    conditions: Any = all_met

    def __post_init__(self) -> None:
        self.folder = Path(os.path.realpath(self.folder))
        self.base = self.policy()
        self.live = LivePolicy(lambda: self.base, self.persist)
        self.gate = PolicyGate(
            self.live,
            self.handler,
            hooks=self.hooks,
            classifier=self.classifier,
            conditions=self.conditions,
            audit=self.audit,
        )

    def policy(self) -> Policy:
        source = RuleSource("project", ".handrail/settings.json", 3, str(self.folder))
        policy = Policy.empty(str(self.folder), "/home/nobody").with_availability(self.flags)
        for kind in Behaviour:
            policy = policy.adding(kind, getattr(self, kind.value), source)
        return policy.with_mode(self.mode)

    def request(
        self,
        tool: AnyTool,
        *,
        abort: AbortSignal | None = None,
        agent: AgentIdentity | None = None,
        cwd: Path | None = None,
        **values: Any,
    ) -> CallRequest:
        run = RunContext(cwd or self.folder, agent=agent or AgentIdentity())
        use = ToolUse("call-1", tool.name, values)
        ctx = ToolContext(run, use, abort or AbortSignal(), lambda _: None, no_other_tool)
        return CallRequest.of(use, tool, tool.parse(values), ctx)

    async def bash(self, command: str, evidence: Evidence = NOTHING_SAID, **options: Any) -> Decision:
        return await self.gate.decide(self.request(Bash(), command=command, **options), evidence)


async def no_other_tool(_use: ToolUse, _run: RunContext) -> Decision:
    raise AssertionError("no tool is used from here")


async def until(condition: Callable[[], object]) -> None:
    """Let others run until something is so."""
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to be so")
