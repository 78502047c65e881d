"""What counts, as frozen data. Light to load: a start without settings files loads nothing else of this package."""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from handrail.config.problems import Problem
from handrail.records import record

if TYPE_CHECKING:
    from handrail.config.document import SettingsDocument
    from handrail.config.needs_trust import TrustItem
    from handrail.config.trust import TrustRecord

TRUSTED, UNTRUSTED = "trusted", "untrusted"


@record
class Layer:
    """A document and those of its values that count."""

    document: "SettingsDocument"
    values: Mapping[str, Any]
    kept: bool = False
    """The document is broken now, and these values are what it forbade when it was not."""

    @property
    def source(self) -> str:
        """policy, flag, local, project or user."""
        return self.document.file.source


@record
class Settings:
    """Everything that counts. `layers` are in order, the highest first."""

    layers: tuple[Layer, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    """The part of it that policy says."""
    problems: tuple[Problem, ...] = ()
    ignored: "tuple[TrustItem, ...]" = ()
    """What waits for trust."""
    items: "tuple[TrustItem, ...]" = ()
    """What needs trust, whether it has it or not."""
    trust: str = UNTRUSTED
    """trusted, untrusted or changed; untrusted also when nothing needs trust."""
    doubtful: bool = False
    """It is not known what some file forbids, so nothing is widened."""
    servers: Mapping[str, Any] = field(default_factory=dict)
    """What `.mcp.json` names, as far as it is trusted or approved."""
    named: "Layer | None" = None
    """All that `.mcp.json` names."""
    agreed: "TrustRecord | None" = None
    """What --trust covers."""

    def get(self, *path: str) -> Any:
        """The merged value at the end of a path, or None."""
        return _at(self.values, path)

    def get_managed(self, *path: str) -> Any:
        """The value that policy sets, or None."""
        return _at(self.policy, path)


NO_SETTINGS = Settings()
"""Where there is no file at all."""


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
