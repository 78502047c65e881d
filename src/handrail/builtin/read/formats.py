"""Which format a file has, by its first bytes."""

HEAD = 16


def media_type(head: bytes) -> str:
    """What kind of image the first bytes belong to; empty for none that models take."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return ""


def kind_of(name: str, head: bytes) -> str:
    """How a file is read: as an image, a PDF, a notebook or text. Notebooks are JSON, so their name tells."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    if name.lower().endswith(".ipynb"):
        return "notebook"
    return "image" if media_type(head) else "text"
