"""Decides on a call; real calls, explain, test and simulate all use it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.flags import fits, parse, says_no, subject_of
from handrail.dispatch.gate import CallRequest, Evidence
from handrail.dispatch.threads import in_thread
from handrail.files.paths import exists, expand, list_folder, locate, resolve
from handrail.permissions.case import Case, Facts, looks_around, make_case
from handrail.permissions.file_access import Lookup
from handrail.permissions.layers import decide
from handrail.permissions.policy import Policy
from handrail.shell.model import LINKS_INSIDE, Analysis
from handrail.tools.abort import AbortSignal
from handrail.tools.access import EXCLUSIVE
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Decision, Verdict
from handrail.tools.pool import AnyTool
from handrail.tools.tool import WARNINGS

LOOKUP = Lookup(resolve, locate, expand, exists, list_folder)

Conditions = Callable[[Analysis, str], Awaitable[tuple[str, ...]]]
"""Returns the requirements of a command line that do not hold in a folder."""


async def conditions_unchecked(analysis: Analysis, _cwd: str) -> tuple[str, ...]:
    """Conditions that are not checked do not hold; link targets are checked by the decision itself."""
    return tuple(need.check for need in analysis.requires if need is not LINKS_INSIDE)


async def conditions_left_to_tools(_analysis: Analysis, _cwd: str) -> tuple[str, ...]:
    """For tools that check the conditions themselves, as the built-in ones do."""
    return ()


def decide_case(case: Case) -> Decision:
    """Decide on a case; the decision names the places of the case."""
    decision = decide(case)
    if not case.files:
        return decision
    places = tuple([file.place for file in case.files if file.place])
    return Decision(decision.verdict, decision.reason, decision.opinions, decision.version, places=places)


def facts_of(request: CallRequest, evidence: Evidence) -> Facts:
    """The facts about a call from its tool and the evidence; a flag that raises counts as the careful answer."""
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


def decide_use(use: ToolUse, policy: Policy, facts: Facts) -> tuple[Case, Decision]:
    """The case of a call and the policy's decision, before any question."""
    case = make_case(use, policy, LOOKUP, facts)
    return case, decide_case(case)


async def decide_request(
    request: CallRequest, evidence: Evidence, policy: Policy, conditions: Conditions
) -> tuple[Case, Decision]:
    """The case of a call that wants to run, and the policy's decision."""
    use = ToolUse(request.use.id, request.tool.name, request.use.input)
    make = partial(make_case, use, policy, LOOKUP, facts_of(request, evidence))
    case = await in_thread(make) if looks_around(request.access) else make()
    if case.analysis is not None and case.analysis.requires:
        unmet = await conditions(case.analysis, policy.cwd)
        if unmet:
            case = make_case(use, policy, LOOKUP, replace(case.facts, unmet=unmet))
    return case, decide_case(case)


def hypothetical_request(use: ToolUse, tool: AnyTool, cwd: Path) -> CallRequest:
    """
    A request for a call that will not run, so its input may be incomplete.

    With an input that has no field of the tool, the request declares nothing.
    """
    ctx = ToolContext(RunContext(cwd), use, AbortSignal(), lambda _progress: None, _no_other_tool)
    args, problem = parse(tool, use.input)
    if problem is None:
        return CallRequest.of(use, tool, args, ctx)
    model = getattr(tool, "input_model", None)
    if model is None or (use.input and use.input.keys().isdisjoint(model.model_fields)):
        return CallRequest(use, tool, None, ctx, read_only=False, access=EXCLUSIVE)
    given = {name: value for name, value in use.input.items() if name in model.model_fields}
    return CallRequest.of(use, tool, model.model_construct(**given), ctx)


async def _no_other_tool(_use: ToolUse, _run: RunContext) -> Decision:
    return Decision(Verdict.DENY, "nothing is run here")
