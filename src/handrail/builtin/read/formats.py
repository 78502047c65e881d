"""Which format a file has, by its name and first bytes."""

from handrail.builtin.support.media_types import media_type

HEAD = 16


def kind_of(name: str, head: bytes) -> str:
    """How a file is read: as an image, a PDF, a notebook or text. Notebooks are JSON, so their name tells."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    if name.lower().endswith(".ipynb"):
        return "notebook"
    return "image" if media_type(head) else "text"
