"""Asks a callback of the program that runs the agent, when nothing else has decided."""

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, TypeAlias

from handrail.conversation.logger import get_logger
from handrail.dispatch.approval.question import ApprovalAnswer, Question, read_answer
from handrail.tools.permission import Allow, Deny

log = get_logger(__name__)

ToolPermission: TypeAlias = Allow | Deny | bool | Mapping[str, Any]
"""An answer, or the same as yes or no, or as JSON: `{"behavior": "allow", ...}`."""
CanUseTool: TypeAlias = Callable[[str, dict[str, Any], Question], ToolPermission | Awaitable[ToolPermission]]
"""`can_use_tool(tool_name, input, question)` says whether a call may run; it may be async."""


class CallbackHandler:
    """Passes questions to a callback. An invalid answer is a deny and is logged, and so is an exception."""

    who = "callback"

    def __init__(self, can_use_tool: CanUseTool) -> None:
        self._ask = can_use_tool

    async def ask(self, question: Question) -> ApprovalAnswer:
        """The callback's answer."""
        said = self._ask(question.tool, dict(question.input), question)
        value = await said if isawaitable(said) else said
        if isinstance(value, bool):
            return Allow() if value else Deny()
        answer = read_answer(value)
        if not isinstance(answer, str):
            return answer
        advice = "Return Allow(), Deny(reason), True or False."
        log.warning("can_use_tool gave no answer about %s: %s. %s", question.tool, answer, advice)
        return Deny(f"the callback gave no answer: {answer}")

    def update(self, question: Question) -> None:
        """A callback gets no updates."""
