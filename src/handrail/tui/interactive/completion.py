"""What may follow what was typed: commands behind a slash at the beginning, files behind an at sign."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from handrail.conversation.plain import plain
from handrail.tui.interactive.file_index import FileIndex

MAX_SHOWN = 8


class PromptCompleter(Completer):
    """Completes commands with their hints (`commands`: name -> hint and description) and paths."""

    def __init__(self, commands: Callable[[], Mapping[str, str]], files: FileIndex) -> None:
        self._commands = commands
        self._files = files

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
        word = document.text_before_cursor.rpartition("@")
        before, _, query = word
        if not word[1] or (before and not before[-1].isspace()) or any(char.isspace() for char in query):
            return
        for path in await self._files.search(query):
            shown = plain(path)
            if shown == path:  # a name that could steer the terminal is not offered
                yield Completion(f"{path} ", -len(query), display=path)
