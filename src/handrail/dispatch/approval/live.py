"""The policy in force: what the settings say now, and what was changed since the session began."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from handrail.dispatch.approval.question import Persist
from handrail.dispatch.threads import in_thread
from handrail.errors import HandrailError
from handrail.permissions.policy import Policy
from handrail.permissions.update import UpdateProblem, apply_update
from handrail.tools.permission import Update

log = logging.getLogger(__name__)

Change = Callable[[Policy], Policy]


class LivePolicy:
    """
    Gives the snapshot in force. Every change makes a new one with a higher version; old ones stay as they are.

    `base` is asked each time: when it gives another policy (the settings were changed), what was changed in this
    session is put on top of it again, but for what has meanwhile been written to the settings.
    """

    def __init__(self, base: Callable[[], Policy], persist: Persist | None = None) -> None:
        self._base = base
        self._persist = persist
        self._seen = base()
        self._current = self._seen
        self._changes: list[tuple[Change, bool]] = []
        self._listeners: list[Callable[[], None]] = []

    @property
    def persist(self) -> Persist | None:
        """Whoever keeps settings."""
        return self._persist

    def __call__(self) -> Policy:
        base = self._base()
        if base is not self._seen:
            self._seen = base
            self._changes = [(change, written) for change, written in self._changes if not written]
            self._put(self._rebuilt(base))
        return self._current

    def apply(self, change: Change, *, written: bool = False) -> Policy:
        """Change the policy for this session."""
        current = self()
        changed = change(current)
        if changed is not current:
            self._changes.append((change, written))
            self._put(changed)
        return self._current

    async def change(self, updates: Sequence[Update]) -> tuple[str, ...]:
        """Apply updates and write those that are meant to last. What could not be done is returned, and logged."""
        problems: list[str] = []
        for update in updates:
            if self._persist and (refusal := self._persist.refuses(update)):
                problems.append(refusal)
                continue
            tried = apply_update(self(), update)
            if isinstance(tried, UpdateProblem):
                problems.append(tried.message)
                continue
            written = await self._write(update, problems)
            self.apply(partial(_updated, update), written=written)
        for problem in problems:
            log.warning("a change of permissions was not made or not kept: %s", problem)
        return tuple(problems)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Be told when there is a new snapshot, until the function that is returned is called."""
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    async def _write(self, update: Update, problems: list[str]) -> bool:
        if self._persist is None or update.get("destination", "session") == "session":
            return False
        try:
            await in_thread(partial(self._persist.persist, update))
        except (HandrailError, OSError) as error:
            problems.append(f"it holds for this session only, because it could not be written: {error}")
            return False
        return True

    def _rebuilt(self, policy: Policy) -> Policy:
        for change, _ in self._changes:
            policy = change(policy)
        return policy

    def _put(self, policy: Policy) -> None:
        self._current = replace(policy, version=max(policy.version, self._current.version + 1))
        for listener in tuple(self._listeners):
            listener()


def _updated(update: Update, policy: Policy) -> Policy:
    changed = apply_update(policy, update)
    return policy if isinstance(changed, UpdateProblem) else changed
