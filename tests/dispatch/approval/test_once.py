"""A question is answered exactly once, however many try and from wherever."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.dispatch.approval.once import ResolveOnce
from handrail.errors import HandrailError

pytestmark = pytest.mark.anyio


@pytest.mark.proves("G42", "P6")
async def test_the_first_answer_counts_and_the_others_are_told_that_theirs_does_not() -> None:
    once: ResolveOnce[str] = ResolveOnce()

    with pytest.raises(HandrailError, match="not been answered"):
        _ = once.answer
    assert (once.is_resolved, once.winner) == (False, "")
    assert once.resolve("hook", "yes")
    assert not once.resolve("person", "no")

    assert (await once.wait(), once.answer, once.winner, once.is_resolved) == ("yes", "yes", "hook", True)


@pytest.mark.proves("G42", "P6")
@given(st.permutations(["person", "hook", "classifier", "abort"]))
def test_whatever_the_order_one_wins_and_the_rest_lose(order: list[str]) -> None:
    async def play() -> None:
        once: ResolveOnce[str] = ResolveOnce()
        won = [who for who in order if once.resolve(who, who)]
        assert won == [order[0]]
        assert await once.wait() == once.winner == order[0]

    asyncio.run(play())


@pytest.mark.proves("P6")
async def test_threads_that_answer_at_once_get_one_winner() -> None:
    once: ResolveOnce[int] = ResolveOnce()
    start = threading.Barrier(8)
    won: list[int] = []

    def answer(number: int) -> None:
        start.wait()
        if once.resolve(f"thread {number}", number):
            won.append(number)

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    answered = await asyncio.wait_for(once.wait(), 5)
    for thread in threads:
        thread.join()

    assert won == [answered]


def test_an_answer_that_comes_when_everybody_has_left_does_not_count() -> None:
    async def ask() -> ResolveOnce[str]:
        return ResolveOnce()

    once = asyncio.run(ask())

    assert not once.resolve("person", "yes")
