"""What the hooks of a session are opened with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.records import record

if TYPE_CHECKING:
    from handrail.hooks.runner import Hooks
    from handrail.hooks.specs import HookCallback


@record
class HookSetup:
    """What the hooks of a session are opened with beside its settings. `given` come from the program around it."""

    project: Path
    given: "Hooks | Mapping[str, Sequence[HookCallback]]" = field(default_factory=dict)
    session_id: str = ""
    transcript: str = ""
    mode: Callable[[], str] = str
    """The permission mode in force; empty = the one of the run."""
    on_title: Callable[[str], object] = str
    """Called with the title that hooks give the session."""
