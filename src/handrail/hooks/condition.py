"""The `if` of a hook: one permission rule that the call must match for the hook to run."""

from functools import lru_cache

from handrail.files.paths import exists, expand, list_folder, locate, resolve
from handrail.permissions.case import Facts, make_case
from handrail.permissions.file_access import Lookup
from handrail.permissions.matching import matching_rules
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Rule
from handrail.tools.access import DeclaredUse

LOOKUP = Lookup(resolve, locate, expand, exists, list_folder)


def holds(rule: Rule, call: DeclaredUse, cwd: str, home: str) -> bool:
    """
    Whether anything in the call matches, as an ask rule would: any command of a line, at any depth.

    A command line that is not understood may contain anything, so it matches. If the rule is about files, so does a
    call whose tool declares nothing.
    """
    facts = Facts(access=call.access, matches=call.matches)
    case = make_case(call.use, _policy(rule, cwd, home), LOOKUP, facts)
    if case.analysis is not None and case.analysis.problems and rule.tool == "Bash":
        return True
    if not case.access.declared and rule.spec is not None and rule.tool in ("Read", "Edit"):
        return True
    return bool(matching_rules(case, Behaviour.ASK))


@lru_cache(maxsize=64)
def _policy(rule: Rule, cwd: str, home: str) -> Policy:
    return Policy.empty(cwd, home).with_rules([rule])
