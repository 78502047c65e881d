"""
One call, end to end, always through the same stages:

    look up -> schema -> meaning -> hooks -> permission -> call -> post-hooks -> fit -> result block

Whatever happens on the way becomes exactly one Outcome. This is the one place where exceptions turn into results;
cancellation passes through, because only the executor knows why.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from handrail.conversation.blocks import Json, Text, ToolUse
from handrail.conversation.scribe import Scribe
from handrail.dispatch.endings import (
    crash_message,
    crashed,
    denied,
    failed,
    hook_stopped,
    message,
    put_off,
    rejected_input,
    tool_result,
)
from handrail.dispatch.flags import parse
from handrail.dispatch.gate import NO_ANSWER, NOTHING_SAID, Evidence, HookAnswer, Hooks, Rails, Request
from handrail.dispatch.invoke import invoke
from handrail.dispatch.results import ResultStore
from handrail.dispatch.threads import in_thread
from handrail.dispatch.tracked import Call
from handrail.errors import HandrailError, InputError, ToolError, ToolTimeoutError
from handrail.hooks.texts import reminder
from handrail.records import record
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.outcome import NO_TIME, Cause, Outcome, Status, Timings
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import NO_OPINION, Ask, Decision, Opinion, Refuse, Strength, Verdict
from handrail.tools.pool import AnyTool, Pool, definition_json
from handrail.tools.tool import DEFAULT_RESULT_CHARS, PLAIN_VIEW
from handrail.tools.wording import did_you_mean

log = logging.getLogger(__name__)


class _RefusedError(HandrailError):
    """Semantic validation said no."""


class _DeferredError(HandrailError):
    """A hook wants to decide later, and can."""


class _ConflictError(HandrailError):
    """A changed input touches what the schedule can no longer promise."""


AddTools: TypeAlias = Callable[[Sequence[AnyTool]], None]
"""Offers more tools from the next request on."""


@record
class Desk:
    """What a call needs of those who run it."""

    now: Callable[[], float]
    progress: Callable[[Call, Progress], None]
    rescheduled: Callable[[Call, Request], Awaitable[bool]]
    """Asked when the input was changed: may the call go on, perhaps after a wait? False = it cannot be run here."""
    deferrable: Callable[[Call], Awaitable[bool]]
    """Asked when a hook wants the call put off: can it be? May wait until that is known."""
    add_tools: AddTools
    scribe: Scribe | None = None


class Pipeline:
    """Runs single calls; knows nothing of other calls."""

    def __init__(
        self,
        pool: Pool,
        rails: Rails,
        store: ResultStore,
        activate: Callable[[Iterable[str]], None],
        desk: Desk,
    ) -> None:
        self._pool = pool
        self._rails = rails
        self._store = store
        self._activate = activate
        self._desk = desk

    async def run(self, call: Call, run: RunContext) -> Outcome:
        """Take a call with a valid input through all stages."""
        assert call.tool is not None
        ctx = ToolContext(run, call.use, call.abort, partial(self._desk.progress, call), self.decide)
        request = Request(call.use, call.tool, call.args, ctx, read_only=call.read_only, access=call.access)
        now, marks = self._desk.now, call.marks
        marks.append(now())
        try:
            doubt = _doubt(await call.tool.validate(call.args, ctx))
            marks.append(now())

            request, hook, decision = await self._judged(request, doubt, call)
            marks.append(now())
            if decision.verdict is not Verdict.ALLOW:
                return _refused(request, hook.stop, decision, call.timings)

            self._begin(call, request, decision)
            output, cause, error = await self._call(request)
            marks.append(now())

            after = NO_ANSWER
            if self._rails.hooks is not None:
                after = await self._after(request, output, error, marks[-1] - marks[-2])
                output = after.updated_output or output
            blocks = (Text(error),) if output is None else request.tool.result_blocks(output)
            limit = self._store.limit_of(request.tool.name, _limit(request.tool, output))
            if limit is not None and sum([len(block.text) for block in blocks if isinstance(block, Text)]) > limit:
                blocks = await in_thread(partial(self._store.fit, request.use.id, blocks, limit))
            marks.append(now())
        except InputError as error:
            return self.invalid(call.use, call.tool, error, self._timings(call))
        except _RefusedError as error:
            return rejected_input(call.use, Cause.REFUSED_INPUT, str(error), self._timings(call))
        except _DeferredError:
            return put_off(call.use, self._timings(call))
        except _ConflictError as error:
            return failed(call.use, Cause.CONFLICT, str(error), self._timings(call))
        except Exception as error:
            log.exception("call %s of %s crashed outside the tool", call.use.id, call.use.name)
            return crashed(call.use, error, self._timings(call))
        done = cause is Cause.DONE
        if hook.context or after.context:
            blocks = (*blocks, *map(_note, (*hook.context, *after.context)))
        result = tool_result(request.use, blocks, is_error=not done)
        status = Status.OK if done else Status.ERROR
        return Outcome(request.use, status, cause, result, output, decision, call.timings, after.stop, request.access)

    def _begin(self, call: Call, request: Request, decision: Decision) -> None:
        """From here on there may be effects, so it is written down first."""
        if call.stop_reason:
            raise asyncio.CancelledError  # a hook or the gate kept it to itself
        if self._desk.scribe is not None:
            self._desk.scribe.start_call(request.use)
        call.began = True
        request.ctx = request.ctx.varied(decision=decision, permissions=request.policy)

    async def decide(self, use: ToolUse, run: RunContext) -> Decision:
        """The rails' answer to a call that a tool wants to make. An input that they changed is part of the answer."""
        tool = self._pool.find(use.name)
        if tool is None:
            return Decision(Verdict.DENY, f"there is no tool {use.name!r}")
        args, problem = parse(tool, use.input)
        if problem:
            return Decision(Verdict.DENY, str(problem))
        ctx = ToolContext(run, use, run.abort, lambda _progress: None, self.decide)
        request = Request.of(use, tool, args, ctx)
        try:
            request, _, decision = await self._judged(request, _doubt(await tool.validate(args, ctx)), None)
        except (InputError, _RefusedError) as error:
            return Decision(Verdict.DENY, str(error))
        return decision if request.use is use else replace(decision, updated_input=request.use.input)

    def unknown(self, use: ToolUse) -> Outcome:
        """There is no such tool; the nearest name may help."""
        hint = did_you_mean(use.name, self._pool.names())
        text = f"There is no tool {use.name!r}.{hint} Use one of the tools you were given."
        return rejected_input(use, Cause.UNKNOWN_TOOL, text)

    def disabled(self, use: ToolUse) -> Outcome:
        """The tool was there when the request was made, and cannot be used now."""
        text = f"{use.name} cannot be used at present: it is switched off. Do it another way, or try again later."
        return rejected_input(use, Cause.UNKNOWN_TOOL, text)

    def invalid(self, use: ToolUse, tool: AnyTool, error: HandrailError, timings: Timings = NO_TIME) -> Outcome:
        """The input does not fit. A tool whose schema the model has not seen yet is activated, and the schema told."""
        text = f"The input for {tool.name} is wrong.\n{error}"
        if tool.name in self._pool.deferred:
            self._activate([tool.name])
            schema = definition_json(tool, PLAIN_VIEW).decode()
            text += f"\nIts definition had not been loaded. It is from now on; call it again to fit:\n{schema}"
        return rejected_input(use, Cause.INVALID_INPUT, text, timings)

    def changed_context(self, call: Call, outcome: Outcome, run: RunContext) -> tuple[RunContext, str]:
        """The context that a call left behind, or the old one and what went wrong."""
        change: object = outcome.output.context_change if outcome.output else None
        problem = ""
        try:
            if not isinstance(change, ContextChange):
                problem = f"it left {change!r} instead of a ContextChange"
            elif not (problem := self._rails.gate.adopt(change, run, consented=_is_consented(call, outcome))):
                if change.add_tools:
                    self._desk.add_tools(change.add_tools)
                return (run if change.cwd is None else replace(run, cwd=change.cwd)), ""
        except HandrailError as error:
            problem = str(error)
        except Exception as error:
            log.exception("a context change could not be made")
            problem = f"{type(error).__name__}: {error}"
        return run, f"It ran, but what it changed for later calls was lost: {problem.rstrip('.')}."

    def _timings(self, call: Call) -> Timings:
        """Also the stage that was not finished has taken its time."""
        call.marks.append(self._desk.now())
        return call.timings

    async def _judged(self, request: Request, doubt: str, call: Call | None) -> tuple[Request, HookAnswer, Decision]:
        """What hooks, the tool itself and the gate say: the request as they left it, and the answer."""
        hook = NO_ANSWER
        if self._rails.hooks is not None:
            hook = await self._before(self._rails.hooks, request)
            if hook.stop is not None:
                return request, hook, _stopped(hook.stop, request)
            if hook.defers:
                if call is not None and await self._desk.deferrable(call):
                    raise _DeferredError
                hook = _asked_now(hook)
            if hook.updated_input is not None:
                request, doubt = await self._changed(request, hook.updated_input, call)
        if call is not None and call.put_off and hook.opinion is None and not hook.asked:
            hook = replace(hook, opinion=UNDECIDED)
        check = await request.tool.check_permission(request.args, request.ctx)
        if check.updated_input is not None:
            request, doubt = await self._changed(request, check.updated_input, call)
        if hook is NO_ANSWER and check is NO_OPINION and not doubt:
            evidence = NOTHING_SAID
        else:
            evidence = Evidence(hook.opinion, doubt, check)
        decision = await self._rails.gate.decide(request, evidence)
        if decision.verdict is Verdict.ALLOW and decision.updated_input is not None:
            policy = request.policy
            request, _ = await self._changed(request, decision.updated_input, call)
            request.policy = policy
        return request, hook, decision

    async def _changed(self, request: Request, raw: Json, call: Call | None) -> tuple[Request, str]:
        """The request with another input, which is checked like the first one."""
        use = ToolUse(request.use.id, request.use.name, raw)
        args = request.tool.parse(raw)
        request = Request.of(use, request.tool, args, request.ctx.varied(use=use))
        if call is not None and not await self._desk.rescheduled(call, request):
            raise _ConflictError(
                f"{request.summary} was changed by a hook or a person to touch something that later calls are already "
                "using. Ask for it again in an answer of its own."
            )
        return request, _doubt(await request.tool.validate(args, request.ctx))

    async def _before(self, hooks: Hooks, request: Request) -> HookAnswer:
        """What the pre-hooks answer."""
        try:
            return await hooks.before(request)
        except Exception as error:
            log.exception("a hook before %s could not run", request.use.name)
            reason = f"a hook that has a say in it could not run ({error})"
            return HookAnswer(Opinion(Strength.ASK, Verdict.ASK, "hooks", reason))

    async def _call(self, request: Request) -> tuple[Output | None, Cause, str]:
        """The output, or the sentence about what went wrong."""
        tool = request.tool
        try:
            output: object = await invoke(tool, request.args, request.ctx)
            if not isinstance(output, Output):
                raise TypeError(f"its call returned a {type(output).__name__} where an Output is due")
        except ToolError as error:
            return None, Cause.FAILED, str(error)
        except ToolTimeoutError:
            end = "was told to stop, but may still be running" if tool.blocking else "was stopped"
            text = (
                f"{request.summary} did not finish within {tool.timeout:g} seconds and {end}. "
                "Its effects may be incomplete. Ask for less at once, or look at what was done."
            )
            return None, Cause.TIMED_OUT, text
        except (Exception, SystemExit) as error:  # a tool may end itself, not the program
            log.exception("%s crashed in call %s", tool.name, request.use.id)
            return None, Cause.CRASHED, crash_message(tool.name, error)
        return output, Cause.FAILED if output.is_error else Cause.DONE, ""

    async def _after(self, request: Request, output: Output | None, error: str, seconds: float) -> HookAnswer:
        """What hooks have to say about a call that has run."""
        assert self._rails.hooks is not None
        try:
            return await self._rails.hooks.after(request, output, error, seconds)
        except Exception as problem:
            log.exception("a hook after %s could not run", request.use.name)
            return HookAnswer(context=(f"A hook that looks at this call after it ran could not run: {problem}",))


