"""CallRequest: one call that wants to run, with what its tool declares about the input."""

from collections.abc import Awaitable, Callable
from typing import Any

from handrail.conversation.blocks import ToolUse
from handrail.tools.abort import AbortSignal
from handrail.tools.access import EXCLUSIVE, Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.flags import declaration, flag, parse, short
from handrail.tools.permission import Decision, PermissionSnapshot, Verdict
from handrail.tools.pool import AnyTool


class CallRequest:
    """One call that wants to run: the tool, its checked input, and what the tool declares about that input."""

    __slots__ = ("access", "args", "before_question", "ctx", "policy", "read_only", "tool", "use")

    def __init__(
        self, use: ToolUse, tool: AnyTool, args: Any, ctx: ToolContext, *, read_only: bool, access: Access
    ) -> None:
        self.policy: PermissionSnapshot | None = None
        """What the gate decided on; None = it has no policy."""
        self.before_question: Callable[[], Awaitable[None]] = _ask_at_once
        """To be awaited before the user is asked about the call."""
        self.use = use
        self.tool = tool
        self.args = args
        self.ctx = ctx
        self.read_only = read_only
        self.access = access

    @classmethod
    def of(cls, use: ToolUse, tool: AnyTool, args: Any, ctx: ToolContext) -> "CallRequest":
        """The request, with what the tool says about this input."""
        access = declaration(tool, args, ctx.run)
        return cls(use, tool, args, ctx, read_only=flag(tool.is_read_only, args), access=access)

    @classmethod
    def hypothetical(cls, use: ToolUse, tool: AnyTool, run: RunContext) -> "CallRequest":
        """
        A request for a call that will not run, so its input may be incomplete.

        With an input that has no field of the tool, the request declares nothing.
        """
        ctx = ToolContext(run, use, AbortSignal(), lambda _progress: None, _no_other_tool)
        args, problem = parse(tool, use.input)
        if problem is None:
            return cls.of(use, tool, args, ctx)
        model = getattr(tool, "input_model", None)
        if model is None or (use.input and use.input.keys().isdisjoint(model.model_fields)):
            return cls(use, tool, None, ctx, read_only=False, access=EXCLUSIVE)
        given = {name: value for name, value in use.input.items() if name in model.model_fields}
        return cls.of(use, tool, model.model_construct(**given), ctx)

    @property
    def summary(self) -> str:
        """The call in short."""
        return short(self.tool, self.args)


async def _ask_at_once() -> None:
    """For a call that is not part of an answer that still arrives."""


async def _no_other_tool(_use: ToolUse, _run: RunContext) -> Decision:
    return Decision(Verdict.DENY, "nothing is run here")
