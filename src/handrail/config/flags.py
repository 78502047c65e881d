"""What the command line says about settings and permissions."""

from typing import Literal, TypeAlias

from handrail.config.places import SOURCES
from handrail.records import record

Wideners: TypeAlias = Literal["trusted", "flags", "policy"]
"""What may widen, beside policy: every trusted source, only the command line (--bare), or nothing (--safe-mode)."""


@record
class SettingsFlags:
    """The flags about settings files and permissions."""

    settings: str = ""
    """A file or an object in JSON."""
    sources: tuple[str, ...] = SOURCES
    trust: bool = False
    mode: str = ""
    bypass: bool = False
    """--dangerously-skip-permissions"""
    allow_bypass: bool = False
    """--allow-dangerously-skip-permissions: the session may switch to it later"""
    allowed: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    root: str = ""
    """A real path above the working folder: its settings files count too, and from there the patterns here start."""
    rules_from: str = "cli"
    """Where the rules above come from, as messages call it."""
    wideners: Wideners = "trusted"
    managed_policy: bool = True
    """Without, the policy of this machine does not count: for programs that bring all their rules themselves."""

    @property
    def instruction_sources(self) -> tuple[str, ...]:
        """The sources whose memory files, commands and agents count."""
        return self.sources if self.wideners == "trusted" else ()

    @property
    def flags_widen(self) -> bool:
        """Whether allow rules, folders and servers of the command line count."""
        return self.wideners != "policy"


NO_FLAGS_GIVEN = SettingsFlags()
