"""
The notes that an agent keeps from one task to the next: a folder of its own with a MEMORY.md.

    user      ~/.handrail/agent-memory/NAME/               for all projects of a person
    project   .handrail/agent-memory/NAME/                 of this project
    local     .handrail/agent-memory-local/NAME/           of this project, for this person

Folders of the same names under `.claude` are read where ours does not exist yet, and never written.
"""

import os
from pathlib import Path

from handrail.errors import ToolError

FOLDERS = {"user": "agent-memory", "project": "agent-memory", "local": "agent-memory-local"}
INDEX = "MEMORY.md"
MAX_LINES, MAX_CHARACTERS = 200, 25_000
"""How much of the index an agent is told at its start."""


def open_notes(memory: str, name: str, project: Path, user: Path, claude: Path) -> tuple[Path, str]:
    """The folder of an agent's notes, made if it is missing, and its index; ToolError if it cannot be had."""
    base = user if memory == "user" else project / ".handrail"
    kind, own = FOLDERS[memory], name.replace(":", "-")
    folder = base / kind / own
    other = (claude if memory == "user" else project / ".claude") / kind / own
    made = _make(base, (kind, own), ignored=memory != "user")
    return made, read_index(folder) or read_index(other)


def notes_prompt(folder: Path, index: str) -> str:
    """What an agent is told of its notes."""
    text = (
        f"You keep notes from one task to the next in the folder {folder}. {INDEX} there is their index, and you are "
        f"told it at the start of each task: keep it short, and put details into other files of the folder. Write down "
        "what will help you later: decisions, places, what went wrong and why. Correct what is no longer true. Write "
        "no secrets."
    )
    return f"{text}\n\n{INDEX}:\n{index}" if index else f"{text} There are none yet."


def notes_tools(folder: Path) -> tuple[str, ...]:
    """The tools for notes, each for their folder alone."""
    return tuple(f"{tool}(/{folder}/**)" for tool in ("Read", "Edit", "Write"))


def read_index(folder: Path) -> str:
    """The beginning of the index in a folder; empty if there is none, or it is a link."""
    try:
        fd = os.open(folder / INDEX, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except OSError:
        return ""
    lines = text[:MAX_CHARACTERS].splitlines()
    whole = len(text) <= MAX_CHARACTERS and len(lines) <= MAX_LINES
    return "\n".join(lines[:MAX_LINES]) + ("" if whole else f"\n[The rest of {INDEX} is not shown.]")


def _make(base: Path, steps: tuple[str, ...], *, ignored: bool) -> Path:
    """The folder, made step by step, so that nothing is followed out of its base."""
    base.mkdir(parents=True, exist_ok=True)
    place = Path(os.path.realpath(base))
    if base.is_symlink():
        raise ToolError(f"There are no notes for this agent: {base} is a link. Remove it, or ask the user.")
    for number, step in enumerate(steps):
        place /= step
        is_new = not os.path.lexists(place)
        if not is_new and (place.is_symlink() or not place.is_dir()):
            raise ToolError(f"There are no notes for this agent: {place} is not a folder. Remove it, or ask the user.")
        place.mkdir(exist_ok=True)
        if is_new and ignored and number == 0:
            with (place / ".gitignore").open("x", encoding="utf-8") as file:
                file.write("*\n")
    return place
