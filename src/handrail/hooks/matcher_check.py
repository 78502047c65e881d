"""Finds hook matchers that fit no tool: such a hook never runs, and its guard is missing."""

from collections.abc import Collection

from handrail.hooks.matcher import parse_matcher
from handrail.permissions.known_tools import fits_known, is_known, possible_tools
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, RuleSource


def matcher_problem(
    text: str, at: str, source: RuleSource, tools: Collection[str] = (), *, decides: bool = True
) -> RuleProblem | None:
    """
    What is wrong with a matcher for tools; None if it fits one, or cannot be read, which is reported elsewhere.

    A hook that does not decide (`decides`) is no guard: then nothing has to be asked in its place.
    """
    matcher = parse_matcher(text)
    if isinstance(matcher, str) or (matcher.names is None and matcher.search is None):
        return None
    if matcher.names is None:
        unknown = [] if fits_known(text, matcher.matches, tools) else [text]
    else:
        unknown = sorted(name for name in matcher.names if not is_known(name, tools))
    if not unknown:
        return None
    near = dict.fromkeys(tool for name in unknown for tool in _near(name, tools))
    hint = f"there is {', '.join(near)}" if near else "names are case-sensitive: Bash, Edit, mcp__server__tool"
    message = f"no tool has the name {', '.join(map(repr, unknown))}, so the hook does not run for it; {hint}"
    name = f"{at}: {text}"
    if not decides:
        return RuleProblem(name, source, message, kind="never")
    meant = tuple(Rule(name, tool, None, Behaviour.ASK, source, message) for tool in near)
    broad = any(not _near(each, tools) for each in unknown)
    return RuleProblem(name, source, message, Behaviour.ASK, "never", meant, broad)


def _near(name: str, tools: Collection[str]) -> tuple[str, ...]:
    words = "".join(char if char.isalnum() or char in "_-" else " " for char in name).split()
    return tuple(dict.fromkeys(tool for word in words for tool in possible_tools(word, tools)))
