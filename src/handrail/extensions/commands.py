"""
Commands that people write down as Markdown files, and use as `/name words` in a prompt.

    .claude/commands/front/build.md    is    /front:build

The user's command goes before the project's of the same name, so that a repository cannot replace a personal command.
Of a project, the nearest file counts. Reading a command runs nothing and allows nothing.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from handrail.extensions.command_text import shell_commands
from handrail.extensions.definition_files import DefinitionFile, UnreadFile, read_definitions
from handrail.extensions.places import ConfigFolder
from handrail.files.frontmatter import MarkdownFile
from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    from handrail.permissions import rules
else:
    rules = lazy("handrail.permissions.rules")  # few commands have any

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_:.-]*")
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")

USED = frozenset(
    ("description", "argument-hint", "arguments", "allowed-tools", "disallowed-tools", "model", "effort", "shell")
) | {"user-invocable"}
ABOUT_THE_MODEL = frozenset(("when_to_use", "when-to-use", "disable-model-invocation"))
"""Only a person can start a command, so nothing is to be done about these."""
WITHOUT_EFFECT = frozenset(("name", "license", "compatibility", "metadata", "version"))
"""They have none anywhere."""


@record
class CommandFile:
    """One command: what it is called, what it is for, the prompt it stands for, and what it wants for its turn."""

    name: str
    description: str
    hint: str
    body: str
    model: str = ""
    effort: str = ""
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """Names for its words, in order."""
    shell: str = "bash"
    is_listed: bool = True
    """Whether people may start it."""
    source: str = "user"
    """project or user."""
    file: str = ""
    shown: str = ""

    @property
    def widens(self) -> dict[str, object]:
        """By name, what counts only where the file is trusted: what it runs, allows, or makes more expensive."""
        wanted: dict[str, object] = {
            "runs": list(shell_commands(self.body)),
            "allowed-tools": list(self.allowed),
            "model": self.model,
            "effort": self.effort,
        }
        widening = {name: value for name, value in wanted.items() if value}
        return widening | self._governed if widening else {}

    @property
    def _governed(self) -> dict[str, object]:
        """What decides how the rest is used: where a command is trusted, none of this may change unseen."""
        digest = hashlib.sha256(self.body.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        wanted: dict[str, object] = {
            "disallowed-tools": list(self.disallowed),
            "arguments": list(self.arguments),
            "shell": self.shell if self.shell != "bash" else "",
            "text": f"{len(self.body):,} characters, sha256 {digest}",
        }
        return {name: value for name, value in wanted.items() if value}


@record
class CommandFiles:
    """The commands by name, and what a person should know about files that are none, or do not all they say."""

    by_name: dict[str, CommandFile]
    problems: tuple[str, ...] = ()


def find_commands(folders: Iterable[ConfigFolder]) -> CommandFiles:
    """All commands in these folders, which come nearest first."""
    ordered = sorted(folders, key=lambda folder: folder.source != "user")
    found: dict[str, CommandFile] = {}
    problems: list[str] = []
    for folder in ordered:
        for file in read_definitions(folder, "commands"):
            if isinstance(file, UnreadFile):
                problems.append(str(file))
                continue
            if not NAME.fullmatch(file.name):
                problems.append(f"{file.shown}: a command cannot have this name. Use letters, digits, - and _.")
                continue
            problems += (f"{file.shown}: {text}" for text in command_problems(file.content))
            first = found.setdefault(file.name, parse_command(file))
            if first.file != str(file.path):
                problems.append(f"{file.shown}: /{file.name} means {first.shown}. Rename one of them to use both.")
    return CommandFiles(found, tuple(problems))


def parse_command(file: DefinitionFile) -> CommandFile:
    """The command in a file."""
    head = file.content
    first = next((line.strip("# ").strip() for line in head.body.splitlines() if line.strip()), "")
    effort = head.text("effort").lower()
    return CommandFile(
        file.name,
        head.text("description") or first[:200],
        head.text("argument-hint"),
        head.body,
        head.text("model"),
        effort if effort in EFFORTS else "",
        _rules(head, "allowed-tools"),
        _rules(head, "disallowed-tools"),
        tuple(name for each in head.names("arguments") or () for name in each.split()),
        head.text("shell").lower() or "bash",
        head.flag("user-invocable", default=True),
        file.source,
        str(file.path),
        file.shown,
    )


def command_problems(head: MarkdownFile) -> Iterator[str]:
    """What a command's front matter says that has no effect here."""
    if head.problem:
        yield f"{head.problem}; the other lines of its front matter count"
    names = [name for name in head.values if name not in USED | ABOUT_THE_MODEL | WITHOUT_EFFECT]
    if names:
        yield f"no effect yet: {', '.join(names)}"
    if (effort := head.text("effort")) and effort.lower() not in EFFORTS:
        yield f"effort is {effort!r}. Use one of {', '.join(EFFORTS)}."
    if re.search(r"(?<!\\)\$1\b", head.body) and not re.search(r"\$(?:0\b|ARGUMENTS)", head.body):
        yield "it uses $1 and not $0: words are counted from 0, so that $0 is the first"


def _rules(head: MarkdownFile, name: str) -> tuple[str, ...]:
    value = head.values.get(name, "")
    if isinstance(value, str):
        return rules.split_rules(value) if value else ()
    return tuple(each for each in value if each)
