"""What the command line says about settings and permissions."""

from handrail.config.places import SOURCES
from handrail.records import record


@record
class Wanted:
    """What somebody asked for on the command line."""

    settings: str = ""
    """A file or an object in JSON."""
    sources: tuple[str, ...] = SOURCES
    trust: bool = False


@record
class Asked:
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
    disallowed: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def wanted(self) -> Wanted:
        """The part that is about files."""
        return Wanted(self.settings, self.sources, self.trust)


NOTHING_ASKED = Asked()
