"""
Decides which tools, sources or reasons a group of hooks matches.

    absent, "", "*"                         everything
    letters, digits, _ - , | and blanks     exactly these names, split at | and ,
    anything else                           a regular expression, found anywhere in the name

Expressions come from settings files, so none may hang the program. They run on an engine with linear time; those with
look-around or back-references, which it does not support, run on one that gives up after a number of steps.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from pydantic_core import SchemaError, SchemaValidator, core_schema

from handrail.lazy import lazy, lazy_pattern
from handrail.permissions.rules import ALIASES
from handrail.records import record

if TYPE_CHECKING:
    import jsonschema_rs
else:
    jsonschema_rs = lazy("jsonschema_rs")  # 40 ms that few expressions need

NAMES = lazy_pattern(r"[A-Za-z0-9_\-,| \t]*\Z")
MAX_STEPS = 100_000
MAX_TEXT = 1_000
"""Of longer names only the beginning is matched."""

Search: TypeAlias = Callable[[str], bool]


@record
class Matcher:
    """Matches names: those in `names`, or else those that `search` finds, or else all."""

    text: str = ""
    names: frozenset[str] | None = None
    search: Search | None = None

    def matches(self, value: str) -> bool:
        if self.names is not None:
            return value in self.names
        return self.search is None or self.search(value[:MAX_TEXT])


EVERYTHING = Matcher()


@lru_cache(maxsize=256)
def parse_matcher(text: str) -> Matcher | str:
    """The matcher of a text, or what is wrong with it. Old names of tools match the new ones too."""
    if text in ("", "*"):
        return EVERYTHING
    if NAMES.match(text):
        names = {name.strip() for name in text.replace(",", "|").split("|")} - {""}
        if not names:
            return f"matcher {text!r} names nothing"
        return Matcher(text, frozenset(names | {ALIASES[name] for name in names if name in ALIASES}))
    search = _linear_search(text) or _bounded_search(text)
    return Matcher(text, search=search) if search else f"matcher {text!r} is not a regular expression"


def _linear_search(text: str) -> Search | None:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=text)).isinstance_python
    except SchemaError:
        return None


def _bounded_search(text: str) -> Search | None:
    """A search that counts as a match when it runs out of steps: then the hook runs and can decide itself."""
    try:
        options = jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_STEPS)
        validator = jsonschema_rs.Draft202012Validator({"pattern": text}, pattern_options=options)
    except (ValueError, jsonschema_rs.ValidationError):
        return None

    def search(value: str) -> bool:
        for error in validator.iter_errors(value):
            return isinstance(error.kind, jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded)
        return True

    return search