UNDECIDED = Opinion(Strength.ASK, Verdict.ASK, "hooks", "a hook had put it off, and no hook has a say in it any more")


def _asked_now(hook: HookAnswer) -> HookAnswer:
    """A call that cannot be put off is asked about, and the person learns why."""
    assert hook.opinion is not None
    reason = f"{hook.opinion.reason}, which only works for the single call of an answer in a run without a terminal"
    return replace(hook, opinion=replace(hook.opinion, reason=reason))


def _is_consented(call: Call, outcome: Outcome) -> bool:
    """Whether a person, or who answers for one, agreed to this very call, which no rule could have agreed to."""
    opinions = outcome.decision.opinions if outcome.decision else ()
    agreed = any(each.strength is Strength.PERSON and each.verdict is Verdict.ALLOW for each in opinions)
    return agreed and call.tool is not None and call.tool.requires_user_interaction


def _note(text: str) -> Text:
    """Words of a hook, in a frame that they cannot leave."""
    return Text(reminder(message(text).text))


def _refused(request: Request, stop: str | None, decision: Decision, timings: Timings) -> Outcome:
    if stop is not None:
        return hook_stopped(request.use, request.summary, decision, stop, timings)
    return replace(denied(request.use, request.summary, decision, timings), access=request.access)


def _stopped(stop: str, request: Request) -> Decision:
    reason = f"a hook stopped the run ({stop})" if stop else "a hook stopped the run"
    opinion = Opinion(Strength.DENY, Verdict.DENY, "hooks", reason)
    return Decision(Verdict.DENY, reason, (opinion,), request.ctx.permissions.version)


def _doubt(meaning: Refuse | Ask | None) -> str:
    """Why validation is not sure about the input; empty when it is."""
    match meaning:
        case None:
            return ""
        case Ask(text):
            return text
        case Refuse(text):
            raise _RefusedError(text)


def _limit(tool: AnyTool, output: Output | None) -> int | None:
    """A tool may bound its results itself, but not what others raise inside it."""
    limit = tool.max_result_chars
    return DEFAULT_RESULT_CHARS if limit is None and output is None else limit
