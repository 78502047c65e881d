"""
Turns a page into Markdown, in a process of its own: a hostile page can make a parser hang, crash or take all memory.

    python -m handrail.builtin.web_fetch.html ADDRESS < page.html

Our own parser picks the main text and leaves out what a person would not see. Then html-to-markdown writes it as
Markdown where the extra `web` is installed, otherwise a small writer of our own.
"""

import json
import sys
from urllib.parse import urljoin

from handrail.builtin.web_fetch.hidden import AROUND, visible
from handrail.builtin.web_fetch.html_tree import Element, read_tree
from handrail.builtin.web_fetch.markdown import main_element, write_markdown

try:
    import html_to_markdown

    WITH_CONVERTER = True
except ImportError:
    WITH_CONVERTER = False


def html_markdown(html: str, address: str) -> tuple[str, str]:
    """The title and the text of a page."""
    tree = read_tree(html)
    main, base = main_element(tree.root), urljoin(address, tree.base)
    text = _convert(main, base) if WITH_CONVERTER else write_markdown(main, base)
    return visible(tree.title), visible(text).strip()


def _convert(main: Element, base: str) -> str:
    options = html_to_markdown.ConversionOptions(
        base_url=base,
        bullets="-",
        exclude_selectors=sorted(AROUND),
        extract_metadata=False,
        inline_data_media="alt_text_only",
    )
    return html_to_markdown.convert(main.html(), options).content or ""


def main() -> None:
    """Read a page in UTF-8 from standard input and print title and text as JSON."""
    title, text = html_markdown(sys.stdin.buffer.read().decode("utf-8", "replace"), sys.argv[1])
    print(json.dumps({"title": title, "text": text}))  # noqa: T201


if __name__ == "__main__":
    main()
