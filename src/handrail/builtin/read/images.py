"""Fits images to the size that models accept: unchanged if they fit, otherwise shrunk by Pillow."""

import struct
from base64 import b64encode
from io import BytesIO

from handrail.builtin.support.media_types import media_type
from handrail.conversation.blocks import Image
from handrail.errors import ToolError
from handrail.records import record

try:
    import PIL.Image
    import PIL.ImageOps

    WITH_PILLOW = True
except ImportError:
    WITH_PILLOW = False

MAX_FILE_BYTES = 50_000_000
MAX_BYTES = 3_700_000
"""Base64 adds a third, and models accept 5 MB."""
MAX_SIDE = 1_568
MAX_SIDE_AS_IT_IS = 8_000
MAX_PIXELS = 80_000_000
QUALITIES = (85, 70, 50, 30)
SOF_MARKERS = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


@record
class Picture:
    """An image for the model, and a note about it."""

    block: Image
    note: str


def fit_image(data: bytes, name: str) -> Picture:
    """Fit an image to the size that models accept."""
    kind = media_type(data)
    width, height = dimensions(data, kind, name)
    shown = f"{name}: {kind.partition('/')[2].upper()}, {width} x {height} pixels"
    if width * height > MAX_PIXELS:
        raise ToolError(f"{shown}, more than the {MAX_PIXELS:,} pixels that are read here. Make it smaller first.")
    side = max(width, height)
    if len(data) <= MAX_BYTES and side <= (MAX_SIDE if WITH_PILLOW else MAX_SIDE_AS_IT_IS):
        return Picture(Image(b64encode(data).decode(), kind), f"{shown}.")
    if not WITH_PILLOW:
        raise ToolError(
            f"{shown}, {len(data):,} bytes: too large to be shown as it is. Ask the user to install handrail[images], "
            "which makes images smaller, or make it smaller with a program."
        )
    smaller, size, kind = _shrink(data, name)
    note = f"{shown}, shown as {size[0]} x {size[1]}; multiply coordinates by {side / max(size):.2f} for the original."
    return Picture(Image(b64encode(smaller).decode(), kind), note)


def _shrink(data: bytes, name: str) -> tuple[bytes, tuple[int, int], str]:
    try:
        with PIL.Image.open(BytesIO(data)) as picture:
            if picture.width * picture.height > MAX_PIXELS:  # the header that we read said something else
                raise ToolError(f"{name!r} holds more pixels than it says. Read another file.")
            picture.draft("RGB", (MAX_SIDE, MAX_SIDE))
            upright: PIL.Image.Image = PIL.ImageOps.exif_transpose(picture)
            return encode_image(upright)
    except (OSError, ValueError, SyntaxError, EOFError, PIL.Image.DecompressionBombError) as error:
        raise ToolError(f"{name!r} is a broken image: {error}. Read another file.") from error


def encode_image(picture: "PIL.Image.Image") -> tuple[bytes, tuple[int, int], str]:
    """Encode an image within the limits: as PNG if it has transparency and fits, otherwise as JPEG."""
    see_through = picture.mode in {"RGBA", "LA", "PA"} or "transparency" in picture.info
    mode = "RGBA" if see_through else "RGB"
    small = picture if picture.mode == mode else picture.convert(mode)
    small.thumbnail((MAX_SIDE, MAX_SIDE))
    if see_through or picture.mode in {"P", "1", "L"}:
        out = BytesIO()
        small.save(out, "PNG", optimize=False)
        if out.tell() <= MAX_BYTES:
            return out.getvalue(), small.size, "image/png"
    flat = PIL.Image.new("RGB", small.size, "white")
    flat.paste(small, mask=small if see_through else None)
    data = b""
    for quality in QUALITIES:
        out = BytesIO()
        flat.save(out, "JPEG", quality=quality)
        data = out.getvalue()
        if len(data) <= MAX_BYTES:
            break
    return data, small.size, "image/jpeg"


def dimensions(data: bytes, kind: str, name: str) -> tuple[int, int]:
    """Width and height from the header, before anything is decompressed."""
    try:
        found = _SIZES[kind](data)
    except (struct.error, IndexError, KeyError) as error:
        raise ToolError(f"{name!r} is a broken image: its size cannot be read. Read another file.") from error
    if not all(found):
        raise ToolError(f"{name!r} is a broken image: it is {found[0]} x {found[1]} pixels. Read another file.")
    return found


def _png(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while True:
        while data[at] != 0xFF or data[at + 1] == 0xFF:
            at += 1
        marker, at = data[at + 1], at + 2
        if marker in SOF_MARKERS:
            height, width = struct.unpack_from(">HH", data, at + 3)
            return width, height
        if marker not in {0x01, *range(0xD0, 0xD9)}:
            at += max(struct.unpack_from(">H", data, at)[0], 2)


def _webp(data: bytes) -> tuple[int, int]:
    chunk = data[12:16]
    if chunk == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if chunk == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


_SIZES = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}
