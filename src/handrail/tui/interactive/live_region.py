"""What is drawn around the input line: the open end of the answer, running calls, messages that wait, the footer."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.conversation.plain import plain
from handrail.lazy import lazy
from handrail.tui.interactive.paint import Theme, paint
from handrail.tui.interactive.turns import Turns
from handrail.tui.text import clip

if TYPE_CHECKING:
    from handrail.tui.interactive import footer
    from handrail.tui.interactive.view import ConversationView
else:  # the first frame does not need it
    footer = lazy("handrail.tui.interactive.footer")


class LiveRegion:
    """The lines of the moment. `view` gives the conversation, as soon as there is something of it to draw."""

    def __init__(
        self,
        turns: Turns,
        theme: Callable[[], Theme],
        view: "Callable[[], ConversationView | None]",
        takes_commands: Callable[[], bool],
    ) -> None:
        """`takes_commands`: whether letters are commands of vi now."""
        self._turns = turns
        self._theme = theme
        self._view = view
        self._takes_commands = takes_commands
        self.facts: footer.FooterFacts | None = None
        """What the footer tells; None = the session is not open yet."""
        self.status_line = ""
        """The user's own line."""

    @property
    def is_busy(self) -> bool:
        """Whether anything moves by itself."""
        view = self._view()
        return view is not None and view.is_busy

    def settle(self) -> None:
        """Commit what will not change any more."""
        if (view := self._view()) is not None:
            view.settle()

    def live_lines(self, width: int, height: int) -> list[str]:
        """The open end of the answer, running calls, and messages that wait."""
        view = self._view()
        waiting = [clip(f"  waits: {plain(text)}", width) for text in self._turns.waiting]
        if waiting and view is not None and self.facts is not None:
            calls = view.interruptible_calls
            stops = f", stops {calls} call{'s' if calls > 1 else ''}" if calls else ""
            waiting.append(clip(f"  (Enter sends now{stops}; Up edits)", width))
        waiting = waiting[-max(height // 2, 1) :]
        lines = view.live_lines(width, max(height - len(waiting), 1)) if view is not None else []
        return [*lines, *(paint(line, self._theme().dim) for line in waiting)]

    def footer_lines(self, width: int) -> list[str]:
        """The status line of the user, and ours."""
        theme = self._theme()
        if self._turns.is_leaving:
            return [paint(clip("Ctrl+C again exits", width), theme.warning)]
        own = [clip(plain(self.status_line), width)] if self.status_line else []
        if self.facts is None:
            return [*own, paint(clip("opening the session ...", width), theme.dim)]
        vi = "vi commands (i types) | " if self._takes_commands() else ""
        return [*own, paint(vi, theme.warning) + footer.footer_line(self.facts, width - len(vi), theme)]
