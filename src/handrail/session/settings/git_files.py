"""
The files in working folders that git runs or reads because its configuration names them: hooks, includes, programs.

They decide what the user's next `git status` or `git commit` does, so they are protected like `.git`.
"""

import os
from collections.abc import Iterable, Iterator

from handrail.files.search_path import lies_in
from handrail.files.small_file import read_small
from handrail.lazy import lazy_pattern
from handrail.processes.git_settings import HARMLESS
from handrail.records import record

MAX_CONFIG = 100_000
MOST_INCLUDES = 20
HEADER = lazy_pattern(r'[ \t]*\[[ \t]*(?P<name>[\w.-]+)(?:[ \t]+"(?P<sub>(?:[^"\\]|\\.)*)")?[ \t]*\]')
SETTING = lazy_pattern(r"[ \t]*(?P<key>[A-Za-z][\w-]*)[ \t]*=[ \t]*(?P<value>.*)")
CUT = lazy_pattern(r"[\s;&|()<>=`'\"!]+")


@record
class GitFiles:
    """Paths inside the working folders, as spelled. `places` exist, or would be folders; `missing` are files."""

    places: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def git_files(folders: Iterable[str], home: str) -> GitFiles:
    """What the configurations of the repositories around these folders, and the user's own, name inside of them."""
    inside = tuple(map(os.path.realpath, folders))
    named = {
        (path, is_folder)
        for top, config in dict.fromkeys(filter(None, map(_repository, inside)))
        for file in (config, f"{home}/.gitconfig", f"{home}/.config/git/config")
        for path, is_folder in _named_paths(file, top, home, [])
    }
    # a folder that is or holds a working folder holds more than hooks
    wanted = {
        (path, is_folder)
        for path, is_folder in named
        if lies_in(path, inside) and not any(f"{folder}/".startswith(f"{path}/") for folder in inside)
    }
    there = {path for path, is_folder in wanted if is_folder or os.path.exists(path)}  # noqa: PTH110
    return GitFiles(tuple(sorted(there)), tuple(sorted({path for path, _ in wanted} - there)))


def _repository(folder: str) -> tuple[str, str] | None:
    """The top of the repository that a folder lies in, and its configuration file."""
    top = folder
    while not os.path.lexists(f"{top}/.git"):
        if top in ("/", ""):
            return None
        top = os.path.dirname(top)  # noqa: PTH120
    git = f"{top}/.git"
    if says := _read(git).strip().removeprefix("gitdir:").strip():
        git = os.path.join(top, says)  # noqa: PTH118
        git = os.path.join(git, _read(f"{git}/commondir").strip())  # noqa: PTH118
    return top, f"{git.rstrip('/')}/config"


def _named_paths(file: str, top: str, home: str, seen: list[str]) -> Iterator[tuple[str, bool]]:
    """What a configuration file names: each path, and whether it is a folder of hooks."""
    if file in seen or len(seen) >= MOST_INCLUDES:
        return
    seen.append(file)
    for name, value in _settings(_read(file)):
        if HARMLESS.match(name):
            continue
        if name == "core.hookspath":
            yield _path(value, top, home), True
        elif name.startswith("include") and name.endswith(".path"):
            included = _path(value, os.path.dirname(file), home)  # noqa: PTH120
            yield included, False
            yield from _named_paths(included, top, home, seen)
        else:
            paths = (_path(word, top, home) for word in CUT.split(value) if word)
            yield from ((path, False) for path in paths if os.path.isfile(path))  # noqa: PTH113


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Names (in small letters) and values. What git would not read is no harm: then only too much is protected."""
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        rest = line
        if head := HEADER.match(line):
            sub = f".{head['sub']}" if head["sub"] is not None else ""
            section, rest = f"{head['name']}{sub}".lower(), line[head.end() :]
        if setting := SETTING.match(rest):
            yield f"{section}.{setting['key'].lower()}", setting["value"].replace('\\"', '"').strip().strip('"')


def _path(value: str, folder: str, home: str) -> str:
    path = value.removeprefix(":(optional)")
    return os.path.normpath(os.path.join(folder, f"{home}{path[1:]}" if path.startswith("~/") else path))  # noqa: PTH118


def _read(path: str) -> str:
    try:
        data = read_small(path, MAX_CONFIG)
    except (OSError, ValueError):
        return ""
    return (data or b"").decode("utf-8", "surrogateescape")
