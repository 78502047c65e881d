"""PDFs: page by page, with bounds; broken and locked ones explained."""

import os
import sys
import threading
from base64 import b64decode
from io import BytesIO
from typing import Any

import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.builtin.read import images, pdf, pdf_process
from handrail.builtin.read.tool import Read
from handrail.builtin.services import ToolServices
from handrail.builtin.support import reader_process
from handrail.conversation.blocks import Image, ResultBlock, Text
from handrail.errors import ToolError
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.context import ToolContext


def document(pages: int, size: tuple[int, int] = (300, 400), extra: bytes = b"") -> bytes:
    """A PDF whose every page says its number."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for number in range(1, pages + 1):
        text = b"BT /F1 24 Tf 20 100 Td (This is page %d) Tj ET" % number
        objects.append(b"<</Length %d>>stream\n%b\nendstream" % (len(text), text))
        box = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>"
        objects.append(box % (*size, len(objects)))
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%b]>>" % (pages, b" ".join(kids))
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    trailer = b"trailer<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF" % (count, extra, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % count + table + trailer


def read(ctx: ToolContext, services: ToolServices, data: bytes, **rest: Any) -> tuple[ResultBlock, ...]:
    (ctx.cwd / "d.pdf").write_bytes(data)
    tool = Read(services)
    return tool.result_blocks(tool.call_blocking(tool.parse({"file_path": "d.pdf", **rest}), ctx))


@pytest.mark.proves("N3", "I8")
def test_a_page_comes_as_text_and_as_a_picture(ctx: ToolContext, services: ToolServices) -> None:
    first, picture, second, _ = read(ctx, services, document(2))

    assert first == Text("Page 1 of 2:\nThis is page 1")
    assert second == Text("Page 2 of 2:\nThis is page 2")
    assert isinstance(picture, Image)
    assert PIL.Image.open(BytesIO(b64decode(picture.data))).size == (825, 1100)


@pytest.mark.proves("I8")
@pytest.mark.parametrize(
    ("pages", "shown"), [("3", [3]), ("2-4", [2, 3, 4]), (" 11 - 99 ", [11, 12]), ("11-", [11, 12]), ("12-12", [12])]
)
def test_pages_are_chosen_by_range(ctx: ToolContext, services: ToolServices, pages: str, shown: list[int]) -> None:
    texts = [block for block in read(ctx, services, document(12), pages=pages) if isinstance(block, Text)]

    assert texts == [Text(f"Page {number} of 12:\nThis is page {number}") for number in shown]


@pytest.mark.proves("I8")
@pytest.mark.parametrize(
    ("count", "pages", "told"),
    [
        (11, "", "'d.pdf' has 11 pages. Say which, at most 20 at once"),
        (30, "1-21", "20 pages is the most for one call"),
        (3, "4", "has pages 1 to 3"),
        (3, "0-2", "has pages 1 to 3"),
        (3, "3-2", "has pages 1 to 3"),
        (3, "all", "pages is 'all'. Give one range"),
        (3, "1,2", "Give one range"),
    ],
)
def test_too_many_or_no_such_pages_are_refused(
    ctx: ToolContext, services: ToolServices, count: int, pages: str, told: str
) -> None:
    with pytest.raises(ToolError) as caught:
        read(ctx, services, document(count), pages=pages)
    assert told in str(caught.value)


@pytest.mark.proves("R6")
def test_pages_of_any_size_give_pictures_of_one_size(ctx: ToolContext, services: ToolServices) -> None:
    for size in ((14_400, 14_400), (1, 14_400), (10, 10)):
        for block in read(ctx, services, document(1, size)):
            if isinstance(block, Image):
                assert max(PIL.Image.open(BytesIO(b64decode(block.data))).size) <= 1101


@pytest.mark.proves("R6")
def test_text_and_pictures_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MAX_TEXT", 30)
    monkeypatch.setattr(pdf, "MAX_PICTURES", 10)

    blocks, _, _ = pdf.show_pdf(document(3), "", "d.pdf")

    assert [block.text for block in blocks if isinstance(block, Text)] == [
        "Page 1 of 3:\nThis is page 1",
        "Page 2 of 3:\nThis is page 2",
        "Page 3 of 3: its text is left out, it was too much.",
    ]
    assert sum(isinstance(block, Image) for block in blocks) == 1


def test_locked_and_broken_documents_are_explained(ctx: ToolContext, services: ToolServices) -> None:
    key = b"<%b>" % (b"41" * 32)
    locked = b"/Encrypt<</Filter/Standard/V 1/R 2/Length 40/P -44/O%b/U%b>>/ID[<00><00>]" % (key, key)
    with pytest.raises(ToolError, match="encrypted and needs a password"):
        read(ctx, services, document(1, extra=locked))
    with pytest.raises(ToolError, match=r"'d\.pdf' is a broken PDF"):
        read(ctx, services, b"%PDF-1.4\nnothing of the kind")


@settings(max_examples=40)
@given(st.data())
def test_whatever_is_damaged_it_is_shown_or_explained(data: st.DataObject) -> None:
    whole = bytearray(document(2))
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(8, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        blocks, _, _ = pdf.show_pdf(bytes(whole), "", "d.pdf")
    except ToolError as error:
        problem = str(error)
        assert "'d.pdf'" in problem
    else:
        assert len(blocks) <= 4


def test_without_the_libraries_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "WITH_PILLOW", False)
    assert pdf.show_pdf(document(1), "", "d.pdf")[0] == (Text("Page 1 of 1:\nThis is page 1"),)

    monkeypatch.setattr(pdf, "WITH_PDFIUM", False)
    with pytest.raises(ToolError, match=r"install handrail\[pdf\]"):
        pdf.show_pdf(document(1), "", "d.pdf")


@pytest.mark.proves("R6")
@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import time; time.sleep(1000)", r"'d\.pdf' takes more than 0\.3 seconds to be shown. Ask for fewer pages"),
        ("import os; os.abort()", r"'d\.pdf' cannot be shown: reading it takes too much memory, or breaks off"),
        ("bytearray(1 << 40)", r"'d\.pdf' cannot be shown"),
    ],
)
def test_a_document_that_breaks_the_library_or_never_ends_is_told(
    ctx: ToolContext, services: ToolServices, monkeypatch: pytest.MonkeyPatch, program: str, told: str
) -> None:
    monkeypatch.setattr(reader_process, "START", (sys.executable, "-I", "-c", program))
    if "sleep" in program:
        monkeypatch.setattr(reader_process, "MAX_SECONDS", 0.3)

    with pytest.raises(ToolError, match=told):
        read(ctx, services, document(1))


def test_an_abort_ends_it_at_once(ctx: ToolContext, services: ToolServices, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = ctx.cwd / "gate"
    os.mkfifo(gate)
    endless = f"import time; open({str(gate)!r}, 'w'); time.sleep(1000)"
    monkeypatch.setattr(reader_process, "START", (sys.executable, "-I", "-c", endless))
    monkeypatch.setattr(reader_process, "MAX_SECONDS", 100.0)  # whoever waits for it fails by its message

    def stop() -> None:
        gate.read_bytes()
        ctx.abort.abort(AbortReason.USER)

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(ToolError, match=r"'d\.pdf' cannot be shown"):
        read(ctx, services, document(1))
    stopper.join()


def test_a_page_that_is_drawn_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form draws the next one ten times."""
    forms = b"".join(
        b"%d 0 obj\n<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F %d 0 R>>>>/Length 70>>stream\n"
        b"%b\nendstream\nendobj\n" % (number, number + 1, (b"/F Do " * 10).ljust(70))
        for number in range(10, 22)
    )
    page = (
        b"3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</XObject<</F 10 0 R>>>>/Contents 11 0 R>>\n"
    )
    start = b"1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n"
    monkeypatch.setattr(reader_process, "MAX_SECONDS", 2.0)

    data = b"%PDF-1.4\n" + start + page + b"endobj\n" + forms + b"trailer<</Root 1 0 R>>"
    with pytest.raises(ToolError, match="takes more than 2 seconds"):
        pdf_process.show_in_process(data, "", "d.pdf", AbortSignal())
