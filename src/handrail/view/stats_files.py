"""Reads statistics from the files of many sessions: one session at a time, each log once."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from handrail.errors import SessionError
from handrail.view.files import RunFiles, agent_files, audit_logs, decode_json, read_lines
from handrail.view.reader import RunReader
from handrail.view.stats import SessionStats

SHORTEST = 1
DENIED, ASKED = b'"decision":"deny"', b'"asked":true'


def read_stats(
    sessions: Sequence[Path], state: Path, since: float, on_read: Callable[[int], None]
) -> tuple[SessionStats, list[str]]:
    """The sums over sessions, and what could not be read. `on_read` is called with the number of sessions so far."""
    stats, problems = SessionStats(since), list[str]()
    for number, path in enumerate(sessions, 1):
        try:
            stats.add(read_session(path))
        except (SessionError, OSError) as error:
            problems.append(f"{path.stem}: {error}")
        on_read(number)
    if stats.total["sessions"]:
        for log in audit_logs(state, since, time.time()):
            add_log(stats, log)
    return stats, problems


def read_session(path: Path) -> RunReader:
    """A session and its sub-agents, without texts; SessionError if it cannot be read."""
    reader = RunReader(path.stem, SHORTEST)
    read_lines(reader, path)
    for agent in agent_files(RunFiles(path)):
        with suppress(SessionError):
            read_lines(reader, agent)
    return reader


def add_log(stats: SessionStats, log: Path) -> None:
    """Add the decisions of a log that denied a call or asked about one; the others are not taken apart."""
    with suppress(OSError), log.open("rb") as file:  # logs are removed when there are too many
        for line in file:
            if DENIED in line or ASKED in line:
                with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    stats.add_decision(decode_json(line))
