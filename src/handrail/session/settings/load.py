"""
From settings, flags and environment to what a session works with: mode, folders, variables, hooks.

    for rules           all sources are pooled; deny, then ask, then allow
    for the mode        --permission-mode > settings
    for variables       the `env` of settings goes before the environment that handrail was started with
"""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from handrail.config.flags import NO_FLAGS_GIVEN, SettingsFlags
from handrail.config.places import SettingsPlaces
from handrail.config.problems import Problem
from handrail.config.snapshot import CHANGED, TRUSTED, Layer, Settings
from handrail.errors import SettingsError
from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    from handrail.config import load as settings_loader
    from handrail.config import merge
    from handrail.config.managed import PolicySource
else:
    settings_loader = lazy("handrail.config.load")  # only users with settings files pay for it
    merge = lazy("handrail.config.merge")

BYPASS = "bypassPermissions"
BEYOND_DEFAULT = ("acceptEdits", "auto", BYPASS)
NEXT_MOVE = "See them with: handrail trust --show. Trust the folder with: handrail trust, or for one run with --trust."


@record
class HookSection:
    """The `hooks` of one file, as they are written. `family` is .handrail or .claude."""

    source: str
    family: str
    file: str
    folder: str
    section: Mapping[str, Any]
    trust: Literal["trusted", "changed"] = "trusted"


@record
class Mode:
    """The mode of a session, and which other ones it may enter."""

    name: str = "default"
    bypass_available: bool = False
    auto_available: bool = True


@record
class LoadedSettings:
    """What counts now. The policy is not in it: `SessionSettings` builds it when it is first needed."""

    settings: Settings
    mode: Mode
    folders: tuple[str, ...]
    """Real paths of the working folders, the project first."""
    env: Mapping[str, str]
    hooks: tuple[HookSection, ...]
    problems: tuple[Problem, ...]

    @property
    def sandbox(self) -> Mapping[str, Any]:
        """The section of that name; relative paths in files of folders above start from those folders."""
        found = self.settings
        values = found.values
        if any(_names_paths_above(layer, self.folders[0]) for layer in found.layers):
            values = merge.merge_values(_with_whole_paths(layer, self.folders[0]) for layer in found.layers)
        section: Mapping[str, Any] = values.get("sandbox") or {}
        return section

    @property
    def managed_rules_only(self) -> bool:
        """Whether policy wants no allow rules but its own."""
        return bool(self.settings.get_managed("allowManagedPermissionRulesOnly"))

    def notes(self) -> tuple[str, ...]:
        """What a person should be told: problems, and what waits for trust."""
        return (*map(str, self.problems), *ignored_note(self.settings))


def load(
    places: SettingsPlaces,
    env: Mapping[str, str],
    asked: SettingsFlags = NO_FLAGS_GIVEN,
    *,
    policies: "Iterable[PolicySource]" = (),
    before: Settings | None = None,
    frozen_sources: frozenset[str] = frozenset(),
) -> LoadedSettings:
    """What counts in a folder, or counted `before` for `frozen_sources`; after a SettingsError nothing may run."""
    settings = gather_settings(places, env, asked, policies, before, frozen_sources=frozen_sources)
    return loaded_from(settings, places, env, asked, starting=before is None)


def gather_settings(
    places: SettingsPlaces,
    env: Mapping[str, str],
    asked: SettingsFlags,
    policies: "Iterable[PolicySource]",
    before: Settings | None = None,
    *,
    frozen_sources: frozenset[str] = frozenset(),
) -> Settings:
    """The settings that count, from all files."""
    return settings_loader.load_settings(
        places, env, asked, policies=policies, before=before, frozen_sources=frozen_sources
    )


def loaded_from(
    settings: Settings, places: SettingsPlaces, env: Mapping[str, str], asked: SettingsFlags, *, starting: bool = True
) -> LoadedSettings:
    """What a session works with under these settings. A session that runs already is not refused, but narrowed."""
    problems = list(settings.problems)
    mode = mode_of(settings, asked, env, problems, starting=starting)
    folders = folders_of(settings, asked, places, problems, starting=starting)
    variables = {**env, **(settings.get("env") or {})}
    return LoadedSettings(settings, mode, folders, variables, hooks_of(settings), tuple(problems))


def mode_of(
    settings: Settings, asked: SettingsFlags, env: Mapping[str, str], problems: list[Problem], *, starting: bool
) -> Mode:
    """The mode to start in: one of settings that cannot be had becomes default, one of a flag is a SettingsError."""
    if not asked.flags_widen and (asked.bypass or asked.allow_bypass or asked.mode in BEYOND_DEFAULT):
        wider = asked.mode if asked.mode in BEYOND_DEFAULT else BYPASS
        raise SettingsError(f"the mode {wider} cannot be used with --safe-mode. Leave out one of them.")
    wished = BYPASS if asked.bypass else asked.mode or settings.get("permissions", "defaultMode") or "default"
    name = "default" if wished == "manual" else wished
    obstacles = {BYPASS: bypass_obstacle(settings, env), "auto": ""}
    if settings.get("permissions", "disableAutoMode") == "disable":
        obstacles["auto"] = "disableAutoMode is set in the settings. Use another mode, or remove it there."
    bypass = not obstacles[BYPASS] and (asked.allow_bypass or name == BYPASS)
    if asked.allow_bypass and obstacles[BYPASS]:
        problems.append(Problem("cli", "--allow-dangerously-skip-permissions", 0, obstacles[BYPASS]))
    if obstacle := obstacles.get(name, ""):
        if starting and (asked.bypass or asked.mode):
            raise SettingsError(f"the mode {name} cannot be used: {obstacle}")
        problems.append(Problem("", "permissions.defaultMode", 0, f"{name} cannot be used: {obstacle}"))
        name = "default"
    if problem := broken_file_problem(settings, name):
        problems.append(problem)
        name = "default"
    return Mode(name, bypass and not settings.doubtful, not obstacles["auto"])


