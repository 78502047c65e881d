"""What the tools for schedules share: the session's schedules, and how they are shown."""

from handrail.builtin.services import ToolServices
from handrail.errors import ToolError
from handrail.tools.schedules import ScheduleFacts, Schedules

SCHEDULES = "the schedules of the session"
"""The resource that calls read and write."""
MAX_SHOWN = 120


def schedules_of(services: ToolServices) -> Schedules:
    """The session's schedules; ToolError if there is no session that could start anything."""
    if services.schedules is None:
        raise ToolError("There are no schedules here: nothing could start a prompt later. Do it now, or tell the user.")
    return services.schedules


def line_of(facts: ScheduleFacts) -> str:
    """A schedule in one line."""
    kind = "recurring" if facts.recurring else "once"
    stays = ", durable" if facts.durable else ""
    prompt = " ".join(facts.prompt.split())
    prompt = prompt if len(prompt) <= MAX_SHOWN else f"{prompt[:MAX_SHOWN]}..."
    return f"{facts.id} {facts.words} ({kind}{stays}; next {facts.shown_next}): {prompt}"
