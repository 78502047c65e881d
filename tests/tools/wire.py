"""The definitions of a pool as a request holds them."""

from collections.abc import Iterable

from handrail.tools.pool import Definition


def serialise(definitions: Iterable[Definition]) -> bytes:
    """The list of definitions as one JSON array."""
    return b"[" + b",".join([definition.json for definition in definitions]) + b"]"
