"""The settings in force, as frozen data. A start without settings files loads little else of this package."""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from handrail.config.problems import Problem
from handrail.records import record

if TYPE_CHECKING:
    from handrail.config.document import SettingsDocument
    from handrail.config.mcp_files import WrittenServer
    from handrail.config.needs_trust import TrustItem
    from handrail.config.places import SettingsFile
    from handrail.config.trust import TrustRecord

TRUSTED: Final = "trusted"
UNTRUSTED: Final = "untrusted"
CHANGED: Final = "changed"


@record
class Layer:
    """A document and its values that count."""

    document: "SettingsDocument"
    values: Mapping[str, Any]
    kept: bool = False
    """The document is broken now; these values are what it forbade before."""

    @property
    def source(self) -> str:
        """policy, flag, local, project or user."""
        return self.document.file.source


@record
class Settings:
    """All settings in force. `layers` are in order, the highest first."""

    layers: tuple[Layer, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    """The values of policy alone."""
    problems: tuple[Problem, ...] = ()
    ignored: "tuple[TrustItem, ...]" = ()
    """The items that wait for trust."""
    items: "tuple[TrustItem, ...]" = ()
    """The items that need trust, whether they have it or not."""
    trust: str = UNTRUSTED
    """trusted, untrusted or changed, the weakest of all folders; untrusted also when nothing needs trust."""
    trust_by_folder: Mapping[str, str] = field(default_factory=dict)
    """The same of each folder that brings something that needs trust."""
    doubtful: bool = False
    """It is unknown what some file forbids, so nothing is widened."""
    servers: Mapping[str, Any] = field(default_factory=dict)
    """The MCP servers that may be used: those of the user, and those of `.mcp.json` that are trusted or approved."""
    written_servers: "tuple[WrittenServer, ...]" = ()
    """All MCP servers that some file names, the highest scope first."""
    agreed: "Mapping[str, TrustRecord]" = field(default_factory=dict)
    """By folder, the items that --trust covers."""

    def find_server(self, name: str) -> "WrittenServer | None":
        """Where the entry of a server stands that counts, or would count."""
        same = [each for each in self.written_servers if each.name == name]
        return next((each for each in same if each.entry is self.servers.get(name)), same[0] if same else None)

    @property
    def settings_files(self) -> "tuple[SettingsFile, ...]":
        """The files that count, the highest first; those of the project from the working folder upwards."""
        return tuple(layer.document.file for layer in self.layers)

    def get(self, *path: str) -> Any:
        """The merged value at the end of a path, or None."""
        return _at(self.values, path)

    def get_managed(self, *path: str) -> Any:
        """The value that policy sets, or None."""
        return _at(self.policy, path)


NO_SETTINGS = Settings()
"""The settings when there is no file at all."""


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
