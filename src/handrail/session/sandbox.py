"""The sandbox of a session, remade when settings or rules change; nothing of it is loaded before a command needs it."""

import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.lazy import lazy
from handrail.processes.sandbox_contract import UNCONFINED, Standing, WrappedCommand
from handrail.session.settings.load import LoadedSettings
from handrail.session.settings.session_settings import SessionSettings

if TYPE_CHECKING:
    from handrail.permissions.policy import Policy
    from handrail.processes.sandbox.confine import CommandSandbox
    from handrail.processes.sandbox.settings import SandboxSettings
    from handrail.session.settings import confinement
else:
    confinement = lazy("handrail.session.settings.confinement")


class SessionSandbox:
    """Follows the settings: each command runs as they are at the time. `state` is the folder of this session alone."""

    def __init__(self, settings: SessionSettings, state: Path) -> None:
        self._settings = settings
        self._state = state
        self._read: tuple[LoadedSettings, Policy, SandboxSettings] | None = None
        self._engine: CommandSandbox | None = None
        self._closing = ExitStack()
        weakref.finalize(self, self._closing.close)  # also when the program ends

    async def standing(self, commands: Sequence[Sequence[str]] | None, *, wants_out: bool = False) -> Standing:
        """Where a command line runs; without a sandbox in the settings, nothing is looked at."""
        policy = self._settings.policy()
        if self._settings.loaded.sandbox.get("enabled", False) is False:
            return UNCONFINED
        return await self._open(policy).standing(commands, wants_out=wants_out)

    def wrap(self, argv: list[str], cwd: str) -> WrappedCommand:
        """The command, confined."""
        return self._open(self._settings.policy()).wrap(argv, cwd)

    def explain(self, output: str, code: int) -> str:
        """What the sandbox had to do with a failure."""
        return self._engine.explain(output, code) if self._engine else ""

    def close(self) -> None:
        """End what was started for the commands."""
        self._closing.close()
        self._engine = None

    def _open(self, policy: "Policy") -> "CommandSandbox":
        loaded, places = self._settings.loaded, self._settings.places
        if self._read is None or self._read[0] is not loaded or self._read[1] is not policy:
            self._read = (loaded, policy, confinement.sandbox_settings(loaded, policy, places))
        wanted = self._read[2]
        if self._engine is None or self._engine.settings != wanted:
            self._engine = confinement.open_sandbox(wanted, places, self._state, self._settings.folders)
            self._closing.callback(self._engine.close)
        return self._engine
