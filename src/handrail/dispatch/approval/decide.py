"""Decides on requests of the pipeline, with the conditions and checks that take time."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from handrail.conversation.logger import get_logger
from handrail.dispatch.threads import in_thread
from handrail.lazy import lazy
from handrail.permissions.case import Case, looks_around
from handrail.permissions.decide import case_of
from handrail.permissions.facts import NOTHING_SAID, Evidence
from handrail.permissions.layers import decide
from handrail.permissions.policy import Policy
from handrail.tools.flags import parse
from handrail.tools.permission import Ask, Check, Decision, Verdict
from handrail.tools.request import CallRequest

if TYPE_CHECKING:
    from handrail.shell import model
else:
    model = lazy("handrail.shell.model")

log = get_logger(__name__)

Conditions: TypeAlias = "Callable[[model.Analysis, str], Awaitable[tuple[str, ...]]]"
"""Returns the requirements of a command line that do not hold in a folder."""


async def conditions_unchecked(analysis: "model.Analysis", _cwd: str) -> tuple[str, ...]:
    """Conditions that are not checked do not hold; link targets are checked by the decision itself."""
    return tuple(need.check for need in analysis.requires if need is not model.LINKS_INSIDE)


async def conditions_left_to_tools(_analysis: "model.Analysis", _cwd: str) -> tuple[str, ...]:
    """For tools that check the conditions themselves, as the built-in ones do."""
    return ()


async def decide_request(
    request: CallRequest, evidence: Evidence, policy: Policy, conditions: Conditions
) -> tuple[Case, Decision]:
    """The case of a call that wants to run, and the policy's decision."""
    make = partial(case_of, request, policy)
    case = await in_thread(partial(make, evidence)) if looks_around(request.access) else make(evidence)
    if case.analysis is not None and case.analysis.requires:
        unmet = await conditions(case.analysis, policy.cwd)
        if unmet:
            case = make(replace(evidence, unmet=unmet))
    return case, decide(case)


async def ask_own_checks(request: CallRequest) -> Evidence:
    """
    What the tool's own checks say of a call that is not made; a check that raises refuses the call, as it would fail.

    An input that validation refuses is no evidence: what is refused depends on what the session has done before.
    """
    tool, args, ctx = request.tool, request.args, request.ctx
    if parse(tool, request.use.input)[1] is not None:
        return NOTHING_SAID
    try:
        meaning = await tool.validate(args, ctx)
        check = await tool.check_permission(args, ctx)
    except Exception as error:
        log.exception("a check of %s raised", tool.name)
        reason = f"a check of {tool.name} raised {type(error).__name__}: {error}"
        return Evidence(check=Check(Verdict.DENY, reason))
    return Evidence(doubt=meaning.message if isinstance(meaning, Ask) else "", check=check)
