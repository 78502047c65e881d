"""
Skills: folders with a SKILL.md that describes how to do something, in the portable Agent Skills format.

    .claude/skills/deploy/SKILL.md     the name is that of the folder; other files beside it are read only when wanted

Of two skills of one name the policy's counts, then the user's, a plugin's, and the nearest of the project: a repository
cannot replace a personal skill. Reading a skill runs nothing and allows nothing. Heads are cached by the stamp of their
file, because some people have hundreds of them.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeAlias

from handrail.extensions.commands import CommandFile, command_problems, parse_command
from handrail.extensions.definition_files import MAX_BYTES, DefinitionFile, UnreadFile
from handrail.extensions.places import ConfigFolder, reaches_out
from handrail.files.frontmatter import parse_frontmatter
from handrail.files.private_folder import make_private_folder
from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.records import record

SPECIFIED = lazy_pattern(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
MAX_SKILLS = 2_000
WORTH_KEEPING = 20
"""Fewer heads than these are read again as fast as from the cache."""
VERSION = 3
WIDENING = ("runs", "allowed", "model", "effort", "hooks")
RANKS = {"policy": 0, "user": 1, "plugin": 2, "project": 3}


Stamp: TypeAlias = tuple[int, int, int, int]
"""When a file was modified and changed, its size, and its number."""


class SkillHolder(NamedTuple):
    """A folder of skills: where it is, what people see of that, and where it comes from."""

    path: str
    shown: str
    source: str
    plugin: str = ""
    root: str = ""


class SkillHead:
    """
    A skill without its text, and what a person should know about its file.

    `wishes` are the fields of it that differ from a skill without wishes. A list of hundreds needs a few of them from
    each; the whole skill is made when it is asked for. `file` is its path in its holder.
    """

    __slots__ = ("_skill", "description", "file", "holder", "name", "problems", "wishes")

    def __init__(
        self,
        holder: SkillHolder,
        file: str,
        name: str,
        wishes: Mapping[str, Any],
        problems: tuple[str, ...] = (),
    ) -> None:
        self.holder = holder
        self.file = file
        self.name = name
        self.description = str(wishes.get("description", ""))
        self.wishes = wishes
        self.problems = problems
        self._skill: CommandFile | None = None

    @property
    def path(self) -> str:
        """The path of its file."""
        return f"{self.holder.path}/{self.file}"

    @property
    def shown(self) -> str:
        """The path of its file, as people see it."""
        return f"{self.holder.shown}/{self.file}"

    def with_name(self, name: str) -> "SkillHead":
        """The same skill under another name."""
        return SkillHead(self.holder, self.file, name, self.wishes, self.problems)

    @property
    def skill(self) -> CommandFile:
        """The whole skill; one whose cached head cannot be right is read from its file."""
        if self._skill is None:
            try:
                self._skill = _make_skill(self)
            except (TypeError, KeyError):  # another program wrote the cache
                self._skill = _make_skill(_parse(self.holder, self.file, self.name))
        return self._skill

    @property
    def when(self) -> str:
        return str(self.wishes.get("when", ""))

    @property
    def is_for_model(self) -> bool:
        """Whether the model may load it."""
        return self.wishes.get("is_for_model", USUAL["is_for_model"]) is True

    @property
    def is_listed(self) -> bool:
        """Whether people may start it."""
        return self.wishes.get("is_listed", USUAL["is_listed"]) is True

    @property
    def widens(self) -> bool:
        """Whether it runs, allows or makes dearer something."""
        return not self.wishes.keys().isdisjoint(WIDENING)

    @property
    def has_paths(self) -> bool:
        """Whether it is about some files only."""
        return "paths" in self.wishes


class SkillsByName(Mapping[str, CommandFile]):
    """Skills by name, each made when it is first asked for. `heads` are what lists need of them."""

    def __init__(self, heads: Mapping[str, SkillHead]) -> None:
        self.heads = heads

    def __getitem__(self, name: str) -> CommandFile:
        return self.heads[name].skill

    def __contains__(self, name: object) -> bool:
        return name in self.heads

    def __iter__(self) -> Iterator[str]:
        return iter(self.heads)

    def __len__(self) -> int:
        return len(self.heads)


@record
class FoundSkills:
    """The skills by name, and what a person should know about files that are none, or do not all they say."""

    by_name: SkillsByName
    problems: tuple[str, ...] = ()


class HeadCache:
    """
    The heads of skills by holder, file and stamp: in memory, and on disk from one start to the next.

    On disk each is a list: the four numbers of its stamp, its wishes, and what people should know.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._heads: dict[SkillHolder, dict[str, tuple[Stamp, SkillHead]]] = {}
        self._stored: dict[str, Any] | None = None
        self._is_new = False
        self.just_read: dict[ConfigFolder, list[SkillHead | UnreadFile]] = {}
        """What a starting session has read of a folder, for the next of its parts that looks; kept until then."""

    def heads_in(self, holder: SkillHolder) -> "dict[str, tuple[Stamp, SkillHead]]":
        """What is known of the skills in a folder, by file: a stamp, and the head that was read then."""
        known = self._heads.get(holder)
        if known is None:
            known = self._heads[holder] = {}
            stored = (self._load() if self._stored is None else self._stored).get(holder.path)
            with suppress(TypeError, ValueError, AttributeError):  # another program wrote it
                for file, (modified, changed, size, inode, wishes, *problems) in (stored or {}).items():
                    name = holder.plugin + file.partition("/")[0]
                    if isinstance(wishes, dict):
                        head = SkillHead(holder, file, name, wishes, tuple(problems))
                        known[file] = (modified, changed, size, inode), head
        return known

    def get(self, holder: SkillHolder, file: str, name: str, status: os.stat_result) -> SkillHead:
        """The head of a file as it was read at this stamp, else as it is parsed now."""
        known = self.heads_in(holder)
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if (entry := known.get(file)) is not None and entry[0] == stamp:
            return entry[1]
        head = _parse(holder, file, name)
        known[file] = stamp, head
        self._is_new = True
        return head

    def save(self) -> None:
        """Keep what is new for the next start, if it is worth it. A cache that cannot be written is none."""
        if not self._is_new or self._file is None or sum(map(len, self._heads.values())) < WORTH_KEEPING:
            return
        self._is_new = False
        content = {
            holder.path: {file: [*stamp, head.wishes, *head.problems] for file, (stamp, head) in known.items()}
            for holder, known in self._heads.items()
        }
        draft = self._file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            make_private_folder(self._file.parent)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                json.dump({"version": VERSION, "folders": content}, file, separators=(",", ":"))
            draft.replace(self._file)

    def _load(self) -> dict[str, Any]:
        self._stored = {}
        with suppress(OSError, ValueError, AttributeError, RecursionError):
            found = json.loads(self._file.read_bytes()) if self._file else {}
            folders = found.get("folders") if found.get("version") == VERSION else None
            self._stored = folders if isinstance(folders, dict) else {}
        return self._stored


