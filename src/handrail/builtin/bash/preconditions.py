"""
Checks the preconditions of a command line that its text cannot show; `shell.analyse` names them.

Some hold because of the environment that the command gets (`clean_environment`). The others depend on the repository,
the folders or the search path. A precondition that is unknown here does not hold, so the user is asked.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from handrail.builtin.bash.environment import clean_environment, own_program, project_folders, with_hook_exports
from handrail.builtin.bash.git_repositories import FOR_CHECKS, GIT_SECONDS, MAX_BYTES, RepositoryCheck
from handrail.builtin.bash.program_conditions import (
    cluster_problem,
    forge_problem,
    module_problem,
    repositories_named,
    shim_problem,
)
from handrail.builtin.services import ToolServices
from handrail.files.paths import match_files
from handrail.files.search_path import path_outside
from handrail.processes.run import run
from handrail.shell.analysis import analyse
from handrail.shell.effects import paths
from handrail.shell.listing import origin
from handrail.shell.model import LINKS_INSIDE, PLAIN_NAMES, Analysis, CommandVerdict, Requirement, Segment, Word
from handrail.shell.patterns import PathPattern, has_wildcard
from handrail.tools.permission import NO_OPINION, Check
from handrail.tools.permission import Verdict as Asks

BY_ENVIRONMENT = {
    "no-cdpath": ("CDPATH",),
    "rg-config": ("RIPGREP_CONFIG_PATH",),
    "pager": (),
    "man-pager": (),
    "pip-version-check": (),
    "npm-update-check": (),
    "plain-pager": ("LESSOPEN", "LESSKEY", "LESSKEYIN", "LESSKEY_CONTENT", "LESS", "MORE"),
    "container-daemon": ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINER_CONNECTION"),
}
"""Met by the clean environment, and by the user's own if none of these variables is set in it."""
BY_CLEAN_ENVIRONMENT = {
    "npm-log": "npm would write its log",
    "go-toolchain": "go may fetch the version that the project names",
}
"""Met by the clean environment only."""
CHOOSE_SERVICE = (
    "KUBECONFIG",
    "HELM_KUBECONTEXT",
    "HELM_KUBEAPISERVER",
    "GH_HOST",
    "GH_REPO",
    "GITLAB_HOST",
    "GL_HOST",
)
"""Variables that choose another cluster or forge; the clean environment is without them."""
PROGRAM_CONDITIONS = frozenset(("no-shim", "python-modules", "kube-cluster", "forge"))
BY_DECISION = LINKS_INSIDE.name
"""Checked with every permission decision, for all files that the command walks through."""
MAX_NAMES = 20_000
ODD_NAME = re.compile(r"""[\s'"\\]|\A-""")


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
            for folder in segment.cwds if any(need.of_git for need in segment.requires) else ():
                where = folder if folder is None else os.path.join(cwd, folder)  # noqa: PTH118
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
        if need.name in BY_CLEAN_ENVIRONMENT:
            return [] if clean else [f"{BY_CLEAN_ENVIRONMENT[need.name]}, since the line does more than read"]
        if need.name in PROGRAM_CONDITIONS:
            return [problem async for problem in self._program_problems(need, segment, cwd, given)]
        return [] if need.name == BY_DECISION or need.of_git else [need.check]

    async def _program_problems(
        self, need: Requirement, segment: Segment, cwd: str, given: Mapping[str, str]
    ) -> AsyncIterator[str]:
        """Why a program is not what it seems, or asks a service that the user has not named."""
        services = self._services
        path = path_outside(given.get("PATH", ""), project_folders(services.working_dirs(), services.home))
        folders = [None if folder is None else os.path.join(cwd, folder) for folder in segment.cwds]  # noqa: PTH118
        allowed = services.readable_services()
        if need.name == "no-shim" and (problem := shim_problem(segment.name, path)):
            yield problem
        if need.name == "python-modules":
            for folder in folders:
                if problem := "its folder is not known" if folder is None else module_problem(folder):
                    yield problem
        if need.name in ("kube-cluster", "forge") and (wrong := [name for name in CHOOSE_SERVICE if name in given]):
            yield f"{wrong[0]} is set, so it is not known which service it would ask"
        elif need.name == "kube-cluster" and (problem := cluster_problem(segment, services.home, allowed)):
            yield problem
        elif need.name == "forge":
            for folder in folders:
                problem = (
                    forge_problem(segment, await self._remotes(folder), allowed)
                    if folder
                    else "its folder is not known"
                )
                if problem:
                    yield problem

    async def _remotes(self, folder: str) -> list[str]:
        """The addresses of the remote repositories that a folder's repository names."""
        listing = ""
        for words in (("remote", "-v"), ("config", "--get-regexp", r"^remote\..*\.gh-resolved$")):
            env = self._check_environment(())
            ended = await run(["git", *words], cwd=folder, env=env, timeout=GIT_SECONDS, max_bytes=MAX_BYTES)
            listing += os.fsdecode(ended.stdout)
        return list(repositories_named(listing))

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
        roots = self._services.working_dirs()
        return await RepositoryCheck(roots, self._check_environment(needs), needs, strict=strict).problems(folder, here)

    def _check_environment(self, needs: tuple[Requirement, ...]) -> dict[str, str]:
        """The environment of a git that is asked about a repository."""
        given, roots = with_hook_exports(self._services.env), self._services.working_dirs()
        wanted = dict.fromkeys((*needs, *FOR_CHECKS))
        return {**clean_environment(given, wanted, project_folders(roots, self._services.home)), "LC_ALL": "C"}


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
    if has_wildcard(word):
        for path in paths(word, base, home):
            found = match_files(path.parts, base) if isinstance(path, PathPattern) else ()
            if path is None or found is None:
                return f"which files {word} means is not known"
            names = [name.rpartition("/")[2] for name in found]
            odd = next(filter(ODD_NAME.search, names), None)
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
