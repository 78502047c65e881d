"""
Checks the preconditions of a command line that its text cannot show; `shell.analyse` names them.

Some hold because of the environment that the command gets (`clean_environment`). The others depend on the repository,
the folders or the search path. A precondition that is unknown here does not hold, so the user is asked.
"""

import asyncio
import os
import re
from collections.abc import Mapping

from handrail.builtin.bash.environment import clean_environment, with_hook_exports
from handrail.builtin.bash.git_repositories import FOR_CHECKS, RepositoryCheck
from handrail.builtin.services import ToolServices
from handrail.files.paths import match_files
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
    "container-daemon": ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINER_CONNECTION"),
}
"""Met by the clean environment, and by the user's own if none of these variables is set in it."""
BY_DECISION = LINKS_INSIDE.name
"""Checked with every permission decision, for all files that the command walks through."""
MAX_NAMES = 20_000
ODD_NAME = re.compile(r"""[\s'"\\]|\A-""")


class Preconditions:
    """Tells which preconditions of a command do not hold in a folder."""

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    async def __call__(self, analysis: Analysis, cwd: str) -> tuple[str, ...]:
        """The preconditions that do not hold, in words. Empty = the command does what its analysis says."""
        return tuple(dict.fromkeys((*await self._of_commands(analysis, cwd), *await self._of_git(analysis, cwd))))

    async def check(self, text: str, cwd: str) -> Check:
        """The check of the commands in a line that would run because they only read."""
        analysis = analyse(text)
        commands, git = await self._of_commands(analysis, cwd), await self._of_git(analysis, cwd)
        if not commands and not git:
            return NO_OPINION
        what = "it would only read" if analysis.verdict is CommandVerdict.READ_ONLY else "a part of it would only read"
        unmet = "; ".join(dict.fromkeys((*commands, *git)))
        return Check(Asks.ASK, f"{what}, but {unmet}", despite_rules=bool(git))

    async def _of_commands(self, analysis: Analysis, cwd: str) -> list[str]:
        problems: list[str] = []
        given = with_hook_exports(self._services.env)
        for segment in reading(analysis):
            problems += self._own_programs(segment, given, clean=analysis.runs_clean)
            for need in segment.requires:
                if need.name == PLAIN_NAMES.name:
                    problems += await asyncio.to_thread(odd_names, segment, cwd, self._services.home)
                elif need.name in BY_ENVIRONMENT:
                    wrong = [] if analysis.runs_clean else [name for name in BY_ENVIRONMENT[need.name] if name in given]
                    problems += [f"{name} is set, and the line does more than read" for name in wrong]
                elif need.name != BY_DECISION and not need.of_git:
                    problems.append(need.check)
        return problems

    async def _of_git(self, analysis: Analysis, cwd: str) -> list[str]:
        """What is wrong with the repositories; in a line that does more than read, git runs without our settings."""
        strict = not analysis.runs_clean
        folders = git_folders(analysis, cwd).items()
        return [
            problem for folder, needs in folders for problem in await self._repository(folder, needs, strict=strict)
        ]

    def _own_programs(self, segment: Segment, given: Mapping[str, str], *, clean: bool) -> list[str]:
        """Names a program that the search path finds in the project, unless the user works in the home folder."""
        home = self._services.home
        inside = tuple(f"{top}/" for top in self._services.working_dirs() if not f"{home}/".startswith(f"{top}/"))
        path = clean_environment(given, ())["PATH"] if clean or not given.get("PATH") else given["PATH"]
        for name in segment.names:
            for entry in path.split(":"):
                if not entry.startswith("/"):
                    return [f"PATH has the relative folder {entry!r}, and the line does more than read"]
                found = os.path.join(entry, name)  # noqa: PTH118
                if os.access(found, os.X_OK):
                    if os.path.realpath(found).startswith(inside):
                        return [f"{name} is a program of the project itself: {found}"]
                    break
        return []

    async def _repository(self, folder: str | None, needs: tuple[Requirement, ...], *, strict: bool) -> list[str]:
        if folder is None:
            return ["it is not known in which repository git would work"]
        given = with_hook_exports(self._services.env)
        env = {**clean_environment(given, dict.fromkeys((*needs, *FOR_CHECKS))), "LC_ALL": "C"}
        return await RepositoryCheck(self._services.working_dirs(), env, needs, strict=strict).problems(folder)


def reading(analysis: Analysis) -> list[Segment]:
    """The commands of a line that need no rule because they only read."""
    if analysis.problems:
        return []
    return [each for each in analysis.segments if each.verdict is CommandVerdict.READ_ONLY or each.only_redirects]


def git_folders(analysis: Analysis, cwd: str) -> dict[str | None, tuple[Requirement, ...]]:
    """The folders where git would work, with all preconditions of the line, since its settings are shared."""
    segments = [segment for segment in reading(analysis) if any(need.of_git for need in segment.requires)]
    needs = tuple(dict.fromkeys(need for segment in segments for need in segment.requires if need.of_git))
    folders = [
        folder if folder is None else os.path.join(cwd, folder)  # noqa: PTH118
        for segment in segments
        for folder in segment.cwds
    ]
    return dict.fromkeys(folders, needs)


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
