"""
The text of a command as data: what is said, which words go where, which commands run first, which files are named.

    Review @$0 against !`git diff $0`.        $0, $ARGUMENTS, $name    words of the person who typed the command
                                              !`...`                   is run, and its output is put here
                                              @path                    brings that file along

Words are filled in after the text was read, so that no word can become a command, and outputs are never read again.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from handrail.lazy import lazy_pattern
from handrail.loop.memory import imports
from handrail.records import record

INLINE = r"(?:(?<=\s)|^)!`(?P<inline>[^`\n]+)`"
SHELL = lazy_pattern(rf"^```![^\n]*\n(?P<block>.*?)^```[ \t]*$|{INLINE}", re.MULTILINE | re.DOTALL)
INLINE_SHELL = lazy_pattern(INLINE, re.MULTILINE)
CLOSING = lazy_pattern(r"^```[ \t]*$", re.MULTILINE)
PLACES = lazy_pattern(
    r"\\?\$(?:ARGUMENTS(?:\[(?P<place>[0-9]{1,6})\]|(?![A-Za-z0-9_]))|(?P<number>[0-9]{1,6})(?![0-9])"
    r"|\{(?P<variable>[A-Z_]+)\}|(?P<name>[A-Za-z_][A-Za-z0-9_]*))"
)


@record
class ShellCommand:
    """A command line to run; its output takes its place."""

    line: str


@record
class CommandText:
    """A command's text with its words filled in. `files` are the paths that it names."""

    parts: tuple[str | ShellCommand, ...]
    files: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[ShellCommand, ...]:
        """What runs first, in order."""
        return tuple(part for part in self.parts if isinstance(part, ShellCommand))

    def with_outputs(self, outputs: Sequence[str]) -> str:
        """The whole text; `outputs` are those of its commands, in order."""
        left = iter(outputs)
        return "".join(part if isinstance(part, str) else next(left) for part in self.parts)


def shell_commands(body: str) -> tuple[str, ...]:
    """The command lines of a text, as they are written."""
    return tuple(part.line for part in _split(body) if isinstance(part, ShellCommand))


def fill_command(
    body: str, words: str, names: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> CommandText:
    """A command's text for the words of its caller, which go behind it if it has no place for them."""
    words = words.strip()
    fill = _filler(words, names, variables or {})
    parts: list[str | ShellCommand] = []
    used = False
    for part in _split(body):
        text, places = fill(part if isinstance(part, str) else part.line)
        used = used or places
        parts.append(text if isinstance(part, str) else ShellCommand(text))
    if words and not used:
        parts.append(f"\n\nARGUMENTS: {words}")
    said = "".join(part if isinstance(part, str) else " " for part in parts)
    return CommandText(tuple(parts), imports(said))


def _split(body: str) -> list[str | ShellCommand]:
    parts: list[str | ShellCommand] = []
    end = 0
    # behind the last closing line no block ends, so that no opening one there has to look for its end
    last = max((found.end() for found in CLOSING.finditer(body)), default=0)
    for found in (*SHELL.finditer(body, 0, last), *INLINE_SHELL.finditer(body, last)):
        if line := found[found.lastgroup or 0].strip():
            parts += [body[end : found.start()], ShellCommand(line)]
            end = found.end()
    return [part for part in (*parts, body[end:]) if part != ""]


def _filler(words: str, names: Sequence[str], variables: Mapping[str, str]) -> Callable[[str], tuple[str, bool]]:
    """Fills in a text; says whether it had a place for words."""
    try:
        parts = shlex.split(words)
    except ValueError:  # a single quote, as in "don't"
        parts = words.split()
    places = {name: at for at, name in reversed([*enumerate(names)])}

    def fill(text: str) -> tuple[str, bool]:
        used = False

        def put(found: re.Match[str]) -> str:
            nonlocal used
            name, number = found["name"], found["place"] or found["number"]
            known = name is None or name in places
            if found["variable"] is not None:
                known = found["variable"] in variables
            if not known:
                return found[0]
            if found[0].startswith("\\"):
                return found[0][1:]
            if found["variable"] is not None:
                return variables[found["variable"]]
            used = True
            if name is None and number is None:
                return words
            at = places[name] if name is not None else int(number)
            return parts[at] if at < len(parts) else ""

        return PLACES.sub(put, text), used

    return fill
