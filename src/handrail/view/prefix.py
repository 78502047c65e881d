"""Why the cached beginning of one request could not be used for the next."""

from handrail.view.model import TurnData

CACHE_MINUTES = 5
"""How long vendors keep a prefix by default."""


def why_broke(before: TurnData | None, turn: TurnData, *, shortened: bool) -> str:
    """The reason, in words; empty if the prefix is the same and was used, or if nothing is known of caches."""
    if before is None:
        return ""
    if before["model"] and turn["model"] and before["model"] != turn["model"]:
        return f"another model was asked ({turn['model']})"
    if shortened:
        return "the conversation was shortened"
    for part, what in (("system", "the system prompt changed"), ("tools", "the tools changed")):
        if part in before["prefix"] and part in turn["prefix"] and before["prefix"][part] != turn["prefix"][part]:
            return what
    then, now = before["usage"], turn["usage"]
    if then is None or now is None or not (then["cache_read"] or then["cache_write"]) or now["cache_read"]:
        return ""
    minutes = (turn["at"] - (before["answered"] or before["at"])) / 60
    if minutes > CACHE_MINUTES:
        return f"{minutes:.0f} minutes had passed, and the cache had expired"
    return "the server did not use its cache"
