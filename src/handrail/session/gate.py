"""The gate of a working folder: what lies in it may be read; what changes things or lies elsewhere is asked for."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.dispatch.gate import CallRequest, Evidence
from handrail.errors import HandrailError
from handrail.session.state_folder import state_folder
from handrail.tools.context import RunContext
from handrail.tools.output import ContextChange
from handrail.tools.permission import Decision

GATE_MODULES = ("handrail.permissions.policy", "handrail.dispatch.approval.gate", "handrail.dispatch.approval.audit")

if TYPE_CHECKING:
    from handrail.conversation.redact import Redactor
    from handrail.dispatch.approval.classifier import Classifier
    from handrail.dispatch.approval.gate import PolicyGate
    from handrail.dispatch.approval.live import LivePolicy
    from handrail.dispatch.approval.question import Handler, PermissionHooks
    from handrail.dispatch.approval.sdk import CanUseTool
    from handrail.permissions.policy import Policy


class FolderGate:
    """
    Judges by the permission language, which is loaded with the first call: no first request waits for it.

    `policy` is asked before every call, so that settings may change; `in_force` gives one that can also be changed for
    the session, and kept; without either there are no rules. `kept` gives the
    folders of the session's own files, such as big results, which may be read. `session` is its id in the audit log,
    from which `redactor` takes the secrets.
    """

    def __init__(
        self,
        cwd: Path,
        env: Mapping[str, str],
        *,
        policy: "Callable[[], Policy] | None" = None,
        in_force: "Callable[[], LivePolicy] | None" = None,
        can_use_tool: "CanUseTool | None" = None,
        handler: "Handler | None" = None,
        hooks: "PermissionHooks | None" = None,
        classifier: "Classifier | None" = None,
        audited: bool = True,
        kept: Callable[[], Iterable[Path]] = tuple,
        session: str = "",
        redactor: "Redactor | None" = None,
    ) -> None:
        self._cwd = realpath(cwd)
        self._env = env
        self._policy = policy
        self._in_force = in_force
        self._can_use_tool = can_use_tool
        self._handler = handler
        self._hooks = hooks
        self._classifier = classifier
        self._audited = audited
        self._kept = kept
        self._session = session
        self._redactor = redactor
        self._gate: PolicyGate | None = None

    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
        return await self.made.decide(request, evidence)

    def snapshot(self, run: RunContext) -> "Policy":
        return self.made.snapshot(run)

    def adopt(self, change: ContextChange, run: RunContext, *, consented: bool) -> str:
        plain = not (change.mode or change.leave_plan or change.add_directories or change.cwd)
        return "" if plain else self.made.adopt(change, run, consented=consented)

    @property
    def made(self) -> "PolicyGate":
        """The gate itself, which is made when it is first needed."""
        if self._gate is None:
            self._gate = self._made()
        return self._gate

    @property
    def mode(self) -> str:
        """The mode in force; empty as long as nothing had to be judged."""
        return self._gate.policy().mode if self._gate else ""

    def set_mode(self, mode: str) -> str:
        """
        Change the mode of this session; the mode that is in force then.

        Raises:
            HandrailError: there is no such mode, or it cannot be entered.
        """
        try:
            policy = self.made.policy.apply(lambda policy: policy.with_mode(mode))
        except ValueError as error:
            raise HandrailError(str(error)) from error
        if policy.mode != mode:
            raise HandrailError(f"The mode {mode!r} cannot be entered here; {policy.mode!r} stays.")
        return policy.mode

    def _made(self) -> "PolicyGate":
        approval = "handrail.dispatch.approval"
        live: LivePolicy = self._in_force() if self._in_force else self._unkept()
        live.apply(lambda policy: policy.with_kept(map(realpath, self._kept())))
        handler = self._handler
        if self._can_use_tool is not None:
            handler = import_module(f"{approval}.sdk").CallbackHandler(self._can_use_tool)
        made: PolicyGate = import_module(f"{approval}.gate").PolicyGate(
            live,
            handler,
            hooks=self._hooks,
            classifier=self._classifier,
            conditions=import_module(f"{approval}.decide").conditions_left_to_tools,
            audit=self._audit(),
        )
        return made

    def _unkept(self) -> "LivePolicy":
        made: type[LivePolicy] = import_module("handrail.dispatch.approval.live").LivePolicy
        if self._policy:
            return made(self._policy)
        home = realpath(self._env.get("HOME") or Path.home())
        policy: Policy = import_module("handrail.permissions.policy").Policy.empty(self._cwd, home)
        policy = policy.with_own([realpath(state_folder(self._env))])
        return made(lambda: policy)

    def _audit(self) -> object:
        if not self._audited:
            return None
        redactor = self._redactor or import_module("handrail.conversation.redact").build_redactor(self._env)
        folder = state_folder(self._env) / "audit"
        return import_module("handrail.dispatch.approval.audit").Audit(folder, redactor, session=self._session)


def hider(policy: "Callable[[], Policy]") -> Callable[[str], bool]:
    """Whether a search leaves out the file at a real path, by the policy in force."""
    known: list[tuple[Policy, Callable[[str], bool]]] = []

    def left_out(path: str) -> bool:
        now = policy()
        if not known or known[0][0] is not now:
            known[:] = [(now, import_module("handrail.permissions.hidden_files").hidden_file_check(now))]
        return known[0][1](path)

    return left_out
