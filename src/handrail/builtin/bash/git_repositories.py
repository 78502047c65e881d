"""
Looks into the repositories that a git command would work in: its own, and those inside it that git enters.

git enters the repository of a submodule, or of any other link in its index, at any depth, and starts another git there
without the settings that it was given itself. So whatever a repository inside names a program for must not be there at
all. What belongs to a repository lies in its folder: a `.git` file, an included file, a link or an alternate that leads
elsewhere is a problem, unless that place says that this working tree is its own (a worktree, a submodule).
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.processes.git_settings import RUNS_OR_FETCHES, matcher
from handrail.processes.run import Ended, run
from handrail.shell.model import Requirement
from handrail.shell.tables.git.preconditions import ENTERED, FSMONITOR, HOOKS, LAZY_FETCH, NOT_BARE

GIT_BY_ENVIRONMENT = frozenset({"--no-pager", "--no-optional-locks"})
FORBIDDEN = {
    "git-external-diff": matcher("external diff"),
    "git-textconv": matcher("textconv"),
    "git-textconv-check": matcher("textconv"),
    "git-filters": matcher("filters"),
    "git-alias-whatchanged": matcher("alias"),
}
"""Settings that the repository must not have. The user's own configuration is trusted."""
OFF = frozenset(("", "false", "no", "off", "0"))
INCLUDE = lazy_pattern(r"include(?:if\..*)?\.path\Z")
OF_THE_REPOSITORY = frozenset({"local", "worktree"})
FOR_CHECKS = (NOT_BARE, LAZY_FETCH, FSMONITOR, HOOKS)
NO_REPOSITORY = b"not a git repository"
HOOK = "post-index-change"  # the only one that a command which only reads can lead to
LINK_MODE = b"160000 "
GIT_SECONDS = 10.0
MAX_BYTES = 1 << 20
MAX_INDEX_BYTES = 1 << 26
MAX_REPOSITORIES = 50


class GitPaths(NamedTuple):
    """Where a repository is, with all links followed."""

    top: str
    git_dir: str
    common_dir: str


class Setting(NamedTuple):
    scope: str
    origin: str
    name: str
    value: str


class RepositoryCheck:
    """Tells what speaks against running git in a folder. `strict`: git will run without our settings."""

    def __init__(
        self, roots: Sequence[str], env: Mapping[str, str], needs: tuple[Requirement, ...], *, strict: bool
    ) -> None:
        self._roots, self._env, self._needs, self._strict = tuple(roots), env, needs, strict
        self._left = MAX_REPOSITORIES

    async def problems(self, folder: str, here: str) -> list[str]:
        """The problems of the repository that a folder belongs to; none if it belongs to none. `here`: the start."""
        try:
            found = await self._paths(folder)
        except OSError:
            return []  # there is no git, or no folder: nothing can run there
        if isinstance(found, str):
            return [found] if found else []
        if not self._inside(found.top):
            return ["the top of the working tree lies outside the workspace"]
        if not await self._is_ours(found, folder, here):
            return [f"git would work in another repository, {found.top!r}"]
        return await self._look_into(found, entered=False)

    async def _is_ours(self, found: GitPaths, folder: str, here: str) -> bool:
        """Whether a repository is that of the start or of a working folder."""
        homes = dict.fromkeys((here, *self._roots))
        return real_path(folder) in map(real_path, homes) or found in [await self._paths(home) for home in homes]

    async def _paths(self, folder: str) -> GitPaths | str:
        """Where the repository of a folder is; a text if git says that something is wrong, empty if there is none."""
        words = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir")
        ended = await self._git(words, folder)
        lines = os.fsdecode(ended.stdout).removesuffix("\n").split("\n")
        if ended.code and NO_REPOSITORY in ended.stderr:
            return ""
        if ended.code or len(lines) != len(GitPaths._fields):
            return f"git does not work here as it should: {ended.stderr.decode(errors='replace').strip()}"
        return GitPaths(*map(os.path.realpath, lines))

    async def _look_into(self, repository: GitPaths, *, entered: bool) -> list[str]:
        listed, staged = await asyncio.gather(
            self._git(("config", "--list", "-z", "--show-scope", "--show-origin"), repository.top),
            self._git(("ls-files", "-s", "-z"), repository.top, MAX_INDEX_BYTES) if self._enters else no_links(),
        )
        if listed.code or listed.cut or staged.code or staged.cut:
            said = (listed.stderr or staged.stderr).decode(errors="replace").strip()
            return [f"git does not work here as it should: {said or 'it says too much'}"]
        settings = read_config(listed.stdout)
        problems = list(self._leading_elsewhere(repository, settings))
        if not entered:
            problems += config_problems(settings, self._needs, given=not self._strict)
        if entered or self._strict:
            problems += programs_inside(repository, settings)
        for link in read_links(staged.stdout):
            problems += await self._enter(os.path.join(repository.top, link))  # noqa: PTH118
        return list(dict.fromkeys(problems))

    async def _enter(self, folder: str) -> list[str]:
        """The problems of a repository that git enters from another one."""
        if not has_metadata(folder):
            return []
        self._left -= 1
        if self._left < 0:
            return [f"git would enter more than {MAX_REPOSITORIES} repositories"]
        found = await self._paths(folder)
        if isinstance(found, str) or found.top != real_path(folder) or not self._inside(found.top):
            return [f"git would enter {folder!r}, which is not a repository of its own"]
        problems = await self._look_into(found, entered=True)
        return [f"in {folder!r}, which git enters, {problem}" for problem in problems]

    def _leading_elsewhere(self, repository: GitPaths, settings: Sequence[Setting]) -> Iterator[str]:
        """What of a repository lies outside of the workspace, or where commands may write it."""
        own = {repository.git_dir, repository.common_dir}
        if not is_registered(repository, settings):
            yield from (
                f"its repository is {folder!r}, outside the workspace" for folder in own if not self._inside(folder)
            )
        for path in linked_paths(own):
            real = real_path(path)
            if not self._inside(real) and not is_below(real, own):
                yield f"{path!r} leads to {real!r}, outside the workspace"
        for setting in settings:
            if not is_own(setting):
                continue
            origin = real_path(repository.top, setting.origin.removeprefix("file:"))
            if not is_below(origin, own):
                yield f"its configuration includes {origin!r}"
            if INCLUDE.match(setting.name.lower()):
                included = real_path(origin, "..", os.path.expanduser(setting.value))  # noqa: PTH111
                if not is_below(included, own):
                    yield f"its configuration includes {included!r}"

    @property
    def _enters(self) -> bool:
        return self._strict or ENTERED in self._needs

    def _inside(self, path: str) -> bool:
        return is_below(path, self._roots)

    async def _git(self, words: tuple[str, ...], folder: str, most: int = MAX_BYTES) -> Ended:
        return await run(["git", *words], cwd=folder, env=self._env, timeout=GIT_SECONDS, max_bytes=most)