_caches: dict[Path, HeadCache] = {}


def head_cache(state: Path) -> HeadCache:
    """The cache of a state folder; several parts of a starting session look at the same skills."""
    return _caches.setdefault(state, HeadCache(state / "skills" / "heads.json"))


def find_skills(
    folders: Iterable[ConfigFolder], cache: HeadCache, *, starts: bool = False, again: bool = False
) -> FoundSkills:
    """
    All skills in these folders, which come nearest first, without their texts.

    `starts`: another part of a starting session will look too, and does so with `again`.
    """
    found: dict[str, SkillHead] = {}
    problems: list[str] = []
    for folder in sorted(folders, key=lambda each: RANKS[each.source]):
        known = cache.just_read.pop(folder, None) if again else None
        heads = _heads(folder, cache) if known is None else known
        if starts:
            cache.just_read[folder] = heads
        for head in heads:
            if isinstance(head, UnreadFile):
                problems.append(str(head))
                continue
            if head.problems:
                problems += (f"{head.shown}: {problem}" for problem in head.problems)
            first = found.setdefault(head.name, head)
            if first is not head and first.path != head.path:
                problems.append(f"{head.shown}: the skill {head.name} is {first.shown}. Rename one to use both.")
    cache.save()
    return FoundSkills(SkillsByName(dict(sorted(found.items()))), tuple(problems))


def read_skill(skill: CommandFile, tree: Path | None = None) -> CommandFile | UnreadFile:
    """A skill with its text, as its file is now."""
    path = Path(skill.file)
    try:
        if not path.is_file():
            return UnreadFile(skill.shown, "it is no longer there")
        if tree is not None and reaches_out(path, tree):
            return UnreadFile(skill.shown, "it leads out of the project, or to what may hold secrets, and is not read")
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        return UnreadFile(skill.shown, f"it cannot be read: {error.strerror}")
    head = parse_frontmatter(text)
    file = DefinitionFile(skill.name, path, skill.shown, skill.source, head, "skills", text, skill.root)
    return parse_command(file)


def skill_problems(file: DefinitionFile) -> Iterator[str]:
    """What a person should know about a skill: what has no effect, and what other programs will not read."""
    yield from command_problems(file)
    head = file.content
    name, label, description = file.path.parent.name, head.text("name"), head.text("description")
    if not SPECIFIED.fullmatch(name):
        yield f"{name!r} is an odd name for a skill. Use lower-case letters, digits and hyphens."
    if label and label != name:
        yield f"its name is {label!r}, and its folder's is {name!r}, which counts. Give both one name."
    if not description:
        yield "it has no description, so that its first paragraph is shown in its place"
    elif len(description) > 1024:
        yield f"its description has {len(description):,} characters; other programs read 1,024"


