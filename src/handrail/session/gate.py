"""The gate of a session: the policy of its settings, who is asked, and the audit log. Loaded with the first call."""

from collections.abc import Callable, Iterable, Mapping
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.config.execution import agent_settings
from handrail.conversation.redact import Redactor
from handrail.dispatch.approval.audit import Audit
from handrail.dispatch.approval.decide import conditions_left_to_tools
from handrail.dispatch.approval.gate import PolicyGate
from handrail.lazy import lazy
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.state_folder import state_folder

if TYPE_CHECKING:
    from handrail.dispatch.approval import sdk
    from handrail.dispatch.approval.classifier import Classifier
    from handrail.dispatch.approval.question import Handler, PermissionHooks
else:
    sdk = lazy("handrail.dispatch.approval.sdk")  # what asks is loaded with the first question

WAITS = {"60s": 60.0, "5m": 300.0, "10m": 600.0}
"""The values of `askUserQuestionTimeout`, in seconds."""


def open_gate(
    settings: SessionSettings,
    *,
    can_use_tool: "sdk.CanUseTool | None" = None,
    handler: "Handler | None" = None,
    hooks: "PermissionHooks | None" = None,
    classifier: "Classifier | None" = None,
    redactor: Redactor,
    readable: Iterable[Path] = (),
    plan_file: Path | None = None,
    session_id: str = "",
    origin: Mapping[str, str] | None = None,
    keep_audit: bool = True,
    with_live: "Callable[[Handler | None], Handler] | None" = None,
) -> PolicyGate:
    """
    A gate that decides by the settings at each call; `readable` are the folders of the session's own files.

    `with_live` makes the handler that also asks on a page.
    """
    policy, loaded = settings.in_force(), settings.loaded
    policy.apply(lambda now: now.with_kept(map(realpath, readable)))
    asked = handler if can_use_tool is None else sdk.CallbackHandler(can_use_tool)
    if with_live is not None:
        asked = with_live(asked)
    can_ask = asked is not None
    plan = realpath(plan_file) if plan_file else ""
    policy.apply(lambda now: now.with_plan_file(plan, can_ask=can_ask))
    return PolicyGate(
        policy,
        asked,
        hooks=hooks,
        classifier=classifier,
        conditions=conditions_left_to_tools,
        agent_patience=agent_settings(loaded.settings).question_seconds,
        question_patience=WAITS.get(loaded.settings.get("askUserQuestionTimeout")),
        audit=Audit(state_folder(loaded.env) / "audit", redactor, session=session_id, origin=origin)
        if keep_audit
        else None,
        # where flags can allow nothing, no refusal names one
        finds_remedies=settings.flags.flags_widen and not loaded.managed_rules_only and not loaded.settings.doubtful,
    )
