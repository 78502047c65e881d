"""
The sandbox of a session, made from its settings and rules, and made anew when they change.

Nothing of it is loaded or tried out before a command asks for it, and nothing at all while it is switched off.
"""

import glob
import os
import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from handrail.config.places import SettingsPlaces
from handrail.processes.sandbox_contract import UNCONFINED, Sandbox, Standing, WrappedCommand
from handrail.session.load_settings import LoadedSettings

if TYPE_CHECKING:
    from handrail.permissions.policy import Policy
    from handrail.processes.sandbox.confine import CommandSandbox as Confining
    from handrail.processes.sandbox.plan import Protected
    from handrail.processes.sandbox.settings import SandboxSettings

WILD = re.compile(r"[*?\[]")
MANY = 200
"""So many files of a pattern are hidden one by one; every one of them is a mount."""
OF_GIT = frozenset((".git", "git~1"))
"""What is protected in them is known better: see `processes.sandbox.git`."""


class Governing(Protocol):
    """The settings of a running session, as `SessionSettings` has them."""

    places: SettingsPlaces
    loaded: LoadedSettings

    def policy(self) -> "Policy":
        """The policy in force now."""
        ...

    def folders(self) -> tuple[str, ...]:
        """The working folders now."""
        ...


def make_sandbox(live: Governing, state: Path) -> Sandbox:
    """The sandbox of a session; `state` is the folder of that session alone."""
    return SessionSandbox(live, state)


class SessionSandbox:
    """Follows the settings: each command runs as they are at the time."""

    def __init__(self, live: Governing, state: Path) -> None:
        self._live = live
        self._state = state
        self._seen: tuple[LoadedSettings, Policy, SandboxSettings] | None = None
        self._made: Confining | None = None
        self._closing = ExitStack()
        weakref.finalize(self, self._closing.close)  # also when the program ends

    async def standing(self, commands: Sequence[Sequence[str]] | None, *, wants_out: bool = False) -> Standing:
        """Where a command line runs; without a sandbox in the settings, nothing is looked at."""
        policy = self._live.policy()
        if self._live.loaded.sandbox.get("enabled", False) is False:
            return UNCONFINED
        return await self._engine(policy).standing(commands, wants_out=wants_out)

    def wrap(self, argv: list[str], cwd: str) -> WrappedCommand:
        """The command, confined."""
        return self._engine(self._live.policy()).wrap(argv, cwd)

    def explain(self, output: str, code: int) -> str:
        """What the sandbox had to do with a failure."""
        return self._made.explain(output, code) if self._made else ""

    def close(self) -> None:
        """End what was started for the commands."""
        self._closing.close()
        self._made = None

    def _engine(self, policy: "Policy") -> "Confining":
        from handrail.processes.sandbox.confine import CommandSandbox as Confining  # noqa: PLC0415

        places = self._live.places
        settings = self._settings(policy)
        if self._made is None or self._made.settings != settings:
            self._made = Confining(
                settings,
                home=places.home,
                working_dirs=self._live.folders,
                state=self._state,
                protected=protected_names(),
                own=(os.path.realpath(places.state), os.path.realpath(places.user)),
                public=public,
            )
            self._closing.callback(self._made.close)
        return self._made

    def _settings(self, policy: "Policy") -> "SandboxSettings":
        """The section, with what deny rules say about files."""
        from handrail.processes.sandbox.settings import read_settings  # noqa: PLC0415

        loaded, places = self._live.loaded, self._live.places
        if self._seen is None or self._seen[0] is not loaded or self._seen[1] is not policy:
            read = read_settings(loaded.sandbox, folder=places.cwd, home=places.home)
            self._seen = (loaded, policy, read)
        return with_rules(self._seen[2], policy)


def with_rules(settings: "SandboxSettings", policy: "Policy") -> "SandboxSettings":
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


def denied_paths(policy: "Policy", tool: str) -> Iterator[str]:
    """The files and folders that deny rules name; of a pattern, those that are there now."""
    from handrail.permissions.deny_paths import denied_patterns  # noqa: PLC0415

    for pattern in denied_patterns(policy, tool):
        if WILD.search(pattern):
            yield from sorted(glob.glob(pattern, include_hidden=True))[:MANY]  # noqa: PTH207  # absolute already
        else:
            yield pattern


def protected_names() -> "Protected":
    """The protected names of the permission language: those of a project, and those of a home folder."""
    from handrail.permissions import paths  # noqa: PLC0415
    from handrail.processes.sandbox.plan import Protected  # noqa: PLC0415

    yarn = (paths.PROTECTED_START, f"{paths.PROTECTED_START}.yml")
    pairs = tuple("/".join(pair) for pair in sorted(paths.PROTECTED_PAIRS))
    return Protected(
        project=(
            *sorted(paths.PROTECTED_FOLDERS - OF_GIT),
            *sorted(paths.PROTECTED_FILES - paths.STARTUP_FILES),
            *yarn,
        ),
        home=(*sorted(paths.PROTECTED_FILES), *pairs, *(start.removeprefix("/") for start in paths.PROTECTED_AT_HOME)),
    )


def public(address: str) -> bool:
    """Whether an address leads to the public internet."""
    from ipaddress import ip_address  # noqa: PLC0415

    from handrail.permissions.web import AddressClass, address_class  # noqa: PLC0415

    try:
        return address_class(ip_address(address)) is AddressClass.PUBLIC
    except ValueError:
        return False
