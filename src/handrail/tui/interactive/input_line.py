"""The input line: its history across sessions, and pasted text and images, for which a placeholder stands."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import History

from handrail.conversation.blocks import Image

FOLDED_LINES, FOLDED_CHARACTERS = 10, 1_000
"""A longer paste is folded."""
MAX_PASTED, MAX_IMAGES = 20_000_000, 20
"""Characters of pasted texts, and images, that are remembered."""
PLACEHOLDER = re.compile(r"\[pasted text #(\d{1,9})[^\]]*\]")
IMAGE_PLACEHOLDER = re.compile(r"\[image #(\d{1,6})\]")
MAX_HISTORY = 2_000
MAX_ENTRY = 20_000


class PastedTexts:
    """Pasted texts by number; the input line holds a placeholder for each. The oldest are forgotten."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._count = 0

    def fold(self, text: str) -> str:
        """What is put into the input line for a paste: the text, or a placeholder if it is long."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= FOLDED_LINES and len(text) <= FOLDED_CHARACTERS:
            return text
        self._count += 1
        self._texts[self._count] = text
        while len(self._texts) > 1 and sum(map(len, self._texts.values())) > MAX_PASTED:
            del self._texts[min(self._texts)]
        return f"[pasted text #{self._count}, {lines} line{'s' if lines > 1 else ''}, {len(text):,} characters]"

    def unfold(self, text: str) -> str:
        """The text with what was pasted in the place of the placeholders."""
        return PLACEHOLDER.sub(lambda found: self._texts.get(int(found[1]), found[0]), text)


class PastedImages:
    """Images by number; a message holds a placeholder for each. The oldest are forgotten."""

    def __init__(self) -> None:
        self._images: dict[int, Image] = {}
        self._count = 0

    def add(self, image: Image) -> str:
        """What stands for the image in a message."""
        self._count += 1
        self._images[self._count] = image
        if len(self._images) > MAX_IMAGES:
            del self._images[min(self._images)]
        return f"[image #{self._count}]"

    def named_in(self, text: str) -> tuple[Image, ...]:
        """The images whose placeholders stand in a message."""
        numbers = dict.fromkeys(int(found[1]) for found in IMAGE_PLACEHOLDER.finditer(text))
        return tuple(self._images[number] for number in numbers if number in self._images)


class PromptHistory(History):
    """What was sent, one JSON text a line, in a file that only its owner may read."""

    def __init__(self, file: Callable[[], Path | None], unfold: Callable[[str], str]) -> None:
        super().__init__()
        self._find_file = file
        self._unfold = unfold
        self._file: Path | None = None
        self._last = ""

    def load_history_strings(self) -> Iterable[str]:
        """The entries, newest first."""
        self._file = self._find_file()
        entries = read_history(self._file)
        self._last = entries[-1] if entries else ""
        return reversed(entries)

    async def load(self) -> AsyncGenerator[str, None]:
        """The entries, newest first."""
        if not self._loaded:
            self._loaded = True
            entries = await asyncio.to_thread(lambda: list(self.load_history_strings()))
            self._loaded_strings = [*self._loaded_strings, *entries]
        for entry in self._loaded_strings:
            yield entry

    def store_string(self, string: str) -> None:
        """Add an entry, with what was pasted into it, unless it repeats the one before."""
        string = self._unfold(string)
        if self._file is None or string == self._last or len(string) > MAX_ENTRY:
            return
        self._last = string
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file.touch(0o600)
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(string) + "\n")


def read_history(file: Path | None) -> list[str]:
    """The entries of a history, oldest first; a line that is no JSON text is left out."""
    if file is None or not file.is_file():
        return []
    entries: list[str] = []
    for line in file.read_text("utf-8", "replace").splitlines()[-MAX_HISTORY:]:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(entry, str):
            entries.append(entry)
    return entries
