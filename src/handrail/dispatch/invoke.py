"""The call of the tool itself: in a thread if it blocks, and within its time limit."""

import asyncio
from typing import Any

from handrail.dispatch.flags import abort
from handrail.dispatch.threads import in_thread
from handrail.errors import HandrailError
from handrail.tools.abort import AbortReason
from handrail.tools.context import ToolContext
from handrail.tools.output import Output
from handrail.tools.pool import AnyTool


class TimedOutError(HandrailError):
    """The tool's own time limit is over; a TimeoutError that the tool raised is something else."""


async def invoke(tool: AnyTool, args: Any, ctx: ToolContext) -> Output:
    """
    What the tool returns.

    Raises:
        TimedOutError: it took longer than it may. A blocking tool is told by `ctx.abort`; it cannot be forced.
    """
    output: object
    if tool.timeout is None:
        output = await _call(tool, args, ctx)
    else:
        output = await _within(tool.timeout, tool, args, ctx)
    if not isinstance(output, Output):
        raise TypeError(f"its call returned a {type(output).__name__} where an Output is due")
    return output


async def _within(seconds: float, tool: AnyTool, args: Any, ctx: ToolContext) -> object:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _call(tool, args, ctx)
    except TimeoutError as error:
        if not limit.expired():
            raise
        abort(ctx.abort, AbortReason.TIMEOUT)
        raise TimedOutError from error


async def _call(tool: AnyTool, args: Any, ctx: ToolContext) -> object:
    if tool.blocking:
        return await in_thread(lambda: tool.call_blocking(args, ctx))
    return await tool.call(args, ctx)