async def no_links() -> Ended:
    return Ended(0, b"", b"")


def has_metadata(folder: str) -> bool:
    return os.path.lexists(f"{folder}/.git")


def real_path(*parts: str) -> str:
    return os.path.realpath(os.path.join(*parts))  # noqa: PTH118


def is_below(path: str, folders: Sequence[str] | set[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def is_registered(repository: GitPaths, settings: Sequence[Setting]) -> bool:
    """Whether the repository says that this working tree is its own: as a worktree, or by core.worktree."""
    if repository.git_dir != repository.common_dir:
        registered = Path(repository.git_dir, "gitdir")
        names_it = registered.is_file() and os.path.realpath(registered.read_text().strip()) == f"{repository.top}/.git"
        return names_it and is_below(repository.git_dir, [f"{repository.common_dir}/worktrees"])
    moved = [
        each.value for each in settings if each.name.lower() == "core.worktree" and each.scope in OF_THE_REPOSITORY
    ]
    return bool(moved) and os.path.realpath(os.path.join(repository.git_dir, moved[-1])) == repository.top  # noqa: PTH118


def linked_paths(own: set[str]) -> Iterator[str]:
    """What in the folders of a repository is a link or, for objects, is named as stored elsewhere."""
    for folder in own:
        for inner in (folder, f"{folder}/objects", f"{folder}/info", f"{folder}/hooks", f"{folder}/refs"):
            try:
                with os.scandir(inner) as entries:
                    yield from [entry.path for entry in entries if entry.is_symlink()]
            except OSError:
                continue
        alternates = Path(folder, "objects", "info", "alternates")
        if alternates.is_file():
            names = alternates.read_text(errors="surrogateescape").splitlines()
            yield from (os.path.join(folder, "objects", name) for name in names if name)  # noqa: PTH118


def read_config(listing: bytes) -> list[Setting]:
    """The settings that git lists; names in the case that git gives them."""
    words = listing.decode("utf-8", "surrogateescape").split("\0")
    triples = zip(words[::3], words[1::3], words[2::3], strict=False)
    return [Setting(scope, origin, *entry.partition("\n")[::2]) for scope, origin, entry in triples]


def read_links(listing: bytes) -> list[str]:
    """The paths of an index that are repositories of their own."""
    lines = [line for line in listing.split(b"\0") if line.startswith(LINK_MODE)]
    return list(dict.fromkeys(os.fsdecode(line.partition(b"\t")[2]) for line in lines))


def config_problems(settings: Sequence[Setting], needs: tuple[Requirement, ...], *, given: bool = True) -> list[str]:
    """The settings of a repository that make running git there unsafe. `given`: git gets our settings."""
    ours = {(setting.name.lower(), setting.value) for setting in settings if setting.scope == "command"}
    problems: list[str] = []
    for need in needs:
        wanted = need.settings
        if given and any((pair.partition("=")[0].lower(), pair.partition("=")[2]) not in ours for pair in wanted):
            problems.append("git is too old to be given settings by its environment")
            break
        bare = set(need.switches) - {"-c", *wanted} - GIT_BY_ENVIRONMENT
        forbidden = FORBIDDEN.get(need.name)
        if forbidden is None and bare:
            problems.append(need.check)
        elif forbidden is not None:
            problems += [
                runs_program(each.name) for each in settings if is_own(each) and forbidden.match(each.name.lower())
            ]
    return list(dict.fromkeys(problems))


def programs_inside(repository: GitPaths, settings: Sequence[Setting]) -> Iterator[str]:
    """What a git without our settings would run in a repository."""
    hooks = f"{repository.common_dir}/hooks"
    for setting in filter(is_own, settings):
        name = setting.name.lower()
        if name == "core.hookspath":
            hooks = real_path(repository.top, os.path.expanduser(setting.value))  # noqa: PTH111
        elif RUNS_OR_FETCHES.match(name) and not (name == "core.fsmonitor" and setting.value.lower() in OFF):
            yield runs_program(setting.name)
    if os.access(f"{hooks}/{HOOK}", os.X_OK):
        yield f"the repository has the hook {HOOK}"


def is_own(setting: Setting) -> bool:
    return setting.scope in OF_THE_REPOSITORY


def runs_program(name: str) -> str:
    return f"the repository's configuration sets {name}, which runs a program"
