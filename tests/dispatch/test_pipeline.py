"""One call through all stages: validation, hooks, analysis, permission, the call itself and its result."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import Document, Image, Json, ResultBlock, Text, ToolUse
from handrail.conversation.messages import UserMessage
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, HookAnswer, Rails, WithoutPolicy
from handrail.dispatch.results import ResultStore
from handrail.dispatch.schedule import Scheduling
from handrail.errors import ToolError
from handrail.permissions.facts import Evidence
from handrail.testing import FixedApprover, GatedTool
from handrail.tools.abort import AbortReason
from handrail.tools.access import Access
from handrail.tools.context import Progress, RunContext, StateStore, ToolContext
from handrail.tools.events import CallFinished, CallProgress
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tools.output import Output
from handrail.tools.permission import NO_OPINION, Ask, Check, Decision, Opinion, Refuse, Strength, Verdict
from handrail.tools.pool import Deferral, Ingredients, assemble
from handrail.tools.request import CallRequest
from handrail.tools.schema import Input
from handrail.tools.tool import PromptView, Tool
from tests.dispatch.turn import TRUSTING, executor_for, outcome_of, rest, settled, use

pytestmark = pytest.mark.anyio

ALL = Scheduling(early_start="all")


class NoteInput(Input):
    text: str
    times: int = 1


class Note(Tool[NoteInput]):
    """Notes its text in a list, and the stages in another one."""

    name = "Note"
    input_model = NoteInput

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.stages: list[str] = []
        self.meaning: Refuse | Ask | None = None
        self.word: Check = NO_OPINION

    def prompt(self, view: PromptView) -> str:
        return "Notes."

    def parse(self, raw: Json) -> NoteInput:
        self.stages.append("schema")
        return super().parse(raw)

    def summary(self, args: NoteInput) -> str:
        return f"Note({args.text})"

    def access(self, args: NoteInput, run: RunContext) -> Access:
        return Access.of(writes=[f"/{args.text}"])

    async def validate(self, args: NoteInput, ctx: ToolContext) -> Refuse | Ask | None:
        self.stages.append("meaning")
        return self.meaning

    async def check_permission(self, args: NoteInput, ctx: ToolContext) -> Check:
        self.stages.append("check")
        return self.word

    async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
        self.stages.append("call")
        self.noted.append(args.text)
        return Output(text=f"noted {args.text}")

    def result_blocks(self, output: Output) -> tuple[ResultBlock, ...]:
        self.stages.append("blocks")
        return super().result_blocks(output)


@dataclass
class FakeHooks:
    """Hooks that answer as they are told, when their gate is open."""

    answer: HookAnswer = field(default_factory=HookAnswer)
    notes: tuple[str, ...] = ()
    stages: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    raising: Exception | None = None
    seen: list[tuple[Output | None, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()

    async def before(self, request: CallRequest) -> HookAnswer:
        self.stages.append("pre-hooks")
        await self.gate.wait()
        if self.raising:
            raise self.raising
        return self.answer

    async def after(self, request: CallRequest, output: Output | None, error: str, seconds: float) -> HookAnswer:
        self.stages.append("post-hooks")
        self.seen.append((output, error))
        if self.raising:
            raise self.raising
        return HookAnswer(context=self.notes)


@dataclass
class FakeGate(WithoutPolicy):
    """Gives a fixed decision and keeps what it was shown."""

    decision: Decision = field(default_factory=lambda: Decision(Verdict.ALLOW, "the test says so"))
    stages: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    asked: list[Json] = field(default_factory=list)

    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
        self.stages.append("permission")
        self.evidence.append(evidence)
        self.asked.append(request.use.input)
        return self.decision


def note(call_id: str = "1", text: str = "a", **more: Any) -> ToolUse:
    return ToolUse(call_id, "Note", {"text": text, **more})


def opinion(verdict: Verdict) -> Opinion:
    strength = {Verdict.ALLOW: Strength.ALLOW, Verdict.ASK: Strength.ASK, Verdict.DENY: Strength.DENY}[verdict]
    return Opinion(strength, verdict, "hooks", "a hook says so")


# The stages


@pytest.mark.proves("F1")
async def test_every_call_passes_the_same_stages_in_the_same_order() -> None:
    tool = Note()
    rails = Rails(FakeGate(stages=tool.stages), FakeHooks(stages=tool.stages))

    outcome = await outcome_of(tool, note(), rails=rails)

    assert outcome.status is Status.OK
    assert tool.stages == [
        "schema",
        "meaning",
        "pre-hooks",
        "check",
        "permission",
        "call",
        "post-hooks",
        "blocks",
    ]


@pytest.mark.proves("F2", "P8", "R12")
async def test_an_input_that_does_not_fit_is_an_error_result_with_every_problem_and_the_same_id() -> None:
    tool = Note()
    outcome = await outcome_of(tool, ToolUse("x7", "Note", {"txt": "a", "times": "many"}))

    assert (outcome.cause, outcome.result.tool_use_id, outcome.result.is_error) == (Cause.INVALID_INPUT, "x7", True)
    text = outcome.result.text
    assert text.startswith("<tool_use_error>The input for Note is wrong.\n")
    assert text.endswith("</tool_use_error>")
    assert all(part in text for part in ("'text' is missing", "'txt' is unexpected", "'times' is wrong", "'many'"))
    assert tool.noted == []


@pytest.mark.proves("F2")
async def test_a_blind_call_of_a_deferred_tool_with_a_wrong_input_gets_the_schema_and_activates_it() -> None:
    tool = Note()
    tool.should_defer = True
    pool = assemble(Ingredients(custom=(tool, GatedTool("ToolSearch")), deferral=Deferral(mode="on")))
    activated: list[str] = []
    store = ResultStore(Path("/nowhere"))
    async with ToolExecutor(pool, RunContext(Path("/")), store, rails=TRUSTING, activate=activated.extend) as executor:
        executor.add(ToolUse("1", "Note", {}))
        executor.add(note("2"))
        wrong, right = await rest(executor)
    assert activated == ["Note"]
    assert '"properties":{"text":{"type":"string"}' in wrong.result.text
    assert right.status is Status.OK


@pytest.mark.proves("A19", "F1")
async def test_an_input_that_makes_no_sense_is_refused_with_its_reason() -> None:
    tool = Note()
    tool.meaning = Refuse("There is no such notebook. Make it first.")

    outcome = await outcome_of(tool, note())

    assert (outcome.cause, tool.noted) == (Cause.REFUSED_INPUT, [])
    assert outcome.result.text == "<tool_use_error>There is no such notebook. Make it first.</tool_use_error>"


@pytest.mark.proves("F5")
@pytest.mark.parametrize("allowed", [True, False])
async def test_validation_may_leave_the_decision_to_a_person(allowed: bool) -> None:
    tool, person = Note(), FixedApprover(allow=allowed)
    tool.meaning = Ask("the notebook belongs to somebody else")

    outcome = await outcome_of(tool, note(), rails=Rails(CarefulGate(person, trusting=True)))

    assert person.asked == ["Note(a)"]
    assert (outcome.status is Status.OK) == allowed
    assert outcome.decision is not None
    assert "the notebook belongs to somebody else" in [o.reason for o in outcome.decision.opinions]


# The gate without rules


@pytest.mark.proves("R2")
async def test_what_only_reads_may_pass_and_the_rest_is_refused_when_nobody_can_be_asked() -> None:
    reader, writer = GatedTool("Reader"), GatedTool("Writer", shared=False)
    reader.open_all("a")
    async with executor_for(reader, writer, rails=Rails()) as executor:
        executor.add(use("a", "Reader"))
        executor.add(use("b", "Writer"))
        read, written = await rest(executor)
    assert read.status is Status.OK
    assert (written.status, writer.started) == (Status.DENIED, [])
    assert "there is no one to ask" in written.result.text


@pytest.mark.proves("A17")
async def test_a_tool_that_needs_a_person_is_always_asked_for() -> None:
    tool, person = GatedTool(requires_user_interaction=True), FixedApprover()
    tool.open_all("1")

    outcome = await outcome_of(tool, use("1"), rails=Rails(CarefulGate(person, trusting=True)))

    assert (outcome.status, person.asked) == (Status.OK, ["Gated"])


@pytest.mark.proves("A18")
@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (Check(Verdict.ALLOW, "fine"), Status.OK),
        (Check(Verdict.ASK, "hm"), Status.DENIED),
        (Check(Verdict.DENY, "no"), Status.DENIED),
        (NO_OPINION, Status.DENIED),
    ],
)
async def test_the_tools_own_word_counts_where_nothing_stronger_speaks(word: Check, expected: Status) -> None:
    tool = Note()
    tool.word = word

    assert (await outcome_of(tool, note(), rails=Rails())).status is expected


@pytest.mark.proves("F10", "L8", "R12")
async def test_a_plain_no_tells_what_was_refused_why_and_what_to_do() -> None:
    tool = Note()
    outcome = await outcome_of(tool, note(), rails=Rails(CarefulGate(FixedApprover(allow=False, reason="not now"))))

    assert (outcome.status, outcome.result.is_error, tool.noted) == (Status.DENIED, True, [])
    assert outcome.result.text == "Note(a) was refused: not now. Do it another way, or ask the user."


@pytest.mark.proves("F10", "L8")
async def test_a_no_with_feedback_hands_on_what_was_said() -> None:
    said = (Text("Use the other notebook."), Image("aGk=", "image/png"))
    gate = FakeGate(Decision(Verdict.DENY, "the user said no", feedback=said))

    outcome = await outcome_of(Note(), note(), rails=Rails(gate))

    head, *feedback = outcome.result.content
    assert isinstance(head, Text)
    assert head.text == "Note(a) was refused: the user said no. What was said about it follows."
    assert tuple(feedback) == said


@pytest.mark.proves("L8", "F10")
async def test_a_no_that_also_stops_the_turn_interrupts_the_other_calls() -> None:
    tool, other = Note(), GatedTool()
    gate = FakeGate(Decision(Verdict.DENY, "stop it", interrupt=True))

    class OnlyNotes(FakeGate):
        async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
            if request.tool is tool:
                await settled()
                return await super().decide(request, evidence)
            return Decision(Verdict.ALLOW, "fine")

    async with executor_for(tool, other, rails=Rails(OnlyNotes(gate.decision)), scheduling=ALL) as executor:
        executor.add(ToolUse("0", "Gated", {}))
        await settled()
        executor.add(ToolUse("2", "Gated", {}))
        tool.access = lambda args, run: Access.of(reads=["/x"])  # type: ignore[method-assign]
        executor.add(note("1"))
        outcomes = await rest(executor)
    assert [o.cause for o in outcomes] == [Cause.USER_INTERRUPTED, Cause.USER_INTERRUPTED, Cause.DENIED]


@pytest.mark.proves("R2", "P8")
@pytest.mark.parametrize(
    "answer", [Decision(Verdict.ASK, "nobody asked"), None, "yes"], ids=["ask", "nothing", "a string"]
)
async def test_only_an_allow_of_the_gate_lets_a_call_run(answer: Any) -> None:
    tool = Note()
    outcome = await outcome_of(tool, note(), rails=Rails(FakeGate(answer)))

    assert (outcome.result.is_error, tool.noted) == (True, [])


# Hooks and analysis


class BrokenApprover:
    async def approve(self, request: CallRequest, decision: Decision) -> Decision:
        raise OSError("no such file")


@pytest.mark.proves("R2")
@pytest.mark.parametrize(
    "rails",
    [
        pytest.param(
            Rails(CarefulGate(FixedApprover(), trusting=True), FakeHooks(raising=OSError("no such file"))), id="hook"
        ),
        pytest.param(Rails(CarefulGate(BrokenApprover())), id="approver"),
    ],
)
async def test_a_hook_or_an_approver_that_raises_is_a_no_with_the_reason(
    rails: Rails, caplog: pytest.LogCaptureFixture
) -> None:
    tool = Note()

    outcome = await outcome_of(tool, note(), rails=rails)

    assert (outcome.status, tool.noted) == (Status.DENIED, [])
    assert outcome.decision is not None
    assert "OSError: no such file" in outcome.decision.reason
    assert "OSError: no such file" in caplog.text


async def test_hooks_can_add_to_the_result() -> None:
    hooks = FakeHooks(HookAnswer(context=("remember the milk",)), notes=("well done",))
    outcome = await outcome_of(Note(), note(), rails=Rails(FakeGate(), hooks))

    assert [b.text for b in outcome.result.content if isinstance(b, Text)] == [
        "noted a",
        "<system-reminder>\nremember the milk\n</system-reminder>",
        "<system-reminder>\nwell done\n</system-reminder>",
    ]
    [(output, error)] = hooks.seen
    assert output is not None
    assert (output.text, error) == ("noted a", "")


@pytest.mark.proves("R6")
async def test_what_a_hook_adds_is_bounded() -> None:
    hooks = FakeHooks(notes=("x" * 1_000_000,))
    outcome = await outcome_of(Note(), note(), rails=Rails(FakeGate(), hooks))

    assert len(outcome.result.text) < 10_000


async def test_a_hook_that_fails_after_the_call_is_told_and_the_result_stays() -> None:
    class Late(FakeHooks):
        async def before(self, request: CallRequest) -> HookAnswer:
            return HookAnswer()

    outcome = await outcome_of(Note(), note(), rails=Rails(FakeGate(), Late(raising=OSError("gone"))))

    assert outcome.status is Status.OK
    assert outcome.result.text == (
        "noted a\n<system-reminder>\n"
        "A hook that looks at this call after it ran could not run: gone\n</system-reminder>"
    )


async def test_hooks_see_the_error_of_a_failed_call() -> None:
    class Failing(Note):
        async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
            raise ToolError("The notebook is full.")

    hooks = FakeHooks()
    await outcome_of(Failing(), note(), rails=Rails(FakeGate(), hooks))

    assert hooks.seen == [(None, "The notebook is full.")]


async def test_a_gate_that_keeps_a_cancellation_to_itself_does_not_get_the_call_run() -> None:
    class DeafGate(FakeGate):
        async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(100)
            return await super().decide(request, evidence)

    tool = Note()
    async with executor_for(tool, rails=Rails(DeafGate()), scheduling=ALL) as executor:
        executor.add(note())
        await settled()
        executor.interrupt(AbortReason.USER)
        [outcome] = await rest(executor)
    assert (outcome.cause, tool.noted) == (Cause.USER_INTERRUPTED, [])
    assert outcome.result.text == "Note(a) was not run: the user interrupted the turn."


# Changed inputs


def changing(who: str, raw: Json) -> tuple[Note, Rails]:
    tool = Note()
    match who:
        case "hook":
            return tool, Rails(FakeGate(), FakeHooks(HookAnswer(updated_input=raw)))
        case "check":
            tool.word = Check(updated_input=raw)
            return tool, Rails(FakeGate())
    return tool, Rails(FakeGate(Decision(Verdict.ALLOW, "changed", updated_input=raw)))


WHO = pytest.mark.parametrize("who", ["hook", "check", "person"])


@WHO
@pytest.mark.proves("F13", "A18")
async def test_a_changed_input_is_the_one_that_runs(who: str) -> None:
    tool, rails = changing(who, {"text": "b"})

    outcome = await outcome_of(tool, note(), rails=rails)

    assert tool.noted == ["b"]
    assert (outcome.use.input, outcome.result.text) == ({"text": "b"}, "noted b")


@pytest.mark.proves("F13")
@pytest.mark.parametrize("who", ["hook", "check"])
async def test_the_gate_decides_on_the_changed_input(who: str) -> None:
    tool, rails = changing(who, {"text": "b"})
    await outcome_of(tool, note(), rails=rails)

    assert isinstance(rails.gate, FakeGate)
    assert rails.gate.asked == [{"text": "b"}]


@WHO
@pytest.mark.proves("F13", "F2")
async def test_a_changed_input_must_fit_the_schema(who: str) -> None:
    tool, rails = changing(who, {"words": "b"})

    outcome = await outcome_of(tool, note(), rails=rails)

    assert (outcome.cause, tool.noted) == (Cause.INVALID_INPUT, [])
    assert "'text' is missing" in outcome.result.text


@WHO
@pytest.mark.proves("F13")
async def test_a_changed_input_must_make_sense(who: str) -> None:
    tool, rails = changing(who, {"text": "b"})

    class Picky(Note):
        async def validate(self, args: NoteInput, ctx: ToolContext) -> Refuse | None:
            return Refuse("b is taken") if args.text == "b" else None

    picky = Picky()
    picky.word = tool.word
    outcome = await outcome_of(picky, note(), rails=rails)

    assert (outcome.cause, picky.noted) == (Cause.REFUSED_INPUT, [])


@pytest.mark.proves("F13", "R4")
async def test_a_changed_input_that_touches_more_waits_and_runs_alone() -> None:
    """The hook moves the second note to the file that the first one is still writing."""
    slow = GatedTool("Slow")
    slow.access = lambda args, run: Access.of(writes=["/b"])  # type: ignore[method-assign]
    hooks = FakeHooks(HookAnswer(updated_input={"text": "b"}))

    class OnlyNotes(FakeHooks):
        async def before(self, request: CallRequest) -> HookAnswer:
            return await hooks.before(request) if request.use.name == "Note" else HookAnswer()

    tool, later = Note(), GatedTool("Later")
    hooks.gate.clear()
    rails = Rails(FakeGate(), OnlyNotes())
    async with executor_for(slow, tool, later, rails=rails, scheduling=ALL) as executor:
        executor.add(ToolUse("1", "Slow", {}))
        executor.add(note("2"))
        executor.add(ToolUse("3", "Later", {}))  # reads everything, so it waits for both
        await settled()
        hooks.gate.set()
        await settled()
        assert tool.noted == []
        assert later.started == []

        slow.open_all("1")
        later.open_all("3")
        outcomes = await rest(executor)
    assert tool.noted == ["b"]
    assert [o.status for o in outcomes] == [Status.OK] * 3


@pytest.mark.proves("F13", "R4")
async def test_calls_behind_a_changed_one_keep_their_order() -> None:
    """They wait for the first note, whose access grows to everything; all of them write the same file."""
    hooks = FakeHooks(HookAnswer(updated_input={"text": "b"}))
    hooks.gate.clear()

    class OnlyFirst(FakeHooks):
        async def before(self, request: CallRequest) -> HookAnswer:
            return await hooks.before(request) if request.use.id == "1" else HookAnswer()

    ran: list[str] = []

    class Ordered(Note):
        async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
            ran.append(ctx.use.id)
            return Output()

    async with executor_for(Ordered(), rails=Rails(FakeGate(), OnlyFirst()), scheduling=ALL) as executor:
        for number in "1234":
            executor.add(note(number, "a"))
        await settled()
        hooks.gate.set()
        await rest(executor)
    assert ran == ["1", "2", "3", "4"]


@pytest.mark.proves("F13", "R4")
async def test_a_changed_input_is_refused_when_later_calls_have_already_started() -> None:
    hooks = FakeHooks(HookAnswer(updated_input={"text": "b"}))
    hooks.gate.clear()

    class OnlyFirst(FakeHooks):
        async def before(self, request: CallRequest) -> HookAnswer:
            return await hooks.before(request) if request.use.id == "1" else HookAnswer()

    tool = Note()
    async with executor_for(tool, rails=Rails(FakeGate(), OnlyFirst()), scheduling=ALL) as executor:
        executor.add(note("1", "a"))
        executor.add(note("2", "b"))
        await settled()
        assert tool.noted == ["b"]
        hooks.gate.set()
        changed, other = await rest(executor)
    assert (changed.cause, other.status) == (Cause.CONFLICT, Status.OK)
    assert changed.result.text.startswith("Note(b) was changed by a hook or a person to touch something that later")
    assert tool.noted == ["b"]


@pytest.mark.proves("F13", "R4")
async def test_later_calls_that_never_ran_do_not_stand_in_the_way_of_a_changed_input() -> None:
    hooks = FakeHooks(HookAnswer(updated_input={"text": "b"}))
    hooks.gate.clear()
    tool = Note()
    async with executor_for(tool, rails=Rails(FakeGate(), hooks), scheduling=ALL) as executor:
        executor.add(note("1", "a"))
        executor.add(ToolUse("2", "Nobody", {}))
        await settled()
        hooks.gate.set()
        changed, _ = await rest(executor)
    assert (changed.status, tool.noted) == (Status.OK, ["b"])


@pytest.mark.proves("F13")
async def test_a_reading_call_that_is_changed_into_a_writing_one_waits_for_the_end_of_the_answer() -> None:
    class Either(Note):
        def is_read_only(self, args: NoteInput) -> bool:
            return args.text == "a"

        def access(self, args: NoteInput, run: RunContext) -> Access:
            return Access.of(writes=["/one"])

    tool = Either()
    rails = Rails(FakeGate(), FakeHooks(HookAnswer(updated_input={"text": "b"})))
    async with executor_for(tool, rails=rails, scheduling=Scheduling(early_start="safe")) as executor:
        executor.add(note())
        await settled()
        assert executor.in_progress == {"1"}
        assert tool.noted == []
        executor.finish()
        await settled()
        assert tool.noted == ["b"]


@pytest.mark.proves("F13", "L5")
async def test_a_changed_call_can_be_stopped_while_it_waits_and_lets_the_others_in() -> None:
    slow = GatedTool("Slow", interrupt="block")
    slow.access = lambda args, run: Access.of(writes=["/b"])  # type: ignore[method-assign]

    class OnlyNotes(FakeHooks):
        async def before(self, request: CallRequest) -> HookAnswer:
            return self.answer if request.use.name == "Note" else HookAnswer()

    tool, later = Note(), GatedTool("Later", interrupt="block")
    tool.interrupt = "cancel"
    rails = Rails(FakeGate(), OnlyNotes(HookAnswer(updated_input={"text": "b"})))
    async with executor_for(slow, tool, later, rails=rails, scheduling=ALL) as executor:
        executor.add(ToolUse("1", "Slow", {}))
        executor.add(note("2"))
        executor.add(ToolUse("3", "Later", {}))
        await settled()
        executor.interrupt(AbortReason.SUBMIT)
        await settled()
        slow.open_all("1")
        later.open_all("3")
        outcomes = await rest(executor)
    assert [o.cause for o in outcomes] == [Cause.DONE, Cause.SUBMIT_INTERRUPTED, Cause.DONE]
    assert outcomes[1].result.text == "Note(b) was not run: the user sent a new message."
    assert tool.noted == []


# Progress and what a call can see


@pytest.mark.proves("F7")
async def test_a_call_reports_while_permission_is_asked_and_while_it_runs() -> None:
    class Talking(GatedTool):
        async def check_permission(self, args: Any, ctx: ToolContext) -> Check:
            ctx.progress(Progress("asking"))
            await self.gate("permission").wait()
            return NO_OPINION

    tool = Talking()
    async with executor_for(tool) as executor:
        events = executor.events
        executor.add(use("a"))
        await settled()
        asking = [await anext(events) for _ in range(3)][-1]
        assert isinstance(asking, CallProgress)
        assert (asking.progress.message, tool.started) == ("asking", [])

        tool.open_all("permission")
        running = await anext(events)
        assert isinstance(running, CallProgress)
        assert (running.progress.message, tool.started) == ("a waits", ["a"])


@pytest.mark.proves("A9", "L1", "M2", "M4")
async def test_a_call_gets_its_checked_input_and_a_context_with_everything_it_may_need() -> None:
    seen: list[tuple[Any, ToolContext]] = []

    class Looking(Note):
        async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
            seen.append((args, ctx))
            ctx.state.update(lambda state: {**state, "count": state["count"] + 1})
            ctx.progress(Progress("looking", 0.5))
            return Output()

    history = (UserMessage((Text("Look around."),)),)
    run = RunContext(Path("/project"), state=StateStore({"count": 1}), history=history)
    call = note("1", "a", times="3")
    await outcome_of(Looking(), call, run=run)

    [(args, ctx)] = seen
    assert args == NoteInput(text="a", times=3)
    assert (ctx.cwd, ctx.use, ctx.history) == (Path("/project"), call, history)
    assert (ctx.permissions, ctx.agent, ctx.options, ctx.files) == (run.permissions, run.agent, run.options, run.files)
    assert not ctx.abort.aborted
    assert run.state.get() == {"count": 2}


@pytest.mark.proves("A9")
@pytest.mark.parametrize(
    ("asked_for", "verdict", "reason"),
    [
        (ToolUse("9", "Note", {"text": "b"}), Verdict.ALLOW, "nothing objects to it"),
        (ToolUse("9", "Nobody", {}), Verdict.DENY, "there is no tool 'Nobody'"),
        (ToolUse("9", "Note", {}), Verdict.DENY, "The required field 'text' is missing."),
    ],
)
async def test_a_tool_can_ask_whether_it_may_use_another_one(asked_for: ToolUse, verdict: Verdict, reason: str) -> None:
    answers: list[Decision] = []

    class Asking(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            answers.append(await ctx.may_use(asked_for))
            return Output()

    async with executor_for(Asking("Asking"), Note()) as executor:
        executor.add(use("a", "Asking"))
        await rest(executor)
    assert [(answer.verdict, answer.reason) for answer in answers] == [(verdict, reason)]


@pytest.mark.proves("A9", "F13")
async def test_the_answer_to_a_tool_that_asks_for_another_one_carries_the_changed_input() -> None:
    answers: list[Decision] = []

    class Asking(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            answers.append(await ctx.may_use(note("9", "secret")))
            answers.append(await ctx.may_use(note("9", "odd")))
            return Output()

    class Redacting(FakeHooks):
        async def before(self, request: CallRequest) -> HookAnswer:
            if request.use.name != "Note":
                return HookAnswer()
            changed = {"secret": {"text": "***"}, "odd": {"words": "***"}}
            return HookAnswer(updated_input=changed[request.use.input["text"]])

    async with executor_for(Asking("Asking"), Note(), rails=Rails(FakeGate(), Redacting())) as executor:
        executor.add(use("a", "Asking"))
        await rest(executor)
    assert [(answer.verdict, answer.updated_input) for answer in answers] == [
        (Verdict.ALLOW, {"text": "***"}),
        (Verdict.DENY, None),
    ]


# How calls end


@pytest.mark.proves("F9", "A27")
async def test_output_becomes_text_image_and_document_blocks() -> None:
    class Rich(Note):
        async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
            return Output(text="see", blocks=(Image("aGk=", "image/png"), Document("aGk=", "application/pdf", "a.pdf")))

    outcome = await outcome_of(Rich(), note())

    assert outcome.result.content == (
        Text("see"),
        Image("aGk=", "image/png"),
        Document("aGk=", "application/pdf", "a.pdf"),
    )


class Raising(Note):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
        raise self.error


@pytest.mark.proves("P8", "R12")
async def test_a_tool_error_is_told_word_for_word() -> None:
    outcome = await outcome_of(Raising(ToolError("'x' does not exist. Use Glob to find it.")), note())

    assert (outcome.status, outcome.cause) == (Status.ERROR, Cause.FAILED)
    assert outcome.result.text == "'x' does not exist. Use Glob to find it."


@pytest.mark.proves("P8")
@pytest.mark.parametrize(
    "error", [ValueError("odd"), SystemExit("odd"), TimeoutError("odd"), StopAsyncIteration("odd")]
)
async def test_a_crash_is_a_result_and_its_traceback_goes_to_the_log(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = await outcome_of(Raising(error), note())

    assert (outcome.status, outcome.cause) == (Status.ERROR, Cause.CRASHED)
    name = type(error).__name__
    assert outcome.result.text == f"Note failed unexpectedly: {name}: odd. Try another input or another tool."
    assert "Traceback" in caplog.text
    assert "Traceback" not in outcome.result.text


@pytest.mark.proves("P8")
@pytest.mark.parametrize("member", ["validate", "check_permission", "call", "result_blocks"])
async def test_whichever_member_of_a_tool_raises_the_call_ends_with_a_result(
    member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Note()

    def broken(*args: object) -> object:
        raise LookupError(f"{member} is broken")

    monkeypatch.setattr(tool, member, broken)
    outcome = await outcome_of(tool, note())

    assert outcome.cause is Cause.CRASHED
    assert f"{member} is broken" in outcome.result.text


@pytest.mark.proves("P8", "A28")
async def test_a_summary_that_raises_leaves_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Note()
    monkeypatch.setattr(tool, "summary", lambda args: 1 / 0)
    outcome = await outcome_of(tool, note(), rails=Rails(FakeGate(Decision(Verdict.DENY, "no"))))

    assert outcome.result.text.startswith("Note was refused: no.")


async def test_something_that_is_no_output_is_a_crash_that_says_so() -> None:
    class Sloppy(Note):
        async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
            return "done"  # type: ignore[return-value]  # that is the point

    outcome = await outcome_of(Sloppy(), note())

    assert outcome.cause is Cause.CRASHED
    assert "its call returned a str where an Output is due" in outcome.result.text


async def test_a_call_that_is_not_async_is_a_crash_that_says_so() -> None:
    class Plain(Note):
        def call(self, args: NoteInput, ctx: ToolContext) -> Output:  # type: ignore[override]  # that is the point
            return Output(text="done")

    outcome = await outcome_of(Plain(), note())

    assert outcome.cause is Cause.CRASHED
    assert "its call is not async; write `async def call`" in outcome.result.text


async def test_output_that_is_marked_as_an_error_is_a_failure_with_output() -> None:
    class Failing(Note):
        async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
            return Output(text="exit code 2", is_error=True)

    outcome = await outcome_of(Failing(), note())

    assert (outcome.cause, outcome.result.is_error, outcome.result.text) == (Cause.FAILED, True, "exit code 2")
    assert outcome.output is not None


@pytest.mark.proves("P8", "R12")
async def test_a_call_that_takes_too_long_is_stopped_and_says_so() -> None:
    cleaned: list[AbortReason | None] = []

    class Slow(Note):
        timeout = 2.5

        async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
            try:
                await asyncio.sleep(100)
            finally:
                cleaned.append(ctx.abort.reason)
            return Output()

    outcome = await outcome_of(Slow(), note())

    assert (outcome.status, outcome.cause, outcome.timings.ran) == (Status.ERROR, Cause.TIMED_OUT, 2.5)
    assert outcome.result.text.startswith("Note(a) did not finish within 2.5 seconds and was stopped.")
    assert len(cleaned) == 1


async def test_a_call_within_its_time_limit_is_left_alone_and_its_own_timeout_error_is_a_crash() -> None:
    class Quick(Note):
        timeout = 2.5

    class Impatient(Raising):
        timeout = 2.5

    assert (await outcome_of(Quick(), note())).status is Status.OK
    assert (await outcome_of(Impatient(TimeoutError("inner")), note())).cause is Cause.CRASHED


async def test_a_call_that_timed_out_can_still_be_interrupted_while_hooks_look_at_it() -> None:
    class Slow(Note):
        timeout = 2.5

        async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
            await asyncio.sleep(100)
            return Output()

    class SlowHooks(FakeHooks):
        async def after(self, request: CallRequest, output: Output | None, error: str, seconds: float) -> HookAnswer:
            await asyncio.sleep(100)
            return HookAnswer()

    async with executor_for(Slow(), rails=Rails(FakeGate(), SlowHooks()), scheduling=ALL) as executor:
        executor.add(note())
        await asyncio.sleep(10)
        executor.interrupt(AbortReason.USER)
        [outcome] = await rest(executor)
    assert outcome.cause is Cause.USER_INTERRUPTED


@pytest.mark.proves("F12")
async def test_errors_and_cancellations_are_events_with_the_id_of_their_call() -> None:
    tool, failing = GatedTool(), Raising(ValueError("odd"))
    async with executor_for(tool, failing, scheduling=ALL) as executor:
        events = executor.events
        reading = asyncio.create_task(_finished(events))
        await settled()
        executor.add(note("failed"))
        await settled()
        executor.add(use("stopped"))
        await settled()
        executor.interrupt(AbortReason.USER)
        await rest(executor)
    assert await reading == [("failed", Cause.CRASHED), ("stopped", Cause.USER_INTERRUPTED)]


async def _finished(events: Any) -> list[tuple[str, Cause]]:
    return [(e.outcome.use.id, e.outcome.cause) async for e in events if isinstance(e, CallFinished)]


@pytest.mark.proves("R6")
async def test_the_words_of_an_error_are_bounded_even_for_a_tool_that_bounds_itself(tmp_path: Path) -> None:
    tool = Raising(ValueError("x" * 1_000_000))
    tool.max_result_chars = None
    outcome = await outcome_of(tool, note(), store=ResultStore(tmp_path / "run"))

    assert len(outcome.result.text) < 10_000


@pytest.mark.proves("R6", "F2")
async def test_a_long_list_of_problems_with_an_input_is_bounded() -> None:
    wrong: dict[str, Any] = {f"field_{n}": n for n in range(10_000)}
    outcome = await outcome_of(Note(), note(**wrong))

    assert len(outcome.result.text) < 10_000
    assert outcome.result.text.endswith("</tool_use_error>")


@pytest.mark.proves("R1", "P8")
async def test_half_characters_in_a_result_are_written_out_because_no_request_can_carry_them() -> None:
    class Listing(Note):
        async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
            return Output(text="caf\udce9.txt é", blocks=(Image("aGk=", "image/png"),))

        def result_blocks(self, output: Output) -> tuple[ResultBlock, ...]:
            return (Text(output.text), *output.blocks)

    outcome: Outcome = await outcome_of(Listing(), note())

    assert outcome.result.content == (Text("caf\\udce9.txt é"), Image("aGk=", "image/png"))
    assert (await outcome_of(Raising(ToolError("no \ud800")), note())).result.text == "no \\ud800"
