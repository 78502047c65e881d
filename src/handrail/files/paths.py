"""Where a path really leads."""

import os
from pathlib import Path


def real_path(cwd: Path, path: str) -> Path:
    """
    The absolute path with every link followed as far as there is something; never raises.

    A text that cannot be a path (it holds a NUL) stays below the working folder, where nothing can be found.
    """
    joined = os.path.join(cwd, path)  # noqa: PTH118  # Path.resolve raises for loops of links before Python 3.13
    return Path(os.path.realpath(joined) if "\0" not in path else os.path.abspath(joined))  # noqa: PTH100
