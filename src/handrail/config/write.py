"""
Writes settings files, under a lock and by atomic replacement.

handrail writes `.handrail/` and the user's own settings, never `.claude/`. A broken file is not touched.
"""

import codecs
import os
import stat
from collections.abc import Callable
from pathlib import Path

from handrail.config.document import decode_text, parse_object, read_bytes
from handrail.config.files import lock_folder, replace_file
from handrail.config.places import SettingsFile, SettingsPlaces
from handrail.config.watch import stamp
from handrail.errors import SettingsError, SettingsFileError, advice_on

TRIES = 5
IGNORED = ("settings.local.json", ".gitignore")


def edit(file: SettingsFile, places: SettingsPlaces, change: Callable[[str], str]) -> Path:
    """
    Change the text of a settings file, which is created if it does not exist.

    It is read again under the lock, so that no other change is lost. `change` gets `{}` for a new file, and may raise.

    Raises:
        SettingsError: the file is broken, leads out of the project, or cannot be written.
    """
    target = _target(file, places)
    try:
        target.parent.mkdir(mode=0o700 if file.source == "user" else 0o777, parents=True, exist_ok=True)
        with lock_folder(target.parent):
            for _ in range(TRIES):
                if _try_edit(file, target, change):
                    return target
    except OSError as error:
        raise SettingsError(f"{file.shown} cannot be written: {error.strerror or error}. {advice_on(error)}") from error
    raise SettingsError(f"{file.shown} keeps being changed by another program. Try again.")


def _target(file: SettingsFile, places: SettingsPlaces) -> Path:
    if file.family != "handrail" or file.source not in ("user", "project", "local"):
        raise SettingsError(f"{file.shown} cannot be changed by handrail. Use an editor.")
    real = os.path.realpath(file.path)
    if file.source != "user" and not real.startswith(places.cwd.rstrip("/") + "/"):
        raise SettingsError(
            f"{file.shown} leads to {real}, outside of the project, and is not written. Change it with an "
            "editor, or put a file in the place of the link."
        )
    return Path(real)


def _try_edit(file: SettingsFile, target: Path, change: Callable[[str], str]) -> bool:
    """Make the change; False if another program changed the file meanwhile without the lock."""
    before = stamp(target)
    try:
        data = read_bytes(target)
        text = "{}\n" if data is None else decode_text(data)
        parse_object(text)
    except SettingsFileError as error:
        raise SettingsError(
            f"{file.shown} is broken and was not changed: {error.message.rstrip('.')}. Repair it first."
        ) from error
    changed = change(text)
    if changed == text:
        return True
    parse_object(changed)
    mark = codecs.BOM_UTF8 if data and data.startswith(codecs.BOM_UTF8) else b""
    if stamp(target) != before:
        return False
    if before is None and file.source == "local":
        _ignore_in_git(target.parent)
    mode = stat.S_IMODE(target.stat().st_mode) if before else 0o644 if file.source == "project" else 0o600
    replace_file(target, mark + changed.encode(), mode=mode)
    return True


def _ignore_in_git(folder: Path) -> None:
    """
    Keep local settings out of git with a `.gitignore` beside them, which ignores itself too.

    An existing one belongs to the user and stays as it is.
    """
    try:
        descriptor = os.open(folder / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w") as file:
        file.write("".join(f"{name}\n" for name in IGNORED))
