"""
Runs one call through its stages, always the same:

    look up -> schema -> meaning -> hooks -> permission -> call -> post-hooks -> fit -> result block

Every call ends in exactly one Outcome. This is the only place where exceptions become results; cancellation passes
through, because only the executor knows its reason.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from handrail.conversation.blocks import Json, Text, ToolUse
from handrail.conversation.logger import get_logger
from handrail.conversation.transcript import Transcript
from handrail.dispatch.call_state import Call, CallEnd
from handrail.dispatch.footprint import READS_WORLD, Footprint, footprint
from handrail.dispatch.gate import NO_ANSWER, UNDECIDED, HookAnswer, Rails, ToolHooks, ask_instead
from handrail.dispatch.invoke import invoke
from handrail.dispatch.observer import CallObserver
from handrail.dispatch.outcomes import (
    crash_message,
    crash_outcome,
    deferred_outcome,
    denied_outcome,
    error_outcome,
    escape_imitations,
    hook_stop_outcome,
    message,
    rejected_outcome,
    tool_result,
)
from handrail.dispatch.results import ResultStore, text_size, without_excess_media
from handrail.dispatch.threads import in_thread
from handrail.errors import HandrailError, InputError, ToolError, ToolTimeoutError
from handrail.hooks.texts import reminder
from handrail.lazy import lazy
from handrail.permissions.facts import NOTHING_SAID, Evidence
from handrail.records import record
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.flags import parse
from handrail.tools.outcome import NO_TIME, Cause, Outcome, Status, Timings
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import NO_OPINION, Ask, Decision, Opinion, Refuse, Strength, Verdict
from handrail.tools.pool import AnyTool, Pool, definition_json
from handrail.tools.request import CallRequest
from handrail.tools.tool import DEFAULT_RESULT_CHARS, PLAIN_VIEW

if TYPE_CHECKING:
    from handrail.dispatch import file_tracking
else:
    file_tracking = lazy("handrail.dispatch.file_tracking")

log = get_logger(__name__)


class _InputRefusedError(HandrailError):
    """The tool's validation refused the input."""


class _DeferredError(HandrailError):
    """A hook put the call off."""


class _ConflictError(HandrailError):
    """A changed input conflicts with calls that have already started."""


AddTools: TypeAlias = Callable[[Sequence[AnyTool]], None]
"""Offers more tools from the next request on."""
Reschedule: TypeAlias = Callable[[Call, CallRequest], Awaitable[bool]]
"""Called when the input was changed; waits until the call may go on. False = it conflicts with running calls."""


@record
class CallHost:
    """What a call needs of the executor that runs it."""

    now: Callable[[], float]
    progress: Callable[[Call, Progress], None]
    can_defer: Callable[[], Awaitable[bool]]
    """Whether a hook may put the call off. May wait until that is known."""
    before_question: Callable[[], Awaitable[None]]
    """Awaited before the user is asked about a call."""
    add_tools: AddTools
    transcript: Transcript | None = None


