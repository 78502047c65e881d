"""
Checks the preconditions of a command line that its text cannot show; `shell.analyse` names them.

Some hold because of the environment that the command gets (`clean_environment`). The others depend on the repository,
the folders or the search path. A precondition that is unknown here does not hold, so the user is asked.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from handrail.builtin.bash.environment import clean_environment, own_program, project_folders, with_hook_exports
from handrail.builtin.services import ToolServices
from handrail.files.paths import match_files
from handrail.lazy import lazy, lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.processes.run import Ended, run
from handrail.shell.analysis import analyse
from handrail.shell.effects import paths
from handrail.shell.listing import checked_listing, origin
from handrail.shell.model import (
    LINKS_INSIDE,
    LISTED_NAMES,
    PLAIN_NAMES,
    WHOLE_NAME,
    Analysis,
    CommandVerdict,
    Requirement,
    Segment,
    Word,
)
from handrail.shell.patterns import PathPattern
from handrail.tools.permission import NO_OPINION, Check
from handrail.tools.permission import Verdict as Asks

if TYPE_CHECKING:
    from handrail.builtin.bash import (
        compose_files,
        git_repositories,
        known_programs,
        listed_names,
        python_modules,
        readable_services,
        shown_settings,
    )
else:
    compose_files = lazy("handrail.builtin.bash.compose_files")  # with the next four 4 ms, and few commands need them
    known_programs = lazy("handrail.builtin.bash.known_programs")
    listed_names = lazy("handrail.builtin.bash.listed_names")
    python_modules = lazy("handrail.builtin.bash.python_modules")
    readable_services = lazy("handrail.builtin.bash.readable_services")
    git_repositories = lazy("handrail.builtin.bash.git_repositories")  # with the tables of git 4 ms
    shown_settings = lazy("handrail.builtin.bash.shown_settings")  # the same

BY_ENVIRONMENT = {
    "no-cdpath": ("CDPATH",),
    "rg-config": ("RIPGREP_CONFIG_PATH",),
    "pager": (),
    "man-pager": (),
    "pip-version-check": (),
    "npm-update-check": (),
    "container-daemon": ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINER_CONNECTION"),
}
"""Met by the clean environment, and by the user's own if none of these variables is set in it."""
MODULES, COMPOSE = "python-modules", "compose-include"
NPM, SAFE_PYTHON = "npm-itself", "python-safe-path"
BY_CLEAN_ENVIRONMENT = {
    "plain-pager": "the pager may start other programs",
    MODULES: "Python may load other modules",
}
"""Met by the clean environment only."""
BY_DECISION = LINKS_INSIDE.name
"""Checked with every permission decision, for all files that the command walks through."""
SHOWN_SETTINGS = "shown-settings"
COMPOSE_CHOICES = ("-f", "--file", "--env-file", "--project-directory")
REMOTES = (("remote", "-v"), ("config", "--get-regexp", r"^remote\..*\.gh-resolved$"))
CHECK_SECONDS = 10.0
MAX_BYTES = 1 << 20
MAX_NAMES = 20_000
ODD_NAME = lazy_pattern(r"""[\s'"\\]|\A-""")


class Unmet(NamedTuple):
    """A precondition that does not hold, of one command of a line."""

    part: int
    problem: str
    of_git: bool = False


