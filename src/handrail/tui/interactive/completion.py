"""What may follow what was typed: commands behind a slash at the beginning, files behind an at sign."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from handrail.conversation.plain import plain
from handrail.tui.interactive.file_index import FileIndex

MAX_SHOWN = 8
SERVER_COMMAND = "/mcp__"

ServerMentions: TypeAlias = Callable[[str], Awaitable[Sequence[tuple[str, str]]]]
ArgumentValues: TypeAlias = Callable[[str], Awaitable[tuple[str, Sequence[str]]]]


async def _no_values(_text: str) -> tuple[str, tuple[str, ...]]:
    return "", ()


async def _no_mentions(_begun: str) -> tuple[tuple[str, str], ...]:
    return ()


class PromptCompleter(Completer):
    """
    Completes commands with their hints (`commands`: name -> hint and description), and paths.

    `values` gives, for a command of an MCP server, what was begun of its last argument, and values for that.
    `mentions` gives what may follow an at sign of MCP servers, each with what it is.
    """

    def __init__(
        self,
        commands: Callable[[], Mapping[str, str]],
        files: FileIndex,
        values: ArgumentValues = _no_values,
        mentions: ServerMentions = _no_mentions,
    ) -> None:
        self._commands = commands
        self._files = files
        self._values = values
        self._mentions = mentions

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The commands that begin with what was typed."""
        text = document.text_before_cursor
        if not text.startswith("/") or " " in text or "\n" in text:
            return
        word = text[1:].lower()
        found = self._commands()
        for name in sorted(found, key=lambda each: (not each.startswith(word), each)):
            if word in name.lower():
                yield Completion(f"/{name} ", -len(text), display=f"/{name}", display_meta=plain(found[name]))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """The commands or the files that fit."""
        for each in self.get_completions(document, complete_event):
            yield each
        if document.text_before_cursor.startswith(SERVER_COMMAND):
            begun, values = await self._values(document.text_before_cursor)
            for value in values:
                if plain(value) == value:
                    yield Completion(f"{value} ", -len(begun), display=value)
        word = document.text_before_cursor.rpartition("@")
        before, _, query = word
        if not word[1] or (before and not before[-1].isspace()) or any(char.isspace() for char in query):
            return
        for name, about in await self._mentions(query):
            if plain(name) == name and not any(char.isspace() or char == "\\" for char in name):
                end = "" if name.endswith(":") else " "
                yield Completion(f"{name}{end}", -len(query), display=name, display_meta=plain(about))
        for path in await self._files.search(query):
            shown = plain(path)
            if shown == path:  # a name that could steer the terminal is not offered
                yield Completion(f"{path} ", -len(query), display=path)
