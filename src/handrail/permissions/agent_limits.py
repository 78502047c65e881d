"""
What the definition of an agent leaves it of a tool: `tools: Bash(ls:*)` gives Bash for `ls`, and for nothing else.

A limit refuses what its rules do not cover in full. It never allows: what it lets through is judged as any other call.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from handrail.permissions.case import Case
from handrail.permissions.file_access import FileEffect
from handrail.permissions.matching import by_effect, by_name
from handrail.permissions.policy import Policy
from handrail.permissions.rules import ALIASES, NEVER_BY_PATH, Behaviour, Rule, parse_rule
from handrail.records import record


@record
class ToolLimit:
    """The rules that a tool may be used by. Without a rule that works, it may not be used at all."""

    tool: str
    texts: tuple[str, ...]
    rules: Policy


def limited_tools(tools: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The tools of a list that it gives only in part, each with its forms in that list."""
    found: dict[str, list[str]] = {}
    whole: set[str] = set()
    for text in tools:
        name, _, rest = text.strip().partition("(")
        tool = ALIASES.get(name.strip(), name.strip())
        if rest.rstrip().removesuffix(")").strip() in ("", "*"):
            whole.add(tool)
        else:
            found.setdefault(tool, []).append(text.strip())
    return {tool: tuple(texts) for tool, texts in found.items() if tool not in whole and "*" not in whole}


def limit_problems(tools: Iterable[str]) -> tuple[str, ...]:
    """What is wrong with the forms of a list that give a tool in part."""
    found = [parse_limit(text) for texts in limited_tools(tools).values() for text in texts]
    return tuple(each for each in found if isinstance(each, str))


def parse_limit(text: str) -> Rule | str:
    """The rule that a form stands for, or why there is none. A path of a file tool means the files that it touches."""
    name, _, rest = text.partition("(")
    family = NEVER_BY_PATH.get(name.strip(), name.strip())
    rule = parse_rule(f"{family}({rest}", Behaviour.ALLOW)
    return rule if isinstance(rule, Rule) else f"{text!r}: {rule.message}"


@lru_cache(maxsize=64)
def tool_limits(tools: tuple[str, ...], cwd: str, home: str) -> Mapping[str, ToolLimit]:
    """The limits in a list of tools, by tool; relative paths in them start from `cwd`."""
    limits: dict[str, ToolLimit] = {}
    for tool, texts in limited_tools(tools).items():
        rules = [rule for rule in map(parse_limit, texts) if isinstance(rule, Rule)]
        limits[tool] = ToolLimit(tool, texts, Policy.empty(cwd, home).with_rules(rules))
    return limits


def exceeded_limit(case: Case) -> ToolLimit | None:
    """The first limit of the calling agent, or of one that it works for, that a call does not keep."""
    for tools in case.policy.agent_tools:
        limit = tool_limits(tools, case.policy.cwd, case.policy.home).get(case.tool)
        if limit is not None and not _is_within(case, limit):
            return limit
    return None


def _is_within(case: Case, limit: ToolLimit) -> bool:
    index = limit.rules.index[Behaviour.ALLOW]
    if case.analysis is None:
        return bool(by_name(case, index) or by_effect(case, index))
    if case.analysis.problems or not case.parts or case.background or case.targets:
        return False
    if any(file.redirected and file.effect is FileEffect.WRITE for file in case.files):
        return False
    if index.shell.find_whole(case.analysis.command, Behaviour.ALLOW):
        return True
    at = 0
    while at < len(case.parts):
        part = case.parts[at]
        named = part.plain and part.text and index.shell.find(part.text, exact_only=part.exact_only, narrow=True)
        if not named and not (case.free[at] and (part.transparent or not part.text)):
            return False
        at = part.until if named else at + 1
    return True
