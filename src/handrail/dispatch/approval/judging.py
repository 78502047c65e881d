"""The one way from a call to a decision: real calls, explain, test and simulate all take it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.flags import fits, parse, says_no, subject_of
from handrail.dispatch.gate import Evidence, Request
from handrail.dispatch.threads import in_thread
from handrail.files.paths import exists, expand, list_folder, locate, resolve
from handrail.permissions.case import Case, Facts, looks_around, make_case
from handrail.permissions.layers import decide
from handrail.permissions.policy import Policy
from handrail.permissions.touch import Lookup
from handrail.shell.model import LINKS_INSIDE, Analysis
from handrail.tools.abort import AbortSignal
from handrail.tools.access import EXCLUSIVE
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Decision, Verdict
from handrail.tools.pool import AnyTool
from handrail.tools.tool import WARNINGS

LOOKUP = Lookup(resolve, locate, expand, exists, list_folder)

Conditions = Callable[[Analysis, str], Awaitable[tuple[str, ...]]]
"""Which conditions of a command line do not hold in a folder: the requirements that its analysis names."""


async def nobody_checks(analysis: Analysis, _cwd: str) -> tuple[str, ...]:
    """What is not checked does not hold. Where links lead is looked at by the decision itself."""
    return tuple(need.check for need in analysis.requires if need is not LINKS_INSIDE)


async def tool_checks(_analysis: Analysis, _cwd: str) -> tuple[str, ...]:
    """For tools that check the conditions themselves and object when one does not hold, as the built-in ones do."""
    return ()


def judged(case: Case) -> Decision:
    """The decision, with the places that it is about."""
    decision = decide(case)
    if not case.touches:
        return decision
    places = tuple([touch.place for touch in case.touches if touch.place])
    return Decision(decision.verdict, decision.reason, decision.opinions, decision.version, places=places)


def facts_of(request: Request, evidence: Evidence) -> Facts:
    """What the tool and those who spoke before say about a call; a flag that raises counts as the careful answer."""
    tool, args = request.tool, request.args
    warnings = tuple([text for name, text in WARNINGS.items() if not says_no(tool, name, args)])
    return Facts(
        mcp=tool.mcp,
        access=request.access,
        matches=partial(fits, tool, args),
        subject=subject_of(tool, args) if tool.subject else "",
        read_only=request.read_only,
        destructive=WARNINGS["is_destructive"] in warnings,
        warnings=warnings,
        needs_person=tool.requires_user_interaction,
        hook=evidence.hook,
        doubt=evidence.doubt,
        check=evidence.check,
    )


def judge(use: ToolUse, policy: Policy, facts: Facts) -> tuple[Case, Decision]:
    """What the policy says of a call, before anybody is asked, and everything that this was decided by."""
    case = make_case(use, policy, LOOKUP, facts)
    return case, judged(case)


async def judge_request(
    request: Request, evidence: Evidence, policy: Policy, conditions: Conditions
) -> tuple[Case, Decision]:
    """What the policy says of a call that wants to run."""
    use = ToolUse(request.use.id, request.tool.name, request.use.input)
    make = partial(make_case, use, policy, LOOKUP, facts_of(request, evidence))
    case = await in_thread(make) if looks_around(request.access) else make()
    if case.analysis is not None and case.analysis.requires:
        unmet = await conditions(case.analysis, policy.cwd)
        if unmet:
            case = make_case(use, policy, LOOKUP, replace(case.facts, unmet=unmet))
    return case, judged(case)


def imagined(use: ToolUse, tool: AnyTool, cwd: Path) -> Request:
    """
    A call that is only looked at, so its input need not fit: what it leaves out is left open.

    About an input of which the tool knows nothing, nothing is known.
    """
    ctx = ToolContext(RunContext(cwd), use, AbortSignal(), lambda _progress: None, _no_other_tool)
    args, problem = parse(tool, use.input)
    if problem is None:
        return Request.of(use, tool, args, ctx)
    model = getattr(tool, "input_model", None)
    if model is None or (use.input and use.input.keys().isdisjoint(model.model_fields)):
        return Request(use, tool, None, ctx, read_only=False, access=EXCLUSIVE)
    given = {name: value for name, value in use.input.items() if name in model.model_fields}
    return Request.of(use, tool, model.model_construct(**given), ctx)


async def _no_other_tool(_use: ToolUse, _run: RunContext) -> Decision:
    return Decision(Verdict.DENY, "nothing is run here")
