"""The policy in force: the current settings, and the changes of this session."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from handrail.conversation.logger import get_logger
from handrail.dispatch.threads import in_thread
from handrail.errors import HandrailError
from handrail.permissions.modes import MODE_ALIASES
from handrail.permissions.policy import Policy
from handrail.permissions.rules import RuleProblem
from handrail.permissions.update import UpdateProblem, apply_update, change_policy
from handrail.tools.output import ContextChange
from handrail.tools.permission import Update

if TYPE_CHECKING:
    from handrail.dispatch.approval.question import SettingsWriter

log = get_logger(__name__)

Change = Callable[[Policy], Policy]
FOR_AGENT = "agent"
"""The destination of rules that hold for one sub-agent."""


class LivePolicy:
    """
    Returns the policy snapshot in force. Every change makes a new snapshot with a higher version.

    `base` is called each time. When it returns another policy (the settings were changed), the changes of this session
    are applied to it again, except those that were written to the settings and removed from them since.
    """

    def __init__(self, base: Callable[[], Policy], persist: "SettingsWriter | None" = None) -> None:
        self._base = base
        self.persist = persist
        self._seen = base()
        self._current = self._seen
        self._changes: list[tuple[Change, Update | None]] = []
        self._lent: list[tuple[tuple[str, ...], Change]] = []
        """What sub-agents were lent, each by its path."""
        self._listeners: list[Callable[[], None]] = []

    @property
    def last(self) -> Policy:
        """The snapshot of the last call, without looking for new settings."""
        return self._current

    def __call__(self) -> Policy:
        base = self._base()
        if base is not self._seen:
            self._seen = base
            self._changes = [each for each in self._changes if each[1] is None or self._holds(each[1])]
            self._rebuild(base)
        return self._current

    def _rebuild(self, base: Policy) -> None:
        for change, written in self._changes:
            base = base if written and contains_update(base, written) else change(base)
        self._put(base)

    def apply(self, change: Change, *, written: Update | None = None) -> Policy:
        """Change the policy for this session; `written` is the update that the settings contain."""
        current = self()
        changed = current if written and contains_update(current, written) else change(current)
        if written or changed is not current:
            self._changes.append((change, written))
        if changed is not current:
            self._put(changed)
        return self._current

    def lend(self, change: Change, path: tuple[str, ...] = ()) -> Callable[[], None]:
        """
        Change the policy until the returned function is called.

        With the `path` of a sub-agent, only for its calls and for those of the agents below it.
        """
        if path:
            return self._lend_to_agent(path, change)
        changed = change(self())
        entry = (change, None)
        self._changes.append(entry)
        self._put(changed)

        def take_back() -> None:
            if entry in self._changes:
                self._changes.remove(entry)
                self._rebuild(self._seen)

        return take_back

    def _lend_to_agent(self, path: tuple[str, ...], change: Change) -> Callable[[], None]:
        entry = (path, change)
        self._lent.append(entry)
        self._put(self())

        def take_back() -> None:
            if entry in self._lent:
                self._lent.remove(entry)
                self._put(self._current)

        return take_back

    def lent_to(self, path: tuple[str, ...]) -> tuple[Change, ...]:
        """The changes that count for the agent at this path only, and for those below it."""
        if not self._lent:
            return ()
        return tuple(change for owner, change in self._lent if path[: len(owner)] == owner)

    async def change(self, updates: Sequence[Update], path: tuple[str, ...] = ()) -> tuple[str, ...]:
        """
        Apply updates, and write those with a settings destination. Problems are returned and logged.

        Those whose destination is `agent` hold for the sub-agent at this path and those below it; of the main agent,
        for the session.
        """
        problems: list[str] = []
        for each in updates:
            is_for_agent = each.get("destination") == FOR_AGENT
            update = {**each, "destination": "session"} if is_for_agent else each
            if self.persist and (refusal := self.persist.refuses(update)):
                problems.append(refusal)
                continue
            now = self()
            tried = apply_update(now, update)
            if isinstance(tried, UpdateProblem):
                problems.append(tried.message)
            elif is_for_agent and path:
                if update.get("type") == "addRules":
                    self.lend(partial(_apply_or_keep, partial(apply_update, update=update)), path)
                else:
                    problems.append(f"only rules can hold for one agent, and this is {update.get('type')!r}")
            elif tried != now:
                written = update if await self._write(update, problems) else None
                self.apply(partial(_apply_or_keep, partial(apply_update, update=update)), written=written)
                problems += [_problem_note(each) for each in tried.problems if each not in now.problems]
            elif update.get("type") == "setMode" and not contains_update(now, update):
                problems.append(f"the mode {update.get('mode')!r} cannot be entered here; {now.mode!r} stays")
        for problem in problems:
            log.warning("a change of permissions did not work as it is written: %s", problem)
        return tuple(problems)

    def adopt(self, change: ContextChange, *, consented: bool) -> str:
        """Change the policy for this session as a call asks; returns why that is impossible, or an empty text."""
        update = {"type": "addDirectories", "directories": change.add_directories}
        if change.add_directories and self.persist and (refusal := self.persist.refuses(update)):
            return refusal
        tried = change_policy(self(), change, consented=consented)
        if isinstance(tried, UpdateProblem):
            return tried.message
        self.apply(partial(_apply_or_keep, partial(change_policy, change=change, consented=True)))
        return ""

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener for each new snapshot, until the returned function is called."""
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    async def _write(self, update: Update, problems: list[str]) -> bool:
        if self.persist is None or update.get("destination", "session") == "session":
            return False
        try:
            await in_thread(partial(self.persist.persist, update))
        except (HandrailError, OSError) as error:
            problems.append(f"it holds for this session only, because it could not be written: {error}")
            return False
        return True

    def _holds(self, update: Update) -> bool:
        return self.persist is not None and self.persist.holds(update)

    def _put(self, policy: Policy) -> None:
        self._current = replace(policy, version=max(policy.version, self._current.version + 1))
        for listener in tuple(self._listeners):
            listener()


def contains_update(policy: Policy, update: Update) -> bool:
    """Whether a policy already contains what an update adds."""
    match update.get("type"):
        case "addRules":
            alone = apply_update(Policy.empty(policy.cwd, policy.home), update)
            there = {(rule.behaviour, rule.tool, rule.spec, rule.source.name) for rule in policy.rules}
            wanted = alone.rules if isinstance(alone, Policy) else ()
            return all((rule.behaviour, rule.tool, rule.spec, rule.source.name) in there for rule in wanted)
        case "setMode":
            mode = str(update.get("mode"))
            return policy.mode == MODE_ALIASES.get(mode, mode)
        case "addDirectories":
            return set(update.get("directories") or ()) <= set(policy.working_dirs)
        case _:
            return False


def _problem_note(problem: RuleProblem) -> str:
    return f"{problem.text!r}: {problem.message.rstrip('.')}. {problem.consequence}"


def _apply_or_keep(apply: Callable[[Policy], Policy | UpdateProblem], policy: Policy) -> Policy:
    changed = apply(policy)
    return policy if isinstance(changed, UpdateProblem) else changed
