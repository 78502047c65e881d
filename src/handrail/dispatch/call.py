"""
One call, end to end, always through the same stages:

    look up -> schema -> meaning -> hooks and analysis -> permission -> call -> post-hooks -> fit -> result block

Whatever happens on the way becomes exactly one Outcome. This is the one place where exceptions turn into results;
cancellation passes through, because only the executor knows why.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from handrail.conversation.blocks import Json, ResultBlock, Text, ToolResult, ToolUse
from handrail.dispatch.endings import crash_message, crashed, denied, failed, rejected_input
from handrail.dispatch.flags import flag, parse
from handrail.dispatch.gate import NOTHING_SAID, Evidence, HookAnswer, Rails, Request
from handrail.dispatch.results import ResultStore
from handrail.dispatch.threads import in_thread
from handrail.dispatch.tracked import Call
from handrail.errors import HandrailError, InputError, ToolError
from handrail.tools.context import Progress, ProgressCallback, RunContext, ToolContext
from handrail.tools.outcome import NO_TIME, Cause, Outcome, Status, Timings
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import NO_OPINION, Ask, Decision, Opinion, Refuse, Strength, Verdict
from handrail.tools.pool import AnyTool, Pool, definition_json
from handrail.tools.schema import did_you_mean
from handrail.tools.tool import PLAIN_VIEW

log = logging.getLogger(__name__)

NO_ANSWER = HookAnswer()
Rescheduled: TypeAlias = Callable[[Any], Awaitable[bool]]


class _RefusedError(HandrailError):
    """Semantic validation said no."""


class _ConflictError(HandrailError):
    """A changed input touches what the schedule can no longer promise."""


class _TimedOutError(HandrailError):
    """The tool's own time limit is over; a TimeoutError that the tool raised is something else."""


