"""The gate of a working folder: what lies in it may be read; what changes things or lies elsewhere is asked for."""

from collections.abc import Mapping
from importlib import import_module
from os.path import realpath
from pathlib import Path

from handrail.dispatch.gate import Approver, Evidence, Gate, Request
from handrail.tools.permission import Decision

GATE_MODULES = ("handrail.permissions.policy", "handrail.dispatch.approval")


class FolderGate:
    """Judges by the permission language, which is loaded with the first call: no first request waits for it."""

    def __init__(self, cwd: Path, env: Mapping[str, str], approver: Approver | None = None) -> None:
        self._cwd = realpath(cwd)
        self._home = realpath(env.get("HOME") or Path.home())
        self._approver = approver
        self._gate: Gate | None = None

    async def decide(self, request: Request, evidence: Evidence) -> Decision:
        if self._gate is None:
            language, approval = map(import_module, GATE_MODULES)
            policy = language.Policy.empty(self._cwd, self._home)
            made: Gate = approval.PolicyGate(policy, self._approver)
            self._gate = made
        return await self._gate.decide(request, evidence)
