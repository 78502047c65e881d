"""Ensures that a run that prints JSON ends with a result object, even if it fails before it starts."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.headless.printer import dump_json
from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.headless import wire
else:
    wire = lazy("handrail.headless.wire")  # text needs nothing of it

JSON_FORMATS = ("json", "stream-json")


class ResultGuard:
    """Knows from the arguments, before they are checked, whether a result is due."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._is_due = output_format(arguments) in JSON_FORMATS
        self.is_printed = False

    def fail(self, problem: str) -> None:
        """Print the result of a run that failed, if one is due and none was printed."""
        if self._is_due and not self.is_printed:
            self.is_printed = True
            sys.stdout.write(dump_json(wire.failed_result(problem)) + "\n")
            sys.stdout.flush()


def output_format(arguments: Sequence[str]) -> str:
    """The output format that the arguments ask for, whatever else is wrong with them; the last one counts."""
    found = "text"
    for word, following in zip(arguments, (*arguments[1:], ""), strict=True):
        if word == "--":
            return found
        flag, equals, value = word.partition("=")
        if word == "--json":
            found = "json"
        elif flag == "--output-format":
            found = value if equals else following
    return found
