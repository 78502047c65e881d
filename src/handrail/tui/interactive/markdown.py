"""Markdown as lines of a terminal, and answers that come piece by piece, cut into blocks that are complete."""

from collections.abc import Iterator
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.theme import Theme as RichTheme

from handrail.conversation.plain import plain
from handrail.records import record
from handrail.tui.interactive.paint import Theme

MAX_OPEN = 1_500
"""From this many characters on, an open block is cut, so that drawing it does not cost more the longer it gets."""
STYLES = RichTheme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.code": "cyan",
        "markdown.code_block": "",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.block_quote": "dim",
        "markdown.hr": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "markdown.link": "underline",
        "markdown.link_url": "underline",
    }
)
PARSER = MarkdownIt().enable("strikethrough").enable("table")
BLOCK_PARSER = MarkdownIt().enable("table").disable("inline")
"""Finds blocks, and leaves what is inside them alone."""


class LeftHeading(Heading):
    """A heading at the left edge, of any level."""

    LEVEL_ALIGN = {}  # noqa: RUF012  # the class attribute of rich


class BareCode(CodeBlock):
    """Highlighted code without a frame or a background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines of the code, indented."""
        code = str(self.text).rstrip()
        yield Syntax(
            code,
            self.lexer_name,
            theme=self.theme or "ansi_dark",
            word_wrap=True,
            padding=(0, 0, 0, 2),
            background_color="default",
        )


class TerminalMarkdown(Markdown):
    """Markdown in our look."""

    elements = {  # noqa: RUF012  # the class attribute of rich
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": BareCode,
        "code_block": BareCode,
    }

    def __init__(self, markup: str, code_theme: str) -> None:
        # not that of rich, which makes a parser for each text: that takes as long as drawing it
        self.markup = markup
        self.parsed = PARSER.parse(markup)
        self.code_theme = self.inline_code_theme = code_theme
        self.justify = None
        self.style = "none"
        self.hyperlinks = False
        self.inline_code_lexer = None


@lru_cache(maxsize=8)
def _console(width: int, *, coloured: bool) -> Console:
    return Console(
        width=width,
        height=100,
        force_terminal=True,
        color_system="standard" if coloured else None,
        no_color=not coloured,
        theme=STYLES,
        legacy_windows=False,
        emoji=False,
        highlight=False,
    )


def markdown_lines(source: str, width: int, theme: Theme) -> list[str]:
    """The source drawn in lines that fit. Control characters in it are made visible."""
    console = _console(width, coloured=theme.has_colour)
    drawn = TerminalMarkdown(plain(source), theme.code or "ansi_dark")
    lines = [_ansi(line, theme) for line in console.render_lines(drawn, console.options, pad=False)]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return lines


def code_lines(code: str, language: str, width: int, theme: Theme) -> list[str]:
    """Code that was made harmless, highlighted, in lines that fit."""
    console = _console(width, coloured=theme.has_colour)
    drawn = Syntax(code, language, theme=theme.code or "ansi_dark", word_wrap=True, background_color="default")
    return [_ansi(line, theme) for line in console.render_lines(drawn, console.options, pad=False)]


def _ansi(line: list[Segment], theme: Theme) -> str:
    """A line of segments as text with colours, without blanks at its end."""
    segments = [segment for segment in line if not segment.control]
    while segments and not segments[-1].text.strip():
        segments.pop()
    if segments:
        segments[-1] = segments[-1]._replace(text=segments[-1].text.rstrip())
    if not theme.has_colour:
        return "".join(segment.text for segment in segments)
    return "".join(
        segment.style.render(segment.text, color_system=ColorSystem.STANDARD) if segment.style else segment.text
        for segment in segments
    )


@record
class MarkdownPiece:
    """A part of an answer that is complete. `joins`: it goes on where the piece before it ended."""

    source: str
    joins: bool = False


class OpenAnswer:
    """An answer that is still coming. Adding to it costs the same however long it is."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._joins = False

    @property
    def rest(self) -> MarkdownPiece:
        """What is not complete yet."""
        self._parts = ["".join(self._parts)]
        return MarkdownPiece(self._parts[0], self._joins)

    def add(self, text: str) -> None:
        """Add what came."""
        self._parts.append(text)

    def take_finished(self) -> list[MarkdownPiece]:
        """Take the blocks that will not change any more."""
        source = self.rest.source
        if "\n" not in source and len(source) <= MAX_OPEN:
            return []
        found: list[MarkdownPiece] = []
        start = 0
        for end, joins_next in cuts(source):
            found.append(MarkdownPiece(source[start:end], self._joins))
            start, self._joins = end, joins_next
        rest = source[start:]
        while len(rest) > MAX_OPEN and (cut := cut_long(rest)):
            found.append(MarkdownPiece(cut[0], self._joins))
            rest, self._joins = cut[1], True
        self._parts = [rest]
        return [piece for piece in found if piece.source.strip()]

    def take_all(self) -> list[MarkdownPiece]:
        """Take everything: the answer is complete."""
        pieces = self.take_finished()
        last = self.rest
        self._parts, self._joins = [], False
        return [*pieces, last] if last.source.strip() else pieces


def cuts(source: str) -> Iterator[tuple[int, bool]]:
    """Where a text can be cut: before each top-level block but the first, and before items of a list."""
    starts = _line_starts(source)
    for line, joins in _block_lines(BLOCK_PARSER.parse(source)):
        yield starts[line], joins


def _block_lines(tokens: list[Token]) -> Iterator[tuple[int, bool]]:
    """The first line of each block but the first, and whether it goes on with a list."""
    before: int | None = None
    for token in tokens:
        is_item = token.level == 1 and token.type == "list_item_open"
        is_block = token.level == 0 and token.nesting >= 0
        if token.map is None or not (is_block or is_item) or token.map[0] == before:
            continue
        if before is not None:
            yield token.map[0], is_item
        before = token.map[0]


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def cut_long(source: str) -> tuple[str, str] | None:
    """A long open block in two: what can be drawn for good, and the rest of it as a block of its own."""
    first, _, body = source.partition("\n")
    mark = first.lstrip()[:3]
    if mark in ("```", "~~~"):
        done, newline, rest = body.rpartition("\n")
        return (f"{first}\n{done}\n{mark}\n", f"{first}\n{rest}") if newline and done else None
    if source.lstrip()[:1] in ("|", ">", "<"):
        return None
    at = max(source.rfind("\n", 0, MAX_OPEN), source.rfind(" ", 0, MAX_OPEN))
    return (source[:at], source[at + 1 :].lstrip(" ")) if at > 0 else None
