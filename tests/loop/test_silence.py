"""When a model that says nothing is told of."""

import asyncio

import pytest

from handrail.loop.events import Notice
from handrail.loop.silence import SilenceWatch
from handrail.testing import run_virtual


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        pytest.param([7.5, 7.5, 7.5], [], id="answers that come in time"),
        pytest.param([9.0], [8.0], id="once for one answer"),
        pytest.param([30.0], [8.0], id="once for an answer that takes very long"),
        pytest.param([5.0, 9.0], [13.0], id="after the newest request"),
        pytest.param([9.0, 1.0, 9.0], [8.0, 18.0], id="again for another answer"),
        pytest.param([8.5, 8.5], [8.0, 16.5], id="for each answer"),
    ],
)
def test_a_silent_model_is_told_of_eight_seconds_after_its_request(answers: list[float], told: list[float]) -> None:
    seen: list[float] = []

    async def main() -> None:
        loop, watch = asyncio.get_running_loop(), SilenceWatch()
        begin = loop.time()

        def report(notice: Notice) -> None:
            assert notice.text.startswith("m has said nothing for 8 seconds")
            seen.append(loop.time() - begin)

        for seconds in answers:
            watch.start("m", report)
            await asyncio.sleep(seconds)
            watch.stop()
        await asyncio.sleep(20)
        watch.start("m", report)
        watch.close()
        await asyncio.sleep(20)

    run_virtual(main())

    assert seen == pytest.approx(told)
