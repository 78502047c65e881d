"""Finds rules that never match, are shadowed, cover more or less than they seem to, or contain common mistakes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, takewhile

from handrail.lazy import lazy_pattern
from handrail.permissions.mistakes import mistakes
from handrail.permissions.policy import Policy
from handrail.permissions.rules import BASH, Behaviour, Rule, RuleSource
from handrail.permissions.shell import TRANSPARENT, compile_shell, has_operator
from handrail.permissions.subsumption import RuleCover
from handrail.permissions.wide_rules import SUB_COMMANDS, wide_command, wide_content, wide_tool
from handrail.permissions.wildcards import WORD_END
from handrail.records import record

REMARKS = ("shadowed", "wide", "narrow")
"""The kinds of findings about rules that work as they are written."""
OPTION = lazy_pattern(r"--?[A-Za-z0-9]")


@record
class RuleFinding:
    """One remark about a rule: `kind` is malformed, misplaced, never, shadowed, wide, narrow or mistake."""

    kind: str
    rule: str
    source: RuleSource
    message: str


def lint(
    policy: Policy, tools: frozenset[str], progress: Callable[[int], None] = lambda _done: None
) -> tuple[RuleFinding, ...]:
    """All findings about the rules of a policy. `tools` are the installed tools, without those of MCP servers."""
    found = [RuleFinding(p.kind, p.text, p.source, p.message) for p in policy.problems]
    whole = {(rule.behaviour, rule.tool): rule for rule in reversed(policy.rules) if rule.spec is None}
    covers = RuleCover(policy.rules)
    places = {id(rule): place for place, rule in enumerate(policy.rules)}
    for done, rule in enumerate(policy.rules):
        if done % 500 == 0:
            progress(done)
        found += [RuleFinding(kind, rule.text, rule.source, message) for kind, message in remarks(rule, tools)]
        behind = [*shadows(rule, whole)] or [*islice(covered_by(rule, covers.of(rule), places), 1)]
        found += [RuleFinding("shadowed", rule.text, rule.source, message) for message in behind]
        if (message := other_spellings(rule)) and all(each.behaviour is Behaviour.ALLOW for each in covers.of(rule)):
            found.append(RuleFinding("narrow", rule.text, rule.source, message))
    return tuple(dict.fromkeys(found))


Remark = tuple[str, str]


def remarks(rule: Rule, tools: frozenset[str]) -> Iterator[Remark]:
    """What is wrong with one rule, and what it allows beyond what people expect."""
    wrong = [(problem.kind, problem.message) for problem in mistakes(rule, tools)]
    yield from wrong
    if rule.behaviour is not Behaviour.ALLOW or any(kind == "never" for kind, _ in wrong):
        return
    if rule.spec is None:
        yield from wide_tool(rule)
    elif rule.tool != BASH:
        yield from wide_content(rule, rule.spec)
    elif not wrong:
        yield from command_remarks(rule.spec)


def command_remarks(spec: str) -> Iterator[Remark]:
    """Remarks about the command of an allow rule."""
    pattern = compile_shell(spec)
    words = pattern.literal.rstrip(WORD_END).split(WORD_END)
    open_end = spec.endswith((" *", ":*"))
    if has_operator(spec) and not pattern.exact:
        yield "never", "a command line is judged in parts, so an allow rule with an operator and * matches nothing"
        return
    if not pattern.exact and not words[0]:
        yield "wide", "this begins with * and covers any program"
    elif not pattern.exact and len(words) == 1 and not open_end and " " not in spec:
        yield "wide", f"this also covers other programs whose names begin with {words[0]!r}; put a space before *"
    elif not pattern.exact and (reason := wide_command(words)):
        yield "wide", reason
    if words[0] in TRANSPARENT:
        yield "mistake", f"{words[0]} only runs another command; write the rule for that command"


def other_spellings(rule: Rule) -> str:
    """Why a deny or ask rule misses a command whose options are written in another way; empty if it has none."""
    if rule.behaviour is Behaviour.ALLOW or rule.tool != BASH or rule.spec is None:
        return ""
    pattern = compile_shell(rule.spec)
    words = pattern.literal.rstrip(WORD_END).split(WORD_END)
    command = [*takewhile(lambda word: not word.startswith("-"), words)]
    if pattern.exact or not command or command == words or not OPTION.match(words[len(command)]):
        return ""
    if len(command) == 1 and command[0] in SUB_COMMANDS:  # the command stands behind these options
        return ""
    return (
        "options in another order or spelling, such as -fr for -rf, are not matched; to be asked about them, "
        f"add Bash({' '.join(command)} *) to ask"
    )


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
