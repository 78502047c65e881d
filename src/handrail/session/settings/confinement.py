"""How commands of a session are confined: the engine of its sandbox, from settings and rules. Loaded when one runs."""

import glob
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

from handrail.config.places import SettingsPlaces
from handrail.files.search_path import program_folders
from handrail.http.addresses import AddressClass, address_class
from handrail.lazy import lazy_pattern
from handrail.permissions.deny_paths import denied_patterns
from handrail.permissions.policy import Policy
from handrail.permissions.protected_names import Reach, names_of
from handrail.processes.sandbox.confine import CommandSandbox
from handrail.processes.sandbox.plan import Protected
from handrail.processes.sandbox.settings import SandboxSettings, read_settings
from handrail.session.settings.git_files import git_files
from handrail.session.settings.load import LoadedSettings

WILD = lazy_pattern(r"[*?\[]")
MANY = 200
"""So many files of a pattern are hidden one by one; every one of them is a mount."""
OF_GIT = frozenset((".git", "git~1"))
"""What is protected in them is known better: see `processes.sandbox.git`."""


def sandbox_settings(loaded: LoadedSettings, policy: Policy, places: SettingsPlaces) -> SandboxSettings:
    """The section of the settings, with what deny rules say about files; what PATH and git's settings name is kept."""
    settings = with_rules(read_settings(loaded.sandbox, folder=places.cwd, home=places.home), policy)
    writable = (*policy.working_dirs, *map(os.path.realpath, settings.filesystem.allow_write))
    programs = program_folders(loaded.env.get("PATH", ""), writable)
    # a folder in place of a missing file that git includes would keep git from working at all
    kept = (*programs, *git_files(writable, str(places.home)).places)
    files = settings.filesystem
    return replace(settings, filesystem=replace(files, deny_write=(*files.deny_write, *kept))) if kept else settings


def open_sandbox(
    settings: SandboxSettings, places: SettingsPlaces, state: Path, folders: Callable[[], tuple[str, ...]]
) -> CommandSandbox:
    """The engine that confines commands."""
    return CommandSandbox(
        settings,
        home=places.home,
        working_dirs=folders,
        state=state,
        protected=protected_names(),
        own=(os.path.realpath(places.state), os.path.realpath(places.user)),
        public=public,
    )


def with_rules(settings: SandboxSettings, policy: Policy) -> SandboxSettings:
    """What a deny rule keeps from the file tools is kept from commands too, as far as it is there by name."""
    if not policy.rules:
        return settings
    read, write = tuple(denied_paths(policy, "Read")), tuple(denied_paths(policy, "Edit"))
    if not read and not write:
        return settings
    files = settings.filesystem
    return replace(
        settings,
        filesystem=replace(files, deny_read=(*files.deny_read, *read), deny_write=(*files.deny_write, *write)),
    )


def denied_paths(policy: Policy, tool: str) -> Iterator[str]:
    """The files and folders that deny rules name; of a pattern, those that are there now."""
    for pattern in denied_patterns(policy, tool):
        if WILD.search(pattern):
            yield from sorted(glob.glob(pattern, include_hidden=True))[:MANY]  # noqa: PTH207  # absolute already
        else:
            yield pattern


def protected_names() -> Protected:
    """The protected names of the permission language: those of a project, and those of a home folder."""
    return Protected(
        project=tuple(name for name in names_of(Reach.PROJECT) if name not in OF_GIT),
        home=tuple(name.removeprefix("~/") for name in names_of(Reach.STARTUP, Reach.HOME)),
        if_there=names_of(Reach.IF_THERE),
    )


def public(address: str) -> bool:
    """Whether an address leads to the public internet."""
    try:
        return address_class(ip_address(address)) is AddressClass.PUBLIC
    except ValueError:
        return False
