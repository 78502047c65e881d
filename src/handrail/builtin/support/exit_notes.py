"""Notes about how a command ended."""

import os
import signal

from handrail.processes.spawn import End


def exit_notes(end: End, seconds: float | None = None) -> list[str]:
    """Why it was stopped and what was lost; empty for a normal end. `seconds`: its time limit."""
    found: list[str] = []
    if end.why == "timeout":
        found.append(f"it was stopped because it took longer than {seconds:g} seconds")
    elif end.why == "full":
        found.append(f"it was stopped because it wrote more than {end.stored:,} bytes")
    elif end.why == "lost":
        found.append("what became of it is not known: it killed the process that watched over it")
    elif end.code < 0:
        found.append(f"it was ended by {signal_name(-end.code)}")
    if end.trouble:
        found.append(f"{end.lost:,} bytes of output were lost: {os.strerror(end.trouble)}")
    return found


def shell_code(code: int) -> int:
    """The exit code as a shell reports it: a signal counts from 128."""
    return code if code >= 0 else 128 - code


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
