"""Makes folders that only their owner can read."""

from pathlib import Path


def make_private_folder(folder: Path) -> Path:
    """Make a folder and its missing parents, all private; `mkdir(parents=True)` would leave the parents open."""
    try:
        folder.mkdir(0o700, exist_ok=True)
    except FileNotFoundError:
        make_private_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)
    return folder