class Preconditions:
    """Tells which preconditions of a command do not hold in a folder."""

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    async def __call__(self, analysis: Analysis, cwd: str) -> tuple[str, ...]:
        """The preconditions that do not hold, in words. Empty = the command does what its analysis says."""
        return tuple(dict.fromkeys(unmet.problem for unmet in await self._unmet(analysis, cwd)))

    async def check(self, text: str, cwd: str) -> Check:
        """The check of the commands in a line that would run because they only read."""
        analysis = analyse(text)
        unmet = await self._unmet(analysis, cwd)
        if not unmet:
            return NO_OPINION
        what = "it would only read" if analysis.verdict is CommandVerdict.READ_ONLY else "a part of it would only read"
        return Check(
            Asks.ASK,
            f"{what}, but {'; '.join(dict.fromkeys(each.problem for each in unmet))}",
            parts=tuple(dict.fromkeys(each.part for each in unmet)),
            despite_rules=any(each.of_git for each in unmet),
        )

    async def _unmet(self, analysis: Analysis, cwd: str) -> list[Unmet]:
        given = with_hook_exports(self._services.env)
        found: list[Unmet] = []
        repositories: dict[tuple[str | None, tuple[Requirement, ...]], list[str]] = {}
        needs = git_needs(analysis)
        for part, segment in reading(analysis):
            problems = self._own_programs(segment, given, clean=analysis.runs_clean)
            for need in segment.requires:
                problems += await self._problems(need, segment, cwd, given, clean=analysis.runs_clean)
            found += [Unmet(part, problem) for problem in problems]
            for where in folders(segment, cwd) if any(need.of_git for need in segment.requires) else ():
                if (where, needs) not in repositories:
                    strict = not analysis.runs_clean
                    repositories[where, needs] = await self._repository(where, cwd, needs, strict=strict)
                found += [Unmet(part, problem, of_git=True) for problem in repositories[where, needs]]
        return found

    async def _problems(
        self, need: Requirement, segment: Segment, cwd: str, given: Mapping[str, str], *, clean: bool
    ) -> list[str]:
        """Why a precondition does not hold, where the user has these variables."""
        if need.name == PLAIN_NAMES.name:
            return await asyncio.to_thread(odd_names, segment, cwd, self._services.home)
        if need.name in BY_ENVIRONMENT:
            wrong = [name for name in BY_ENVIRONMENT[need.name] if name in given and not clean]
            return [f"{name} is set, and the line does more than read" for name in wrong]
        if need.name in BY_CLEAN_ENVIRONMENT and not clean:
            return [f"{BY_CLEAN_ENVIRONMENT[need.name]}, since the line does more than read"]
        if need.name == MODULES:
            return await asyncio.to_thread(module_problems, segment, cwd)
        if need.name == COMPOSE:
            return await asyncio.to_thread(self._compose_problems, segment, cwd, clean=clean)
        if need.name in (NPM, SAFE_PYTHON):
            return await self._programs(need.name, segment, cwd, given, clean=clean)
        if need.name == LISTED_NAMES.name:
            return await self._listed_names(segment, cwd, given, clean=clean)
        if need.name == SHOWN_SETTINGS:
            return await self._shown_secrets(segment, cwd, given)
        if need.name in readable_services.CHOOSING:
            return [problem async for problem in self._services_asked(need.name, segment, cwd, given, clean=clean)]
        known = need.name == BY_DECISION or need.of_git or need.name in BY_CLEAN_ENVIRONMENT
        return [] if known else [need.check]

    def _compose_problems(self, segment: Segment, cwd: str, *, clean: bool) -> list[str]:
        """Why docker compose may use more than the compose file of its folder."""
        if not clean:
            return ["the line does more than read, and may change the compose file"]
        if any(str(word).startswith(COMPOSE_CHOICES) for word in segment.argv):
            return ["it chooses its files itself"]
        roots, places = self._services.working_dirs(), folders(segment, cwd)
        found = [
            compose_files.compose_problem(folder, roots) if folder else "its folder is not known" for folder in places
        ]
        return [problem for problem in found if problem]

    async def _programs(
        self, kind: str, segment: Segment, cwd: str, given: Mapping[str, str], *, clean: bool
    ) -> list[str]:
        """Why a program is not the one that its table entry describes."""
        if not clean:
            return ["the line does more than read, so it may run code of the project"]
        env = self._check_environment(given, ())

        async def run_program(words: list[str], folder: str) -> Ended:
            return await run(words, cwd=folder, env=env, timeout=CHECK_SECONDS, max_bytes=MAX_BYTES)

        if kind == NPM:
            problem = known_programs.npm_problem(env["PATH"])
        else:
            problem = await known_programs.python_problem(segment.name, cwd, run_program)
        return [problem] if problem else []

    async def _listed_names(self, segment: Segment, cwd: str, given: Mapping[str, str], *, clean: bool) -> list[str]:
        """Why the names that git lists for a command are not all those of files that may be read."""
        if not clean:
            return ["the line does more than read, and may change which names git lists"]

        async def run_git(words: list[str], folder: str) -> Ended:
            env = self._check_environment(given, source.requires if source else ())
            return await run(words, cwd=folder, env=env, timeout=CHECK_SECONDS, max_bytes=MAX_BYTES)

        for word in dict.fromkeys(filter(None, (effect.word for effect in segment.effects))):
            source = checked_listing(segment, word)
            for folder in folders(source, cwd) if source else ():
                words = [each.literal or "" for each in source.argv] if source else []
                end = "\0" if word.pieces == WHOLE_NAME.pieces else "\n"
                problem = "it is not known in which folder git lists names"
                if folder is not None:
                    roots = self._services.working_dirs()
                    problem = await listed_names.name_problem(words, end, folder, roots, run_git)
                if problem:
                    return [problem]
        return []

    async def _shown_secrets(self, segment: Segment, cwd: str, given: Mapping[str, str]) -> list[str]:
        """Why git may show a password with its settings."""
        env = self._check_environment(given, ())

        async def run_git(words: list[str], folder: str) -> Ended:
            return await run(words, cwd=folder, env=env, timeout=CHECK_SECONDS, max_bytes=MAX_BYTES)

        places = folders(segment, cwd)
        found = [
            "its folder is not known" if each is None else await shown_settings.shown_secret(segment, each, run_git)
            for each in places
        ]
        return [problem for problem in found if problem]

    async def _services_asked(
        self, kind: str, segment: Segment, cwd: str, given: Mapping[str, str], *, clean: bool
    ) -> AsyncIterator[str]:
        """Why a command may ask another service than those that the user has named."""
        allowed = self._services.readable_services()
        problem = readable_services.chosen_elsewhere(kind, given)
        if not clean:
            problem = "the line does more than read, so it is not known which service it would ask"
        elif kind == readable_services.CLUSTER:
            problem = problem or readable_services.cluster_problem(segment, self._services.home, allowed)
        if problem:
            yield problem
        for folder in folders(segment, cwd) if kind == readable_services.FORGE else ():
            listing = "" if folder is None else await self._remotes(folder, given)
            if problem := readable_services.forge_problem(segment, listing, allowed):
                yield problem

    async def _remotes(self, folder: str, given: Mapping[str, str]) -> str:
        """The remotes of a repository: the addresses that git uses for them, and what gh takes them for."""
        env, listing = self._check_environment(given, ()), ""
        for words in REMOTES:
            ended = await run(
                ["git", *words],
                cwd=folder,
                env=env,
                timeout=git_repositories.GIT_SECONDS,
                max_bytes=git_repositories.MAX_BYTES,
            )
            if ended.cut:
                return ""
            listing += os.fsdecode(ended.stdout)
        return listing

    def _check_environment(self, given: Mapping[str, str], needs: tuple[Requirement, ...]) -> dict[str, str]:
        """The environment in which git is asked about a repository."""
        own = project_folders(self._services.working_dirs(), self._services.home)
        return {**clean_environment(given, dict.fromkeys((*needs, *git_repositories.FOR_CHECKS)), own), "LC_ALL": "C"}

    def _own_programs(self, segment: Segment, given: Mapping[str, str], *, clean: bool) -> list[str]:
        """Names a program that the search path finds in the project, unless the user works in the home folder."""
        path, folders = given.get("PATH", ""), project_folders(self._services.working_dirs(), self._services.home)
        if found := own_program(segment.names, path, folders):
            return [f"{segment.name} is a program of the project itself: {found}"]
        relative = [] if clean or not segment.argv else [each for each in path.split(":") if not each.startswith("/")]
        return [f"PATH has the relative folder {relative[0]!r}, and the line does more than read"] if relative else []

    async def _repository(
        self, folder: str | None, here: str, needs: tuple[Requirement, ...], *, strict: bool
    ) -> list[str]:
        if folder is None:
            return ["it is not known in which repository git would work"]
        env = self._check_environment(with_hook_exports(self._services.env), needs)
        return await git_repositories.RepositoryCheck(
            self._services.working_dirs(), env, needs, strict=strict
        ).problems(folder, here)


