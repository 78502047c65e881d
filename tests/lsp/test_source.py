"""Files as language servers get them."""

import os
from pathlib import Path

import pytest

from handrail.errors import LspError
from handrail.files.paths import locate
from handrail.lsp.source import read_text


@pytest.mark.parametrize("writer", [False, True], ids=["nobody writes", "somebody writes"])
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(writer: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1")
    place = locate("a.py", str(tmp_path))
    path.unlink()
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR) if writer else None

    with pytest.raises(LspError, match="is not a file"):
        read_text(place)

    if end is not None:
        os.close(end)
