"""
The tool system for AI agents: hands for the model, rails for the people.

Nothing runs on import. Each public name is loaded when it is first used.
"""

TYPE_CHECKING = False  # as type checkers know it; the typing module would cost a third of a start

if TYPE_CHECKING:
    from typing import Any

    from handrail.agents.spec import AgentSpec
    from handrail.conversation.blocks import BrokenToolUse, Document, Image, Text, ToolResult, ToolUse
    from handrail.dispatch.approval.question import Question
    from handrail.dispatch.executor import ToolExecutor
    from handrail.dispatch.gate import CarefulGate, Rails
    from handrail.dispatch.results import ResultStore
    from handrail.dispatch.retry_journal import RetryJournal
    from handrail.dispatch.schedule import Scheduling
    from handrail.errors import HandrailError, InputError, RunError, ToolDefinitionError, ToolError
    from handrail.hooks.news import HookNews
    from handrail.hooks.runner import Hooks
    from handrail.hooks.specs import HookCallback
    from handrail.loop.events import LoopEvent, RunEnded
    from handrail.loop.limits import Limits
    from handrail.permissions.policy import Policy
    from handrail.providers.choose import ModelOptions
    from handrail.session.agent import Agent, query
    from handrail.session.answer import Answer
    from handrail.session.spec import SessionHost, SessionSpec
    from handrail.tools.abort import AbortReason, AbortSignal
    from handrail.tools.access import Access
    from handrail.tools.cards import Card
    from handrail.tools.catalog import Catalog
    from handrail.tools.context import Progress, ProgressCallback, RunContext, ToolContext
    from handrail.tools.delegation import AgentNews, AgentReport
    from handrail.tools.function import tool
    from handrail.tools.outcome import Cause, Outcome, Status
    from handrail.tools.output import ContextChange, Output
    from handrail.tools.permission import Allow, Ask, Check, Decision, Deny, Opinion, Refuse, Strength, Verdict
    from handrail.tools.pool import Deferral, Environment, Ingredients, Pool, ToolEntry, assemble
    from handrail.tools.raw import RawTool
    from handrail.tools.schema import Input
    from handrail.tools.tool import PromptView, Tool

__version__ = "0.1.0"

_HOME = {
    "agents.spec": ("AgentSpec",),
    "session.agent": ("Agent", "query"),
    "session.answer": ("Answer",),
    "session.spec": ("SessionHost", "SessionSpec"),
    "providers.choose": ("ModelOptions",),
    "conversation.blocks": ("BrokenToolUse", "Document", "Image", "Text", "ToolResult", "ToolUse"),
    "dispatch.approval.question": ("Question",),
    "dispatch.executor": ("ToolExecutor",),
    "dispatch.gate": ("CarefulGate", "Rails"),
    "dispatch.retry_journal": ("RetryJournal",),
    "dispatch.results": ("ResultStore",),
    "dispatch.schedule": ("Scheduling",),
    "errors": ("HandrailError", "InputError", "RunError", "ToolDefinitionError", "ToolError"),
    "hooks.news": ("HookNews",),
    "hooks.runner": ("Hooks",),
    "hooks.specs": ("HookCallback",),
    "loop.events": ("LoopEvent", "RunEnded"),
    "loop.limits": ("Limits",),
    "permissions.policy": ("Policy",),
    "tools.abort": ("AbortReason", "AbortSignal"),
    "tools.access": ("Access",),
    "tools.cards": ("Card",),
    "tools.catalog": ("Catalog",),
    "tools.context": ("Progress", "ProgressCallback", "RunContext", "ToolContext"),
    "tools.delegation": ("AgentNews", "AgentReport"),
    "tools.function": ("tool",),
    "tools.outcome": ("Cause", "Outcome", "Status"),
    "tools.output": ("ContextChange", "Output"),
    "tools.permission": ("Allow", "Ask", "Check", "Decision", "Deny", "Opinion", "Refuse", "Strength", "Verdict"),
    "tools.pool": ("Deferral", "ToolEntry", "Environment", "Ingredients", "Pool", "assemble"),
    "tools.raw": ("RawTool",),
    "tools.schema": ("Input",),
    "tools.tool": ("PromptView", "Tool"),
}
_MODULE_OF = {name: f"handrail.{module}" for module, names in _HOME.items() for name in names}

__all__ = [
    "AbortReason",
    "AbortSignal",
    "Access",
    "Agent",
    "AgentNews",
    "AgentReport",
    "AgentSpec",
    "Allow",
    "Answer",
    "Ask",
    "BrokenToolUse",
    "Card",
    "CarefulGate",
    "Catalog",
    "Cause",
    "Check",
    "ContextChange",
    "Decision",
    "Deferral",
    "Deny",
    "Document",
    "Environment",
    "HandrailError",
    "HookCallback",
    "HookNews",
    "Hooks",
    "Image",
    "Ingredients",
    "Input",
    "InputError",
    "Limits",
    "LoopEvent",
    "ModelOptions",
    "Opinion",
    "Outcome",
    "Output",
    "Policy",
    "Pool",
    "Progress",
    "ProgressCallback",
    "PromptView",
    "Question",
    "Rails",
    "RawTool",
    "Refuse",
    "ResultStore",
    "RetryJournal",
    "RunContext",
    "RunEnded",
    "RunError",
    "Scheduling",
    "SessionHost",
    "SessionSpec",
    "Status",
    "Strength",
    "Text",
    "Tool",
    "ToolContext",
    "ToolDefinitionError",
    "ToolEntry",
    "ToolError",
    "ToolExecutor",
    "ToolResult",
    "ToolUse",
    "Verdict",
    "__version__",
    "assemble",
    "query",
    "tool",
]


def __getattr__(name: str) -> "Any":
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'handrail' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # only who uses a name pays for it

    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