def folders(segment: Segment, cwd: str) -> dict[str | None, None]:
    """The folders that a command may run in; None = it is not known which."""
    found = (None if folder is None else plain_folder(os.path.join(cwd, folder)) for folder in segment.cwds)  # noqa: PTH118
    return dict.fromkeys(found)


def plain_folder(path: str) -> str | None:
    """The path without `..`; None if one stands behind a link: `cd` takes it from the path, git -C from the link."""
    parts: list[str] = []
    for part in path.split("/"):
        if part != "..":
            parts.append(part)
        elif os.path.islink("/".join(parts)):  # noqa: PTH114
            return None
        else:
            del parts[-1:]
    return "/".join(parts) or "/"


def module_problems(segment: Segment, cwd: str) -> list[str]:
    """Why Python may run a file of the folders that it may start in."""
    places = folders(segment, cwd)
    found = [
        "its folder is not known" if folder is None else python_modules.module_problem(folder) for folder in places
    ]
    return [problem for problem in found if problem]


def reading(analysis: Analysis) -> list[tuple[int, Segment]]:
    """The commands of a line that need no rule because they only read, each with its place."""
    if analysis.problems:
        return []
    found = enumerate(analysis.segments)
    return [(at, each) for at, each in found if each.verdict is CommandVerdict.READ_ONLY or each.only_redirects]


