"""A problem with settings, as messages show it."""

from handrail.records import record


@record
class Problem:
    """Something wrong with settings: where, and what to do."""

    source: str
    file: str
    line: int
    message: str
    key: str = ""
    column: int = 0
    hint: bool = False

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.key} {self.message}" if self.key else f"{where}: {self.message}"
