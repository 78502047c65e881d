"""The annotations of a class that is being made; since Python 3.14 they are evaluated when they are asked for."""

from collections.abc import Mapping
from typing import Any

VALUES = 1
"""Asks for the values of annotations, as `annotationlib.Format.VALUE`, whose module would take long to import."""


def own_annotations(members: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations in the namespace of a class, without those of its bases."""
    evaluate = members.get("__annotate__") or members.get("__annotate_func__")
    found: dict[str, Any] = members.get("__annotations__") or (evaluate(VALUES) if evaluate else {})
    return found
