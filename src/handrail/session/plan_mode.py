"""What the model is told when plan mode begins and ends."""

from collections.abc import Callable, Iterable

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment
from handrail.hooks.texts import reminder
from handrail.session.settings.session_settings import SessionSettings

BEGINS = """\
Plan mode is on: read, search and think, but change nothing. The one file you may write is the plan: {file}
1. Look at what the task touches until you know how it works today. Ask the user what only they can decide.
2. Write the plan there: what changes, in which files, in which order, how it will be checked, and what stays as it \
is. Short enough to read in two minutes.
3. Call ExitPlanMode. The user reads the plan and approves it or says what should be different.
End your turn only with a question to the user or with ExitPlanMode."""
ENDS = "Plan mode is over: you may change files again, as the rules of this session allow."


class PlanReminder:
    """Notices that the mode of the session changed."""

    def __init__(self, settings: SessionSettings, services: Callable[[], ToolServices]) -> None:
        self._settings = settings
        self._services = services
        self._is_on = False

    def attachments(self) -> Iterable[Attachment]:
        """What the model has to know since the last request."""
        is_on = self._settings.mode == "plan"
        if is_on == self._is_on:
            return
        self._is_on = is_on
        text = BEGINS.format(file=self._services().plan_file) if is_on else ENDS
        yield Attachment("plan_mode", (Text(reminder(text)),))
