"""The gate of a working folder: what lies in it may be read; what changes things or lies elsewhere is asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.dispatch.gate import Approver, Evidence, Request
from handrail.tools.permission import Decision

GATE_MODULES = ("handrail.permissions.policy", "handrail.dispatch.approval")

if TYPE_CHECKING:
    from handrail.dispatch.approval import PolicyGate
    from handrail.permissions.policy import Policy


class FolderGate:
    """
    Judges by the permission language, which is loaded with the first call: no first request waits for it.

    `policy` is asked before every call, so that settings may change; without it there are no rules.
    """

    def __init__(
        self,
        cwd: Path,
        env: Mapping[str, str],
        approver: Approver | None = None,
        policy: "Callable[[], Policy] | None" = None,
    ) -> None:
        self._cwd = realpath(cwd)
        self._home = realpath(env.get("HOME") or Path.home())
        self._approver = approver
        self._policy = policy
        self._gate: PolicyGate | None = None

    async def decide(self, request: Request, evidence: Evidence) -> Decision:
        if self._gate is None:
            policy = self._policy() if self._policy else self._no_rules()
            made: PolicyGate = import_module("handrail.dispatch.approval").PolicyGate(policy, self._approver)
            self._gate = made
        elif self._policy:
            self._gate.policy = self._policy()
        return await self._gate.decide(request, evidence)

    def _no_rules(self) -> "Policy":
        policy: Policy = import_module("handrail.permissions.policy").Policy.empty(self._cwd, self._home)
        return policy
