"""The executor: when calls start, in which order results leave, and how calls are stopped."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import BrokenToolUse, ToolUse
from handrail.dispatch.call_state import Call, CallState
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.schedule import Scheduling
from handrail.errors import HandrailError, ToolError
from handrail.testing import GatedTool
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.access import EXCLUSIVE, Access
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.function import tool
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tools.output import ContextChange, Output
from handrail.tools.schema import Input
from handrail.tools.tool import PromptView, Tool
from tests.dispatch.turn import ALL, FileTool, executor_for, gated_writer, rest, settled, shell, use

pytestmark = pytest.mark.anyio

SAFE = Scheduling(early_start="safe")
OFF = Scheduling(early_start="off")


def texts(outcomes: list[Outcome]) -> list[str]:
    return [outcome.result.text for outcome in outcomes]


def ids(outcomes: list[Outcome]) -> list[str]:
    return [outcome.use.id for outcome in outcomes]


async def everything(executor: ToolExecutor) -> list[CallEvent]:
    return [event async for event in executor.events]


# When calls start


@pytest.mark.proves("E7", "R11", "E5")
async def test_a_read_only_call_starts_when_its_block_is_complete() -> None:
    tool = GatedTool()
    async with executor_for(tool) as executor:
        executor.add(use("a"))
        await settled()
        assert tool.started == ["a"]  # the answer is not whole yet


@pytest.mark.proves("E7")
async def test_with_early_start_safe_a_changing_call_waits_for_the_end_of_the_answer() -> None:
    tool = gated_writer()
    async with executor_for(tool, scheduling=SAFE) as executor:
        executor.add(use("a", "Writer"))
        await settled()
        assert tool.started == []

        executor.finish()
        await settled()
        assert tool.started == ["a"]


@pytest.mark.proves("E3", "E7")
@pytest.mark.parametrize("scheduling", [Scheduling(), ALL], ids=["default", "old name"])
async def test_a_changing_call_that_is_permitted_starts_when_its_block_is_complete(scheduling: Scheduling) -> None:
    tool = gated_writer()
    async with executor_for(tool, scheduling=scheduling) as executor:
        executor.add(use("a", "Writer"))
        await settled()
        assert tool.started == ["a"]


@pytest.mark.proves("E6", "E29")
async def test_with_early_start_off_nothing_starts_before_the_answer_is_whole() -> None:
    tool = GatedTool()
    async with executor_for(tool, scheduling=OFF) as executor:
        executor.add(use("a"))
        await settled()
        assert tool.started == []

        executor.finish()
        await settled()
        assert tool.started == ["a"]


@pytest.mark.proves("E29", "E30", "E32")
async def test_the_batch_path_runs_neighbours_that_read_together_and_the_others_one_by_one() -> None:
    reader, writer = GatedTool("Reader"), FileTool("Writer", shared=False)
    async with executor_for(reader, writer, scheduling=OFF) as executor:
        executor.add(use("a", "Reader"))
        executor.add(use("b", "Reader"))
        executor.add(use("c", "Writer", writes=["/1"]))
        executor.add(use("d", "Writer", writes=["/2"]))
        executor.add(use("e", "Writer", reads=["/3"]))
        executor.add(use("f", "Reader"))
        executor.finish()
        for run in (["a", "b"], ["c"], ["d"], ["e", "f"]):
            await settled()
            assert executor.in_progress == set(run)
            reader.open_all(*run)
            writer.open_all(*run)
        assert ids(await rest(executor)) == list("abcdef")


@pytest.mark.proves("E33")
@pytest.mark.parametrize(("second", "together"), [("Reader", True), ("Writer", False)])
async def test_the_strict_batch_runs_calls_side_by_side_only_if_all_of_them_read(second: str, together: bool) -> None:
    reader, writer = GatedTool("Reader"), gated_writer()
    strict = Scheduling(early_start="off", all_read_only=True)
    async with executor_for(reader, writer, scheduling=strict) as executor:
        executor.add(use("a", "Reader"))
        executor.add(use("b", "Reader"))
        executor.add(use("c", second))
        executor.finish()
        await settled()
        assert executor.in_progress == ({"a", "b", "c"} if together else {"a"})


@pytest.mark.proves("E18", "E15")
async def test_an_exclusive_call_runs_alone() -> None:
    reader, writer = GatedTool("Reader"), gated_writer()
    async with executor_for(reader, writer, scheduling=ALL) as executor:
        executor.add(use("a", "Reader"))
        executor.add(use("b", "Writer"))
        executor.add(use("c", "Reader"))
        await settled()
        assert executor.in_progress == {"a"}

        reader.open_all("a")
        await settled()
        assert executor.in_progress == {"b"}

        writer.open_all("b")
        await settled()
        assert executor.in_progress == {"c"}


@pytest.mark.proves("E18")
async def test_not_even_a_call_that_touches_nothing_runs_beside_an_exclusive_one() -> None:
    nothing, writer = FileTool("Nothing"), gated_writer()
    async with executor_for(nothing, writer, scheduling=ALL) as executor:
        executor.add(use("a", "Nothing"))
        executor.add(use("b", "Writer"))
        executor.add(use("c", "Nothing"))
        await settled()
        assert executor.in_progress == {"a"}
        nothing.open_all("a")
        await settled()
        assert executor.in_progress == {"b"}


@pytest.mark.proves("E16", "P1")
async def test_edits_of_two_files_run_side_by_side_and_edits_of_one_file_in_order() -> None:
    edit = FileTool("Edit")
    async with executor_for(edit, scheduling=ALL) as executor:
        executor.add(use("a", "Edit", writes=["/p/one"]))
        executor.add(use("b", "Edit", writes=["/p/one"]))
        executor.add(use("c", "Edit", writes=["/p/two"]))
        executor.add(use("d", "Edit", reads=["/p"]))
        await settled()
        assert executor.in_progress == {"a", "c"}

        edit.open_all("a", "c")
        await settled()
        assert executor.in_progress == {"b"}

        edit.open_all("b")
        await settled()
        assert executor.in_progress == {"d"}


@pytest.mark.proves("E17", "E31")
@pytest.mark.parametrize("scheduling", [Scheduling(), OFF], ids=["streaming", "batch"])
async def test_at_most_ten_calls_run_at_a_time_and_each_end_lets_the_next_one_in(scheduling: Scheduling) -> None:
    tool = GatedTool()
    async with executor_for(tool, scheduling=scheduling) as executor:
        for number in range(12):
            executor.add(use(str(number)))
        executor.finish()
        await settled()
        assert tool.started == [str(number) for number in range(10)]

        tool.open_all("4")
        await settled()
        assert tool.started[10:] == ["10"]


@pytest.mark.proves("E31")
async def test_a_tool_can_have_a_cap_of_its_own_and_others_pass_it() -> None:
    slow, quick = GatedTool("Slow"), GatedTool("Quick")
    async with executor_for(slow, quick, scheduling=Scheduling(max_parallel_by_tool={"Slow": 1})) as executor:
        for call in (use("a", "Slow"), use("b", "Slow"), use("c", "Slow"), use("d", "Quick")):
            executor.add(call)
        await settled()
        assert executor.in_progress == {"a", "d"}

        slow.open_all("a")
        await settled()
        assert executor.in_progress == {"b", "d"}


@pytest.mark.proves("E31", "E17")
async def test_calls_that_wait_for_the_cap_of_their_tool_are_not_forgotten_when_others_are_stopped() -> None:
    slow, writer = GatedTool("Slow", interrupt="block"), gated_writer(interrupt="cancel")
    async with executor_for(slow, writer, scheduling=Scheduling(max_parallel_by_tool={"Slow": 1})) as executor:
        for call in (use("a", "Slow"), use("b", "Slow"), use("c", "Writer"), use("d", "Slow")):
            executor.add(call)
        await settled()
        executor.interrupt(AbortReason.SUBMIT)  # takes only c away
        slow.open_all("a", "b", "d")
        assert [(o.use.id, o.status) for o in await rest(executor)] == [
            ("a", Status.OK),
            ("b", Status.OK),
            ("c", Status.CANCELLED),
            ("d", Status.OK),
        ]


@pytest.mark.proves("E31")
async def test_a_call_that_waits_for_the_cap_of_its_tool_can_be_stopped() -> None:
    slow, writer = GatedTool("Slow"), gated_writer(interrupt="block")
    scheduling = Scheduling(early_start="all", max_parallel_by_tool={"Slow": 1})
    async with executor_for(slow, writer, scheduling=scheduling) as executor:
        for call in (use("a", "Slow"), use("b", "Slow"), use("c", "Writer")):
            executor.add(call)
        await settled()
        executor.interrupt(AbortReason.SUBMIT)
        await settled()
        assert executor.in_progress == {"c"}  # nothing of a and b stands in its way any more


@pytest.mark.proves("E11", "E13")
async def test_a_call_with_an_invalid_input_waits_for_its_turn_like_an_exclusive_one() -> None:
    tool = GatedTool("Reader")

    class Strict(GatedTool):
        def parse(self, raw: Any) -> Any:
            raise ValueError("not today")

    async with executor_for(tool, Strict("Strict"), scheduling=ALL) as executor:
        executor.add(use("a", "Reader"))
        executor.add(use("b", "Strict"))
        executor.add(use("c", "Reader"))
        await settled()
        assert executor.in_progress == {"a"}

        tool.open_all("a", "c")
        outcomes = await rest(executor)
    assert [o.cause for o in outcomes] == [Cause.DONE, Cause.INVALID_INPUT, Cause.DONE]


@pytest.mark.proves("E14", "R2", "P8")
@pytest.mark.parametrize("question", ["access", "is_concurrency_safe"])
async def test_a_call_whose_tool_cannot_say_what_it_touches_runs_alone(question: str) -> None:
    class Confused(GatedTool):
        def access(self, args: Any, run: RunContext) -> Access:
            if question == "access":
                raise LookupError("which file?")
            return Tool.access(self, args, run)

        def is_concurrency_safe(self, args: Any) -> bool:
            raise LookupError("safe?")

    tool = Confused()
    async with executor_for(tool, scheduling=ALL) as executor:
        executor.add(use("a"))
        executor.add(use("b"))
        await settled()
        assert executor.in_progress == {"a"}


@pytest.mark.proves("E14", "R2")
@pytest.mark.parametrize("answer", [LookupError("who knows"), "yes", 1, None])
async def test_only_a_clear_yes_counts_as_read_only(answer: object) -> None:
    class Vague(GatedTool):
        def is_read_only(self, args: Any) -> bool:
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[return-value]  # that is the point

    tool = Vague()
    async with executor_for(tool, scheduling=SAFE) as executor:
        executor.add(use("a"))
        await settled()
        assert tool.started == []  # it waits for the end of the answer, as changing calls do


async def test_something_that_is_no_access_counts_as_exclusive() -> None:
    class Wrong(GatedTool):
        def access(self, args: Any, run: RunContext) -> Access:
            return "everything"  # type: ignore[return-value]  # that is the point

    async with executor_for(Wrong()) as executor:
        executor.add(use("a"))
        executor.add(use("b"))
        await settled()
        assert executor.in_progress == {"a"}


@pytest.mark.proves("E12", "F3", "P8")
async def test_an_unknown_tool_is_an_error_at_once_that_names_the_nearest_tool() -> None:
    async with executor_for(gated_writer("Write")) as executor:
        executor.add(use("a", "Wriet"))
        [outcome] = executor.ready()
    assert outcome.cause is Cause.UNKNOWN_TOOL
    assert outcome.result.text == (
        "<tool_use_error>There is no tool 'Wriet'. Did you mean 'Write'? "
        "Use one of the tools you were given.</tool_use_error>"
    )


async def test_an_unknown_tool_is_not_taken_for_the_alias_of_another() -> None:
    class Stop(GatedTool):
        name = "Stop"
        aliases = ("KillBash",)

    async with executor_for(Stop()) as executor:
        executor.add(use("a", "Bash"))
        [outcome] = executor.ready()
    assert outcome.result.text == (
        "<tool_use_error>There is no tool 'Bash'. Use one of the tools you were given.</tool_use_error>"
    )


@pytest.mark.proves("E5", "P8")
async def test_a_block_that_did_not_arrive_whole_is_never_run() -> None:
    tool = GatedTool()
    async with executor_for(tool) as executor:
        executor.add(BrokenToolUse("a", "Gated", '{"x', "the answer was cut off inside its input"))
        [outcome] = await rest(executor)
    assert (outcome.cause, outcome.result.is_error, tool.started) == (Cause.INCOMPLETE, True, [])
    assert "the answer was cut off inside its input" in outcome.result.text


# In which order results leave


@pytest.mark.proves("E19", "E21", "R1")
async def test_results_leave_in_call_order_and_can_be_taken_during_the_stream() -> None:
    tool = GatedTool()
    async with executor_for(tool) as executor:
        for call_id in "abc":
            executor.add(use(call_id))
        tool.open_all("b")
        await settled()
        assert tool.ended == ["b"]
        assert list(executor.ready()) == []  # a is not done

        tool.open_all("a")
        await settled()
        assert ids(list(executor.ready())) == ["a", "b"]
        assert list(executor.ready()) == []

        tool.open_all("c")
        assert ids(await rest(executor)) == ["c"]


@pytest.mark.proves("E20", "E22", "A37")
async def test_progress_arrives_while_the_call_runs_and_before_its_result() -> None:
    tool = GatedTool()
    async with executor_for(tool) as executor:
        events = executor.events
        executor.add(use("a"))
        executor.add(use("b"))
        await settled()
        seen = [await anext(events) for _ in range(6)]
        assert {e.use.id: e.progress for e in seen if isinstance(e, CallProgress)} == {
            "a": Progress("a waits"),
            "b": Progress("b waits"),
        }
        tool.open_all("b")
        finished = await anext(events)
        assert isinstance(finished, CallFinished)
        assert finished.outcome.use.id == "b"
        assert list(executor.ready()) == []  # told at once, given in order


@pytest.mark.proves("E9", "E22")
async def test_events_of_a_call_come_in_one_order_and_end_when_the_executor_is_left() -> None:
    tool = GatedTool()
    async with executor_for(tool) as executor:
        events = asyncio.create_task(everything(executor))
        await settled()
        executor.add(use("a"))
        tool.open_all("a")
        await rest(executor)
    assert [type(event) for event in await events] == [CallQueued, CallStarted, CallProgress, CallFinished]


@pytest.mark.proves("E20")
async def test_progress_after_the_end_of_a_call_is_dropped() -> None:
    class Chatty(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            asyncio.get_running_loop().call_later(5, ctx.progress, Progress("still here"))
            return Output(text="done")

    async with executor_for(Chatty()) as executor:
        reading = asyncio.create_task(everything(executor))
        await settled()
        executor.add(use("a"))
        await rest(executor)
        await asyncio.sleep(10)
    assert not [event for event in await reading if isinstance(event, CallProgress)]


@pytest.mark.proves("E34", "E35")
async def test_front_ends_see_what_runs_and_whether_it_would_give_way() -> None:
    reader, writer = GatedTool("Reader"), gated_writer()
    async with executor_for(reader, writer, scheduling=ALL) as executor:
        seen = asyncio.create_task(everything(executor))
        await settled()
        executor.add(use("a", "Reader"))
        executor.add(use("b", "Writer"))
        await settled()
        assert executor.in_progress == {"a"}
        reader.open_all("a")
        await settled()
        assert executor.in_progress == {"b"}
    started = [(event.use.id, event.interruptible) for event in await seen if isinstance(event, CallStarted)]
    assert started == [("a", True), ("b", False)]


@pytest.mark.proves("E9")
def test_a_call_moves_along_the_arrows_only() -> None:
    allowed = set()
    for origin in CallState:
        for target in CallState:
            call = Call(0, ToolUse("a", "Gated", {}), 0.0)
            call.state = origin
            try:
                call.move(target)
            except AssertionError:
                continue
            allowed.add((origin.name, target.name))
    assert allowed == {
        ("QUEUED", "EXECUTING"),
        ("QUEUED", "COMPLETED"),
        ("EXECUTING", "COMPLETED"),
        ("COMPLETED", "YIELDED"),
    }


@pytest.mark.proves("E8")
async def test_the_record_of_a_call_tells_how_long_each_stage_took() -> None:
    class Slow(GatedTool):
        async def validate(self, args: Any, ctx: ToolContext) -> None:
            await asyncio.sleep(2)

        async def check_permission(self, args: Any, ctx: ToolContext) -> Any:
            await asyncio.sleep(3)
            return await super().check_permission(args, ctx)

        async def call(self, args: Any, ctx: ToolContext) -> Output:
            await asyncio.sleep(4)
            return Output(text="done")

    async with executor_for(Slow("First", shared=False), Slow(), scheduling=ALL) as executor:
        executor.add(use("a", "First"))
        executor.add(use("b"))
        timings = [outcome.timings for outcome in await rest(executor)]
    assert [(t.queued, t.validated, t.decided, t.ran, t.fitted) for t in timings] == [(0, 2, 3, 4, 0), (9, 2, 3, 4, 0)]


@pytest.mark.proves("E8")
async def test_a_call_that_is_stopped_tells_how_far_it_came() -> None:
    tool = gated_writer()
    async with executor_for(tool, scheduling=ALL) as executor:
        executor.add(use("a", "Writer"))
        executor.add(use("b", "Writer"))
        await asyncio.sleep(5)
        executor.interrupt(AbortReason.USER)
        ran, waited = [outcome.timings for outcome in await rest(executor)]
    assert (ran.queued, ran.ran) == (0, 5)
    assert (waited.queued, waited.ran) == (5, 0)


# Context changes


def chdir_tool(name: str, **members: Any) -> GatedTool:
    class Chdir(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            was = ctx.cwd
            await super().call(args, ctx)
            return Output(text=str(was), context_change=ContextChange(cwd=was / ctx.use.id))

    tool = Chdir(name, **members)
    tool.open_all("a", "b", "c")
    return tool


@pytest.mark.proves("A33", "E8")
async def test_a_call_that_ran_alone_changes_the_context_of_later_calls() -> None:
    async with executor_for(chdir_tool("Go", shared=False)) as executor:
        for call_id in "abc":
            executor.add(use(call_id, "Go"))
        outcomes = await rest(executor)
    assert texts(outcomes) == ["/project", "/project/a", "/project/a/b"]
    assert executor.run.cwd == Path("/project/a/b/c")


@pytest.mark.proves("A34")
@pytest.mark.parametrize("scheduling", [Scheduling(), OFF], ids=["streaming", "batch"])
@pytest.mark.parametrize("kind", ["shared", "named"])
async def test_a_change_by_a_call_that_might_have_had_company_is_ignored(scheduling: Scheduling, kind: str) -> None:
    tool = chdir_tool("Go")
    if kind == "named":
        tool.access = lambda args, run: Access.of(writes=["/x"])  # type: ignore[method-assign]
    async with executor_for(tool, scheduling=scheduling) as executor:
        executor.add(use("a", "Go"))
        [outcome] = await rest(executor)
    assert outcome.status is Status.OK
    assert executor.run.cwd == Path("/project")


@pytest.mark.proves("A33", "E11")
async def test_what_a_call_touches_is_asked_after_the_context_change_before_it() -> None:
    asked: list[Path] = []

    class Here(GatedTool):
        def access(self, args: Any, run: RunContext) -> Access:
            asked.append(run.cwd)
            return Access.of(reads=[str(run.cwd)])

    here = Here("Here")
    here.open_all("b")
    async with executor_for(chdir_tool("Go", shared=False), here) as executor:
        executor.add(use("a", "Go"))
        executor.add(use("b", "Here"))
        assert asked == []
        await rest(executor)
    assert asked == [Path("/project/a")]


@pytest.mark.proves("A33", "P8")
@pytest.mark.parametrize(
    "change",
    ["/elsewhere", ContextChange(Path("/elsewhere"), mode="plan"), ContextChange(add_tools=(GatedTool("New"),))],
)
async def test_a_context_change_that_fails_is_told_and_changes_nothing(change: Any) -> None:
    class Bad(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            return Output(text="done", context_change=change)

    async with executor_for(Bad(shared=False)) as executor:
        executor.add(use("a"))
        [outcome] = await rest(executor)
    assert outcome.cause is Cause.CRASHED
    assert "what it changed for later calls was lost" in outcome.result.text
    assert executor.run.cwd == Path("/project")


# Siblings


async def siblings_of_a_failure(policy: str) -> list[Outcome]:
    sh, edit, reader = shell(), gated_writer("Edit"), GatedTool("Reader")
    sh.failing.add("b")
    for each in (sh, edit, reader):
        each.open_all(*"abcdef")
    async with executor_for(
        sh,
        edit,
        reader,
        scheduling=Scheduling(sibling_errors=policy),  # type: ignore[arg-type]  # from a table
    ) as executor:
        for call_id, name in zip("abcdef", ("Edit", "Shell", "Edit", "Reader", "Shell", "Nobody"), strict=True):
            executor.add(use(call_id, name))
        return await rest(executor)


@pytest.mark.proves("E23", "E26", "E27", "P5")
async def test_a_failed_shell_call_cancels_later_changing_calls_and_names_itself() -> None:
    outcomes = await siblings_of_a_failure("shell-chain")

    assert [o.cause.value for o in outcomes] == [
        "done",
        "failed",
        "sibling_error",
        "done",
        "sibling_error",
        "unknown_tool",
    ]
    assert outcomes[2].result.text == "Edit was not run: Shell failed."


@pytest.mark.proves("E23")
@pytest.mark.parametrize(
    ("policy", "causes"),
    [
        ("isolate", ["done", "failed", "done", "done", "done", "unknown_tool"]),
        ("all", ["done", "failed", "sibling_error", "sibling_error", "sibling_error", "unknown_tool"]),
    ],
)
async def test_what_a_failed_shell_call_cancels_is_a_setting(policy: str, causes: list[str]) -> None:
    assert [o.cause.value for o in await siblings_of_a_failure(policy)] == causes


@pytest.mark.proves("E23", "P5")
async def test_the_failure_of_any_other_tool_cancels_nothing() -> None:
    edit = gated_writer("Edit")
    edit.failing.add("a")
    edit.open_all("a", "b")
    async with executor_for(edit) as executor:
        executor.add(use("a", "Edit"))
        executor.add(use("b", "Edit"))
        assert [o.cause for o in await rest(executor)] == [Cause.FAILED, Cause.DONE]


@pytest.mark.proves("E23")
async def test_a_shell_call_that_was_refused_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    sh = shell()
    monkeypatch.setattr(sh, "parse", lambda raw: 1 / 0)
    edit = gated_writer("Edit")
    edit.open_all("b")
    async with executor_for(sh, edit) as executor:
        executor.add(use("a", "Shell"))
        executor.add(use("b", "Edit"))
        assert [o.cause for o in await rest(executor)] == [Cause.INVALID_INPUT, Cause.DONE]


@pytest.mark.proves("E23", "R4")
async def test_a_changing_call_that_arrives_after_the_failure_is_cancelled_like_one_that_was_there() -> None:
    sh, edit, reader = shell(), gated_writer("Edit"), GatedTool("Reader")
    sh.failing.add("a")
    sh.open_all("a")
    reader.open_all("c")
    async with executor_for(sh, edit, reader, scheduling=ALL) as executor:
        executor.add(use("a", "Shell"))
        await settled()
        executor.add(use("b", "Edit"))
        executor.add(use("c", "Reader"))
        outcomes = await rest(executor)
    assert [o.cause for o in outcomes] == [Cause.FAILED, Cause.SIBLING_ERROR, Cause.DONE]
    assert outcomes[1].result.text == "Edit was not run: Shell failed."


@pytest.mark.proves("E24")
async def test_cancelling_siblings_leaves_the_turn_alone() -> None:
    run = RunContext(Path("/project"))
    sh, edit = shell(), gated_writer("Edit")
    sh.failing.add("a")
    sh.open_all("a", "c")
    async with executor_for(sh, edit, run=run) as executor:
        executor.add(use("a", "Shell"))
        executor.add(use("b", "Edit"))
        await rest(executor)
    assert not run.abort.aborted
    assert run.abort._children == {}  # and the turn does not remember the answer


@pytest.mark.proves("E25")
async def test_what_a_tool_starts_is_stopped_with_its_call_and_may_be_stopped_alone() -> None:
    run = RunContext(Path("/project"))
    signals: list[AbortSignal] = []

    @tool(read_only=True)
    async def Helpers(ctx: ToolContext) -> str:
        """Start two helpers, stop one of them, and wait."""
        first, second = ctx.abort.child(), ctx.abort.child()
        first.abort(AbortReason.TIMEOUT)
        signals.extend([run.abort, ctx.abort, first, second])
        await asyncio.Event().wait()
        return ""

    async with executor_for(Helpers, run=run) as executor:
        executor.add(use("a", "Helpers"))
        await settled()
        assert [signal.reason for signal in signals] == [None, None, AbortReason.TIMEOUT, None]

        run.abort.abort(AbortReason.USER)
        user = AbortReason.USER
        assert [signal.reason for signal in signals] == [user, user, AbortReason.TIMEOUT, user]


@pytest.mark.proves("E23", "E24")
async def test_a_failure_cancels_a_later_call_that_already_runs_and_lets_an_earlier_one_go_on() -> None:
    sh = FileTool("Shell", error_cancels_siblings=True)
    sh.failing.add("b")
    async with executor_for(sh, scheduling=ALL) as executor:
        for call_id in "abc":
            executor.add(use(call_id, "Shell", writes=[f"/{call_id}"]))
        await settled()
        sh.open_all("b")
        await settled()
        assert executor.in_progress == {"a"}
        sh.open_all("a")
        outcomes = await rest(executor)
    assert [o.cause for o in outcomes] == [Cause.DONE, Cause.FAILED, Cause.SIBLING_ERROR]
    assert outcomes[2].result.text == (
        "Shell was stopped while it ran: Shell failed. Its effects may be incomplete; look before you repeat it."
    )


async def test_when_an_earlier_shell_call_fails_as_well_what_lies_between_falls_too() -> None:
    sh = FileTool("Shell", error_cancels_siblings=True)
    sh.failing |= {"a", "c"}
    async with executor_for(sh, scheduling=ALL) as executor:
        for call_id in "abcd":
            executor.add(use(call_id, "Shell", writes=[f"/{call_id}"]))
        await settled()
        for failing in "ca":
            sh.open_all(failing)
            await settled()
        causes = [o.cause.value for o in await rest(executor)]
    assert causes == ["failed", "sibling_error", "failed", "sibling_error"]


@pytest.mark.proves("X1", "P5")
async def test_27_parallel_searches_of_which_one_fails_give_26_results_of_their_own() -> None:
    search = GatedTool("Search", error_cancels_siblings=True)
    search.failing.add("13")
    async with executor_for(search) as executor:
        for number in range(27):
            executor.add(use(str(number), "Search"))
        search.open_all("13")
        await settled()
        search.open_all(*map(str, range(27)))
        outcomes = await rest(executor)
    assert texts(outcomes) == [f"{n} done" if n != 13 else "13 was told to fail." for n in range(27)]


# Interrupts


@pytest.mark.proves("E10", "E27", "L2", "L5")
async def test_a_hard_interrupt_stops_everything_and_each_result_says_whether_it_had_begun() -> None:
    tool = gated_writer(interrupt="block")
    async with executor_for(tool, scheduling=ALL) as executor:
        executor.add(use("a", "Writer"))
        executor.add(use("b", "Writer"))
        await settled()
        executor.interrupt(AbortReason.USER)
        outcomes = await rest(executor)
    assert [(o.status, o.cause) for o in outcomes] == [(Status.CANCELLED, Cause.USER_INTERRUPTED)] * 2
    began, waited = texts(outcomes)
    assert began.startswith("Writer was stopped while it ran: the user interrupted the turn. Its effects may be inco")
    assert waited == "Writer was not run: the user interrupted the turn."


@pytest.mark.proves("A16", "L2", "L4", "L5")
@pytest.mark.parametrize(
    ("interrupt", "shared", "stops"),
    [(None, True, True), (None, False, False), ("cancel", False, True), ("block", True, False)],
)
async def test_a_new_message_stops_what_gives_way_and_lets_the_rest_finish(
    interrupt: Any, shared: bool, stops: bool
) -> None:
    tool = GatedTool(shared=shared, interrupt=interrupt)
    async with executor_for(tool, scheduling=ALL) as executor:
        executor.add(use("a"))
        await settled()
        executor.interrupt(AbortReason.SUBMIT)
        executor.add(use("b"))
        tool.open_all("a", "b")
        outcomes = await rest(executor)
    expected = Cause.SUBMIT_INTERRUPTED if stops else Cause.DONE
    assert [o.cause for o in outcomes] == [expected, expected]


@pytest.mark.proves("L1", "F11")
async def test_aborting_the_turn_stops_its_calls_and_those_that_still_arrive() -> None:
    run = RunContext(Path("/project"))
    tool = GatedTool()
    async with executor_for(tool, run=run) as executor:
        executor.add(use("a"))
        await settled()
        run.abort.abort(AbortReason.USER)
        executor.add(use("b"))
        outcomes = await rest(executor)
    assert [o.cause for o in outcomes] == [Cause.USER_INTERRUPTED] * 2
    assert tool.started == ["a"]


@pytest.mark.proves("F11", "L1")
async def test_in_a_turn_that_is_already_aborted_nothing_is_run() -> None:
    run = RunContext(Path("/project"))
    run.abort.abort(AbortReason.USER)
    tool = GatedTool()
    async with executor_for(tool, run=run) as executor:
        executor.add(use("a"))
        [outcome] = await rest(executor)
    assert (outcome.cause, tool.started) == (Cause.USER_INTERRUPTED, [])


@pytest.mark.proves("F11")
async def test_a_call_that_is_stopped_before_its_task_has_begun_is_not_run() -> None:
    tool = GatedTool()
    async with executor_for(tool) as executor:
        executor.add(use("a"))
        assert executor.in_progress == {"a"}
        executor.interrupt(AbortReason.USER)
        [outcome] = await rest(executor)
    assert (outcome.result.text, tool.started) == ("Gated was not run: the user interrupted the turn.", [])


@pytest.mark.proves("L1", "L2")
async def test_a_running_call_sees_why_it_is_stopped() -> None:
    seen: list[AbortReason] = []

    class Listening(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            ctx.abort.listen(seen.append)
            return await super().call(args, ctx)

    async with executor_for(Listening()) as executor:
        executor.add(use("a"))
        await settled()
        executor.interrupt(AbortReason.SUBMIT)
        await rest(executor)
    assert seen == [AbortReason.SUBMIT]


@pytest.mark.proves("L3")
@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        ((AbortReason.USER, AbortReason.DISCARDED), Cause.STREAMING_FALLBACK),
        ((AbortReason.SUBMIT, AbortReason.USER), Cause.USER_INTERRUPTED),
        ((AbortReason.USER, AbortReason.SUBMIT), Cause.USER_INTERRUPTED),
        ((AbortReason.USER, AbortReason.SIBLING), Cause.SIBLING_ERROR),
        ((AbortReason.TIMEOUT,), Cause.TIMED_OUT),
    ],
)
async def test_of_several_reasons_the_strongest_is_told(reasons: tuple[AbortReason, ...], told: Cause) -> None:
    class Stubborn(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            try:
                return await super().call(args, ctx)
            finally:
                await asyncio.sleep(5)

    tool = Stubborn(interrupt="cancel")
    async with executor_for(tool) as executor:
        executor.add(use("a"))
        await settled()
        for reason in reasons:
            executor.interrupt(reason)
        executor.add(use("b"))
    assert [o.cause for o in executor.outcomes] == [told, told]


async def test_a_listener_that_raises_does_not_keep_other_calls_from_being_stopped() -> None:
    class Rude(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            ctx.abort.listen(lambda reason: 1 / 0)  # type: ignore[arg-type]  # it never returns
            return await super().call(args, ctx)

    async with executor_for(Rude()) as executor:
        executor.add(use("a"))
        executor.add(use("b"))
        await settled()
        executor.interrupt(AbortReason.USER)
        assert [o.cause for o in await rest(executor)] == [Cause.USER_INTERRUPTED] * 2


async def test_waiting_calls_behind_a_stopped_one_are_stopped_with_it_and_never_started() -> None:
    """The first one is what the others wait for: its end must not let them in while they are being stopped."""
    tool = gated_writer()
    async with executor_for(tool, scheduling=ALL) as executor:
        for call_id in "abc":
            executor.add(use(call_id, "Writer"))
        executor.interrupt(AbortReason.USER)
        outcomes = await rest(executor)
    assert [o.cause for o in outcomes] == [Cause.USER_INTERRUPTED] * 3
    assert tool.started == []


# Tools that do not play along


async def test_a_tool_that_swallows_its_cancellation_still_gets_its_one_outcome() -> None:
    class Deaf(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            try:
                return await super().call(args, ctx)
            except asyncio.CancelledError:
                return Output(text="finished all the same")

    async with executor_for(Deaf()) as executor:
        executor.add(use("a"))
        await settled()
        executor.interrupt(AbortReason.USER)
        [outcome] = await rest(executor)
    assert (outcome.status, outcome.result.text) == (Status.OK, "finished all the same")


async def test_a_tool_that_cleans_up_after_its_cancellation_is_not_disturbed() -> None:
    cleaned: list[str] = []

    class Tidy(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            try:
                return await super().call(args, ctx)
            finally:
                await asyncio.sleep(30)
                cleaned.append(ctx.use.id)

    async with executor_for(Tidy()) as executor:
        executor.add(use("a"))
        await settled()
        executor.interrupt(AbortReason.SUBMIT)
        await settled()
        executor.interrupt(AbortReason.USER)
    assert cleaned == ["a"]
    assert executor.outcomes[0].cause is Cause.USER_INTERRUPTED


@pytest.mark.proves("P8")
async def test_a_tool_that_raises_cancelled_error_itself_has_crashed() -> None:
    class Quitter(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            raise asyncio.CancelledError

    async with executor_for(Quitter()) as executor:
        executor.add(use("a"))
        [outcome] = await rest(executor)
    assert outcome.cause is Cause.CRASHED


async def test_a_task_that_somebody_else_cancels_counts_as_interrupted() -> None:
    class Cancelled(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            return await super().call(args, ctx)

    async with executor_for(Cancelled()) as executor:
        executor.add(use("a"))
        [outcome] = await rest(executor)
    assert outcome.cause is Cause.USER_INTERRUPTED


class EndOfTheWorld(BaseException):
    """What only an interpreter should raise."""


@pytest.mark.proves("R1")
async def test_a_base_exception_passes_through_and_leaves_no_call_without_outcome() -> None:
    class Doomed(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            raise EndOfTheWorld

    passed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: passed.append(context))
    other = gated_writer()
    other.open_all("b")
    async with executor_for(Doomed(), other) as executor:
        executor.add(use("a"))
        executor.add(use("b", "Writer"))
        outcomes = await rest(executor)
        for call in executor._calls:
            call.task = None
    assert [o.cause for o in outcomes] == [Cause.CRASHED, Cause.DONE]
    assert [type(context["exception"]) for context in passed] == [EndOfTheWorld]
    asyncio.get_running_loop().set_exception_handler(None)


# Leaving


async def test_leaving_stops_what_runs_and_every_call_has_an_outcome() -> None:
    tool = gated_writer()
    before = asyncio.all_tasks()
    async with executor_for(tool, scheduling=ALL) as executor:
        executor.add(use("a", "Writer"))
        executor.add(use("b", "Writer"))
        await settled()
    assert [o.status for o in executor.outcomes] == [Status.CANCELLED] * 2
    assert asyncio.all_tasks() == before


async def test_closing_from_another_task_ends_the_rest_with_all_results() -> None:
    tool = GatedTool()
    async with executor_for(tool) as executor:
        executor.add(use("a"))
        await settled()
        closing = asyncio.create_task(executor.aclose())
        outcomes = await rest(executor)
        await closing
    assert [o.cause for o in outcomes] == [Cause.USER_INTERRUPTED]


async def test_a_caller_that_is_cancelled_leaves_only_when_its_calls_have_stopped() -> None:
    slow: list[str] = []

    class Slow(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            try:
                return await super().call(args, ctx)
            finally:
                await asyncio.sleep(60)
                slow.append(ctx.use.id)

    async def turn() -> None:
        async with executor_for(Slow()) as executor:
            executor.add(use("a"))
            await rest(executor)

    caller = asyncio.create_task(turn())
    for _ in range(3):  # impatient callers cancel again
        await settled()
        caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert slow == ["a"]


async def test_a_call_may_close_its_own_executor() -> None:
    executors: list[ToolExecutor] = []

    class Closing(GatedTool):
        async def call(self, args: Any, ctx: ToolContext) -> Output:
            await executors[0].aclose()
            return await super().call(args, ctx)

    async with executor_for(Closing()) as executor:
        executors.append(executor)
        executor.add(use("a"))
        [outcome] = await rest(executor)
    assert outcome.cause is Cause.USER_INTERRUPTED


async def test_a_block_added_before_or_after_the_executor_is_open_is_refused_with_a_clear_error() -> None:
    executor = executor_for(GatedTool())
    with pytest.raises(HandrailError, match=r"'Gated' \(a\) was added to an executor that is not open"):
        executor.add(use("a"))
    async with executor:
        pass
    with pytest.raises(HandrailError, match="not open"):
        executor.add(use("a"))


# Many calls


class CountInput(Input):
    n: int


@pytest.mark.proves("E15", "E17")
async def test_thousands_of_queued_calls_all_end_in_order() -> None:
    class Count(Tool[CountInput]):
        name = "Count"
        input_model = CountInput

        def prompt(self, view: PromptView) -> str:
            return "Counts."

        def access(self, args: CountInput, run: RunContext) -> Access:
            return EXCLUSIVE if args.n % 100 == 0 else Access.of(writes=[f"/{args.n % 7}"])

        async def call(self, args: CountInput, ctx: ToolContext) -> Output:
            if args.n % 50 == 0:
                raise ToolError("no")
            return Output(text=str(args.n))

    async with executor_for(Count()) as executor:
        for number in range(2_000):
            executor.add(use(str(number), "Count", n=number))
        outcomes = await rest(executor)
    assert ids(outcomes) == [str(number) for number in range(2_000)]