class Pipeline:
    """Runs single calls; knows nothing of other calls."""

    def __init__(self, pool: Pool, rails: Rails, store: ResultStore, activate: Callable[[Iterable[str]], None]) -> None:
        self._pool = pool
        self._rails = rails
        self._store = store
        self._activate = activate
        self._alone = rails.hooks is None and rails.analyst is None

    async def run(
        self,
        call: Call,
        run: RunContext,
        progress: ProgressCallback,
        now: Callable[[], float],
        rescheduled: Rescheduled,
    ) -> Outcome:
        """
        Take a call with a valid input through all stages.

        `rescheduled` is asked when the input was changed on the way; False = the new input cannot be run here.
        """
        assert call.tool is not None
        use, tool = call.use, call.tool
        stages = _Stages(call.queued_at, now)
        try:
            ctx = ToolContext(run, use, call.abort, progress, self.decide)
            request = Request(use, tool, call.args, ctx, read_only=call.read_only)
            return await self._stages(call, request, stages, rescheduled)
        except InputError as error:
            return self.invalid(use, tool, error, stages.timings())
        except _RefusedError as error:
            return rejected_input(use, Cause.REFUSED_INPUT, str(error), stages.timings())
        except _ConflictError as error:
            return failed(use, Cause.CONFLICT, str(error), stages.timings())
        except Exception as error:
            log.exception("call %s of %s crashed outside the tool", use.id, use.name)
            return crashed(use, error, stages.timings())

    async def decide(self, use: ToolUse, run: RunContext) -> Decision:
        """The rails' answer to a call that a tool wants to make."""
        tool = self._pool.find(use.name)
        if tool is None:
            return Decision(Verdict.DENY, f"there is no tool {use.name!r}")
        args, problem = parse(tool, use.input)
        if problem:
            return Decision(Verdict.DENY, str(problem))
        ctx = ToolContext(run, use, run.abort, lambda _progress: None, self.decide)
        request = Request(use, tool, args, ctx, read_only=flag(tool.is_read_only, args))
        hook, analysis = await self._before(request)
        check = await tool.check_permission(args, ctx)
        return await self._rails.gate.decide(request, Evidence(hook.opinion, analysis, "", check))

    def unknown(self, use: ToolUse) -> Outcome:
        """There is no such tool; the nearest name may help."""
        hint = did_you_mean(use.name, self._pool.names())
        message = f"There is no tool {use.name!r}.{hint} Use one of the tools you were given."
        return rejected_input(use, Cause.UNKNOWN_TOOL, message)

    def invalid(self, use: ToolUse, tool: AnyTool, error: HandrailError, timings: Timings = NO_TIME) -> Outcome:
        """The input does not fit. A tool whose schema the model has not seen yet is activated, and the schema told."""
        message = f"The input for {tool.name} is wrong.\n{error}"
        if tool.name in self._pool.deferred:
            self._activate([tool.name])
            schema = definition_json(tool, PLAIN_VIEW).decode()
            message += f"\nIts definition had not been loaded. It is from now on; call it again to fit:\n{schema}"
        return rejected_input(use, Cause.INVALID_INPUT, message, timings)

    def changed_context(self, change: ContextChange, run: RunContext) -> tuple[RunContext, str]:
        """The context that a call left behind, or the old one and what went wrong."""
        try:
            return change(run), ""
        except Exception as error:
            log.exception("a context change raised")
            return run, f"It ran, but what it changed for later calls was lost: {type(error).__name__}: {error}."

    async def _stages(self, call: Call, request: Request, stages: "_Stages", rescheduled: Rescheduled) -> Outcome:
        doubt = await self._meaning(request)
        stages.done()

        hook, analysis = (NO_ANSWER, None) if self._alone else await self._before(request)
        if hook.updated_input is not None:
            request, doubt = await self._changed(request, hook.updated_input, rescheduled)
        check = await request.tool.check_permission(request.args, request.ctx)
        if check is not NO_OPINION and check.updated_input is not None:
            request, doubt = await self._changed(request, check.updated_input, rescheduled)
        if hook is NO_ANSWER and analysis is None and not doubt and check is NO_OPINION:
            evidence = NOTHING_SAID
        else:
            evidence = Evidence(hook.opinion, analysis, doubt, check)
        decision = await self._rails.gate.decide(request, evidence)
        if decision.verdict is Verdict.ALLOW and decision.updated_input is not None:
            request, _ = await self._changed(request, decision.updated_input, rescheduled)
        stages.done()
        if decision.verdict is not Verdict.ALLOW:
            return denied(request.use, request.summary, decision, stages.timings())

        if call.abort.aborted:
            raise asyncio.CancelledError
        call.began = True
        output, cause, error = await self._call(request)
        stages.done()

        notes = () if self._rails.hooks is None else hook.context + await self._after(request, output, error)
        blocks = (Text(error),) if output is None else request.tool.result_blocks(output)
        blocks = await self._fit(request, blocks)
        if notes:
            blocks += tuple(map(Text, notes))
        stages.done()
        status = Status.OK if cause is Cause.DONE else Status.ERROR
        result = ToolResult(request.use.id, blocks, is_error=status is Status.ERROR)
        return Outcome(request.use, status, cause, result, output, decision, stages.timings())

    async def _meaning(self, request: Request) -> str:
        """Why validation is not sure about the input; empty when it is."""
        match await request.tool.validate(request.args, request.ctx):
            case None:
                return ""
            case Ask(message):
                return message
            case Refuse(message):
                raise _RefusedError(message)

    async def _changed(self, request: Request, raw: Json, rescheduled: Rescheduled) -> tuple[Request, str]:
        """The request with another input, which is checked like the first one."""
        use = ToolUse(request.use.id, request.use.name, raw)
        args = request.tool.parse(raw)
        ctx = request.ctx.varied(use=use)
        request = Request(use, request.tool, args, ctx, read_only=flag(request.tool.is_read_only, args))
        if not await rescheduled(args):
            raise _ConflictError(
                f"{request.summary} was changed by a hook or a person to touch something that later calls are already "
                "using. Ask for it again in an answer of its own."
            )
        return request, await self._meaning(request)

    async def _before(self, request: Request) -> tuple[HookAnswer, object]:
        """Pre-hooks and analysis, side by side."""
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(self._ask_hooks(request))
            analysed = group.create_task(self._analyse(request))
        answer, (analysis, problem) = asked.result(), analysed.result()
        if problem and (answer.opinion is None or answer.opinion.strength < Strength.ASK):
            answer = replace(answer, opinion=Opinion(Strength.ASK, Verdict.ASK, "classifier", problem))
        return answer, analysis

    async def _ask_hooks(self, request: Request) -> HookAnswer:
        if self._rails.hooks is None:
            return NO_ANSWER
        try:
            return await self._rails.hooks.before(request)
        except Exception as error:
            log.exception("a hook before %s could not run", request.use.name)
            reason = f"a hook that has a say in it could not run ({error})"
            return HookAnswer(Opinion(Strength.ASK, Verdict.ASK, "hooks", reason))

    async def _analyse(self, request: Request) -> tuple[object, str]:
        if self._rails.analyst is None:
            return None, ""
        try:
            return await self._rails.analyst.analyse(request), ""
        except Exception as error:
            log.exception("the analysis of %s failed", request.use.name)
            return None, f"what it would do could not be found out ({error})"

    async def _call(self, request: Request) -> tuple[Output | None, Cause, str]:
        """The output, or the sentence about what went wrong."""
        tool, ctx = request.tool, request.ctx
        try:
            if tool.timeout is None:
                output = await _invoke(tool, request.args, ctx)
            else:
                output = await _within(tool.timeout, tool, request.args, ctx)
        except ToolError as error:
            return None, Cause.FAILED, str(error)
        except _TimedOutError:
            message = (
                f"{request.summary} did not finish within {tool.timeout:g} seconds and was stopped. "
                "Its effects may be incomplete. Ask for less at once, or look at what was done."
            )
            return None, Cause.TIMED_OUT, message
        except Exception as error:
            log.exception("%s crashed in call %s", tool.name, ctx.use.id)
            return None, Cause.CRASHED, crash_message(tool.name, error)
        return output, Cause.FAILED if output.is_error else Cause.DONE, ""

    async def _after(self, request: Request, output: Output | None, error: str) -> tuple[str, ...]:
        assert self._rails.hooks is not None
        try:
            return await self._rails.hooks.after(request, output, error)
        except Exception as problem:
            log.exception("a hook after %s could not run", request.use.name)
            return (f"A hook that looks at this call after it ran could not run: {problem}",)

    async def _fit(self, request: Request, blocks: tuple[ResultBlock, ...]) -> tuple[ResultBlock, ...]:
        limit = request.tool.max_result_chars
        if limit is None or sum(len(block.text) for block in blocks if isinstance(block, Text)) <= limit:
            return blocks
        return await in_thread(partial(self._store.fit, request.use.id, blocks, limit))


class _Stages:
    """A stop watch: one mark at the end of each stage."""

    __slots__ = ("_marks", "_now")

    def __init__(self, queued_at: float, now: Callable[[], float]) -> None:
        self._now = now
        self._marks = [queued_at, now()]

    def done(self) -> None:
        self._marks.append(self._now())

    def timings(self) -> Timings:
        marks = self._marks
        return Timings(*[after - before for before, after in pairwise(marks)])


async def _within(seconds: float, tool: AnyTool, args: Any, ctx: ToolContext) -> Output:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _invoke(tool, args, ctx)
    except TimeoutError as error:
        raise (_TimedOutError() if limit.expired() else error) from error


async def _invoke(tool: AnyTool, args: Any, ctx: ToolContext) -> Output:
    if not tool.blocking:
        output: Output = await tool.call(args, ctx)
        return output
    loop = asyncio.get_running_loop()
    report = ctx.progress

    def from_thread(progress: Progress) -> None:
        loop.call_soon_threadsafe(report, progress)

    return await in_thread(lambda: tool.call_blocking(args, ctx.varied(progress=from_thread)))
