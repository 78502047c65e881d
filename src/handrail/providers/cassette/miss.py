"""The message for a request that is not in a cassette: the nearest recording, and what differs."""

import json
from collections.abc import Collection
from difflib import unified_diff

from handrail.providers.cassette.canonical import Canonical
from handrail.providers.cassette.tape import Cassette

MAX_LINES = 60
MAX_WIDTH = 240


def miss_text(asked: Canonical, cassette: Cassette, played: Collection[int]) -> str:
    """The message for a request that a cassette cannot answer."""
    recordings = cassette.recordings
    head = f"This request is not in the cassette {cassette.path} ({len(recordings)} recordings, {len(played)} played)."
    if not recordings:
        return f"{head}\nRecord it again."
    same = [recording for recording in recordings if recording.request.key == asked.key]
    if same:
        return f"{head}\nIt was recorded {len(same)} times, and was asked for once more. Record it again."
    near = max(recordings, key=lambda recording: (*_likeness(asked, recording.request), recording.number not in played))
    return (
        f"{head}\nThe nearest is recording {near.number}. What differs (- recorded, + asked for now):\n"
        f"{difference(near.request, asked)}\n"
        "Record it again if the change is meant. What changes from run to run can be declared as volatile."
    )


def difference(recorded: Canonical, asked: Canonical) -> str:
    """A readable diff of two requests, bounded."""
    diff = [*unified_diff(_lines(recorded), _lines(asked), "recorded", "asked for now", n=2, lineterm="")][2:]
    shown = [line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}..." for line in diff[:MAX_LINES]]
    left = len(diff) - len(shown)
    return "\n".join([*shown, *([f"... {left} more lines"] if left > 0 else [])])


def _likeness(asked: Canonical, recorded: Canonical) -> tuple[int, int, int]:
    pairs = zip(asked.messages, recorded.messages, strict=False)
    shared = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(asked.messages), len(recorded.messages)))
    return (asked.api == recorded.api, shared, -abs(len(asked.messages) - len(recorded.messages)))


def _lines(request: Canonical) -> list[str]:
    value = {"api": request.api, **request.head, "messages": list(request.messages)}
    lines = json.dumps(value, indent=1, ensure_ascii=False).split("\n")
    # a text of many lines is compared line by line
    return [part for line in lines for part in line.replace("\\n", "\\n\n").split("\n")]