def broken_file_problem(settings: Settings, mode: str) -> Problem | None:
    """Why a mode gives way to default: what a broken file forbids is not known."""
    if settings.doubtful and mode in BEYOND_DEFAULT:
        return Problem("", mode, 0, "not used while a settings file is broken. Correct the file first.")
    return None


def bypass_obstacle(settings: Settings, env: Mapping[str, str]) -> str:
    """Why permissions cannot be bypassed here; empty if they can."""
    if settings.get("permissions", "disableBypassPermissionsMode") == "disable":
        return "disableBypassPermissionsMode is set in the settings. Use another mode, or remove it there."
    if os.geteuid() == 0 and env.get("IS_SANDBOX") != "1":
        return "you are root. Use another user, or set IS_SANDBOX=1 if this machine is a sandbox."
    return ""


def _names_paths_above(layer: Layer, cwd: str) -> bool:
    """Whether a file of a folder above the working folder names paths for the sandbox."""
    file = layer.document.file
    is_above = file.starts_at_folder and file.folder != cwd
    return is_above and bool(layer.values.get("sandbox", {}).get("filesystem"))


def _with_whole_paths(layer: Layer, cwd: str) -> Mapping[str, Any]:
    if not _names_paths_above(layer, cwd):
        return layer.values
    section, folder = layer.values["sandbox"], layer.document.file.folder
    files = {
        name: [os.path.join(folder, each) if each[:1] != "~" else each for each in value]  # noqa: PTH118  # or absolute
        for name, value in section["filesystem"].items()
    }
    return {**layer.values, "sandbox": {**section, "filesystem": files}}


def folders_of(
    settings: Settings, asked: SettingsFlags, places: SettingsPlaces, problems: list[Problem], *, starting: bool
) -> tuple[str, ...]:
    """The project, the folders of settings, and those of --add-dir; SettingsError if that names no folder."""
    found = {places.cwd: None}
    managed_only = bool(settings.get_managed("allowManagedPermissionRulesOnly"))
    for layer in settings.layers:
        if managed_only and layer.source != "policy":
            continue
        base = layer.document.file.folder if layer.document.file.starts_at_folder else places.cwd
        for name in layer.values.get("permissions", {}).get("additionalDirectories", ()):
            folder = _folder(name, base, places.home)
            if os.path.isdir(folder):  # noqa: PTH112  # costs less
                found[folder] = None
            else:
                path = ("permissions", "additionalDirectories")
                problems.append(layer.document.problem(path, f"names {name!r}, which is not a folder."))
    for name in asked.folders if asked.flags_widen else ():
        folder = _folder(name, places.cwd, places.home)
        if starting and not os.path.isdir(folder):  # noqa: PTH112
            raise SettingsError(f"--add-dir: {name!r} is not a folder. Give one that exists.")
        found[folder] = None
    return tuple(found)


def _folder(name: str, base: str, home: str) -> str:
    path = home + name[1:] if name == "~" or name.startswith("~/") else name
    return os.path.realpath(os.path.join(base, path))  # noqa: PTH118  # may be absolute


def hooks_of(settings: Settings) -> tuple[HookSection, ...]:
    """All hooks that count, file by file: those that may run, and those of folders that changed since their trust."""
    lost = {item.folder for item in settings.ignored if item.is_hook} & _changed_folders(settings)
    if not (settings.get("hooks") or lost) or settings.get_managed("disableAllHooks"):
        return ()
    managed_only = settings.get_managed("allowManagedHooksOnly") or settings.get("disableAllHooks")
    found = []
    for layer in settings.layers:
        file = layer.document.file
        is_lost = file.source in ("local", "project") and file.folder in lost
        section = (layer.document.values if is_lost else layer.values).get("hooks")
        if section and (layer.source == "policy" or not managed_only):
            family = f".{file.family or 'handrail'}"
            trust: Literal["trusted", "changed"] = CHANGED if is_lost else TRUSTED
            found.append(HookSection(layer.source, family, file.shown, file.folder, section, trust))
    return tuple(found)


def _changed_folders(settings: Settings) -> set[str]:
    return {folder for folder, state in settings.trust_by_folder.items() if state == CHANGED}


def ignored_note(settings: Settings) -> tuple[str, ...]:
    """One sentence for each folder with settings that wait for trust."""
    here = next(iter(settings.trust_by_folder), "")
    found = []
    for folder in dict.fromkeys(item.folder for item in settings.ignored):
        items = [item for item in settings.ignored if item.folder == folder]
        counts: dict[str, int] = {}
        for item in items:
            name = ".".join(str(step) for step in item.path[:2] if isinstance(step, str))
            counts[name] = counts.get(name, 0) + 1
        listed = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in counts.items())
        are = "is" if len(items) == 1 else "are"
        state = settings.trust_by_folder.get(folder, settings.trust)
        why = "is not trusted" if state == "untrusted" else "changed since it was trusted"
        which = "this folder" if folder == here else f"the folder {folder}"
        found.append(f"{which} {why}, so {len(items)} of its settings {are} ignored: {listed}. {NEXT_MOVE}")
    return tuple(found)
