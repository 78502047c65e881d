"""
Whether `docker compose` only reads the compose file of the folder: an include or extension of it may be fetched.

The file is not parsed. Words that could bring in something from elsewhere, in any spelling that YAML has for them, are
reason enough to ask.
"""

import os
import re
from pathlib import Path

NAMES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
FILES = (*NAMES, *(name.replace(".y", ".override.y") for name in NAMES))
# The two keys, and what can spell a key differently: an escape, a tag, another encoding.
ELSEWHERE = re.compile(rb"include|extends|[\\\x00]|!!|^%", re.MULTILINE)
VARIABLES = re.compile(rb"COMPOSE_|DOCKER_", re.IGNORECASE)
MAX_FILE = 1_000_000


def compose_problem(folder: str, roots: tuple[str, ...]) -> str:
    """Why docker compose may use more than the files of a folder; empty = it does not."""
    if not any(os.path.lexists(f"{folder}/{name}") for name in NAMES):
        return "there is no compose file in its folder, and one further up may include others"
    for name in (*FILES, ".env"):
        path = f"{folder}/{name}"
        if not os.path.lexists(path):
            continue
        if not any(os.path.realpath(path).startswith(f"{root.rstrip('/')}/") for root in roots):
            return f"{name!r} leads out of the working folders"
        text = read_start(path)
        if text is None:
            return f"{name!r} cannot be looked at"
        if (VARIABLES if name == ".env" else ELSEWHERE).search(text):
            return f"{name!r} may name files from another place"
    return ""


def read_start(path: str) -> bytes | None:
    """The content of a file; None if it is not an ordinary file, or too long."""
    if not Path(path).is_file():
        return None
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_FILE + 1)
    except OSError:
        return None
    return None if len(text) > MAX_FILE else text
