"""Images: shown in a size that models take, broken and hostile ones refused."""

import struct
import zlib
from base64 import b64decode
from io import BytesIO
from random import Random
from typing import Any

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.read import images
from handrail.builtin.read.tool import Read
from handrail.builtin.services import ToolServices
from handrail.builtin.support.media_types import media_type
from handrail.conversation.blocks import Image, ResultBlock, Text
from handrail.errors import ToolError
from handrail.tools.context import ToolContext

FORMATS = ["PNG", "JPEG", "GIF", "WEBP"]


def picture(kind: str, size: tuple[int, int], mode: str = "RGB", **options: Any) -> bytes:
    out = BytesIO()
    noise = PIL.Image.frombytes("L", size, Random(0).randbytes(size[0] * size[1]))
    if mode == "RGBA":
        noise.putalpha(noise.copy())
    noise.convert(mode).save(out, kind, **options)
    return out.getvalue()


def look(ctx: ToolContext, services: ToolServices, data: bytes, name: str = "p.png") -> tuple[ResultBlock, ...]:
    (ctx.cwd / name).write_bytes(data)
    tool = Read(services)
    return tool.result_blocks(tool.call_blocking(tool.parse({"file_path": name}), ctx))


def opened(block: ResultBlock) -> PIL.Image.Image:
    assert isinstance(block, Image)
    made = PIL.Image.open(BytesIO(b64decode(block.data)))
    assert PIL.Image.MIME[str(made.format)] == block.media_type
    return made


@pytest.mark.proves("N3")
@pytest.mark.parametrize("kind", FORMATS)
def test_a_small_image_is_shown_as_it_is(ctx: ToolContext, services: ToolServices, kind: str) -> None:
    data = picture(kind, (40, 30))

    note, block = look(ctx, services, data)

    assert note == Text(f"p.png: {kind}, 40 x 30 pixels.")
    assert isinstance(block, Image)
    assert b64decode(block.data) == data


@pytest.mark.proves("N3", "R6")
@pytest.mark.parametrize("kind", FORMATS)
def test_a_large_image_is_made_smaller(ctx: ToolContext, services: ToolServices, kind: str) -> None:
    note, block = look(ctx, services, picture(kind, (4000, 100)))

    assert note == Text(
        f"p.png: {kind}, 4000 x 100 pixels, shown as 1568 x 39; multiply coordinates by 2.55 for the original."
    )
    assert opened(block).size == (1568, 39)


@pytest.mark.proves("R6")
def test_an_image_of_too_many_bytes_is_made_smaller_and_keeps_what_is_seen_through(
    ctx: ToolContext, services: ToolServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, block = look(ctx, services, picture("PNG", (2000, 30), "RGBA"))
    assert opened(block).mode == "RGBA"

    monkeypatch.setattr(images, "MAX_BYTES", 100_000)
    data = picture("PNG", (400, 400), "RGBA")
    assert len(data) > images.MAX_BYTES
    _, block = look(ctx, services, data)
    assert opened(block).format == "JPEG"
    assert isinstance(block, Image)
    assert len(b64decode(block.data)) <= images.MAX_BYTES


def test_a_turned_photograph_is_shown_upright(ctx: ToolContext, services: ToolServices) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    _, block = look(ctx, services, picture("JPEG", (3000, 1000), exif=exif))

    assert opened(block).size == (523, 1568)


def bomb(width: int, height: int) -> bytes:
    """A PNG of few bytes that unpacks to very many."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


def test_an_image_that_unpacks_to_far_too_much_is_refused(ctx: ToolContext, services: ToolServices) -> None:
    for size in ((50_000, 50_000), (9_000, 9_000), (2**31 - 1, 1)):
        with pytest.raises(ToolError, match="more than the 80,000,000 pixels"):
            look(ctx, services, bomb(*size))


@given(st.sampled_from(FORMATS), st.data())
def test_a_broken_image_is_refused_or_shown_but_nothing_else_happens(kind: str, data: st.DataObject) -> None:
    whole = bytearray(picture(kind, (1600, 8)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, min(len(whole), 400) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(12, len(whole)))])
    if not media_type(cut):
        return
    try:
        shown = images.fit_image(cut, "p")
    except ToolError as error:
        problem = str(error)
        assert "broken image" in problem or "pixels" in problem
    else:
        assert shown.block.media_type.startswith("image/")


def test_without_pillow_small_images_are_shown_and_large_ones_explained(
    ctx: ToolContext, services: ToolServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "WITH_PILLOW", False)

    assert len(look(ctx, services, picture("PNG", (3000, 10)))) == 2
    with pytest.raises(ToolError, match=r"install handrail\[images\]"):
        look(ctx, services, picture("PNG", (9000, 10)))
