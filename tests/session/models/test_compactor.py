"""Shortening a history when it is time: real files, a model that is scripted."""

import stat
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Message, UserMessage
from handrail.loop.compaction.plan import Compaction, SummaryPlan
from handrail.loop.compaction.stubs import CompactionPolicy, characters_of
from handrail.session.models import compactor as compactor_module
from handrail.session.models.compactor import Compactor

pytestmark = pytest.mark.anyio
POLICY = CompactionPolicy(keep_results=1, worth=1_000)


class Model:
    """Gives one answer after the other and keeps what it was asked."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[Sequence[Message]] = []

    async def __call__(self, messages: Sequence[Message]) -> str:
        self.asked.append(messages)
        return self.answers.pop(0)


def conversation(*sizes: int) -> list[Message]:
    messages: list[Message] = [UserMessage((Text("Go."),))]
    for number, size in enumerate(sizes):
        messages.append(AssistantMessage((ToolUse(f"c{number}", "Read", {}),)))
        messages.append(UserMessage((ToolResult(f"c{number}", (Text(str(number) * size),)),)))
    return messages


def compactor(model: Model, folder: Path) -> Compactor:
    return Compactor(model, folder, policy=POLICY, window=lambda name: 10_000)


async def carry_out(compactor: Compactor, *history: Any, **options: Any) -> Compaction | None:
    planned = await compactor.plan(*history, **options)
    return await planned.summarise() if isinstance(planned, SummaryPlan) else planned


async def test_below_the_mark_nothing_happens(tmp_path: Path) -> None:
    shorten = partial(carry_out, compactor(Model(), tmp_path / "results"))

    assert await shorten(conversation(5_000, 5_000), "m", 4_000) is None
    assert not (tmp_path / "results").exists()


@pytest.mark.proves("R6")
async def test_first_old_results_go_to_files_of_their_owner(tmp_path: Path) -> None:
    done = await carry_out(compactor(Model(), tmp_path / "results"), conversation(9_000, 3_000), "m", 6_000)

    assert done is not None
    assert (done.kind, done.note[:25]) == ("micro", "1 old results were moved ")
    [kept] = (tmp_path / "results").iterdir()
    assert kept.read_text() == "0" * 9_000
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert str(kept) in repr(done.messages)


async def test_when_that_is_not_enough_the_model_is_asked_for_a_summary(tmp_path: Path) -> None:
    model = Model("All went well.")

    done = await carry_out(compactor(model, tmp_path), conversation(4_000, 30_000), "m", 9_000)

    assert done is not None
    assert done.kind == "full"
    assert "All went well." in repr(done.messages)
    assert len(model.asked) == 1
    assert list(tmp_path.iterdir()) == []


async def test_a_model_that_refuses_the_request_gets_a_summary_although_it_should_fit(tmp_path: Path) -> None:
    model = Model("Short.")

    done = await carry_out(compactor(model, tmp_path), conversation(3_000, 3_000, 30), "m", 100, forced=True)

    assert done is not None
    assert done.kind == "full"


async def test_a_summary_that_fails_is_not_asked_for_at_every_turn(tmp_path: Path) -> None:
    model = Model("", "Now.")
    shorten = partial(carry_out, compactor(model, tmp_path))
    messages = conversation(1_000, 1_500, 1_500)

    assert await shorten(messages, "m", 8_500) is None
    assert await shorten(messages, "m", 8_600) is None
    assert len(model.asked) == 1
    assert await shorten(messages, "m", 9_900) is not None


async def test_results_that_are_old_by_now_are_moved_once_the_history_has_grown(tmp_path: Path) -> None:
    shorten = partial(carry_out, compactor(Model(), tmp_path / "results"))
    assert await shorten(conversation(100, 3_000), "m", 6_000) is None, "the only large one is the newest"

    grown = conversation(100, 3_000, 100)
    assert await shorten(grown, "m", 7_010) is None, "not looked at again so soon"
    done = await shorten(grown, "m", 7_150)

    assert done is not None
    assert done.kind == "micro"


async def test_results_that_cannot_be_saved_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    shorten = partial(carry_out, compactor(Model(), tmp_path / "file"), conversation(9_000, 3_000), "m")

    assert await shorten(6_000) is None
    assert await shorten(6_050) is None
    assert len(caplog.records) == 1, "not tried again so soon"
    (tmp_path / "file").unlink()
    assert await shorten(6_150) is not None


@pytest.mark.parametrize(
    ("sizes", "tokens", "shortened"),
    [
        ((3_000, 3_000), 5_100, True),  # what was added since the last answer counts
        ((3_000, 3_000), 4_900, False),
        ((9_000, 9_500), 0, True),  # servers that do not count
        ((3_000, 3_000), 0, False),
        ((30_000, 10), 30, True),  # servers that leave out what they had cached
    ],
)
async def test_what_fills_the_window(sizes: Sequence[int], tokens: int, shortened: bool, tmp_path: Path) -> None:
    done = await carry_out(compactor(Model("Words."), tmp_path), conversation(*sizes), "m", tokens)

    assert (done is not None) == shortened


async def test_a_long_conversation_is_not_counted_again_at_every_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Message] = []

    def counted(message: Message) -> int:
        seen.append(message)
        return characters_of(message)

    monkeypatch.setattr(compactor_module, "characters_of", counted)
    shorten, messages = partial(carry_out, compactor(Model(), tmp_path)), conversation(10)
    for number in range(100):
        for tokens in (0, 50):
            assert await shorten(messages, "m", tokens) is None
        messages += [AssistantMessage((Text("Yes."),)), UserMessage((Text(f"And {number}?"),))]

    assert seen == messages[:-2]


async def test_another_history_is_counted_anew(tmp_path: Path) -> None:
    shorten = partial(carry_out, compactor(Model(), tmp_path))

    assert await shorten(conversation(12_000), "m", 0) is None
    assert await shorten(conversation(3_000, 3_000), "m", 0) is None