def git_needs(analysis: Analysis) -> tuple[Requirement, ...]:
    """All preconditions about repositories, since the settings of git are shared by the line."""
    needs = [need for _, segment in reading(analysis) for need in segment.requires if need.of_git]
    return tuple(dict.fromkeys(needs))


def odd_names(segment: Segment, cwd: str, home: str) -> list[str]:
    """File names that a command could take for an option or several words."""
    for folder in segment.cwds:
        if folder is None:
            return ["it is not known which file names it would be given"]
        base = os.path.join(cwd, folder)  # noqa: PTH118
        for word in (*segment.reads, *(origin(segment).reads if segment.fed_by else ())):
            if problem := odd_name_of(word, base, home, below=segment.fed_by is not None):
                return [problem]
    return []


def odd_name_of(word: Word, base: str, home: str, *, below: bool) -> str:
    if word.has_wildcard:
        for path in paths(word, base, home):
            found = match_files(path.parts, base) if isinstance(path, PathPattern) else ()
            if path is None or found is None:
                return f"which files {word} means is not known"
            seen = (name.removeprefix(f"{base}/") for name in found)
            odd = next(filter(ODD_NAME.search, seen), None)
            if odd is not None:
                return f"the file name {odd!r} could be taken for something else"
        return ""
    top = word.literal
    if not below or top is None:
        return ""
    return odd_name_below(os.path.join(base, top))  # noqa: PTH118


def odd_name_below(top: str) -> str:
    seen = 0
    for _, folders, files in os.walk(top):
        seen += len(folders) + len(files)
        if seen > MAX_NAMES:
            return f"there are more than {MAX_NAMES:,} file names below {top!r} to look at"
        odd = next((name for name in (*folders, *files) if ODD_NAME.search(name)), None)
        if odd is not None:
            return f"the file name {odd!r} could be taken for something else"
    return ""