class CallPipeline:
    """Runs single calls; knows nothing of other calls."""

    def __init__(
        self,
        pool: Pool,
        rails: Rails,
        store: ResultStore,
        activate: Callable[[Iterable[str]], None],
        host: CallHost,
    ) -> None:
        self.pool = pool
        """The tools that calls may name."""
        self._rails = rails
        self._store = store
        self._activate = activate
        self._host = host

    async def run(self, call: Call, run: RunContext, reschedule: Reschedule) -> Outcome:
        """Take a call with a valid input through all stages."""
        request = self._make_request(call, run)
        now, marks = self._host.now, call.marks
        marks.append(now())
        try:
            doubt = await _validate(request)
            marks.append(now())

            request, hook, decision = await self._decide(request, doubt, call, reschedule)
            marks.append(now())
            if decision.verdict is not Verdict.ALLOW:
                return _refusal(request, hook.stop, decision, call.timings)

            places = _named_places(call, request)
            held = None if places is READS_WORLD else await self._rails.places.acquire(places)
            try:
                self._begin(call, request, decision)
                output, cause, error, notices = await _call(request)
            finally:
                self._rails.places.release(held)
            marks.append(now())

            after = NO_ANSWER
            if self._rails.hooks is not None:
                after = await self._after(request, output, error, marks[-1] - marks[-2])
                output = after.updated_output or output
            blocks = (Text(error),) if output is None else request.tool.result_blocks(output)
            limit = self._store.limit_of(request.tool.name, _limit(request.tool, output))
            if limit is not None and text_size(blocks) > limit:
                blocks = await in_thread(partial(self._store.fit, request.use.id, blocks, limit, self.pool.names()))
            blocks = without_excess_media(blocks)
            marks.append(now())
        except InputError as error:
            return self.invalid_input(call.use, request.tool, error, self._timings(call))
        except _InputRefusedError as error:
            return rejected_outcome(call.use, Cause.REFUSED_INPUT, str(error), self._timings(call))
        except _DeferredError:
            return deferred_outcome(call.use, self._timings(call))
        except _ConflictError as error:
            return error_outcome(call.use, Cause.CONFLICT, str(error), self._timings(call))
        except Exception as error:
            log.exception("call %s of %s crashed outside the tool", call.use.id, call.use.name)
            return crash_outcome(call.use, error, self._timings(call))
        done = cause is Cause.DONE
        blocks = escape_imitations(blocks)
        if notices or hook.context or after.context:
            blocks = (*blocks, *map(Text, notices), *map(_note, (*hook.context, *after.context)))
        result = tool_result(request.use, blocks, is_error=not done)
        status = Status.OK if done else Status.ERROR
        return Outcome(request.use, status, cause, result, output, decision, call.timings, after.stop, request.access)

    def _make_request(self, call: Call, run: RunContext) -> CallRequest:
        assert call.tool is not None
        progress = partial(self._host.progress, call)
        ctx = ToolContext(run, call.use, call.abort, progress, self.decide, leave=call.leave)
        request = CallRequest(call.use, call.tool, call.args, ctx, read_only=call.read_only, access=call.access)
        request.before_question = self._host.before_question
        if self._rails.observer is not None:
            request.before_question = self._question_callback(call, run, self._rails.observer)
        return request

    def _question_callback(self, call: Call, run: RunContext, observer: CallObserver) -> Callable[[], Awaitable[None]]:
        """What is awaited before the user is asked about a call; the observer learns of it afterwards."""

        async def tell() -> None:
            await self._host.before_question()
            observer.question_asked(call.use, run)

        return tell

    def _begin(self, call: Call, request: CallRequest, decision: Decision) -> None:
        """Record that the call begins, because it may have effects from here on."""
        if call.stop_reason:
            raise asyncio.CancelledError  # a hook or the gate swallowed the cancellation
        if self._host.transcript is not None:
            self._host.transcript.start_call(request.use)
        call.began = True
        request.ctx.settle(decision, request.policy)

    async def decide(self, use: ToolUse, run: RunContext) -> Decision:
        """Decide on a call that a tool wants to make. The decision holds the input if hooks or the gate changed it."""
        tool = self.pool.find(use.name)
        if tool is None:
            return Decision(Verdict.DENY, f"there is no tool {use.name!r}")
        args, problem = parse(tool, use.input)
        if problem:
            return Decision(Verdict.DENY, str(problem))
        ctx = ToolContext(run, use, run.abort, lambda _progress: None, self.decide)
        request = CallRequest.of(use, tool, args, ctx)
        try:
            request, _, decision = await self._decide(request, await _validate(request))
        except (InputError, _InputRefusedError) as error:
            return Decision(Verdict.DENY, str(error))
        return decision if request.use is use else replace(decision, updated_input=request.use.input)

    def invalid_input(self, use: ToolUse, tool: AnyTool, error: HandrailError, timings: Timings = NO_TIME) -> Outcome:
        """The outcome for an invalid input. A deferred tool is activated, and the model gets its schema."""
        text = f"The input for {tool.name} is wrong.\n{error}"
        if tool.name in self.pool.deferred:
            self._activate([tool.name])
            schema = definition_json(tool, PLAIN_VIEW).decode()
            text += f"\nIts definition had not been loaded. It is from now on; call it again to fit:\n{schema}"
        return rejected_outcome(use, Cause.INVALID_INPUT, text, timings)

    def change_context(self, call: Call, outcome: Outcome, run: RunContext) -> tuple[RunContext, str]:
        """The context after the change that a call asks for, or the old one and what went wrong."""
        change: object = outcome.output.context_change if outcome.output else None
        problem = ""
        try:
            if not isinstance(change, ContextChange):
                problem = f"it left {change!r} instead of a ContextChange"
            elif not (problem := self._rails.gate.adopt(change, run, consented=_is_consented(call, outcome))):
                if change.add_tools:
                    self._host.add_tools(change.add_tools)
                return (run if change.cwd is None else replace(run, cwd=change.cwd)), ""
        except HandrailError as error:
            problem = str(error)
        except Exception as error:
            log.exception("a context change could not be made")
            problem = f"{type(error).__name__}: {error}"
        return run, f"It ran, but what it changed for later calls was lost: {problem.rstrip('.')}."

    def _timings(self, call: Call) -> Timings:
        """The timings, with the unfinished stage."""
        call.marks.append(self._host.now())
        return call.timings

    async def _decide(
        self, request: CallRequest, doubt: str, call: Call | None = None, reschedule: Reschedule | None = None
    ) -> tuple[CallRequest, HookAnswer, Decision]:
        """Ask hooks, the tool and the gate: the request as they changed it, the hook answer, and the decision."""
        hook = NO_ANSWER
        if self._rails.hooks is not None:
            hook = await self._before(self._rails.hooks, request)
            if hook.stop is not None:
                return request, hook, _stop_decision(hook.stop, request)
            if hook.defers:
                if call is not None and await self._host.can_defer():
                    raise _DeferredError
                hook = ask_instead(hook)
            if hook.updated_input is not None:
                request, doubt = await self._change_input(request, hook.updated_input, call, reschedule)
        if call is not None and call.was_deferred and hook.opinion is None and not hook.asked:
            hook = replace(hook, opinion=UNDECIDED)
        check = await request.tool.check_permission(request.args, request.ctx)
        if check.updated_input is not None:
            request, doubt = await self._change_input(request, check.updated_input, call, reschedule)
        if hook is NO_ANSWER and check is NO_OPINION and not doubt:
            evidence = NOTHING_SAID
        else:
            evidence = Evidence(hook.opinion, doubt, check)
        decision = await self._ask_gate(request, evidence)
        if decision.verdict is Verdict.ALLOW and decision.updated_input is not None:
            policy = request.policy
            request, _ = await self._change_input(request, decision.updated_input, call, reschedule)
            request.policy = policy
        return request, hook, decision

    async def _change_input(
        self, request: CallRequest, raw: Json, call: Call | None, reschedule: Reschedule | None
    ) -> tuple[CallRequest, str]:
        """The request with another input, which is validated like the first one."""
        use = ToolUse(request.use.id, request.use.name, raw)
        args = request.tool.parse(raw)
        before_question = request.before_question
        request = CallRequest.of(use, request.tool, args, request.ctx.replace(use=use))
        request.before_question = before_question
        if call is not None and not (reschedule and await reschedule(call, request)):
            raise _ConflictError(
                f"{request.summary} was changed by a hook or a person to touch something that later calls are already "
                "using. Ask for it again in an answer of its own."
            )
        return request, await _validate(request)

    async def _before(self, hooks: ToolHooks, request: CallRequest) -> HookAnswer:
        """What the pre-hooks answer. One that raises has not said yes, so that is a no."""
        try:
            return await hooks.before(request)
        except Exception as error:
            log.exception("a hook before %s failed", request.use.name)
            reason = f"a hook that has a say in it failed ({type(error).__name__}: {error})"
            return HookAnswer(Opinion(Strength.DENY, Verdict.DENY, "hooks", reason))

    async def _ask_gate(self, request: CallRequest, evidence: Evidence) -> Decision:
        """The gate's decision. A gate, or an approver of it, that raises has not said yes, so that is a no."""
        try:
            return await self._rails.gate.decide(request, evidence)
        except Exception as error:
            log.exception("the gate failed to decide on %s", request.use.name)
            reason = f"whether it may run could not be decided ({type(error).__name__}: {error})"
            opinion = Opinion(Strength.DENY, Verdict.DENY, "gate", reason)
            return Decision(Verdict.DENY, reason, (opinion,), request.ctx.permissions.version)

    async def _after(self, request: CallRequest, output: Output | None, error: str, seconds: float) -> HookAnswer:
        """What the post-hooks answer."""
        assert self._rails.hooks is not None
        try:
            return await self._rails.hooks.after(request, output, error, seconds)
        except Exception as problem:
            log.exception("a hook after %s could not run", request.use.name)
            return HookAnswer(context=(f"A hook that looks at this call after it ran could not run: {problem}",))


