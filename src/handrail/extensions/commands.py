"""
Commands and skills that people write down as Markdown files, and use as `/name words` in a prompt.

    .claude/commands/front/build.md    is    /front:build
    .claude/skills/deploy/SKILL.md     is    /deploy, and the model may load it by itself

The user's command goes before a plugin's and the project's of the same name, so that a repository cannot replace one.
Of a project, the nearest file counts. Reading a command runs nothing and allows nothing.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

from handrail.extensions.command_text import shell_commands
from handrail.extensions.definition_files import DefinitionFile, UnreadFile, read_definitions
from handrail.extensions.places import ConfigFolder
from handrail.files.frontmatter import MarkdownFile
from handrail.lazy import lazy, lazy_pattern
from handrail.records import record
from handrail.tools.wording import with_hints

if TYPE_CHECKING:
    from handrail.files import nested_values
    from handrail.permissions import rules
else:
    nested_values = lazy("handrail.files.nested_values")  # few commands have hooks
    rules = lazy("handrail.permissions.rules")  # few commands have any

NAME = lazy_pattern(r"[A-Za-z0-9_][A-Za-z0-9_:.-]*")
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")

USED = frozenset(
    ("description", "argument-hint", "arguments", "allowed-tools", "disallowed-tools", "model", "effort", "shell")
) | {"user-invocable", "context", "agent", "hooks"}
ABOUT_THE_MODEL = frozenset(("when_to_use", "when-to-use", "disable-model-invocation", "paths"))
"""Only a person can start a command, so these mean something for skills only."""
RANKS = {"user": 0, "plugin": 1}
RULES = {"allowed-tools": "allow", "disallowed-tools": "deny"}
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
    """project, user, policy or plugin."""
    file: str = ""
    shown: str = ""
    kind: str = "command"
    """command or skill."""
    when: str = ""
    """When the model should use it, besides the description."""
    is_for_model: bool = False
    paths: tuple[str, ...] = ()
    """The files that it is about; empty = it is about none in particular."""
    context: str = ""
    """`fork`: a sub-agent does it."""
    agent: str = ""
    hooks: Mapping[str, object] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    """The command lines in its text, as they are written."""
    root: str = ""
    """The folder of the plugin that brings it; empty = no plugin does."""
    mark: str = ""
    """The length and the digest of its text: a list of skills has no texts."""

    @property
    def folder(self) -> str:
        """Where it lies, and with it the files that it may name."""
        return self.file.rpartition("/")[0]

    @property
    def widens(self) -> dict[str, object]:
        """By name, what counts only where the file is trusted: what it runs, allows, or makes more expensive."""
        wanted: dict[str, object] = {
            "runs": list(self.runs),
            "allowed-tools": list(self.allowed),
            "model": self.model,
            "effort": self.effort,
            "hooks": dict(self.hooks),
        }
        widening = {name: value for name, value in wanted.items() if value}
        return widening | self._governed if widening else {}

    @property
    def _governed(self) -> dict[str, object]:
        """What decides how the rest is used: where a command is trusted, none of this may change unseen."""
        wanted: dict[str, object] = {
            "disallowed-tools": list(self.disallowed),
            "arguments": list(self.arguments),
            "shell": self.shell if self.shell != "bash" else "",
            "context": self.context,
            "agent": self.agent,
            "text": self.mark,
        }
        return {name: value for name, value in wanted.items() if value}


@record
class CommandFiles:
    """The commands by name, and what a person should know about files that are none, or do not all they say."""

    by_name: dict[str, CommandFile]
    problems: tuple[str, ...] = ()


def find_commands(folders: Iterable[ConfigFolder]) -> CommandFiles:
    """All commands in these folders, which come nearest first."""
    ordered = sorted(folders, key=lambda folder: RANKS.get(folder.source, 2))
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
            problems += (f"{file.shown}: {text}" for text in command_problems(file))
            first = found.setdefault(file.name, parse_command(file))
            if first.file != str(file.path):
                problems.append(f"{file.shown}: /{file.name} means {first.shown}. Rename one of them to use both.")
    return CommandFiles(found, tuple(problems))


def parse_command(file: DefinitionFile) -> CommandFile:
    """The command, or the skill, in a file."""
    head = file.content
    is_skill = file.kind == "skills"
    effort = head.text("effort").lower()
    hooks, _problem = _hooks(file)
    description = " ".join(head.text("description").split()) or _first_words(head.body, paragraph=is_skill)
    return CommandFile(
        name=file.name,
        description=description,
        hint=head.text("argument-hint"),
        body=head.body,
        model=head.text("model"),
        effort=effort if effort in EFFORTS else "",
        allowed=_rules(head, "allowed-tools"),
        disallowed=_rules(head, "disallowed-tools"),
        arguments=tuple(name for each in head.names("arguments") or () for name in each.split()),
        shell=head.text("shell").lower() or "bash",
        is_listed=head.flag("user-invocable", default=True),
        source=file.source,
        file=str(file.path),
        shown=file.shown,
        kind="skill" if is_skill else "command",
        when=" ".join((head.text("when_to_use") or head.text("when-to-use")).split()),
        is_for_model=is_skill and not head.flag("disable-model-invocation", default=False),
        paths=(head.names("paths") or ()) if is_skill else (),
        context=head.text("context").lower(),
        agent=head.text("agent"),
        hooks=hooks,
        runs=shell_commands(head.body),
        root=file.root,
        mark=_mark(head.body),
    )


def _mark(body: str) -> str:
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{len(body):,} characters, sha256 {digest}"


def _first_words(body: str, *, paragraph: bool) -> str:
    """What describes a file that has no description: its first line, of a skill its first paragraph."""
    lines = [line.strip() for line in body.strip().splitlines()]
    if not paragraph:
        return next((line.strip("# ") for line in lines if line), "")[:200]
    text = takewhile(bool, dropwhile(lambda line: not line or line.startswith("#"), lines))
    return " ".join(text)[:1536]


def command_problems(file: DefinitionFile) -> Iterator[str]:
    """What the front matter of a command or a skill says that has no effect here."""
    head = file.content
    if head.problem:
        yield f"{head.problem}; the other lines of its front matter count"
    names = [name for name in head.values if name not in USED | ABOUT_THE_MODEL | WITHOUT_EFFECT]
    if names:
        yield f"no effect: {with_hints(names, USED | ABOUT_THE_MODEL)}"
    for key, kind in RULES.items():
        found = ((rule, rules.parse_rule(rule, rules.Behaviour(kind))) for rule in _rules(head, key))
        yield from (
            f"{key} holds {rule!r}: {bad.message}." for rule, bad in found if isinstance(bad, rules.RuleProblem)
        )
    if (effort := head.text("effort")) and effort.lower() not in EFFORTS:
        yield f"effort is {effort!r}. Use one of {', '.join(EFFORTS)}."
    if (context := head.text("context")) and context.lower() != "fork":
        yield f"context is {context!r}. Use fork, or leave it out."
    if problem := _hooks(file)[1]:
        yield f"its hooks are ignored: {problem}"
    if re.search(r"(?<!\\)\$1\b", head.body) and not re.search(r"\$(?:0\b|ARGUMENTS)", head.body):
        yield "it uses $1 and not $0: words are counted from 0, so that $0 is the first"


def _hooks(file: DefinitionFile) -> tuple[Mapping[str, object], str]:
    """The hooks of a file, and why they cannot be understood (empty = they can, or there are none)."""
    if "hooks" not in file.content.values:
        return {}, ""
    found, problem = nested_values.nested_value(file.text, "hooks")
    if isinstance(found, dict):
        return found, ""
    return {}, problem or "they are not a map from events to hooks"


def _rules(head: MarkdownFile, name: str) -> tuple[str, ...]:
    value = head.values.get(name, "")
    if isinstance(value, str):
        return rules.split_rules(value) if value else ()
    return tuple(each for each in value if each)
