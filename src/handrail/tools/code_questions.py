"""Questions about code that language servers answer: what the tool for it needs of the session."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from handrail.files.paths import Place
from handrail.records import record


@record
class CodeQuestion:
    """
    One question. `place` is the file it is about, None for the whole project.

    A position in the file is given by a name, a line (from 1) and a column (from 1): some of them, as far as needed.
    """

    operation: str
    place: Place | None = None
    symbol: str = ""
    line: int | None = None
    column: int | None = None


@record
class CodeView:
    """What the one who asks may see: the folder from which paths are written, and which files, by their real paths."""

    cwd: Path
    shows: Callable[[str], bool]
    """Whether lines of a file may be shown: it lies in a working folder, and no rule hides it."""
    hides: Callable[[str], bool]
    """Whether a rule forbids reading the file."""


@record
class CodeAnswer:
    """The answer as a text for the model, and how many results there are, also those that are not shown."""

    text: str
    count: int = 0


class LanguageServers(Protocol):
    """The language servers of a session."""

    async def ask(self, question: CodeQuestion, view: CodeView) -> CodeAnswer:
        """The answer. Raises LspError if no server can give it."""
        ...
