"""
Where settings are found, from the one that wins to the one that loses.

    policy   /etc/handrail/managed-settings.json and managed-settings.d/*.json, then the same of /etc/claude-code
    flag     --settings FILE or JSON
    local    .handrail/settings.local.json, then .claude/settings.local.json
    project  .handrail/settings.json, then .claude/settings.json
    user     ~/.handrail/settings.json (HANDRAIL_CONFIG_DIR), then ~/.claude/settings.json (CLAUDE_CONFIG_DIR)

The project is the working folder: no parent is searched.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from handrail.errors import SettingsError
from handrail.records import record

Family: TypeAlias = Literal["handrail", "claude", ""]

SOURCES = ("local", "project", "user")
"""What `--setting-sources` chooses from; policy and flag always count."""

POLICY_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "linux": ("/etc/handrail", "/etc/claude-code"),
    "darwin": ("/Library/Application Support/handrail", "/Library/Application Support/ClaudeCode"),
}
MANAGED, DROP_INS = "managed-settings.json", "managed-settings.d"


@record
class Spot:
    """One file that may hold settings. `folder` is what a pattern like `/src/**` in it starts from."""

    source: str
    file: Path
    shown: str
    folder: str
    family: Family


@record
class Places:
    """The folders of one user in one project. `cwd` and `home` are real paths."""

    cwd: str
    home: str
    user: Path
    claude: Path
    state: Path
    policy: tuple[Path, ...]

    def spots(self, chosen: tuple[str, ...] = SOURCES) -> tuple[Spot, ...]:
        """The files of the chosen sources, the highest first."""
        return tuple(spot for spot in self._all() if spot.source in chosen)

    def spot(self, source: str) -> Spot:
        """The file that handrail itself writes for a source."""
        return next(spot for spot in self._all() if spot.source == source and spot.family == "handrail")

    def policy_spots(self) -> tuple[Spot, ...]:
        """The policy files that are there, the highest first: of one folder, the last drop-in wins."""
        found: list[Spot] = []
        for folder, family in zip(self.policy, FAMILIES, strict=False):
            files = [*sorted(_drop_ins(folder), reverse=True), folder / MANAGED]
            found += [Spot("policy", file, str(file), str(folder), family) for file in files]
        return tuple(found)

    @property
    def trust_file(self) -> Path:
        """The record that says whether this folder is trusted."""
        return trust_file(self.state, self.cwd)

    @property
    def mcp_file(self) -> Path:
        """The project's own list of MCP servers."""
        return Path(self.cwd, ".mcp.json")

    def _all(self) -> list[Spot]:
        at_home = {os.path.realpath(self.user), os.path.realpath(self.claude)}
        spots: list[Spot] = []
        for source, name in (("local", "settings.local.json"), ("project", "settings.json")):
            for family in FAMILIES:
                folder = Path(self.cwd, f".{family}")
                if source == "project" and os.path.realpath(folder) in at_home:
                    continue  # the working folder is the home folder: these are the user's own settings
                spots.append(Spot(source, folder / name, f".{family}/{name}", self.cwd, family))
        for folder, family in ((self.user, FAMILIES[0]), (self.claude, FAMILIES[1])):
            file = folder / "settings.json"
            spots.append(Spot("user", file, self._tilde(file), os.path.realpath(folder), family))
        return spots

    def _tilde(self, file: Path) -> str:
        return f"~/{file.relative_to(self.home)}" if file.is_relative_to(self.home) else str(file)


FAMILIES: tuple[Family, Family] = ("handrail", "claude")


def trust_file(state: Path, folder: str) -> Path:
    """Where the record of a folder's trust is kept; `folder` is a real path."""
    return state / "trust" / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.json"


def places_for(cwd: Path | str, env: Mapping[str, str], state: Path) -> Places:
    """The places of whoever has this environment. Policy folders cannot be moved."""
    home = os.path.realpath(env.get("HOME") or Path.home())
    return Places(
        cwd=os.path.realpath(cwd),
        home=home,
        user=_moved(env.get("HANDRAIL_CONFIG_DIR"), Path(home, ".handrail")),
        claude=_moved(env.get("CLAUDE_CONFIG_DIR"), Path(home, ".claude")),
        state=state,
        policy=tuple(map(Path, POLICY_FOLDERS.get(sys.platform, POLICY_FOLDERS["linux"]))),
    )


def chosen_sources(text: str | None) -> tuple[str, ...]:
    """
    The sources that `--setting-sources` names; None = all, "" = none.

    Raises:
        SettingsError: there is no such source.
    """
    if text is None:
        return SOURCES
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in SOURCES]
    if unknown:
        raise SettingsError(f"--setting-sources: there is no source {unknown[0]!r}. Use user, project and local.")
    return tuple(name for name in SOURCES if name in names)


def _moved(wanted: str | None, default: Path) -> Path:
    return Path(wanted).expanduser().absolute() if wanted else default


def _drop_ins(folder: Path) -> list[Path]:
    """
    The drop-in files of a policy folder.

    Raises:
        SettingsError: the folder is there and cannot be read, so it is not known what it forbids.
    """
    inner = folder / DROP_INS
    try:
        names = sorted(os.listdir(inner))  # noqa: PTH208  # one call, one error
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SettingsError(
            f"{inner} holds policy and cannot be read: {error.strerror}. Nothing runs without it."
        ) from error
    return [inner / name for name in names if name.endswith(".json") and not name.startswith(".")]
