"""
Commands that people write down as Markdown files, and use as `/name words` in a prompt.

    .claude/commands/deploy.md, .handrail/commands/..., ~/.claude/commands/..., ~/.handrail/commands/...

The nearest file of a name counts: the project's before the user's. A command is a prompt, nothing in it is run here.
A link of a project that leads out of it is no command.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.files.frontmatter import parse_frontmatter
from handrail.loop.run_hooks import Expansion
from handrail.records import record
from handrail.session.environment import has_secret_name, repository_of

FAMILIES = (".handrail", ".claude")
SOURCES = ("project", "user")
MAX_FILE = 200_000
MAX_COMMANDS = 1_000
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_:.-]*")
CALLED = re.compile(rf"/(?P<name>{NAME.pattern})(?:\s+(?P<words>.*))?", re.DOTALL)
PLACES = re.compile(r"\\?\$(?:ARGUMENTS(?:\[(?P<place>[0-9]+)\])?|(?P<number>[0-9]+)(?![0-9]))")


@record
class CommandFile:
    """One command: what it is called, what it is for, and the prompt it stands for."""

    name: str
    description: str
    hint: str
    body: str
    model: str = ""
    source: str = ""


def folders_for(kind: str, cwd: Path, env: Mapping[str, str], sources: Collection[str]) -> list[Path]:
    """Where people write down commands or agents, the nearest first; `sources` are project and user, or one of them."""
    home = Path(env.get("HOME") or Path.home())
    own = Path(env.get("HANDRAIL_CONFIG_DIR") or home / ".handrail").expanduser()
    project = [cwd / family / kind for family in FAMILIES] if "project" in sources else []
    return project + ([own / kind, home / ".claude" / kind] if "user" in sources else [])


def reaches_out(path: Path, cwd: Path) -> bool:
    """Whether a file of a project leads out of it, or to what may hold secrets; its text would go to the model."""
    tree = (repository_of(cwd) or cwd).resolve()
    real = path.resolve()
    return not real.is_relative_to(tree) or has_secret_name(str(real.relative_to(tree)))


def find_commands(cwd: Path, env: Mapping[str, str], sources: Collection[str] = SOURCES) -> dict[str, CommandFile]:
    """All commands that hold in a folder, by name."""
    found: dict[str, CommandFile] = {}
    for folder in folders_for("commands", cwd, env, sources):
        for command in _read_folder(folder, cwd if folder.is_relative_to(cwd) else None):
            found.setdefault(command.name, command)
    return found


def _read_folder(folder: Path, project: Path | None) -> Iterator[CommandFile]:
    try:
        files = sorted(folder.rglob("*.md"))[:MAX_COMMANDS]
    except OSError:
        return
    for path in files:
        try:
            if not path.is_file() or path.stat().st_size > MAX_FILE:  # a pipe would be waited for
                continue
            if project and reaches_out(path, project):
                continue
            headed = parse_frontmatter(path.read_text("utf-8", "replace"))
        except OSError:
            continue
        name = path.stem
        if NAME.fullmatch(name):
            first = next((line.strip("# ").strip() for line in headed.body.splitlines() if line.strip()), "")
            yield CommandFile(
                name,
                headed.text("description") or first[:200],
                headed.text("argument-hint"),
                headed.body,
                headed.text("model"),
                str(path),
            )


def match_command(message: UserMessage) -> re.Match[str] | None:
    """The `name` and the `words` of a command at the beginning of a message, if it begins with one."""
    first = message.content[0] if message.content else None
    return CALLED.fullmatch(first.text.strip()) if isinstance(first, Text) else None


def expand_command(message: UserMessage, commands: Mapping[str, CommandFile]) -> tuple[UserMessage, Expansion | None]:
    """The message with a command at its beginning put in full, and that command. What is no command stays as it is."""
    called = match_command(message)
    command = commands.get(called["name"]) if called else None
    if called is None or command is None:
        return message, None
    words = called["words"] or ""
    whole = replace(message, content=(Text(fill_arguments(command.body, words)), *message.content[1:]))
    return whole, Expansion(command.name, words, command.source, called[0])


def fill_arguments(body: str, words: str) -> str:
    """A command's text with the words of its caller in the places it has for them, or behind it."""
    words = words.strip()
    parts = words.split()

    def put(found: re.Match[str]) -> str:
        if found[0].startswith("\\"):
            return found[0][1:]
        number = found["place"] or found["number"]
        if number is None:
            return words
        return parts[int(number)] if int(number) < len(parts) else ""

    text, places = PLACES.subn(put, body)
    return text if places or not words else f"{text}\n\nARGUMENTS: {words}"
