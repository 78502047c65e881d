"""What a call is given."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import UserMessage
from handrail.tools.abort import AbortSignal
from handrail.tools.context import AgentIdentity, AgentType, Progress, RunContext, RunOptions, StateStore, ToolContext
from handrail.tools.permission import Decision, NoRules, Verdict

pytestmark = pytest.mark.anyio


@pytest.mark.proves("M1", "M4", "M5", "M2")
async def test_a_call_sees_its_run_and_has_a_request_a_signal_and_a_listener_of_its_own() -> None:
    options = RunOptions(
        model="m", thinking="high", interactive=True, debug=True, verbose=True,
        tools=lambda: ("Read",), commands=lambda: {"help": ""}, agents=lambda: (AgentType("Explore"),),
    )  # fmt: skip
    history = (UserMessage((Text("hello"),)),)
    run = RunContext(
        Path("/here"),
        agent=AgentIdentity("agent-7", "Explore"),
        options=options,
        history=history,
        policy=lambda _run: NoRules(version=4, mode="plan"),
    )
    asked: list[tuple[ToolUse, RunContext]] = []
    news: list[Progress] = []

    async def allow(use: ToolUse, run: RunContext) -> Decision:
        asked.append((use, run))
        return Decision(Verdict.ALLOW, "fine")

    use, signal = ToolUse("1", "Read", {"file_path": "a"}), AbortSignal()
    ctx = ToolContext(run, use, signal, news.append, allow)

    assert (ctx.cwd, ctx.options, ctx.agent, ctx.history) == (
        Path("/here"),
        options,
        AgentIdentity("agent-7", "Explore"),
        history,
    )
    assert (ctx.files, ctx.state, ctx.use, ctx.abort) == (run.files, run.state, use, signal)
    assert (ctx.permissions.version, ctx.permissions.mode) == (4, "plan")
    other = ToolUse("2", "Bash", {})
    assert (await ctx.may_use(other)).verdict is Verdict.ALLOW
    assert asked == [(other, run)]

    heard: list[Progress] = []
    changed = ctx.replace(use=other, progress=heard.append)
    changed.progress(Progress("one"))
    ctx.replace().progress(Progress("two"))
    assert (changed.use, heard, news) == (other, [Progress("one")], [Progress("two")])
    assert (await changed.may_use(use)).verdict is Verdict.ALLOW


@pytest.mark.proves("M5")
def test_a_run_without_choices_is_the_main_agent_that_nobody_watches(tmp_path: Path) -> None:
    run = RunContext(tmp_path)

    assert run.agent == AgentIdentity("main", "main")
    assert run.options == RunOptions()
    assert not run.options.interactive
    assert run.permissions == NoRules(version=0, mode="default")
    assert replace(run, cwd=Path("/")).files is run.files, "a changed folder forgets nothing"


@pytest.mark.proves("M2")
def test_state_is_replaced_by_a_function_of_the_old_one() -> None:
    store = StateStore({"a": 1})
    before = store.get()

    store.update(lambda state: {**state, "b": 2})

    assert before == {"a": 1}
    assert store.get() == {"a": 1, "b": 2}
    assert StateStore().get() == {}


def test_changes_of_state_from_two_threads_do_not_overtake_each_other() -> None:
    store = StateStore({"n": 0})
    other = threading.Thread(target=store.update, args=(lambda state: {"n": state["n"] + 1},))

    def slowly(state: dict[str, int]) -> dict[str, int]:
        other.start()
        other.join(timeout=0.05)  # without a lock the other change would be made, and lost, now
        return {"n": state["n"] + 1}

    store.update(slowly)  # type: ignore[arg-type]  # the state of this test is a dict of numbers
    other.join()

    assert store.get() == {"n": 2}
