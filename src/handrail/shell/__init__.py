"""
Understanding shell commands without running them: `analyse(text)` says what a command line would do.

Each name is loaded when it is first used: whether a name is a secret can be asked without a parser.
"""

from typing import TYPE_CHECKING, Any

from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.shell.analysis import analyse
    from handrail.shell.effects import reads_outside, reads_secrets
    from handrail.shell.model import Analysis, CommandVerdict, Does, PieceKind, Segment, Word

__all__ = [
    "Analysis",
    "CommandVerdict",
    "Does",
    "PieceKind",
    "Segment",
    "Word",
    "analyse",
    "reads_outside",
    "reads_secrets",
]
_MODULES = {"analyse": "analysis", "reads_outside": "effects", "reads_secrets": "effects"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'handrail.shell' has no attribute {name!r}")
    value: Any = lazy(f"handrail.shell.{_MODULES.get(name, 'model')}", name)
    globals()[name] = value
    return value
