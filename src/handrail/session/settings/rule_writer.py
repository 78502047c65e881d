"""Rules that people agree to while a session runs, kept in the settings."""

from typing import TYPE_CHECKING, Protocol

from handrail.config.places import SettingsPlaces
from handrail.lazy import lazy
from handrail.session.settings.load import LoadedSettings
from handrail.tools.permission import Update

if TYPE_CHECKING:
    from handrail.config import persist
else:
    persist = lazy("handrail.config.persist")  # what reads and writes settings files, 5 ms

SOURCES = {"localSettings": "local", "projectSettings": "project", "userSettings": "user"}


class GoverningSettings(Protocol):
    """The settings of a running session, as `SessionSettings` has them."""

    places: SettingsPlaces
    loaded: LoadedSettings


class RuleWriter:
    """Writes a change of permissions to the file it is meant for (a `dispatch.approval.question.Persist`)."""

    def __init__(self, settings: GoverningSettings) -> None:
        self._settings = settings

    def where(self, destination: str) -> str:
        """The file of a destination, as people should read it."""
        source = SOURCES.get(destination)
        return self._settings.places.file(source).shown if source else "this session"

    def holds(self, update: Update) -> bool:
        """Whether what an update added is still written in its file, trusted or not."""
        source = SOURCES.get(str(update.get("destination")))
        file = self._settings.places.file(source) if source else None
        documents = [layer.document for layer in self._settings.loaded.settings.layers]
        section = next((each.values for each in documents if each.file == file), {}).get("permissions", {})
        return persist.is_written_in(update, section)

    def refuses(self, update: Update) -> str:
        """Why a change may not be made at all; empty if it may."""
        kind = update.get("type")
        widens = kind == "addDirectories" or (update.get("behavior") == "allow" and kind != "removeRules")
        only_managed = self._settings.loaded.managed_rules_only and widens
        return "policy allows no allow rules and folders but its own" if only_managed else ""

    def persist(self, update: Update) -> None:
        """Write a change to its file; SettingsError if that fails."""
        persist.persist(update, self._settings.places)
