"""Scheduled prompts: what their tools need of the session."""

from typing import Protocol

from handrail.records import record


@record
class ScheduleFacts:
    """A scheduled prompt, as it is shown. Times are seconds since 1970."""

    id: str
    prompt: str
    words: str
    """When it comes, in words."""
    cron: str
    recurring: bool
    durable: bool
    next: float | None
    """When it comes next; None = not any more."""
    shown_next: str
    """The same in local time."""
    folder: str = ""


class Schedules(Protocol):
    """The schedules of a session: its own, and those of its folder that outlive it. All raise ScheduleError."""

    async def create(self, cron: str, prompt: str, *, recurring: bool, durable: bool) -> ScheduleFacts:
        """Add a prompt that comes when the cron line says so."""
        ...

    async def wake(self, seconds: float, prompt: str) -> ScheduleFacts:
        """Add a prompt that comes once, after so many seconds."""
        ...

    def all(self) -> tuple[ScheduleFacts, ...]:
        """Every schedule, the next first."""
        ...

    async def remove(self, schedule_id: str) -> ScheduleFacts:
        """Remove a schedule."""
        ...
