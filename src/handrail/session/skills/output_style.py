"""The output style of a session: a reminder in the conversation, sent again when another style is chosen."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment
from handrail.extensions.places import ConfigFolder, config_folders
from handrail.hooks.texts import reminder
from handrail.lazy import lazy
from handrail.loop.prompt import STYLE
from handrail.session.settings.session_settings import SessionSettings

if TYPE_CHECKING:
    from handrail.extensions import output_styles
    from handrail.extensions.output_styles import OutputStyle
else:
    output_styles = lazy("handrail.extensions.output_styles")  # most people choose none

DEFAULT = "default"
FRAME = "The user chose the output style {}. It holds for all your answers:\n{}"
NO_STYLE = "The user chose to have no output style any more. Answer as you usually would."


def _last_note(history: Iterable[object]) -> str:
    """What a conversation that is taken up again was told last."""
    notes = [each for each in history if isinstance(each, Attachment) and each.kind == STYLE]
    block = notes[-1].content[0] if notes else None
    return block.text if isinstance(block, Text) else ""


class StyleNotes:
    """The style that the settings of a session name, and what its conversation was told of it."""

    def __init__(
        self, cwd: Path, settings: SessionSettings, folders: Callable[[], tuple[ConfigFolder, ...]] = tuple
    ) -> None:
        self._cwd = cwd
        self._more_folders = folders
        self._settings = settings
        self._told = ""

    @property
    def name(self) -> str:
        """The name in the settings, known or not."""
        name: str = self._settings.loaded.settings.get("outputStyle") or DEFAULT
        return name

    def chosen_style(self) -> "OutputStyle | None":
        """The style in force; None = there is none, or none of that name."""
        if self.name == DEFAULT:
            return None
        env, sources = self._settings.loaded.env, self._settings.flags.instruction_sources
        policy = (ConfigFolder(folder, "policy", str(folder)) for folder in self._settings.places.policy)
        folders = (*config_folders(self._cwd, env, sources), *policy, *self._more_folders())
        return output_styles.find_styles(folders).by_name.get(self.name)

    def problem(self) -> str:
        """Why the style of the settings has no effect; empty if it has."""
        if self.name == DEFAULT or self.chosen_style() is not None:
            return ""
        return (
            f"outputStyle: there is no style {self.name!r}, so answers have the default one. Upper and lower case "
            "count; built in are Proactive, Concise, Explanatory and Learning."
        )

    def attachments(self, history: Iterable[object]) -> Iterable[Attachment]:
        """The reminder for a prompt, if the conversation does not have it yet."""
        if not self._told:
            self._told = _last_note(history)
        style = self.chosen_style()
        if style is None and not self._told:
            return
        text = reminder(FRAME.format(style.name, style.body) if style is not None and style.body else NO_STYLE)
        if text != self._told:
            self._told = text
            yield Attachment(STYLE, (Text(text),))
