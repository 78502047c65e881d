"""Read: files of several formats, as a model can take them in."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.builtin.read.tool import Read

__all__ = ["Read"]


def __getattr__(name: str) -> Any:
    """The process that takes documents apart lives in this package, and needs nothing of the tool."""
    if name != "Read":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from handrail.builtin.read.tool import Read  # noqa: PLC0415  # see above

    return Read
