"""
Where settings are found, the highest source first.

    policy   /etc/handrail/managed-settings.json and managed-settings.d/*.json, then the same of /etc/claude-code
    flag     --settings FILE or JSON
    local    .handrail/settings.local.json, then .claude/settings.local.json
    project  .handrail/settings.json, then .claude/settings.json
    user     ~/.handrail/settings.json (HANDRAIL_CONFIG_DIR), then ~/.claude/settings.json (CLAUDE_CONFIG_DIR)

The files of local and project are looked for in each folder from the working folder up to the root of its repository.
The nearest comes first: of one folder local before project, `.handrail` before `.claude`.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from handrail.errors import SettingsError
from handrail.extensions.places import is_own_repository
from handrail.processes.sandbox.placeholder_marks import stands_in
from handrail.records import record

Family: TypeAlias = Literal["handrail", "claude", ""]

SOURCES = ("local", "project", "user")
"""The choices of `--setting-sources`; policy and flag always count."""

POLICY_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "linux": ("/etc/handrail", "/etc/claude-code"),
    "darwin": ("/Library/Application Support/handrail", "/Library/Application Support/ClaudeCode"),
}
INLINE = Path("--settings")
"""In place of a path, for settings that are given as text; the path of a file is never relative."""
MANAGED, DROP_INS, MANAGED_SERVERS = "managed-settings.json", "managed-settings.d", "managed-mcp.json"


@record
class SettingsFile:
    """One file that may hold settings. Patterns like `/src/**` in it are relative to `folder`."""

    source: str
    path: Path
    shown: str
    folder: str
    family: Family

    @property
    def starts_at_folder(self) -> bool:
        """Whether relative paths and patterns in it start from `folder`, wherever below it the working folder is."""
        return self.source in ("local", "project") or self.path == INLINE


@record
class SettingsPlaces:
    """The folders of one user in one project. `cwd`, `home` and `above` are real paths."""

    cwd: str
    home: str
    user: Path
    claude: Path
    state: Path
    policy: tuple[Path, ...]
    above: tuple[str, ...] = ()
    """The folders of the repository above the working folder, the nearest first."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders whose own settings count here, the nearest first."""
        return (self.cwd, *self.above)

    def files(self, chosen: tuple[str, ...] = SOURCES) -> tuple[SettingsFile, ...]:
        """The files of the chosen sources, the highest first."""
        return tuple(file for file in self._all() if file.source in chosen)

    def file(self, source: str) -> SettingsFile:
        """The file that handrail itself writes for a source: that of the working folder."""
        return next(file for file in self._all() if file.source == source and file.family == "handrail")

    def policy_files(self) -> tuple[SettingsFile, ...]:
        """The policy files that are there, the highest first: of one folder, the last drop-in wins."""
        found: list[SettingsFile] = []
        for folder, family in zip(self.policy, FAMILIES, strict=False):
            files = [*sorted(_drop_ins(folder), reverse=True), folder / MANAGED]
            found += [SettingsFile("policy", file, str(file), str(folder), family) for file in files]
        return tuple(found)

    @property
    def trust_file(self) -> Path:
        """The record that says whether this folder is trusted."""
        return trust_file(self.state, self.cwd)

    @property
    def trust_files(self) -> tuple[Path, ...]:
        """The records of all folders whose settings count here."""
        return tuple(trust_file(self.state, folder) for folder in self.folders)

    @property
    def own_servers(self) -> Path:
        """The user's own list of MCP servers, which handrail writes."""
        return self.user / "mcp.json"

    @property
    def claude_state(self) -> Path:
        """The state of another program, which may name MCP servers; it is only read."""
        usual = Path(self.home, ".claude")
        return (self.claude.parent if self.claude == usual else self.claude) / ".claude.json"

    def _all(self) -> list[SettingsFile]:
        at_home = {os.path.realpath(self.user), os.path.realpath(self.claude)}
        files: list[SettingsFile] = []
        for base in self.folders:
            shown = "" if base == self.cwd else f"{os.path.relpath(base, self.cwd)}/"
            for source, name in (("local", "settings.local.json"), ("project", "settings.json")):
                for family in FAMILIES:
                    folder = Path(base, f".{family}")
                    if (source == "project" or base != self.cwd) and os.path.realpath(folder) in at_home:
                        continue  # this is the home folder, and these are the user's own settings
                    files.append(SettingsFile(source, folder / name, f"{shown}.{family}/{name}", base, family))
        for folder, family in ((self.user, FAMILIES[0]), (self.claude, FAMILIES[1])):
            file = folder / "settings.json"
            shown = f"~/{file.relative_to(self.home)}" if file.is_relative_to(self.home) else str(file)
            files.append(SettingsFile("user", file, shown, os.path.realpath(folder), family))
        return files


