"""A user with a home, a project and a machine, all in one temporary folder."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from handrail.config.flags import SettingsFlags
from handrail.config.load import load_settings
from handrail.config.managed import PolicySource
from handrail.config.places import SettingsPlaces
from handrail.config.snapshot import Settings
from handrail.config.trust import TrustStore
from handrail.session.settings.load import LoadedSettings, load
from handrail.session.settings.session_settings import SessionSettings

FILES = {
    "policy": "etc/handrail/managed-settings.json",
    "policy.claude": "etc/claude-code/managed-settings.json",
    "local": "project/.handrail/settings.local.json",
    "local.claude": "project/.claude/settings.local.json",
    "project": "project/.handrail/settings.json",
    "project.claude": "project/.claude/settings.json",
    "user": "home/.handrail/settings.json",
    "user.claude": "home/.claude/settings.json",
    "mcp": "project/.mcp.json",
}


class World:
    """Writes settings files and loads them."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root.resolve())
        for name in ("home", "project", "state"):
            (self.root / name).mkdir()
        self.env = {"HOME": str(self.root / "home"), "PATH": "/usr/bin:/bin", "IS_SANDBOX": "1"}
        self.places = SettingsPlaces(
            cwd=str(self.root / "project"),
            home=str(self.root / "home"),
            user=self.root / "home" / ".handrail",
            claude=self.root / "home" / ".claude",
            state=self.root / "state",
            policy=(self.root / "etc" / "handrail", self.root / "etc" / "claude-code"),
        )
        self.store = TrustStore(self.places.state)

    def file(self, name: str) -> Path:
        path = self.root / FILES.get(name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, name: str, content: Any) -> Path:
        """A text as it is, anything else as JSON."""
        path = self.file(name)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return path

    def gather(
        self,
        *,
        before: Settings | None = None,
        frozen_sources: Iterable[str] = (),
        policies: tuple[PolicySource, ...] = (),
        **flags: Any,
    ) -> Settings:
        frozen_sources = frozenset(frozen_sources)
        return load_settings(
            self.places,
            self.env,
            SettingsFlags(**flags),
            before=before,
            frozen_sources=frozen_sources,
            policies=policies,
        )

    def load(self, **flags: Any) -> LoadedSettings:
        return load(self.places, self.env, SettingsFlags(**flags))

    def live(
        self, warnings: list[str] | None = None, changes: list[str] | None = None, **flags: Any
    ) -> SessionSettings:
        """The settings of a session; what it warns of and the sources that change are added to the lists."""
        on_warning = ([] if warnings is None else warnings).append
        settings = SessionSettings(self.places, self.env, SettingsFlags(**flags), on_warning=on_warning)
        if changes is not None:
            settings.on_change.append(changes.append)
        return settings

    def trust(self) -> None:
        """As `handrail trust` does it."""
        self.store.trust(self.places.cwd, self.gather().items)