def _heads(folder: ConfigFolder, cache: HeadCache) -> list[SkillHead | UnreadFile]:
    """The skills in a folder, without their texts, and what is none."""
    if (place := folder.holder("skills")) is None:
        return []
    lead = folder.shown if folder.kind else f"{folder.shown}/skills"
    plugin = f"{folder.plugin}:" if folder.plugin else ""
    holder = SkillHolder(str(place), lead, folder.source, plugin, folder.root)
    try:
        top = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        with os.scandir(top) as entries:
            found = {each.name: each.is_symlink() for each in entries if each.name[0] != "."}
        names = sorted(found) if not folder.only else [each for each in found if each == folder.only]
        is_outside = folder.tree is not None and bool(names) and _leads_out(place, folder.tree)
        links = frozenset(names if is_outside else (name for name in names if found[name]))
        heads = _heads_of(folder, holder, names[:MAX_SKILLS], cache, links=links, top=top)
    finally:
        os.close(top)
    if len(names) > MAX_SKILLS:
        heads.append(UnreadFile(lead, f"it holds more than {MAX_SKILLS:,} folders; the rest is not read"))
    return heads


def _heads_of(
    folder: ConfigFolder, holder: SkillHolder, names: list[str], cache: HeadCache, *, links: frozenset[str], top: int
) -> list[SkillHead | UnreadFile]:
    """The skills of these names; `links` may lead anywhere by now, so that what is known of them is not enough."""
    known, look = cache.heads_in(holder), os.lstat
    heads: list[SkillHead | UnreadFile] = []
    for name in names:
        file = f"{name}/SKILL.md"
        try:
            status = look(file, dir_fd=top)
        except OSError:
            file = f"{name}/skill.md"
            try:
                status = look(file, dir_fd=top)
            except OSError:
                continue
        stamp = status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
        entry = known.get(file)
        if entry is not None and entry[0] == stamp and name not in links and entry[1].description:
            heads.append(entry[1])
        elif ":" in name or not name.isprintable():
            text = "a colon or an unseen character could imitate another skill: rename it"
            heads.append(UnreadFile(f"{holder.shown}/{name!r}", text))
        else:
            may_leave = name in links or stat.S_ISLNK(status.st_mode)
            wanted = SkillHead(holder, file, f"{holder.plugin}{name}", {})
            heads.append(_head(folder, wanted, status, cache, may_leave=may_leave))
    return heads


def _head(
    folder: ConfigFolder, wanted: SkillHead, status: os.stat_result, cache: HeadCache, *, may_leave: bool
) -> SkillHead | UnreadFile:
    path, shown = wanted.path, wanted.shown
    try:
        if may_leave:
            if folder.tree is not None and _leads_out(Path(path), folder.tree):
                return UnreadFile(shown, "it leads out of the project, or to what may hold secrets, and is not read")
            status = os.stat(path)  # noqa: PTH116  # of what the link leads to
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
            return UnreadFile(shown, "it is not a regular file")
        if status.st_size > MAX_BYTES:
            return UnreadFile(shown, f"it is larger than {MAX_BYTES:,} bytes, and is not read")
        head = cache.get(wanted.holder, wanted.file, wanted.name, status)
    except OSError as error:
        return UnreadFile(shown, f"it cannot be read: {error.strerror}")
    return head if head.description else UnreadFile(shown, "it has no description and no text, and is left out")


def _parse(holder: SkillHolder, file: str, name: str) -> SkillHead:
    path, shown = Path(holder.path, file), f"{holder.shown}/{file}"
    text = path.read_text("utf-8", "replace")
    found = DefinitionFile(name, path, shown, holder.source, parse_frontmatter(text), "skills", text, holder.root)
    return SkillHead(holder, file, name, _wishes(parse_command(found)), tuple(skill_problems(found)))


def _leads_out(path: Path, tree: Path) -> bool:
    try:
        return reaches_out(path, tree)
    except (OSError, RuntimeError):  # links go in a circle
        return True


def _wishes(skill: CommandFile) -> dict[str, Any]:
    """What differs from a skill without wishes; the text counts only where something is wished."""
    found = {name: value for name, usual in USUAL.items() if (value := getattr(skill, name)) != usual}
    return found if skill.widens else {name: value for name, value in found.items() if name != "mark"}


def _make_skill(head: SkillHead) -> CommandFile:
    own = {name: tuple(value) if name in LISTS else value for name, value in head.wishes.items()}
    if not own.keys() <= USUAL.keys():
        raise KeyError(*own)
    where = {"file": head.path, "shown": head.shown, "source": head.holder.source, "root": head.holder.root}
    return CommandFile(**{**USUAL, **own, **where}, name=head.name, kind="skill", body="")


LISTS = frozenset(("allowed", "disallowed", "arguments", "paths", "runs"))
_PLACES = ("name", "body", "source", "file", "shown", "kind", "root")
"""Not in the cache: they follow from the place of the file."""
USUAL: Mapping[str, Any] = {
    each.name: {} if each.name == "hooks" else "" if each.default is MISSING else each.default
    for each in fields(CommandFile)
    if each.name not in _PLACES
}
