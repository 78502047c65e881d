"""The `if` of a hook: one permission rule that the call must match for the hook to run."""

from functools import lru_cache

from handrail.conversation.blocks import ToolUse
from handrail.files.paths import beneath, exists, expand, locate, resolve
from handrail.permissions.case import make_case
from handrail.permissions.matching import matching
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Rule
from handrail.permissions.touch import Lookup

LOOKUP = Lookup(resolve, locate, expand, exists, beneath)


def holds(rule: Rule, use: ToolUse, cwd: str, home: str) -> bool:
    """
    Whether anything in the call matches, as an ask rule would: any command of a line, at any depth.

    A command line that is not understood may hold anything, so it matches.
    """
    case = make_case(use, _policy(rule, cwd, home), LOOKUP)
    if case.analysis is not None and case.analysis.problems and rule.tool == "Bash":
        return True
    return bool(matching(case, Behaviour.ASK))


@lru_cache(maxsize=64)
def _policy(rule: Rule, cwd: str, home: str) -> Policy:
    return Policy.empty(cwd, home).with_rules([rule])
