"""The rules that "always allow" would write: one for each part that no rule allows yet, and none that is too wide."""

import shlex
from typing import TYPE_CHECKING

from handrail.http.addresses import AddressClass
from handrail.lazy import lazy_pattern
from handrail.permissions.case import Case
from handrail.permissions.matching import coverage
from handrail.permissions.rules import BASH, WEB_FETCH, Behaviour, Rule, parse_rule
from handrail.permissions.shell import EXACT_ONLY, compile_shell
from handrail.permissions.wide_rules import RUN_ANYTHING, SUB_COMMANDS, wide_command
from handrail.permissions.wildcards import WORD_END, WildcardPattern
from handrail.records import record
from handrail.tools.mcp_names import normalise, server_name

if TYPE_CHECKING:
    from handrail.permissions.command_parts import CommandPart

MAX_RULES = 5
STAR = r"\*"
# How many words name the action: `git push`, `npm run test`; 0 = no prefix rule.
DEEP = {
    "npm run": 3, "yarn run": 3, "pnpm run": 3, "bun run": 3, "docker compose": 3, "docker image": 3, "gh pr": 3,
    "gh issue": 3, "uv run": 3, "poetry run": 3, "git remote": 3, "git stash": 3, "cargo run": 2, "go run": 0,
    "npm exec": 0, "yarn exec": 0, "pnpm exec": 0, "pnpm dlx": 0, "yarn dlx": 0, "docker run": 0, "docker exec": 0,
    "kubectl exec": 0, "git config": 0, "npm config": 0, "podman run": 0, "podman exec": 0,
}  # fmt: skip
PLAIN = lazy_pattern(r"[A-Za-z0-9_./:@%+,=-]+\Z")


@record
class Suggestion:
    """A rule to write, or a mode to switch to when no rule fits. `destination` says where it is stored."""

    rule: str
    destination: str = "localSettings"
    mode: str = ""


def suggest(case: Case) -> tuple[Suggestion, ...]:
    """Rules that would allow this call and similar ones next time; none where no rule should."""
    if case.facts.check.mode:
        return (Suggestion("", "session", case.facts.check.mode),)
    if case.analysis is not None:
        return tuple(Suggestion(rule) for rule in command_rules(case))
    if case.mcp is not None:
        return (Suggestion(f"mcp__{server_name(case.mcp.server)}__{normalise(case.mcp.tool)}"),)
    if case.targets:
        hosts = tuple(dict.fromkeys(target.host for target in case.targets))
        fine = all(t.host and t.reach is AddressClass.PUBLIC and not t.doubt and t.ordinary for t in case.targets)
        fine = fine and len(hosts) == 1 and all(file.clear for file in case.files)
        return (Suggestion(f"{WEB_FETCH}(domain:{hosts[0]})"),) if fine else ()
    if case.only_edits:
        inside = all(not file.doubt and not file.protected for file in case.files)
        return (Suggestion("", "session", "acceptEdits"),) if inside and case.policy.mode == "default" else ()
    return () if case.files or case.facts.needs_person else tuple(map(Suggestion, tool_rules(case)))


def tool_rules(case: Case) -> tuple[str, ...]:
    """The rule for the call's subject, or for the whole tool if it has none."""
    subject = case.facts.subject
    if not subject:
        return (case.tool,)
    text = f"{case.tool}({subject.replace('*', STAR)})"
    rule = parse_rule(text, Behaviour.ALLOW)
    return (text,) if isinstance(rule, Rule) and rule.spec is not None and case.facts.matches(rule.spec) else ()


def command_rules(case: Case) -> tuple[str, ...]:
    assert case.analysis is not None
    # No command rule covers a redirection or a background job.
    if (
        case.analysis.problems
        or case.background
        or any(t.protected or (t.redirected and not t.clear) for t in case.files)
    ):
        return ()
    wanted = outermost(case.parts, coverage(case).open)
    if any(part.removes for at in wanted for part in case.parts[at : case.parts[at].until]):
        return ()
    found = [rule_for(case.parts[at]) for at in wanted]
    rules = tuple(dict.fromkeys(rule for rule in found if rule))
    return rules if None not in found and len(rules) <= MAX_RULES else ()


def outermost(parts: "tuple[CommandPart, ...]", wanted: tuple[int, ...]) -> list[int]:
    """The wanted parts, without those that another wanted part starts."""
    found: list[int] = []
    for at in wanted:
        if not found or at >= parts[found[-1]].until:
            found.append(at)
    return found


def rule_for(part: "CommandPart") -> str | None:
    """A prefix rule where that is safe, else a rule for the exact command; None when no rule can cover the part."""
    words = part.text.split(WORD_END)
    if not part.plain or not part.text:
        return None
    spec = prefix(words) if not part.exact_only and part.name not in EXACT_ONLY else ""
    return f"{BASH}({spec or exact(words)})" if spec or fits(words) else None


def prefix(words: list[str]) -> str:
    """`git push *`, `npm run test *`, `pytest *`; empty for programs that can run any command."""
    name = words[0]
    if "/" in name or not PLAIN.match(name) or (name in RUN_ANYTHING and name not in SUB_COMMANDS):
        return ""
    depth = DEEP.get(" ".join(words[:2]), 2 if name in SUB_COMMANDS else 1)
    head = words[:depth]
    if depth == 0 or len(head) < depth or not all(PLAIN.match(w) and not w.startswith("-") for w in head):
        return ""
    if (depth == 3 and head[2] in RUN_ANYTHING) or wide_command(head):
        return ""
    return f"{' '.join(head)} *"


def exact(words: list[str]) -> str:
    return " ".join(shlex.quote(word).replace("*", "\\*") if not PLAIN.match(word) else word for word in words)


def fits(words: list[str]) -> bool:
    """Whether the exact rule, parsed again, matches this command and no other."""
    rule = parse_rule(f"{BASH}({exact(words)})", Behaviour.ALLOW)
    return (
        isinstance(rule, Rule)
        and rule.spec is not None
        and compile_shell(rule.spec) == WildcardPattern(WORD_END.join(words))
    )
