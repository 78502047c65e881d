"""Decides on one call by a policy; live calls, explain, test, simulate and `Policy.decide` all use it."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from handrail.conversation.blocks import ToolUse
from handrail.errors import HandrailError
from handrail.files.paths import exists, list_folder, locate, match_files, resolve
from handrail.permissions.case import Case, make_case
from handrail.permissions.facts import NOTHING_SAID, Evidence, facts_of
from handrail.permissions.file_access import Lookup
from handrail.permissions.layers import decide
from handrail.permissions.policy import Policy
from handrail.tools.context import RunContext
from handrail.tools.permission import Decision
from handrail.tools.pool import AnyTool
from handrail.tools.request import CallRequest
from handrail.tools.tool import Tool
from handrail.tools.wording import brief_repr

LOOKUP = Lookup(resolve, locate, match_files, exists, list_folder)


def listing_once() -> Lookup:
    """A lookup that lists a folder only once, for several decisions on one call."""
    return LOOKUP._replace(beneath=cache(LOOKUP.beneath))


def case_of(request: CallRequest, policy: Policy, evidence: Evidence = NOTHING_SAID, lookup: Lookup = LOOKUP) -> Case:
    """The case of a call under a policy."""
    use = request.use
    if use.name != request.tool.name:  # a model may use an alias, and rules are written for the tool's own name
        use = ToolUse(use.id, request.tool.name, use.input)
    return make_case(use, policy, lookup, facts_of(request, evidence))


def decide_call(policy: Policy, tool: AnyTool, values: Mapping[str, Any]) -> Decision:
    """The decision on a call that is not made: `Policy.decide`."""
    if not isinstance(tool, Tool):
        raise HandrailError(f"Policy.decide takes a tool, not {brief_repr(tool)}. Give a Tool, or what @tool makes.")
    if not isinstance(values, Mapping):
        raise HandrailError(
            f"the input of {tool.name} is {brief_repr(values)}. Give an object of its fields, for example {{}}."
        )
    use = ToolUse("call-1", tool.name, dict(values))
    return decide(case_of(CallRequest.hypothetical(use, tool, RunContext(Path(policy.cwd))), policy))
