"""
Where people write down what extends an agent.

    .handrail/, .claude/                 in each folder from the working one up to the repository's root: the project's
    ~/.handrail/ (HANDRAIL_CONFIG_DIR), ~/.claude/ (CLAUDE_CONFIG_DIR)                                  : the user's
"""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.lazy import lazy
from handrail.processes.sandbox.placeholder_marks import stands_in
from handrail.records import record

if TYPE_CHECKING:
    from handrail.shell import secrets
else:
    secrets = lazy("handrail.shell.secrets")  # few projects have files to ask it about

FAMILIES = (".handrail", ".claude")
SKILL_FAMILIES = (".handrail", ".agents", ".claude")
"""Skills are also shared between programs, in `.agents/skills`."""
VARIABLES = {".handrail": "HANDRAIL_CONFIG_DIR", ".claude": "CLAUDE_CONFIG_DIR"}
SOURCES = ("project", "user")


@record
class ConfigFolder:
    """A `.handrail`, `.claude` or `.agents` folder. What a project's folder holds must lie inside of `tree`."""

    path: Path
    source: str
    """project, user, policy or plugin."""
    shown: str
    tree: Path | None = None
    plugin: str = ""
    """The plugin that it belongs to; what is in it is called `plugin:name`."""
    kind: str = ""
    """What it holds itself, such as `skills`; empty = it has a folder for each kind."""
    root: str = ""
    """The plugin's own folder."""
    only: str = ""
    """The one file, or folder of a skill, in it that counts; empty = all do."""

    def holder(self, kind: str) -> Path | None:
        """The folder of a kind, such as `skills`; None if this one has none."""
        if self.kind:
            return self.path if self.kind == kind else None
        return self.path / kind

    def full_name(self, name: str) -> str:
        """What a definition of this name in it is called."""
        return f"{self.plugin}:{name}" if self.plugin else name


def repository_of(cwd: Path) -> Path | None:
    """The nearest folder from `cwd` upwards that holds `.git`, unless other people made it around `cwd`."""
    found = next((folder for folder in (cwd, *cwd.parents) if _exists(f"{folder}/.git")), None)
    return found if found in (None, cwd) or is_own_repository(str(found), str(cwd)) else None


def is_own_repository(folder: str, cwd: str) -> bool:
    """Whether a folder's `.git` is the user's, that of the owner of `cwd` or root's: in /tmp anybody can make one."""
    try:
        return os.lstat(f"{folder}/.git").st_uid in (os.geteuid(), os.stat(cwd).st_uid, 0)  # noqa: PTH116
    except OSError:
        return False


def has_secret_name(path: str) -> bool:
    """Whether the path of a project's file says that the file holds secrets."""
    return secrets.secret(f"/{path}")


def config_folders(
    cwd: Path, env: Mapping[str, str], sources: Collection[str] = SOURCES, families: Sequence[str] = FAMILIES
) -> tuple[ConfigFolder, ...]:
    """The folders that exist, the nearest first and the user's last."""
    home = Path(env.get("HOME") or Path.home())
    own = tuple(
        Path(env.get(VARIABLES.get(family, "")) or home / family).expanduser().absolute() for family in families
    )
    found: list[ConfigFolder] = []
    if "project" in sources:
        tree = repository_of(cwd) or cwd
        for folder in (cwd, *cwd.parents):
            found += [
                ConfigFolder(folder / family, "project", os.path.relpath(f"{folder}/{family}", cwd), tree)
                for family in families
                if _exists(f"{folder}/{family}")
            ]
            if folder == tree:
                break
    if found:
        users = {os.path.realpath(folder) for folder in own}
        # in the home folder these are the user's own
        found = [folder for folder in found if os.path.realpath(folder.path) not in users]
    if "user" in sources:
        found += [ConfigFolder(path, "user", _display_path(path, home)) for path in own if _exists(path)]
    return tuple(found)


def reaches_out(path: Path, tree: Path) -> bool:
    """Whether a file of a project leads out of it, or to what may hold secrets; its text would go to the model."""
    real, border = path.resolve(), tree.resolve()
    return not real.is_relative_to(border) or has_secret_name(str(real.relative_to(border)))


def _exists(path: Path | str) -> bool:
    try:
        return not stands_in(os.lstat(path).st_mode)
    except OSError:
        return False


def _display_path(path: Path, home: Path) -> str:
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
