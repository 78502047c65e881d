"""Sleep waits on the loop's clock."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handrail.builtin.sleep import Sleep
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.results import ResultStore
from handrail.errors import InputError
from handrail.testing import run_virtual
from handrail.tools.abort import AbortReason
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.outcome import Cause
from handrail.tools.pool import Pool


@pytest.mark.parametrize("seconds", [0.5, "3", 3600])
def test_it_waits_so_long_and_says_so_before_and_after(ctx: ToolContext, seconds: Any) -> None:
    tool, news = Sleep(), list[Progress]()
    args = tool.parse({"seconds": seconds})

    async def wait() -> tuple[str, float]:
        output = await tool.call(args, ctx.replace(progress=news.append))
        return output.text, asyncio.get_running_loop().time()

    text, elapsed = run_virtual(wait())

    assert elapsed == pytest.approx(float(seconds))
    assert text == f"Waited {float(seconds):g} seconds."
    assert news == [Progress(f"waiting {float(seconds):g} s")]
    assert (tool.is_read_only(args), tool.is_concurrency_safe(args), tool.interrupt) == (True, True, "cancel")
    assert tool.summary(args) == f"Sleep({float(seconds):g} s)"


@pytest.mark.proves("N29")
def test_several_wait_at_once_and_an_interrupt_ends_them_at_once(tmp_path: Path) -> None:
    async def wait() -> tuple[list[Cause], float]:
        run = RunContext(tmp_path)
        async with ToolExecutor(Pool([Sleep()], ()), run, ResultStore(tmp_path / "results")) as executor:
            for name, seconds in (("a", 5), ("b", 10), ("c", 3000)):
                executor.add(ToolUse(name, "Sleep", {"seconds": seconds}))
            asyncio.get_running_loop().call_later(10.5, run.abort.abort, AbortReason.USER)
            causes = [outcome.cause async for outcome in executor.rest()]
        return causes, asyncio.get_running_loop().time()

    causes, elapsed = run_virtual(wait())

    assert causes == [Cause.DONE, Cause.DONE, Cause.USER_INTERRUPTED]
    assert elapsed == pytest.approx(10.5)


@pytest.mark.parametrize("seconds", [0, -1, 3601, "NaN", float("nan"), "inf", None, "soon"])
def test_a_time_that_makes_no_sense_is_refused(seconds: object) -> None:
    with pytest.raises(InputError, match="'seconds' is wrong"):
        Sleep().parse({"seconds": seconds})
