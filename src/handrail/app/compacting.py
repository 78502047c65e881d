"""Shortens a run's history when it is time: saves what leaves it, asks the model for a summary."""

import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Literal, TypeAlias

from handrail.conversation.messages import AssistantMessage, Message
from handrail.files.owned import owned_folder
from handrail.loop.compaction import (
    CHARACTERS_PER_TOKEN,
    DEFAULT_POLICY,
    Micro,
    Policy,
    Save,
    action,
    estimate,
    micro,
)
from handrail.loop.setup import nobody_minds
from handrail.loop.summary import split, summarised, summary_request
from handrail.loop.windows import window_of
from handrail.records import record

log = logging.getLogger(__name__)

Ask: TypeAlias = Callable[[Sequence[Message]], Awaitable[str]]
"""Asks the model with this history and without tools; the text of its answer, empty if there was none."""

PATIENCE = 1.1
"""After a summary that came to nothing, the history must have grown by this factor before the next try."""
UNBELIEVABLE = 8
"""No tokenizer is so much better than our estimate: servers that count so little leave out what they had cached."""


@record
class Compaction:
    """The messages that take the history's place; `note` is for people."""

    messages: tuple[Message, ...]
    kind: Literal["micro", "full"]
    note: str


class Compactor:
    """Knows what it tried. `folder` takes whole texts of results."""

    def __init__(
        self,
        ask: Ask,
        folder: Path,
        *,
        policy: Policy = DEFAULT_POLICY,
        window: Callable[[str], int] = window_of,
    ) -> None:
        self._ask = ask
        self._folder = folder
        self._policy = policy
        self._window = window
        self._failed_at = 0.0
        self._counted: tuple[Sequence[Message], int, int] = ((), 0, 0)

    async def shorten(
        self,
        messages: Sequence[Message],
        model: str,
        tokens: int,
        *,
        forced: bool = False,
        allowed: Callable[[], Awaitable[bool]] = nobody_minds,
        wish: str = "",
    ) -> Compaction | None:
        """
        A shorter history if there is need and a way, else None.

        `tokens` is what the last request and its answer filled of the window (0 = not known); `forced` means that the
        model refused the request as too long. `allowed` is asked before a summary is made; `wish` says what matters.
        """
        window = self._window(model)
        used = self._used(messages, tokens)
        wanted = "full" if forced else action(used, window, self._policy)
        if wanted == "none":
            return None
        stubbed = micro(messages, self._folder, self._policy)
        if stubbed is not None and self._is_enough(stubbed, used, window, forced) and save_all(stubbed.saves):
            saved = f"{stubbed.stubs} old results were moved to files, {stubbed.characters:,} characters."
            return Compaction(stubbed.messages, "micro", saved)
        if wanted == "micro" or (not forced and used < self._failed_at * PATIENCE):
            return None
        # a model that refuses has a smaller window than was thought
        room = min(window, used) if forced else window
        parts = split(messages, room, self._policy)
        if parts is None or not await allowed():
            return None
        text = await self._ask(summary_request(parts.older, room, wish, self._policy))
        after = summarised(parts, text)
        self._failed_at = used if after is None else 0.0
        return None if after is None else Compaction(after, "full", f"{len(parts.older)} messages became a summary.")

    def _used(self, messages: Sequence[Message], tokens: int) -> int:
        """What the next request will fill of the window: what is known of the last one, and what was added since."""
        estimated = self._estimated(messages)
        known = tokens + estimate(newest(messages))
        return known if tokens and known * UNBELIEVABLE > estimated else estimated

    def _estimated(self, messages: Sequence[Message]) -> int:
        """About what they fill. Every message is looked at once, however long the conversation is."""
        before, count, tokens = self._counted
        if messages is not before:
            count = tokens = 0
        tokens += estimate(messages[count:])
        self._counted = (messages, len(messages), tokens)
        return tokens

    def _is_enough(self, stubbed: Micro, used: int, window: int, forced: bool) -> bool:
        left = used - stubbed.characters // CHARACTERS_PER_TOKEN
        return not forced and action(left, window, self._policy) != "full"


def newest(messages: Sequence[Message]) -> Sequence[Message]:
    """What was added since the last answer."""
    return [*takewhile(lambda message: not isinstance(message, AssistantMessage), reversed(messages))]


def save_all(saves: Sequence[Save]) -> bool:
    """Write files for their owner only; False if one cannot be written, and then nothing must leave the history."""
    try:
        for save in saves:
            owned_folder(save.path.parent)
            with open(save.path, "wb", opener=_owner_only) as file:
                file.write(save.data)
    except OSError as error:
        log.warning("old results stay in the conversation: writing %s failed: %s", error.filename, error.strerror)
        return False
    return True


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
