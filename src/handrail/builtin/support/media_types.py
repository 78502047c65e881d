"""Which kind of image some bytes are, by their beginning."""

MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def media_type(head: bytes) -> str:
    """The media type of an image that models accept; empty if it is none."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return kind
    return ""