def _call(request: CallRequest) -> Awaitable[CallEnd]:
    """Call the tool, with the files that it declares and does not track itself looked at before and after."""
    return _call_with_files(request) if _tracks_files_here(request) else _call_tool(request)


async def _call_with_files(request: CallRequest) -> CallEnd:
    try:
        return await file_tracking.call_with_files(request, _call_tool)
    except ToolError as error:
        return None, Cause.FAILED, str(error), ()


async def _call_tool(request: CallRequest) -> CallEnd:
    """Call the tool; its exceptions become messages."""
    tool = request.tool
    try:
        output: object = await invoke(tool, request.args, request.ctx)
        if not isinstance(output, Output):
            raise TypeError(f"its call returned a {type(output).__name__} where an Output is due")
    except ToolError as error:
        return None, Cause.FAILED, str(error), ()
    except ToolTimeoutError:
        end = "was told to stop, but may still be running" if tool.blocking else "was stopped"
        text = (
            f"{request.summary} did not finish within {tool.timeout:g} seconds and {end}. "
            "Its effects may be incomplete. Ask for less at once, or look at what was done."
        )
        return None, Cause.TIMED_OUT, text, ()
    except (Exception, SystemExit) as error:  # a tool may end itself, not the program
        log.exception("%s crashed in call %s", tool.name, request.use.id)
        return None, Cause.CRASHED, crash_message(tool.name, error), ()
    return output, Cause.FAILED if output.is_error else Cause.DONE, "", ()


