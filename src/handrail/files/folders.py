"""Makes the folders above a new file without following links."""

import os
from contextlib import suppress
from pathlib import Path

from handrail.files.journal import Note, UndoJournal
from handrail.files.paths import Place, open_subfolder, swapped_error


def make_folders(place: Place, journal: UndoJournal | None, note: Note, made: list[str]) -> int:
    """Open the place's folder and make it and its missing parents; `made` collects the paths of new folders."""
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    path = ""
    for name in Path(place.real).parent.parts[1:]:
        path = f"{path}/{name}"
        try:
            try:
                inner = open_subfolder(folder, name)
            except FileNotFoundError:
                if journal:
                    journal.folder_changed(path, note, made=True)
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
                    made.append(path)
                inner = open_subfolder(folder, name)
        except OSError as error:
            raise swapped_error(place, error) from error
        finally:
            os.close(folder)
        folder = inner
    return folder
