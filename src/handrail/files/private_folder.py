"""Folders that nobody but their owner can look into."""

from pathlib import Path


def make_private_folder(folder: Path) -> Path:
    """The folder, made with all those above it that are missing; `mkdir(parents=True)` would leave these open."""
    try:
        folder.mkdir(0o700, exist_ok=True)
    except FileNotFoundError:
        make_private_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)
    return folder
