"""The `if` of a hook: one permission rule that the call must match for the hook to run."""

from functools import lru_cache

from handrail.permissions.case import looks_around
from handrail.permissions.decide import case_of
from handrail.permissions.layers import ask_rules, declaration, files_inside, hidden_commands
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Rule
from handrail.tools.request import CallRequest


def takes_time(request: CallRequest) -> bool:
    """Whether testing a condition may have to list whole folders."""
    return looks_around(_without_filter(request).access)


def holds(rule: Rule, request: CallRequest, cwd: str, home: str) -> bool:
    """Whether an ask rule matches anything in the call, or may: what is unknown before it runs may be anything."""
    case = case_of(_without_filter(request), _policy(rule, cwd, home))
    if case.analysis is not None and case.analysis.problems and rule.tool == "Bash":
        return True
    return any(layer(case) is not None for layer in (ask_rules, hidden_commands, files_inside, declaration))


def _without_filter(request: CallRequest) -> CallRequest:
    access = request.access._replace(filtered=False)  # tools leave out what rules keep back: this is no such rule
    return CallRequest(request.use, request.tool, request.args, request.ctx, read_only=request.read_only, access=access)


@lru_cache(maxsize=64)
def _policy(rule: Rule, cwd: str, home: str) -> Policy:
    return Policy.empty(cwd, home).with_rules([rule])
