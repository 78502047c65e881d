"""
The content of a plugin as a whole: its hash, a copy of it, and how two of them differ.

A plugin is trusted as it is at one time. Links are not followed, so that nothing outside of it can change what it is.
"""

import difflib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from handrail.errors import HandrailError
from handrail.files.private_folder import make_private_folder

MAX_FILES, MAX_BYTES, MAX_DEPTH = 5_000, 100_000_000, 50
LEFT_OUT = (".git", "node_modules/.cache", "__pycache__", ".DS_Store")
"""What is no part of a plugin: it is not copied, not in the hash, and removed from a copy before that is used."""
MAX_SHOWN = 400
"""Lines of a difference that a person is shown."""


def tree_hash(root: Path) -> str:
    """A hash of every file's name, mode and content; HandrailError if the folder is too large or holds odd files."""
    digest = hashlib.sha256()
    for name, path, status in tree_files(root):
        kind = "x" if status.st_mode & stat.S_IXUSR else "-"
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{kind} {content} {name}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def tree_files(root: Path) -> Iterator[tuple[str, Path, os.stat_result]]:
    """The files of a plugin in order, each with its name below the root."""
    room, left = MAX_BYTES, MAX_FILES
    for name, path in sorted(_walk(root, "")):
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise HandrailError(f"{path} is not a regular file, so that the plugin cannot be used. Remove it.")
        room, left = room - status.st_size, left - 1
        if room < 0 or left < 0:
            raise HandrailError(
                f"{root} holds more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes: no plugin is that large."
            )
        yield name, path, status


def remove_left_out(root: Path) -> None:
    """
    Remove from a copy what its hash does not cover; OSError or HandrailError if that is not possible.

    Programs would take some of it for the plugin: Python runs the bytecode in `__pycache__` in place of the source.
    """
    for _, path in [*_walk(root, "", left_out=True)]:
        while os.path.lexists(path):
            with suppress(FileNotFoundError):  # another process removes it, too
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()


def _walk(folder: Path, below: str, *, left_out: bool = False) -> Iterator[tuple[str, Path]]:
    """The files of a plugin, or what lies in its folder and is left out."""
    if below.count("/") > MAX_DEPTH:
        raise HandrailError(f"{folder} lies more than {MAX_DEPTH} folders deep: no plugin is that deep.")
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{below}{entry.name}"
            if entry.name in LEFT_OUT or name in LEFT_OUT:
                if left_out:
                    yield name, Path(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), f"{name}/", left_out=left_out)
            elif not left_out:
                yield name, Path(entry.path)


def copy_tree(root: Path, target: Path) -> str:
    """Copy a plugin to a folder that is its owner's alone; the hash of the copy, which is what was really copied."""
    make_private_folder(target.parent)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(0o700)
    try:
        for name, path, status in tree_files(root):
            place = make_private_folder((draft / name).parent) / path.name
            place.write_bytes(path.read_bytes())
            place.chmod(0o700 if status.st_mode & stat.S_IXUSR else 0o600)
        made = tree_hash(draft)
        if target.exists():
            shutil.rmtree(target)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return made


def tree_diff(before: Path, after: Path) -> list[str]:
    """How a plugin has changed, as lines; the longest differences are cut."""
    old, new = ({name: path for name, path, _status in tree_files(root)} for root in (before, after))
    lines: list[str] = []
    for name in sorted({*old, *new}):
        texts = [_lines(side.get(name)) for side in (old, new)]
        modes = [_is_program(side.get(name)) for side in (old, new)]
        if texts[0] != texts[1]:
            lines += difflib.unified_diff(texts[0], texts[1], f"before/{name}", f"now/{name}", lineterm="")
        elif modes[0] != modes[1]:
            lines.append(f"{name} can {'now' if modes[1] else 'no longer'} be run as a program")
    return lines if len(lines) <= MAX_SHOWN else [*lines[:MAX_SHOWN], f"... and {len(lines) - MAX_SHOWN:,} more lines"]


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    data = path.read_bytes()
    if b"\0" in data:
        return [f"[{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}]"]
    return data.decode("utf-8", "replace").splitlines()


def _is_program(path: Path | None) -> bool:
    return path is not None and bool(path.lstat().st_mode & stat.S_IXUSR)
