"""The permission modes, and which of two lets less pass."""

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")
MODE_ALIASES = {"manual": "default"}
STRICTNESS = ("plan", "dontAsk", "default", "acceptEdits", "auto", "bypassPermissions")
"""From the strictest to the widest."""


def stricter(mode: str, than: str) -> bool:
    """Whether a mode lets less pass than another."""
    rank = STRICTNESS.index
    return rank(MODE_ALIASES.get(mode, mode)) < rank(MODE_ALIASES.get(than, than))


def narrow_mode(mode: str, wish: str) -> str:
    """The mode to work in when one is in force and another one is wished for: a wish never widens."""
    return MODE_ALIASES.get(wish, wish) if wish and stricter(wish, mode) else mode
