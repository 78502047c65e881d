"""Understanding shell commands without running them: `analyse(text)` says what a command line would do."""

from handrail.shell.analysis import analyse
from handrail.shell.effects import reads_outside, reads_secrets
from handrail.shell.explain import explain
from handrail.shell.model import Analysis, CommandVerdict, Does, PieceKind, Segment, Word

__all__ = [
    "Analysis",
    "CommandVerdict",
    "Does",
    "PieceKind",
    "Segment",
    "Word",
    "analyse",
    "explain",
    "reads_outside",
    "reads_secrets",
]
