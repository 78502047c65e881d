"""Finds rules that never match, are shadowed, allow more than they seem to, or contain common mistakes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from handrail.permissions.policy import Policy
from handrail.permissions.rules import BASH, EDIT, FAMILIES, NEVER_BY_PATH, READ, WEB_FETCH, Behaviour, Rule, RuleSource
from handrail.permissions.shell import TRANSPARENT, compile_shell, has_operator
from handrail.permissions.subsumption import RuleCover
from handrail.permissions.suggest import RUN_ANYTHING
from handrail.records import record


@record
class RuleFinding:
    """One remark about a rule: `kind` is malformed, never, shadowed, wide or mistake."""

    kind: str
    rule: str
    source: RuleSource
    message: str


def lint(
    policy: Policy, tools: frozenset[str], progress: Callable[[int], None] = lambda _done: None
) -> tuple[RuleFinding, ...]:
    """All findings about the rules of a policy. `tools` are the installed tools, without those of MCP servers."""
    found = [RuleFinding("malformed", p.text, p.source, p.message) for p in policy.problems]
    whole = {(rule.behaviour, rule.tool): rule for rule in reversed(policy.rules) if rule.spec is None}
    covers = RuleCover(policy.rules)
    places = {id(rule): place for place, rule in enumerate(policy.rules)}
    for done, rule in enumerate(policy.rules):
        if done % 500 == 0:
            progress(done)
        found += [RuleFinding(kind, rule.text, rule.source, message) for kind, message in remarks(rule, tools)]
        behind = [*shadows(rule, whole)] or [*islice(covered_by(rule, covers.of(rule), places), 1)]
        found += [RuleFinding("shadowed", rule.text, rule.source, message) for message in behind]
    return tuple(found)


Remark = tuple[str, str]


def remarks(rule: Rule, tools: frozenset[str]) -> Iterator[Remark]:
    if not rule.tool.startswith("mcp__") and "*" not in rule.tool and rule.tool not in tools | set(FAMILIES):
        near = next((name for name in tools if name.lower() == rule.tool.lower()), "")
        yield "never", f"there is no tool {rule.tool!r}" + (f"; names keep their case: {near}" if near else "")
    if rule.spec is None:
        yield from wide_tool(rule)
    elif rule.tool == BASH:
        yield from shell_remarks(rule, rule.spec)
    elif rule.tool in (READ, EDIT):
        yield from path_remarks(rule, rule.spec)
    elif rule.tool in NEVER_BY_PATH and not re.match(r"[a-z_]+:", rule.spec):
        yield (
            "never",
            f"{rule.tool} takes no path; {NEVER_BY_PATH[rule.tool]}({rule.spec}) rules all file tools that do this",
        )
    elif rule.tool == WEB_FETCH and rule.spec == "domain:*" and rule.behaviour is Behaviour.ALLOW:
        yield "wide", "this allows every host"


def wide_tool(rule: Rule) -> Iterator[Remark]:
    if rule.behaviour is not Behaviour.ALLOW:
        return
    if rule.tool == BASH:
        yield "wide", "this allows every command"
    if rule.tool == EDIT:
        yield "mistake", "this does not allow Write; add Write, or a path: Edit(src/**)"
    if rule.tool == WEB_FETCH:
        yield "wide", "this allows every host; name one: WebFetch(domain:example.com)"


def shell_remarks(rule: Rule, spec: str) -> Iterator[Remark]:
    pattern = compile_shell(spec)
    words = pattern.literal.split("\0")
    allow = rule.behaviour is Behaviour.ALLOW
    if ":*" in spec[:-2]:
        yield "mistake", "':*' counts only at the end and is literal here; use a blank and *"
        return
    if has_operator(spec) and allow and not pattern.exact:
        yield "never", "a command line is judged in parts, so an allow rule with an operator and * matches nothing"
    if not allow:
        return
    if not pattern.exact and not words[0]:
        yield "wide", "this begins with * and covers any program"
    elif not pattern.exact and words[0] in RUN_ANYTHING and len(words) == 1:
        yield "wide", f"{words[0]} can run any program or change any file"
    elif not pattern.exact and len(words) == 1 and not spec.endswith((" *", ":*")):
        yield "wide", f"this also covers other programs whose names begin with {words[0]!r}; put a blank before *"
    if words[0] in TRANSPARENT:
        yield "mistake", f"{words[0]} is looked through; write the rule for the command behind it"


def path_remarks(rule: Rule, spec: str) -> Iterator[Remark]:
    if spec.startswith("/") and not spec.startswith("//"):
        if rule.source.name == "user":
            yield "mistake", f"in user settings this starts from {rule.source.folder or 'their folder'}; use ~/ or //"
        elif re.match(r"/(home|Users|etc|usr|var|tmp|opt|root)(/|\Z)", spec):
            yield "mistake", f"one slash is the folder of the settings; the file system's root is /{spec}"
    if "$" in spec or re.match(r"[A-Za-z]:[\\/]", spec):
        yield "mistake", "variables and drive letters are not understood in patterns"
    if rule.behaviour is Behaviour.ALLOW and spec in ("**", "//**", "//", "~", "~/**", "*"):
        yield "wide", "this covers everything there"
    if "{" in spec and "," in spec:
        yield "mistake", "braces are literal in patterns; write one rule for each"


def shadows(rule: Rule, whole: dict[tuple[Behaviour, str], Rule]) -> Iterator[str]:
    """Rules for the whole tool that override this rule or make it redundant."""
    for kind in (Behaviour.DENY, Behaviour.ASK, Behaviour.ALLOW):
        other = whole.get((kind, rule.tool))
        if other is None or other is rule or (rule.spec is None and kind is rule.behaviour):
            pass
        elif kind is rule.behaviour:
            yield f"{other.written} already covers it"
        elif kind is Behaviour.DENY or rule.behaviour is Behaviour.ALLOW:
            yield f"{other.written} goes before it"
        if kind is rule.behaviour:
            return


def covered_by(rule: Rule, wider: Iterable[Rule], places: Mapping[int, int]) -> Iterator[str]:
    """Rules of the same tool that override this rule or make it redundant; of equal rules the later is redundant."""
    for other in wider:
        if other.behaviour is rule.behaviour:
            if other.spec != rule.spec or places[id(other)] < places[id(rule)]:
                yield f"{other.written} already covers it"
        elif other.behaviour is Behaviour.DENY or rule.behaviour is Behaviour.ALLOW:
            yield f"{other.written} goes before it"
