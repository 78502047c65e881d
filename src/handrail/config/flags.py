"""What the command line says about settings and permissions."""

from typing import Literal, TypeAlias

from handrail.config.places import SOURCES
from handrail.records import record

Wideners: TypeAlias = Literal["trusted", "flags", "policy"]
"""Who may widen, beside policy: everybody who is trusted, only the command line (--bare), or nobody (--safe-mode)."""


@record
class FileFlags:
    """What somebody asked for on the command line."""

    settings: str = ""
    """A file or an object in JSON."""
    sources: tuple[str, ...] = SOURCES
    trust: bool = False
    wideners: Wideners = "trusted"


@record
class SettingsFlags:
    """What the command line says about permissions."""

    settings: str = ""
    sources: tuple[str, ...] = SOURCES
    trust: bool = False
    mode: str = ""
    bypass: bool = False
    """--dangerously-skip-permissions"""
    allow_bypass: bool = False
    """--allow-dangerously-skip-permissions: it may be entered later"""
    allowed: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    wideners: Wideners = "trusted"
    managed_policy: bool = True
    """Without, the policy of this machine does not count: for programs that bring all their rules themselves."""

    @property
    def wanted(self) -> FileFlags:
        """The part that is about files."""
        return FileFlags(self.settings, self.sources, self.trust, self.wideners)

    @property
    def told_by(self) -> tuple[str, ...]:
        """Whose memory files, commands and agents count."""
        return self.sources if self.wideners == "trusted" else ()

    @property
    def flags_widen(self) -> bool:
        """Whether allow rules, folders and servers of the command line count."""
        return self.wideners != "policy"


NO_FLAGS_GIVEN = SettingsFlags()
