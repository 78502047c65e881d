"""Compacts a run's history when it is time: saves what leaves it, asks the model for a summary."""

import math
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from handrail.conversation.logger import get_logger
from handrail.conversation.messages import AssistantMessage, Message
from handrail.conversation.request import History, Request
from handrail.errors import HandrailError
from handrail.files.private_folder import make_private_folder
from handrail.loop.compaction.plan import Compaction, CompactionRequest, SummaryPlan
from handrail.loop.compaction.stubs import (
    CHARACTERS_PER_TOKEN,
    DEFAULT_POLICY,
    CompactionPolicy,
    FileToSave,
    StubbedHistory,
    characters_of,
    needed_action,
    stub_old_results,
)
from handrail.loop.compaction.summary import HistorySplit, replace_with_summary, split_history, summary_request
from handrail.loop.side_request import side_request
from handrail.loop.windows import window_of
from handrail.session.models.choose import SessionModel

log = get_logger(__name__)

Ask: TypeAlias = Callable[[Sequence[Message]], Awaitable[str]]
"""Asks the model with this history and without tools; the text of its answer, empty if there was none."""

PATIENCE = 1.1
"""After a summary that came to nothing, the history must have grown by this factor before the next try."""
STUB_STEP = 0.01
"""After a look at all results that was of no use, this share of the window must be filled before the next one."""
UNBELIEVABLE = 8
"""No tokenizer is so much better than our estimate: servers that count so little leave out what they had cached."""


class Compactor:
    """Knows what it tried. `folder` takes whole texts of results."""

    def __init__(
        self,
        ask: Ask,
        folder: Path,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        window: Callable[[str], int] = window_of,
    ) -> None:
        self._ask = ask
        self._folder = folder
        self._policy = policy
        self._window = window
        self._failed_at = 0.0
        self._useless_look_at = -math.inf
        self._counted: tuple[Sequence[Message], int, int, int] = ((), 0, 0, 0)

    def may_need(self, messages: Sequence[Message], model: str, tokens: int) -> bool:
        """Whether `plan` may find something to do; most requests can do without it."""
        return needed_action(self._used_tokens(messages, tokens), self._window(model), self._policy) != "none"

    async def plan(
        self, messages: Sequence[Message], model: str, tokens: int, *, forced: bool = False, instructions: str = ""
    ) -> Compaction | SummaryPlan | None:
        """A shorter history if `tokens` (0 = unknown) need it or, `forced`, the model found it too long; else None."""
        window, used = self._window(model), self._used_tokens(messages, tokens)
        wanted = "full" if forced else needed_action(used, window, self._policy)
        if wanted == "none":
            return None
        stubbed = self._stub_results(messages, used, 0 if forced else window * STUB_STEP)
        left = used - stubbed.characters // CHARACTERS_PER_TOKEN if stubbed else used
        is_enough = not forced and needed_action(left, window, self._policy) != "full"
        if stubbed is not None and is_enough and save_all(stubbed.saves):
            self._useless_look_at = -math.inf
            saved = f"{stubbed.stubs} old results were moved to files, {stubbed.characters:,} characters."
            return Compaction(stubbed.messages, "micro", saved)
        if wanted == "micro" or (not forced and used < self._failed_at * PATIENCE):
            return None
        # a model that refuses has a smaller window than was thought
        room = min(window, used) if forced else window
        parts = split_history(messages, room, self._policy)
        return None if parts is None else SummaryPlan(partial(self._summarise, parts, used, room, instructions))

    def _stub_results(self, messages: Sequence[Message], used: int, step: float) -> StubbedHistory | None:
        """The history with stubs, looked for when it has grown by a step since a look was of no use."""
        if self._useless_look_at <= used < self._useless_look_at + step:
            return None
        self._useless_look_at = used  # until the stubs turn out to be enough, and are saved
        return stub_old_results(messages, self._folder, self._policy)

    async def _summarise(self, parts: HistorySplit, used: int, room: int, instructions: str) -> Compaction | None:
        text = await self._ask(summary_request(parts.older, room, instructions, self._policy))
        after = replace_with_summary(parts, text)
        self._failed_at = used if after is None else 0.0
        return None if after is None else Compaction(after, "full", f"{len(parts.older)} messages became a summary.")

    def _used_tokens(self, messages: Sequence[Message], tokens: int) -> int:
        """What the next request will fill of the window: what is known of the last one, and what was added since."""
        estimated, newest = self._estimate(messages)
        known = tokens + newest
        return known if tokens and known * UNBELIEVABLE > estimated else estimated

    def _estimate(self, messages: Sequence[Message]) -> tuple[int, int]:
        """About what all messages fill, and those since the last answer. Each is looked at once, however many."""
        before, count, characters, newest = self._counted
        if messages is not before:
            count = characters = newest = 0
        for message in messages[count:]:
            size = characters_of(message)
            characters += size
            newest = 0 if isinstance(message, AssistantMessage) else newest + size
        self._counted = (messages, len(messages), characters, newest)
        return characters // CHARACTERS_PER_TOKEN, newest // CHARACTERS_PER_TOKEN


def save_all(saves: Sequence[FileToSave]) -> bool:
    """Write files for their owner only; False if one cannot be written, and then nothing must leave the history."""
    try:
        for save in saves:
            make_private_folder(save.path.parent)
            with open(save.path, "wb", opener=_owner_only) as file:
                file.write(save.data)
    except OSError as error:
        log.warning("old results stay in the conversation: writing %s failed: %s", error.filename, error.strerror)
        return False
    return True


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


class SessionCompactor:
    """Compacts with the session's own model, on its bill; without `automatic`, only when the user asks for it."""

    def __init__(
        self, model: SessionModel, folder: Path, *, automatic: bool, window: Callable[[str], int] = window_of
    ) -> None:
        self.automatic = automatic
        self._model = model
        self._compactor = Compactor(self._ask, folder, window=window)
        self._asked = ""
        self._problem = ""

    def __call__(self, request: CompactionRequest) -> Coroutine[Any, Any, Compaction | SummaryPlan | None] | None:
        if request.instructions is not None:
            return self._plan(request)
        messages, tokens = request.history.messages, request.context_tokens
        needed = self.automatic and (request.forced or self._compactor.may_need(messages, request.model, tokens))
        return self._plan(request) if needed else None

    async def _plan(self, request: CompactionRequest) -> Compaction | SummaryPlan | None:
        self._asked, self._problem = request.model, ""
        planned = await self._compactor.plan(
            request.history.messages,
            request.model,
            request.context_tokens,
            forced=request.forced,
            instructions=request.instructions or "",
        )
        if request.instructions is None:
            return planned
        if isinstance(planned, SummaryPlan):
            return SummaryPlan(partial(self._summarise, planned))
        return self._require(planned)

    async def _summarise(self, planned: SummaryPlan) -> Compaction:
        return self._require(await planned.summarise())

    def _require(self, compaction: Compaction | None) -> Compaction:
        if compaction is None:
            raise HandrailError(self._problem or "The conversation is too short to shorten it. Go on as it is.")
        return compaction

    async def _ask(self, messages: Sequence[Message]) -> str:
        answer = await side_request(self._model.chosen.model, Request(self._asked, History(messages)))
        self._model.add_usage(answer.model, answer.usage)
        if answer.failure:
            self._problem = f"The model could not summarise the conversation: {answer.failure.report}"
        return "" if answer.failure else answer.text
