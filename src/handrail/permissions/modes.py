"""The permission modes and their order from strict to wide."""

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")
MODE_ALIASES = {"manual": "default"}
STRICTNESS = ("plan", "dontAsk", "default", "acceptEdits", "auto", "bypassPermissions")
"""From the strictest to the widest."""


def stricter(mode: str, than: str) -> bool:
    """Whether a mode allows less than another."""
    rank = STRICTNESS.index
    return rank(MODE_ALIASES.get(mode, mode)) < rank(MODE_ALIASES.get(than, than))


def narrower(one: str, other: str) -> str:
    """The stricter of two modes; empty stands for no limit."""
    return one if not other else narrow_mode(other, one)


def narrow_mode(mode: str, requested: str) -> str:
    """The stricter of the mode in force and the requested one: a request never widens permissions."""
    return MODE_ALIASES.get(requested, requested) if requested and stricter(requested, mode) else mode
