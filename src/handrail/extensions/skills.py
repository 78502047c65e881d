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
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from handrail.extensions.commands import CommandFile, command_problems, parse_command
from handrail.extensions.definition_files import MAX_BYTES, DefinitionFile, UnreadFile
from handrail.extensions.places import ConfigFolder, reaches_out
from handrail.files.frontmatter import parse_frontmatter
from handrail.files.private_folder import make_private_folder
from handrail.lazy import lazy_pattern
from handrail.records import record

SPECIFIED = lazy_pattern(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
MAX_SKILLS = 2_000
WORTH_KEEPING = 20
"""Fewer heads than these are read again as fast as from the cache."""
VERSION = 2
WIDENING = ("runs", "allowed", "model", "effort", "hooks")
RANKS = {"policy": 0, "user": 1, "plugin": 2, "project": 3}


class SkillPlace(NamedTuple):
    """Where the file of a skill was found."""

    path: str
    shown: str
    source: str
    name: str
    root: str = ""


class SkillHead:
    """
    A skill without its text, and what a person should know about its file.

    `wishes` are the fields of it that differ from a skill without wishes. A list of hundreds needs a few of them from
    each; the whole skill is made when it is asked for.
    """

    __slots__ = ("_skill", "place", "problems", "wishes")

    def __init__(
        self,
        place: SkillPlace,
        wishes: Mapping[str, Any],
        problems: tuple[str, ...] = (),
        skill: CommandFile | None = None,
    ) -> None:
        self.place = place
        self.wishes = wishes
        self.problems = problems
        self._skill = skill

    @property
    def skill(self) -> CommandFile:
        """The whole skill; one whose cached head cannot be right is read from its file."""
        if self._skill is None:
            try:
                self._skill = _make_skill(self.place, self.wishes)
            except (TypeError, KeyError):  # another program wrote the cache
                self._skill = _parse(self.place).skill
        return self._skill

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def description(self) -> str:
        return str(self.wishes.get("description", ""))

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
    """The heads of skills by file and stamp: in memory, and on disk from one start to the next."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._heads: dict[str, tuple[list[int], SkillHead]] = {}
        self._stored: dict[str, Any] | None = None
        self._is_new = False
        self.just_read: dict[ConfigFolder, list[SkillHead | UnreadFile]] = {}
        """What a starting session has read of a folder, for the next of its parts that looks; kept until then."""

    def find(self, place: SkillPlace, status: os.stat_result) -> SkillHead | None:
        """The head of a regular file that was read at this stamp and has no problems; None = look more closely."""
        stamp = [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino]
        if (known := self._heads.get(place.path)) is not None:
            is_same = known[0] == stamp and known[1].place.shown == place.shown and not known[1].problems
            return known[1] if is_same else None
        kept = (self._load() if self._stored is None else self._stored).get(place.path)
        try:
            if kept is None or kept[0] != stamp or len(kept[1]) != 1 or not kept[1][0].get("description"):
                return None
        except (TypeError, LookupError, AttributeError):  # another program wrote it
            return None
        head = SkillHead(place, kept[1][0])
        self._heads[place.path] = stamp, head
        return head

    def get(self, place: SkillPlace, status: os.stat_result) -> SkillHead:
        """The head of a file as it was read at this stamp, else as it is parsed now."""
        stamp = [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino]
        known = self._heads.get(place.path)
        if known is not None and known[0] == stamp and known[1].place.shown == place.shown:
            return known[1]
        head = self._from_disk(place, stamp)
        if head is None:
            head = _parse(place)
            self._is_new = True
        self._heads[place.path] = stamp, head
        return head

    def save(self) -> None:
        """Keep what is new for the next start, if it is worth it. A cache that cannot be written is none."""
        if not self._is_new or self._file is None or len(self._heads) < WORTH_KEEPING:
            return
        self._is_new = False
        content = {path: [stamp, [head.wishes, *head.problems]] for path, (stamp, head) in self._heads.items()}
        draft = self._file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            make_private_folder(self._file.parent)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                json.dump({"version": VERSION, "heads": content}, file)
            draft.replace(self._file)

    def _from_disk(self, place: SkillPlace, stamp: list[int]) -> SkillHead | None:
        kept = (self._load() if self._stored is None else self._stored).get(place.path)
        try:
            if kept is None or kept[0] != stamp:
                return None
            wishes, *problems = kept[1]
        except (TypeError, LookupError, ValueError):  # another program wrote it
            return None
        return SkillHead(place, wishes, tuple(map(str, problems))) if isinstance(wishes, dict) else None

    def _load(self) -> dict[str, Any]:
        self._stored = {}
        with suppress(OSError, ValueError, AttributeError):
            found = json.loads(self._file.read_bytes()) if self._file else {}
            heads = found.get("heads") if found.get("version") == VERSION else None
            self._stored = heads if isinstance(heads, dict) else {}
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
        heads = list(_heads(folder, cache)) if known is None else known
        if starts:
            cache.just_read[folder] = heads
        for head in heads:
            if isinstance(head, UnreadFile):
                problems.append(str(head))
                continue
            place = head.place
            problems += head.problems
            first = found.setdefault(place.name, head).place
            if first.path != place.path:
                problems.append(f"{place.shown}: the skill {place.name} is {first.shown}. Rename one to use both.")
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


def _heads(folder: ConfigFolder, cache: HeadCache) -> Iterator[SkillHead | UnreadFile]:
    if (holder := folder.holder("skills")) is None:
        return
    top, lead = str(holder), folder.shown if folder.kind else f"{folder.shown}/skills"
    try:
        with os.scandir(top) as entries:
            found = sorted((each.name, each.is_symlink()) for each in entries if each.name[0] != ".")
        if folder.only:
            found = [each for each in found if each[0] == folder.only]
    except OSError:
        return
    if len(found) > MAX_SKILLS:
        yield UnreadFile(lead, f"it holds more than {MAX_SKILLS:,} folders; the rest is not read")
    is_outside = folder.tree is not None and bool(found) and _leads_out(Path(top), folder.tree)
    plugin, source, root = f"{folder.plugin}:" if folder.plugin else "", folder.source, folder.root
    for name, is_link in found[:MAX_SKILLS]:
        file = f"{name}/SKILL.md"
        if (status := _status(f"{top}/{file}")) is None:
            file = f"{name}/skill.md"
            if (status := _status(f"{top}/{file}")) is None:
                continue
        if ":" in name or not name.isprintable():
            yield UnreadFile(
                f"{lead}/{name!r}", "a colon or an unseen character could imitate another skill: rename it"
            )
            continue
        place = SkillPlace(f"{top}/{file}", f"{lead}/{file}", source, plugin + name, root)
        if not is_link and not is_outside and (head := cache.find(place, status)) is not None:
            yield head
        else:
            yield _head(folder, place, status, cache, may_leave=is_outside or is_link or stat.S_ISLNK(status.st_mode))


def _head(
    folder: ConfigFolder, place: SkillPlace, status: os.stat_result, cache: HeadCache, *, may_leave: bool
) -> SkillHead | UnreadFile:
    path, shown = place.path, place.shown
    try:
        if may_leave:
            if folder.tree is not None and _leads_out(Path(path), folder.tree):
                return UnreadFile(shown, "it leads out of the project, or to what may hold secrets, and is not read")
            status = os.stat(path)  # noqa: PTH116  # of what the link leads to
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
            return UnreadFile(shown, "it is not a regular file")
        if status.st_size > MAX_BYTES:
            return UnreadFile(shown, f"it is larger than {MAX_BYTES:,} bytes, and is not read")
        head = cache.get(place, status)
    except OSError as error:
        return UnreadFile(shown, f"it cannot be read: {error.strerror}")
    if not head.description:
        return UnreadFile(shown, "it has no description and no text, and is left out")
    told = tuple(f"{shown}: {problem}" for problem in head.problems)
    return SkillHead(place, head.wishes, told) if told else head


def _parse(place: SkillPlace) -> SkillHead:
    path = Path(place.path)
    text = path.read_text("utf-8", "replace")
    head = parse_frontmatter(text)
    file = DefinitionFile(place.name, path, place.shown, place.source, head, "skills", text, place.root)
    skill = replace(parse_command(file), body="")
    return SkillHead(place, _wishes(skill), tuple(skill_problems(file)), skill)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _leads_out(path: Path, tree: Path) -> bool:
    try:
        return reaches_out(path, tree)
    except (OSError, RuntimeError):  # links go in a circle
        return True


def _wishes(skill: CommandFile) -> dict[str, Any]:
    """What differs from a skill without wishes."""
    return {name: value for name, usual in USUAL.items() if (value := getattr(skill, name)) != usual}


def _make_skill(place: SkillPlace, wishes: Mapping[str, Any]) -> CommandFile:
    own = {name: tuple(value) if name in LISTS else value for name, value in wishes.items()}
    if not own.keys() <= USUAL.keys():
        raise KeyError(*own)
    name, path, shown, source, root = place.name, place.path, place.shown, place.source, place.root
    return CommandFile(
        **{**USUAL, **own}, name=name, file=path, shown=shown, source=source, root=root, kind="skill", body=""
    )


LISTS = frozenset(("allowed", "disallowed", "arguments", "paths", "runs"))
_PLACES = ("name", "body", "source", "file", "shown", "kind", "root")
"""Not in the cache: they follow from the place of the file."""
USUAL: Mapping[str, Any] = {
    each.name: {} if each.name == "hooks" else "" if each.default is MISSING else each.default
    for each in fields(CommandFile)
    if each.name not in _PLACES
}
