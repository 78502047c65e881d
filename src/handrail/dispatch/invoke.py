"""Calls the tool itself, in a thread if it blocks, within its time limit."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from handrail.dispatch.threads import in_thread
from handrail.errors import ToolTimeoutError
from handrail.tools.abort import AbortReason
from handrail.tools.context import ToolContext
from handrail.tools.flags import abort, flag
from handrail.tools.output import Output
from handrail.tools.pool import AnyTool


def invoke(tool: AnyTool, args: Any, ctx: ToolContext) -> Awaitable[Output]:
    """
    Call the tool.

    Raises:
        ToolTimeoutError: it exceeded its time limit. A blocking tool is told by `ctx.abort`, not forced to stop.
    """
    call = _blocking(tool, args, ctx) if tool.blocking else tool.call(args, ctx)
    if isinstance(call, Output):
        raise TypeError("its call is not async; write `async def call`")
    return call if tool.timeout is None else _within(tool.timeout, call, ctx)


def _blocking(tool: AnyTool, args: Any, ctx: ToolContext) -> Awaitable[Output]:
    work = partial(tool.call_blocking, args, ctx)
    return _at_once(work) if flag(partial(tool.is_quick, ctx=ctx), args) else in_thread(work)


async def _at_once(work: Callable[[], Output]) -> Output:
    return work()


async def _within(seconds: float, call: Awaitable[Output], ctx: ToolContext) -> Output:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await call
    except TimeoutError as error:
        if not limit.expired():
            raise
        abort(ctx.abort, AbortReason.TIMEOUT)
        raise ToolTimeoutError from error
