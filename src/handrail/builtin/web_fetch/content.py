"""What a fetched page holds: its kind, its characters, and its text as a model reads it."""

import codecs
import json
import re
from typing import Literal, TypeAlias

from handrail.builtin.read import images, pdf_process
from handrail.builtin.support.media_types import media_type
from handrail.builtin.support.reader_process import read_in_process
from handrail.builtin.web_fetch.fetch import FetchedPage
from handrail.builtin.web_fetch.hidden import visible
from handrail.conversation.blocks import ResultBlock, Text
from handrail.errors import ToolError
from handrail.files.text import detect_encoding
from handrail.lazy import lazy_pattern
from handrail.records import record
from handrail.tools.abort import AbortSignal

PageKind: TypeAlias = Literal["html", "json", "text", "pdf", "image", "binary"]

HTML_READER = "handrail.builtin.web_fetch.html"
MAX_HTML = 3_000_000
FIRST_PAGES = "1-10"
META = re.compile(rb"""(?i)<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""")
CHARSET = lazy_pattern(r"""(?i)charset\s*=\s*["']?([A-Za-z0-9_:.-]+)""")
LOOKS_LIKE_HTML = re.compile(rb"(?is)\s*(?:<!--.{0,2000}?-->\s*)*<(?:!doctype html|html|head|body)\b")
EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


@record
class PageContent:
    """
    A page as a model reads it: its text, or blocks with pictures.

    `suffix` is the ending of the file that holds it; `raw` are its bytes if the text does not stand for them.
    """

    kind: PageKind
    text: str = ""
    title: str = ""
    blocks: tuple[ResultBlock, ...] = ()
    suffix: str = ".md"
    raw: bytes = b""


def page_kind(content_type: str, body: bytes) -> PageKind:
    """By its first bytes where they are sure, else as the server says; what it leaves open, by how it looks."""
    declared = content_type.partition(";")[0].strip().lower()
    if media_type(body[:16]):
        return "image"
    if body[:1024].lstrip().startswith(b"%PDF-"):
        return "pdf"
    if declared in ("text/html", "application/xhtml+xml") or (
        declared in ("", "text/plain", "application/octet-stream") and LOOKS_LIKE_HTML.match(body[:4096])
    ):
        return "html"
    if declared in ("application/json", "text/json") or declared.endswith("+json"):
        return "json"
    named_text = declared.startswith("text/") or declared.endswith("+xml") or "xml" in declared or "script" in declared
    return "text" if named_text or detect_encoding([body]) is not None else "binary"


def read_content(page: FetchedPage, abort: AbortSignal) -> PageContent:
    """Read a page. It may take long, so call it in a thread. Raises ToolError if it cannot be shown."""
    content_type = page.headers.get("content-type", "")
    kind = page_kind(content_type, page.body)
    match kind:
        case "image":
            _whole(page, "image")
            picture = images.fit_image(page.body, page.url)
            suffix = EXTENSIONS.get(media_type(page.body[:16]), ".img")
            return PageContent(kind, picture.note, blocks=(picture.block,), suffix=suffix, raw=page.body)
        case "pdf":
            _whole(page, "PDF")
            blocks, shown, total = pdf_process.show_in_process(page.body, FIRST_PAGES, page.url, abort)
            note = f"A PDF with {total} pages; {shown} of them are shown."
            visible_blocks = tuple(Text(visible(each.text)) if isinstance(each, Text) else each for each in blocks)
            return PageContent(kind, note, blocks=visible_blocks, suffix=".pdf", raw=page.body)
        case "binary":
            declared = content_type.partition(";")[0] or "no type"
            raise ToolError(
                f"{page.url} is not text, an image or a PDF ({declared}, {len(page.body):,} bytes). Download it with a "
                "program if it is needed."
            )
    text = decode_text(page.body, content_type, is_html=kind == "html")
    if kind == "html":
        data = text[:MAX_HTML].encode("utf-8", "replace")
        found = read_in_process(HTML_READER, (page.url,), data, page.url, abort, hint="Fetch another page.")
        return PageContent(kind, found["text"], found["title"])
    if kind == "json":
        return PageContent(kind, visible(_pretty(text)), suffix=".json")
    return PageContent(kind, visible(text), suffix=".txt")


def decode_text(body: bytes, content_type: str, *, is_html: bool) -> str:
    """The text: by its mark, by what the server or the page says if that is true, else by how it looks."""
    declared = CHARSET.search(content_type)
    names = [declared[1]] if declared else []
    if is_html and (found := META.search(body[:4096])):
        names.append(found[1].decode("ascii"))
    detected = detect_encoding([body])
    if detected is not None and detected.mark:
        return detected.decode(body[len(detected.mark) :])
    for name in names:
        try:
            return body.decode(_codec(name))
        except (LookupError, UnicodeDecodeError, ValueError):
            continue  # it says what is not true
    return (detected.decode(body) if detected else body.decode("utf-8", "replace")).encode("utf-8", "replace").decode()


def _codec(name: str) -> str:
    """The codec of a charset as browsers take it: Latin-1 and ASCII mean Windows-1252. LookupError if there is none."""
    codec = codecs.lookup(name)
    if not codec._is_text_encoding:  # base64 and the like are no charsets
        raise LookupError(name)
    return "cp1252" if codec.name in ("iso8859-1", "ascii") else codec.name


def _whole(page: FetchedPage, kind: str) -> None:
    if page.cut:
        raise ToolError(
            f"{page.url} is a {kind} of more than {len(page.body):,} bytes, which is too large to be shown."
        )


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text