FAMILIES: tuple[Family, Family] = ("handrail", "claude")


def policy_file(name: str) -> SettingsFile:
    """Policy that does not come from a policy folder, under the name that messages use."""
    return SettingsFile("policy", Path(name), name, "/", "")


@lru_cache(maxsize=64)
def trust_file(state: Path, folder: str) -> Path:
    """Where the record of a folder's trust is kept; `folder` is a real path."""
    return state / "trust" / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.json"


def places_for(cwd: Path | str, env: Mapping[str, str], state: Path, root: str = "") -> SettingsPlaces:
    """The folders of the user with this environment. Policy folders cannot be moved. The settings of `root` count."""
    home = os.path.realpath(env.get("HOME") or Path.home())
    real = os.path.realpath(cwd)
    return SettingsPlaces(
        cwd=real,
        home=home,
        user=_folder_or(env.get("HANDRAIL_CONFIG_DIR"), Path(home, ".handrail")),
        claude=_folder_or(env.get("CLAUDE_CONFIG_DIR"), Path(home, ".claude")),
        state=state,
        policy=tuple(map(Path, POLICY_FOLDERS.get(sys.platform, POLICY_FOLDERS["linux"]))),
        above=folders_above(real, root),
    )


def folders_above(cwd: str, root: str = "") -> tuple[str, ...]:
    """The folders above a real path up to the root of the user's repository that it is in, the nearest first.

    With `root` they reach up to that folder at least, if the path lies below it: across repositories, and without one.
    """
    found = _up_to_repository(cwd)
    if not root or root in (cwd, *found) or not cwd.startswith(f"{root}/"):
        return found
    between = cwd.removeprefix(f"{root}/").split("/")
    return tuple("/".join((root, *between[:count])) for count in reversed(range(len(between))))


def _up_to_repository(cwd: str) -> tuple[str, ...]:
    folder, found = cwd, []
    while not is_repository(folder):
        parent = os.path.dirname(folder)  # noqa: PTH120  # runs at every start
        if parent == folder:
            return ()
        found.append(folder := parent)
    return tuple(found) if not found or is_own_repository(folder, cwd) else ()


def is_repository(folder: str) -> bool:
    """Whether a folder holds `.git`, as a folder or as the file of a worktree."""
    try:
        return not stands_in(os.lstat(f"{folder}/.git").st_mode)
    except OSError:
        return False


def chosen_sources(text: str | None) -> tuple[str, ...]:
    """The sources of `--setting-sources`; None = all, "" = none. Raises SettingsError if one does not exist."""
    if text is None:
        return SOURCES
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in SOURCES]
    if unknown:
        raise SettingsError(f"--setting-sources: there is no source {unknown[0]!r}. Use user, project and local.")
    return tuple(name for name in SOURCES if name in names)


def _folder_or(wanted: str | None, default: Path) -> Path:
    return Path(wanted).expanduser().absolute() if wanted else default


def _drop_ins(folder: Path) -> list[Path]:
    """The drop-in files of a policy folder. Raises SettingsError if it cannot be known what the folder forbids."""
    inner = folder / DROP_INS
    try:
        names = sorted(os.listdir(inner))  # noqa: PTH208  # one call, one error
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SettingsError(
            f"the policy in {inner} cannot be read: {error.strerror}. Nothing runs without it; ask your administrator."
        ) from error
    return [inner / name for name in names if name.endswith(".json") and not name.startswith(".")]
