"""
Rules that can be parsed and still do not do what they say: no tool has the name, or the content never matches.

Each is a RuleProblem with the rules that were probably meant. The rule itself stays in force as it is written.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from handrail.lazy import lazy_pattern
from handrail.permissions.known_tools import GONE, is_known, possible_tools
from handrail.permissions.rules import (
    BASH,
    EDIT,
    NEVER_BY_PATH,
    PARAMETER,
    POWERSHELL,
    READ,
    WEB_FETCH,
    Behaviour,
    Rule,
    RuleProblem,
    rule_problem,
)
from handrail.permissions.web import may_match
from handrail.permissions.wide_rules import SUB_COMMANDS

ABSOLUTE = lazy_pattern(r"/(home|Users|etc|usr|var|tmp|opt|root)(/|\Z)")
HOME = lazy_pattern(r"(?:\$HOME|\$\{HOME\})(?=/|\Z)")
DRIVE = lazy_pattern(r"[A-Za-z]:[\\/]")
BRACES = lazy_pattern(r"\{([^{},]*,[^{}]*)\}")
WORDS = lazy_pattern(r"[\w./+-]+( +[\w./+-]+)*\Z")
SCHEMES = ("http", "https")
HOST = lazy_pattern(
    r"(?:\*|[^\s/:@?#,*.\[\]]+|(?:[^\s/:@?#,.\[\]]+\.)+[^\s/:@?#,.\[\]]+\.?)(?::\d{1,5})?\Z"
    r"|\[?[0-9A-Fa-f:]+\]?(?::\d{1,5})?\Z"
)
"""What a domain rule usually names: `*` stays between two dots, so beside other letters it needs one."""
BETWEEN_ADDRESSES = lazy_pattern(r"[\s,]+")
ADDRESS = lazy_pattern(r"(?:\w+://)?(?:[^/@]*@)?([^/?#]+)(?:/.*|[?#].*=.*)?\Z")
"""A `?` ends a host only where a query begins: elsewhere it may stand for a letter."""
MAX_CHOICES, MAX_TEXT = 100, 2_000


def mistakes(rule: Rule, tools: Collection[str]) -> Iterator[RuleProblem]:
    """What is wrong with a rule. `tools` are the tools of this session beside those that conventions name."""
    if problem := _unknown_tool(rule, tools):
        yield problem
    elif rule.spec is None:
        return
    elif rule.tool in (BASH, POWERSHELL):
        yield from _command_mistakes(rule, rule.spec)
    elif rule.tool in (READ, EDIT):
        yield from _path_mistakes(rule, rule.spec)
    elif rule.tool == WEB_FETCH:
        yield from _address_mistakes(rule, rule.spec)
    elif rule.tool in NEVER_BY_PATH and not PARAMETER.match(rule.spec):
        family = NEVER_BY_PATH[rule.tool]
        message = f"{rule.tool} takes no path; {family}({rule.spec}) covers all file tools that do this"
        told = [each for problem in _path_mistakes(replace(rule, tool=family), rule.spec) for each in problem.meant]
        yield _problem(rule, "never", message, [(family, rule.spec), *((each.tool, each.spec) for each in told)])


def narrowing_mistakes(rules: Iterable[Rule | RuleProblem], tools: Collection[str]) -> list[RuleProblem]:
    """The mistakes in deny and ask rules, which make a policy weaker than it looks."""
    forbidding = [rule for rule in rules if isinstance(rule, Rule) and rule.behaviour is not Behaviour.ALLOW]
    return [problem for rule in forbidding for problem in mistakes(rule, tools) if problem.meant or problem.broad]


def _unknown_tool(rule: Rule, tools: Collection[str]) -> RuleProblem | None:
    name = rule.tool
    if name in GONE:
        return RuleProblem(rule.text, rule.source, f"there is no tool {name!r} any more", rule.behaviour, "never")
    if is_known(name, tools):
        return None
    near = possible_tools(name, tools)
    same = [each for each in near if each.casefold() == name.casefold()]
    hint = f"; names are case-sensitive: {same[0]}" if same else f"; there is {', '.join(near)}" if near else ""
    what = "no tool has a name like" if "*" in name else "there is no tool"
    problem = rule_problem(rule.text, rule.source, f"{what} {name!r}{hint}", rule.behaviour, name=name, kind="never")
    if rule.behaviour is Behaviour.ALLOW:
        return problem
    # tools of this session are known here only
    own = tuple(_ask_rule(rule, problem.message, tool, None) for tool in near)
    return replace(problem, meant=tuple(dict.fromkeys((*own, *problem.meant))), broad=not near)


def _command_mistakes(rule: Rule, spec: str) -> Iterator[RuleProblem]:
    if ":*" in spec[:-2]:
        message = "':*' works only at the end and is literal here; use a space and *"
        yield _problem(rule, "mistake", message, [(rule.tool, spec.replace(":*", " *"))])
    elif rule.behaviour is not Behaviour.ALLOW and rule.tool == BASH and _lacks_arguments(spec):
        message = f"this matches {spec!r} with nothing after it; write Bash({spec} *)"
        yield _problem(rule, "mistake", message, [(rule.tool, f"{spec} *")])


def _lacks_arguments(spec: str) -> bool:
    """Whether a rule is for exactly one command that people give arguments: `rm -rf`, `curl`, `git push`."""
    words = spec.split()
    if "*" in spec or not WORDS.match(spec):
        return False
    return len(words) == 1 or words[-1].startswith("-") or (len(words) == 2 and words[0] in SUB_COMMANDS)


def _path_mistakes(rule: Rule, spec: str) -> Iterator[RuleProblem]:
    tool = rule.tool
    if spec.startswith("/") and not spec.startswith("//"):
        if rule.source.name == "user":
            message = f"in user settings this starts from {rule.source.folder or 'their folder'}; use ~/ or //"
            yield _problem(rule, "mistake", message, [(tool, f"/{spec}"), (tool, f".{spec}"), (tool, f"~{spec}")])
        elif ABSOLUTE.match(spec):
            message = f"one slash is the folder of the settings; the file system's root is /{spec}"
            yield _problem(rule, "mistake", message, [(tool, f"/{spec}")])
    if "$" in spec or DRIVE.match(spec):
        known = HOME.sub("~", spec)
        meant = (tool, known) if known.startswith("~") and "$" not in known else (tool, None)
        yield _problem(
            rule, "mistake", "variables and drive letters are not understood in patterns; use ~/ or //", [meant]
        )
    if "{" in spec and "," in spec:
        choices = expand_braces(spec) if len(spec) <= MAX_TEXT else []
        meant_specs: list[tuple[str, str | None]] = [(tool, each) for each in choices] or [(tool, None)]
        yield _problem(rule, "mistake", "braces are literal in patterns; write one rule for each", meant_specs)


def _address_mistakes(rule: Rule, spec: str) -> Iterator[RuleProblem]:
    """`domain:` takes a host; other parameters are compared as they are, and an address is none."""
    parameter, _, value = spec.partition(":")
    if parameter == "domain":
        yield from _domain_mistakes(rule, value.strip())
    elif parameter in SCHEMES or "*" in value:
        yield _no_address(rule, spec if parameter in SCHEMES else value)


def _domain_mistakes(rule: Rule, domain: str) -> Iterator[RuleProblem]:
    if HOST.match(domain):
        return
    if len(domain) > MAX_TEXT:
        message = "this is longer than any host; write WebFetch(domain:host)"
        yield _problem(rule, "mistake", message, [(WEB_FETCH, None)])
    elif not may_match(domain):
        yield _no_address(rule, domain)
    elif "*" in domain and not domain.startswith("[") and "." not in domain:
        message = "* stays between two dots, so this matches only hosts without a dot; write WebFetch(domain:host)"
        yield _problem(rule, "mistake", message, [(WEB_FETCH, None)])


def _no_address(rule: Rule, text: str) -> RuleProblem:
    hosts = _named_hosts(text)
    meant: list[tuple[str, str | None]] = [(WEB_FETCH, f"domain:{host}") for host in hosts]
    message = f"this matches no address; write WebFetch(domain:{hosts[0] if hosts else 'host'})"
    return _problem(rule, "never", message, meant or [(WEB_FETCH, None)])


def _named_hosts(text: str) -> list[str]:
    """The hosts in a list of addresses; nothing if one of them is not clear, or if there are too many."""
    addresses = [each for each in BETWEEN_ADDRESSES.split(text[: MAX_TEXT + 1]) if each]
    if len(text) > MAX_TEXT or len(addresses) > MAX_CHOICES:
        return []
    found: list[str] = []
    for address in addresses:
        named = ADDRESS.match(address)
        host = named[1].removesuffix(":*") if named else ""
        found += [host[1:], f"*{host}"] if host.startswith(".") else [host]
    return found if all(map(HOST.match, found)) else []


def _problem(rule: Rule, kind: str, message: str, meant: Iterable[tuple[str, str | None]]) -> RuleProblem:
    if rule.behaviour is Behaviour.ALLOW:
        return RuleProblem(rule.text, rule.source, message, rule.behaviour, kind)
    rules = tuple(_ask_rule(rule, message, tool, spec) for tool, spec in meant)
    return RuleProblem(rule.text, rule.source, message, rule.behaviour, kind, rules)


def _ask_rule(rule: Rule, message: str, tool: str, spec: str | None) -> Rule:
    return Rule(rule.text, tool, spec, Behaviour.ASK, rule.source, message)


def expand_braces(spec: str) -> list[str]:
    """What a shell would make of the braces; nothing if that is not clear."""
    texts = [spec]
    while found := next(filter(None, map(BRACES.search, texts)), None):
        choices = found[1].split(",")
        if len(texts) * len(choices) > MAX_CHOICES:
            return []
        texts = [each.replace(found[0], choice, 1) for each in texts for choice in choices]
    return [] if any("{" in text for text in texts) else list(dict.fromkeys(texts))
