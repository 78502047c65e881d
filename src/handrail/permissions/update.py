"""
Updates of a policy, as hooks and callbacks send them. Each gives a new policy or a problem.

    {"type": "addRules", "behavior": "allow", "destination": "session", "rules": [{"toolName": "Bash", ...}]}

Only the policy in memory changes here; `config` writes the settings files.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from handrail.permissions.mistakes import narrowing_mistakes
from handrail.permissions.modes import MODE_ALIASES, MODES, stricter
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, RuleSource, parse_rule
from handrail.records import record
from handrail.tools.output import ContextChange
from handrail.tools.permission import Update

UPDATES = ("addRules", "replaceRules", "removeRules", "setMode", "addDirectories", "removeDirectories")
DESTINATIONS = {
    "session": "session",
    "localSettings": "local",
    "projectSettings": "project",
    "userSettings": "user",
}


@record
class UpdateProblem:
    """An update that changes nothing, and why."""

    message: str


def apply_update(policy: Policy, update: Mapping[str, Any]) -> Policy | UpdateProblem:
    """The policy after one update. Never raises."""
    kind = update.get("type")
    if kind in ("addRules", "replaceRules", "removeRules"):
        return change_rules(policy, str(kind), update)
    if kind == "setMode":
        mode = update.get("mode")
        if not isinstance(mode, str) or MODE_ALIASES.get(mode, mode) not in MODES:
            return UpdateProblem(f"there is no mode {mode!r}. Use one of {', '.join(MODES)}.")
        return policy.with_mode(mode)
    if kind in ("addDirectories", "removeDirectories"):
        return change_directories(policy, str(kind), update.get("directories"))
    return UpdateProblem(f"there is no update of type {kind!r}. Use one of {', '.join(UPDATES)}.")


def change_policy(policy: Policy, change: ContextChange, *, consented: bool) -> Policy | UpdateProblem:
    """The policy after a context change that a call asks for; one that widens permissions needs consent."""
    after: Policy | UpdateProblem = policy.leaving_plan() if change.leave_plan else policy
    updates: list[Mapping[str, Any]] = []
    if change.mode:
        updates.append({"type": "setMode", "mode": change.mode})
    if change.add_directories:
        updates.append({"type": "addDirectories", "directories": change.add_directories})
    for update in updates:
        after = after if isinstance(after, UpdateProblem) else apply_update(after, update)
    if isinstance(after, UpdateProblem):
        return after
    if change.mode and after.mode != MODE_ALIASES.get(change.mode, change.mode):
        return UpdateProblem(f"the mode {change.mode!r} cannot be entered here; {policy.mode!r} stays")
    if not consented and (wider := find_widening(policy, after)):
        return UpdateProblem(f"{wider} widens what is permitted, which only a person can agree to when asked")
    if change.cwd is not None and after.prefixes and not f"{change.cwd}/".startswith(after.prefixes):
        return UpdateProblem(f"{str(change.cwd)!r} is outside the working folders")
    return after


def find_widening(before: Policy, after: Policy) -> str:
    """What a changed policy permits that the old one did not; empty if nothing."""
    if after.mode != before.mode and not stricter(after.mode, before.mode):
        return f"going from the mode {before.mode} to {after.mode}"
    new = [folder for folder in after.working_dirs if not f"{folder}/".startswith(before.prefixes)]
    return f"the working folder {new[0]!r}" if new else ""


def change_rules(policy: Policy, kind: str, update: Mapping[str, Any]) -> Policy | UpdateProblem:
    destination, behaviour = update.get("destination", "session"), update.get("behavior")
    if not isinstance(destination, str) or destination not in DESTINATIONS:
        return UpdateProblem(f"{destination!r} is not a destination. Use one of {', '.join(DESTINATIONS)}.")
    if behaviour not in ("allow", "ask", "deny"):
        return UpdateProblem(f"{behaviour!r} is not a behavior. Use allow, ask or deny.")
    given, where = Behaviour(behaviour), RuleSource(DESTINATIONS[destination])
    rules = parse_rules(update.get("rules"), given, where)
    if isinstance(rules, UpdateProblem):
        return rules
    known: tuple[Rule | RuleProblem, ...] = (*policy.rules, *policy.problems)
    kept = [rule for rule in known if not drops(kind, rule, given, where, rules)]
    if kind == "removeRules":
        return policy.with_rules(kept)
    return policy.with_rules((*kept, *rules, *narrowing_mistakes(rules, policy.tool_names)))


def drops(
    kind: str, known: Rule | RuleProblem, given: Behaviour, where: RuleSource, rules: tuple[Rule | RuleProblem, ...]
) -> bool:
    """Whether an update takes an existing rule away, or the problem of one."""
    if kind == "addRules" or known.behaviour is not given or known.source.name != where.name:
        return False
    if isinstance(known, RuleProblem) and known.source.file:  # the file is read again when it has changed
        return False
    if kind == "replaceRules":
        return True
    if isinstance(known, RuleProblem):
        return any(rule.text == known.text for rule in rules)
    return any((rule.tool, rule.spec) == (known.tool, known.spec) for rule in rules if isinstance(rule, Rule))


def parse_rules(rules: Any, behaviour: Behaviour, where: RuleSource) -> tuple[Rule | RuleProblem, ...] | UpdateProblem:
    """The rules of an update. A deny or ask rule that cannot be read still narrows; an allow rule does nothing."""
    if not isinstance(rules, list | tuple):
        return UpdateProblem(f"rules is {rules!r}, not a list. Write [{{'toolName': 'Bash'}}].")
    found: list[Rule | RuleProblem] = []
    for rule in rules:
        text = rule_text(rule)
        made = parse_rule(text, behaviour, where) if text is not None else None
        if made is None:
            return UpdateProblem(f"{rule!r} is not a rule. Write {{'toolName': 'Bash', 'ruleContent': 'npm test *'}}.")
        if isinstance(made, RuleProblem) and behaviour is Behaviour.ALLOW:
            return UpdateProblem(f"{made.text!r}: {made.message}")
        found.append(made)
    return tuple(found)


def rule_update(rules: Sequence[str], destination: str = "session") -> Update:
    """The update that adds these allow rules."""
    parts = [rule.partition("(") for rule in rules]
    return {
        "type": "addRules",
        "behavior": "allow",
        "destination": destination,
        "rules": [{"toolName": name, **({"ruleContent": spec[:-1]} if spec else {})} for name, _, spec in parts],
    }


def rule_text(rule: Any) -> str | None:
    if not isinstance(rule, Mapping) or not isinstance(rule.get("toolName"), str):
        return None
    content = rule.get("ruleContent")
    if content is None:
        return str(rule["toolName"])
    return f"{rule['toolName']}({content})" if isinstance(content, str) else None


def change_directories(policy: Policy, kind: str, folders: Any) -> Policy | UpdateProblem:
    if not isinstance(folders, list | tuple) or not all(isinstance(folder, str) for folder in folders):
        return UpdateProblem(f"directories is {folders!r}, not a list of paths. Write ['/path/of/a/folder'].")
    relative = [folder for folder in folders if not folder.startswith("/")]
    if relative:
        return UpdateProblem(f"{relative[0]!r} is not an absolute path. Write it from the root: /path/of/a/folder.")
    if kind == "addDirectories":
        return policy.with_directories((*policy.working_dirs, *folders))
    return policy.with_directories(folder for folder in policy.working_dirs if folder not in folders)
