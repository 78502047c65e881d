"""
Skills: folders with a SKILL.md that describes how to do something, in the portable Agent Skills format.

    .claude/skills/deploy/SKILL.md     the name is that of the folder; other files beside it are read only when wanted

Of two skills of one name the policy's counts, then the user's, then the nearest of the project: a repository cannot
replace a personal skill. Reading a skill runs nothing and allows nothing. Heads are cached by the stamp of their file,
because some people have hundreds of them.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from handrail.extensions.commands import CommandFile, CommandFiles, command_problems, parse_command
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
VERSION = 1
RANKS = {"policy": 0, "user": 1, "project": 2}


@record
class SkillHead:
    """A skill without its text, and what a person should know about its file."""

    skill: CommandFile
    problems: tuple[str, ...]


class SkillPlace(NamedTuple):
    """Where the file of a skill was found."""

    path: str
    shown: str
    source: str
    name: str
    root: str = ""


class HeadCache:
    """The heads of skills by file and stamp: in memory, and on disk from one start to the next."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._heads: dict[str, tuple[list[int], SkillHead]] = {}
        self._stored: dict[str, Any] | None = None
        self._is_new = False
        self.just_read: dict[ConfigFolder, list[SkillHead | UnreadFile]] = {}
        """What a starting session has read of a folder, for the next of its parts that looks; kept until then."""

    def get(self, place: SkillPlace, stamp: list[int], parse: Callable[[], SkillHead]) -> SkillHead:
        """The head of a file as it was read at this stamp, else as it is parsed now."""
        path = place.path
        known = self._heads.get(path)
        if known is not None and known[0] == stamp and known[1].skill.shown == place.shown:
            return known[1]
        head = self._from_disk(place, stamp)
        if head is None:
            head = parse()
            self._is_new = True
        self._heads[path] = stamp, head
        return head

    def save(self) -> None:
        """Keep what is new for the next start, if it is worth it. A cache that cannot be written is none."""
        if not self._is_new or self._file is None or len(self._heads) < WORTH_KEEPING:
            return
        self._is_new = False
        content = {path: [stamp, _as_json(head)] for path, (stamp, head) in self._heads.items()}
        draft = self._file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            make_private_folder(self._file.parent)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                json.dump({"version": VERSION, "heads": content}, file)
            draft.replace(self._file)

    def _from_disk(self, place: SkillPlace, stamp: list[int]) -> SkillHead | None:
        if self._stored is None:
            self._stored = {}
            with suppress(OSError, ValueError, AttributeError):
                found = json.loads(self._file.read_bytes()) if self._file else {}
                heads = found.get("heads") if found.get("version") == VERSION else None
                self._stored = heads if isinstance(heads, dict) else {}
        try:
            kept = self._stored.get(place.path)
            return _from_json(place, kept[1]) if kept is not None and kept[0] == stamp else None
        except (TypeError, KeyError, IndexError):  # another program wrote it
            return None


_caches: dict[Path, HeadCache] = {}


def head_cache(state: Path) -> HeadCache:
    """The cache of a state folder; several parts of a starting session look at the same skills."""
    return _caches.setdefault(state, HeadCache(state / "skills" / "heads.json"))


def find_skills(
    folders: Iterable[ConfigFolder], cache: HeadCache, *, starts: bool = False, again: bool = False
) -> CommandFiles:
    """
    All skills in these folders, which come nearest first, without their texts.

    `starts`: another part of a starting session will look too, and does so with `again`.
    """
    found: dict[str, CommandFile] = {}
    problems: list[str] = []
    for folder in sorted(folders, key=lambda each: RANKS.get(each.source, 3)):
        known = cache.just_read.pop(folder, None) if again else None
        heads = list(_heads(folder, cache)) if known is None else known
        if starts:
            cache.just_read[folder] = heads
        for head in heads:
            if isinstance(head, UnreadFile):
                problems.append(str(head))
                continue
            skill = head.skill
            problems += head.problems
            first = found.setdefault(skill.name, skill)
            if first.file != skill.file:
                problems.append(f"{skill.shown}: the skill {skill.name} is {first.shown}. Rename one to use both.")
    cache.save()
    return CommandFiles(dict(sorted(found.items())), tuple(problems))


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
    except OSError:
        return
    if len(found) > MAX_SKILLS:
        yield UnreadFile(lead, f"it holds more than {MAX_SKILLS:,} folders; the rest is not read")
    is_outside = folder.tree is not None and bool(found) and _leads_out(Path(top), folder.tree)
    for name, is_link in found[:MAX_SKILLS]:
        for file in ("SKILL.md", "skill.md"):
            if (status := _status(f"{top}/{name}/{file}")) is not None:
                may_leave = is_outside or is_link or stat.S_ISLNK(status.st_mode)
                place = SkillPlace(
                    f"{top}/{name}/{file}", f"{lead}/{name}/{file}", folder.source, folder.full_name(name), folder.root
                )
                yield _head(folder, place, status, cache, may_leave=may_leave)
                break


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
        stamp = [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino]
        head = cache.get(place, stamp, lambda: _parse(place))
    except OSError as error:
        return UnreadFile(shown, f"it cannot be read: {error.strerror}")
    if not head.skill.description:
        return UnreadFile(shown, "it has no description and no text, and is left out")
    return replace(head, problems=tuple(f"{shown}: {problem}" for problem in head.problems)) if head.problems else head


def _parse(place: SkillPlace) -> SkillHead:
    path = Path(place.path)
    text = path.read_text("utf-8", "replace")
    head = parse_frontmatter(text)
    file = DefinitionFile(place.name, path, place.shown, place.source, head, "skills", text, place.root)
    return SkillHead(replace(parse_command(file), body=""), tuple(skill_problems(file)))


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


def _as_json(head: SkillHead) -> list[Any]:
    """What differs from a skill without wishes."""
    wishes = {name: value for name, usual in USUAL.items() if (value := getattr(head.skill, name)) != usual}
    return [wishes, *head.problems]


def _from_json(place: SkillPlace, value: Sequence[Any]) -> SkillHead:
    wishes: dict[str, Any] = value[0]
    for name in LISTS:
        if name in wishes:
            wishes[name] = tuple(wishes[name])
    wishes["name"], wishes["shown"], wishes["source"] = place.name, place.shown, place.source
    wishes["file"], wishes["root"], wishes["kind"], wishes["body"] = place.path, place.root, "skill", ""
    wishes.setdefault("hint", "")
    return SkillHead(CommandFile(**wishes), tuple(value[1:]))


LISTS = ("allowed", "disallowed", "arguments", "paths", "runs")
_PLACES = ("name", "body", "source", "file", "shown", "kind", "root")
"""Not in the cache: they follow from the place of the file."""
USUAL: Mapping[str, Any] = {
    each.name: {} if each.name == "hooks" else "" if each.default is MISSING else each.default
    for each in fields(CommandFile)
    if each.name not in _PLACES
}