def _named_places(call: Call, request: CallRequest) -> Footprint:
    """The places that the call names; what it holds in its own schedule may be wider."""
    if request.access.width == "named" and call.alone:
        return footprint(request.access, request.ctx.cwd)
    return call.footprint


def _is_consented(call: Call, outcome: Outcome) -> bool:
    """Whether the user, or a handler in their place, agreed to this call, which no rule could allow."""
    opinions = outcome.decision.opinions if outcome.decision else ()
    agreed = any(each.strength is Strength.PERSON and each.verdict is Verdict.ALLOW for each in opinions)
    return agreed and call.tool is not None and call.tool.requires_user_interaction


def _note(text: str) -> Text:
    """Text of a hook, wrapped so that it cannot pass for anything else."""
    return Text(reminder(message(text).text))


def _refusal(request: CallRequest, stop: str | None, decision: Decision, timings: Timings) -> Outcome:
    if stop is not None:
        return hook_stop_outcome(request.use, request.summary, decision, stop, timings)
    return replace(denied_outcome(request.use, request.summary, decision, timings), access=request.access)


def _stop_decision(stop: str, request: CallRequest) -> Decision:
    reason = f"a hook stopped the run ({stop})" if stop else "a hook stopped the run"
    opinion = Opinion(Strength.DENY, Verdict.DENY, "hooks", reason)
    return Decision(Verdict.DENY, reason, (opinion,), request.ctx.permissions.version)


async def _validate(request: CallRequest) -> str:
    """Why validation is not sure about the input; empty when it is."""
    meaning = await request.tool.validate(request.args, request.ctx)
    doubt = "" if meaning is None else _doubt(meaning)
    if _tracks_files_here(request) and (problem := file_tracking.unread_problem(request)):
        raise _InputRefusedError(problem)
    return doubt


def _tracks_files_here(request: CallRequest) -> bool:
    """Whether the call declares files that its tool does not track itself."""
    access = request.access
    if request.tool.tracks_files or access.own or not access.declared:
        return False
    return bool(access.reads or access.writes or access.removes)


def _doubt(meaning: Refuse | Ask) -> str:
    """Why validation is not sure about the input."""
    match meaning:
        case Ask(text):
            return text
        case Refuse(text):
            raise _InputRefusedError(text)


def _limit(tool: AnyTool, output: Output | None) -> int | None:
    """The result limit of a tool; without one, error messages still have the default limit."""
    limit = tool.max_result_chars
    return DEFAULT_RESULT_CHARS if limit is None and output is None else limit
