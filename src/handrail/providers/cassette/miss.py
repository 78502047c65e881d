"""The message for a request that is not in a cassette: the nearest recording, and what differs."""

import json
from collections.abc import Collection
from difflib import unified_diff

from handrail.providers.cassette.canonical import Canonical
from handrail.providers.cassette.match import Match, comparable, match_key
from handrail.providers.cassette.tape import Cassette, Recording

MAX_LINES = 60
MAX_WIDTH = 240


def miss_text(asked: Canonical, cassette: Cassette, played: Collection[int], match: Match = "exact") -> str:
    """The message for a request that a cassette cannot answer."""
    recordings = cassette.recordings
    count = "1 recording" if len(recordings) == 1 else f"{len(recordings)} recordings"
    head = f"This request is not in the cassette {cassette.path} ({count}, {len(played)} played)."
    if not recordings:
        return f"{head}\nRecord it again."
    key = match_key(asked, match)
    same = [recording for recording in recordings if match_key(recording.request, match) == key]
    if same:
        return f"{head}\nIt was recorded {len(same)} times and is now sent once more. Record it again."
    near = max(recordings, key=lambda recording: (*_likeness(asked, recording.request), recording.number not in played))
    return (
        f"{head}\nThe nearest is recording {near.number}. What differs (- recorded, + sent now):\n"
        f"{difference(near.request, asked, match)}\n{_next_move(near, asked, match)}"
    )


def _next_move(near: Recording, asked: Canonical, match: Match) -> str:
    recorded, now = near.request.head.get("model"), asked.head.get("model")
    if match != "loose" and recorded != now:
        return f"It was recorded with the model {recorded!r}, not {now!r}. Use that model, or record it again."
    again = "Record it again if the change is meant. What changes from run to run can be declared as volatile."
    if match == "exact" and match_key(near.request, "conversation") == match_key(asked, "conversation"):
        return f"{again} The conversation is the same: {_matching('conversation')} it would be answered."
    if match != "loose" and match_key(near.request, "loose") == match_key(asked, "loose"):
        return f"{again} Only results of tools differ: {_matching('loose')} it would be answered."
    return again


def _matching(match: Match) -> str:
    return f"with --replay-match {match} (in code: match={match!r})"


def difference(recorded: Canonical, asked: Canonical, match: Match = "exact") -> str:
    """A readable diff of what is comparable of two requests, bounded."""
    sides = (_lines(recorded, match), _lines(asked, match))
    diff = [*unified_diff(*sides, "recorded", "asked for now", n=2, lineterm="")][2:]
    shown = [line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}..." for line in diff[:MAX_LINES]]
    left = len(diff) - len(shown)
    return "\n".join([*shown, *([f"... {left} more lines"] if left > 0 else [])])


def _likeness(asked: Canonical, recorded: Canonical) -> tuple[int, int, int]:
    pairs = zip(asked.messages, recorded.messages, strict=False)
    shared = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(asked.messages), len(recorded.messages)))
    return (asked.api == recorded.api, shared, -abs(len(asked.messages) - len(recorded.messages)))


def _lines(request: Canonical, match: Match) -> list[str]:
    lines = json.dumps(comparable(request, match), indent=1, ensure_ascii=False).split("\n")
    # a text of many lines is comparable line by line
    return [part for line in lines for part in line.replace("\\n", "\\n\n").split("\n")]
