"""Which format a file has, by its name and first bytes."""

from handrail.builtin.support.media_types import media_type

HEAD = 16


def kind_of(name: str, head: bytes) -> str:
    """The format of a file: image, pdf, notebook or text. Notebooks are JSON, so the name decides."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    if name.lower().endswith(".ipynb"):
        return "notebook"
    return "image" if media_type(head) else "text"
