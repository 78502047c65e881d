"""Asks a callback of the program that runs the agent, when nothing else has decided."""

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, TypeAlias

from handrail.dispatch.approval.question import ApprovalAnswer, Question, read_answer
from handrail.tools.permission import Allow, Deny

ToolPermission: TypeAlias = Allow | Deny | Mapping[str, Any]
"""An answer, or the same as JSON: `{"behavior": "allow", ...}`."""
CanUseTool: TypeAlias = Callable[[str, dict[str, Any], Question], ToolPermission | Awaitable[ToolPermission]]
"""`can_use_tool(tool_name, input, question)` says whether a call may run; it may be async."""


class CallbackHandler:
    """Passes questions to a callback. An invalid answer is a deny, and so is an exception."""

    who = "callback"

    def __init__(self, can_use_tool: CanUseTool) -> None:
        self._ask = can_use_tool

    async def ask(self, question: Question) -> ApprovalAnswer:
        """The callback's answer."""
        said = self._ask(question.tool, dict(question.input), question)
        answer = read_answer(await said if isawaitable(said) else said)
        return Deny(f"the callback gave no answer: {answer}") if isinstance(answer, str) else answer

    def update(self, question: Question) -> None:
        """A callback gets no updates."""
