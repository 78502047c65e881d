"""A user with a home, a project and a machine, all in one temporary folder."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from handrail.app.live import Live
from handrail.app.settings import Loaded, load
from handrail.config.asked import Asked, Wanted
from handrail.config.load import load_settings
from handrail.config.managed import PolicySource
from handrail.config.places import Places
from handrail.config.snapshot import Settings
from handrail.config.trust import TrustStore

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
        self.places = Places(
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
        held: Iterable[str] = (),
        policies: tuple[PolicySource, ...] = (),
        **wanted: Any,
    ) -> Settings:
        held = frozenset(held)
        return load_settings(self.places, self.env, Wanted(**wanted), before=before, held=held, policies=policies)

    def load(self, **asked: Any) -> Loaded:
        return load(self.places, self.env, Asked(**asked))

    def live(self, told: list[str] | None = None, heard: list[str] | None = None, **asked: Any) -> Live:
        notes, sources = [] if told is None else told, [] if heard is None else heard
        return Live(self.places, self.env, Asked(**asked), told=notes.append, heard=sources.append)

    def trust(self) -> None:
        """As `handrail trust` does it."""
        self.store.trust(self.places.cwd, self.gather().items)
