"""
Checks the preconditions of a command line that its text cannot show; `shell.analyse` names them.

Some hold because of the environment that the command gets (`clean_environment`). The others depend on the repository,
the folders or the search path. A precondition that is unknown here does not hold, so the user is asked.
"""

import asyncio
import os
import re

from handrail.builtin.bash.environment import clean_environment, with_hook_exports
from handrail.builtin.bash.git_repositories import FOR_CHECKS, RepositoryCheck
from handrail.builtin.services import ToolServices
from handrail.files.paths import match_files
from handrail.shell.analysis import analyse
from handrail.shell.effects import paths
from handrail.shell.listing import origin
from handrail.shell.model import LINKS_INSIDE, Analysis, CommandVerdict, Requirement, Segment, Word
from handrail.shell.patterns import PathPattern, has_wildcard
from handrail.tools.permission import NO_OPINION, Check
from handrail.tools.permission import Verdict as Asks

BY_ENVIRONMENT = frozenset(
    "no-cdpath rg-config pager man-pager pip-version-check npm-update-check container-daemon".split()  # noqa: SIM905
)
"""Met by the clean environment: it sets no configuration, no pager and no remote daemon."""
BY_DECISION = LINKS_INSIDE.name
"""Checked with every permission decision, for all files that the command walks through."""
GIT = "git-"
MAX_NAMES = 20_000
ODD_NAME = re.compile(r"""[\s'"\\]|\A-""")


class Preconditions:
    """Tells which preconditions of a command do not hold in a folder."""

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    async def __call__(self, analysis: Analysis, cwd: str) -> tuple[str, ...]:
        """The preconditions that do not hold, in words. Empty = the command does what its analysis says."""
        if analysis.verdict is not CommandVerdict.READ_ONLY:
            return ()
        problems: dict[str, None] = {}
        for segment in analysis.segments:
            problems |= dict.fromkeys(self._own_programs(segment))
            for need in segment.requires:
                if need.name == "plain-names":
                    problems |= dict.fromkeys(await asyncio.to_thread(odd_names, segment, cwd, self._services.home))
                elif need.name not in BY_ENVIRONMENT and need.name != BY_DECISION and not need.name.startswith(GIT):
                    problems[need.check] = None
        for folder, needs in git_folders(analysis, cwd).items():
            problems |= dict.fromkeys(await self._git(folder, needs, strict=False))
        return tuple(problems)

    async def check(self, text: str, cwd: str) -> Check:
        """The check of a command line that would run because it only reads."""
        unmet = await self(analyse(text), cwd)
        return Check(Asks.ASK, f"it would only read, but {'; '.join(unmet)}") if unmet else NO_OPINION

    def _own_programs(self, segment: Segment) -> list[str]:
        """Names a program that the search path finds in the project, unless the user works in the home folder."""
        home = self._services.home
        inside = tuple(f"{top}/" for top in self._services.working_dirs() if not f"{home}/".startswith(f"{top}/"))
        entries = clean_environment(with_hook_exports(self._services.env), ())["PATH"].split(":")
        for name in segment.names:
            found = next((path for entry in entries if os.access(path := os.path.join(entry, name), os.X_OK)), "")  # noqa: PTH118
            if found and os.path.realpath(found).startswith(inside):
                return [f"{name} is a program of the project itself: {found}"]
        return []

    async def _git(self, folder: str | None, needs: tuple[Requirement, ...], *, strict: bool) -> list[str]:
        if folder is None:
            return ["it is not known in which repository git would work"]
        given = with_hook_exports(self._services.env)
        env = {**clean_environment(given, dict.fromkeys((*needs, *FOR_CHECKS))), "LC_ALL": "C"}
        return await RepositoryCheck(self._services.working_dirs(), env, needs, strict=strict).problems(folder)


def git_folders(analysis: Analysis, cwd: str) -> dict[str | None, tuple[Requirement, ...]]:
    """The folders where git would work, with all preconditions of the line, since its settings are shared."""
    needs = tuple(need for need in analysis.requires if need.name.startswith(GIT))
    folders = [
        folder if folder is None else os.path.join(cwd, folder)  # noqa: PTH118
        for segment in analysis.segments
        if any(need.name.startswith(GIT) for need in segment.requires)
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
