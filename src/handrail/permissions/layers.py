"""
What each layer thinks of a call, and the fold that picks the strongest opinion.

A layer looks at one Case and returns an Opinion or None. Nothing here waits, asks or writes: hooks and classifier have
already answered when a Case is built, and the user is asked after `decide`.

    deny > critical > ask > protected > allow > ask by the tool or its paths > mode > classifier > a person

`bypassPermissions` lifts what is protected and everything below it; `dontAsk` turns what would be asked into a no.
"""

from collections.abc import Callable
from typing import TypeAlias

from handrail.http.addresses import AddressClass
from handrail.permissions.agent_limits import exceeded_limit
from handrail.permissions.case import ELSEWHERE, Case
from handrail.permissions.classifier import classify
from handrail.permissions.file_access import INSIDE, READING, REMOVING, FileAccess, FileEffect, guards_files, is_note
from handrail.permissions.matching import (
    allow_rules_by_name,
    allowed_by_name,
    coverage,
    denied_inside,
    matching_rules,
    possible_matches,
)
from handrail.permissions.open_commands import open_reason
from handrail.permissions.paths import below, critical
from handrail.permissions.policy import Policy
from handrail.permissions.rules import EDIT, READ, Behaviour, Rule, RuleProblem
from handrail.tools.permission import Decision, Opinion, Strength, Verdict, strongest

Layer: TypeAlias = Callable[[Case], Opinion | None]


def hooks(case: Case) -> Opinion | None:
    """What the pre-hooks answered."""
    return case.facts.hook


def addresses(case: Case) -> Opinion | None:
    """Refuse addresses that cannot be parsed or are not http or https."""
    for target in case.targets:
        if target.problem:
            return Opinion(Strength.DENY, Verdict.DENY, "input", target.problem)
        if target.refused:
            return Opinion(Strength.DENY, Verdict.DENY, "address", target.refused)
    return None


def deny_rules(case: Case) -> Opinion | None:
    """A matching deny rule, from whatever source, with the place it was written."""
    return by_rule(case, Behaviour.DENY, Strength.DENY, Verdict.DENY)


def ask_rules(case: Case) -> Opinion | None:
    """A matching ask rule."""
    return by_rule(case, Behaviour.ASK, Strength.ASK, Verdict.ASK)


def broken_rules(case: Case) -> Opinion | None:
    """Ask about everything that a deny or ask rule may have meant that cannot work as it is written."""
    for problem in case.policy.problems:
        if problem.broad and not (case.read_only and case.mcp is None and not leaves_machine(case)):
            return Opinion(Strength.ASK, Verdict.ASK, "broken rule", *broken_reason(problem))
        if any(rule.spec is None and concerns_files(case, rule.tool) for rule in problem.meant):
            return Opinion(Strength.ASK, Verdict.ASK, "broken rule", *broken_reason(problem))
    return None


def leaves_machine(case: Case) -> bool:
    """Whether something of the call is sent to another machine."""
    access = case.facts.access
    return bool(access.reaches or access.consults)


def concerns_files(case: Case, family: str) -> bool:
    """Whether a rule of this family could be about a file that a command reads or changes."""
    files = (*case.files, *case.named_files)
    return any(family == READ or (family == EDIT and file.effect not in READING) for file in files)


def broken_reason(problem: Rule | RuleProblem) -> tuple[str, str]:
    """The reason and the source of a question about a rule that cannot work."""
    why = problem.message if isinstance(problem, RuleProblem) else problem.broken
    reason = f"{problem.text!r} may be meant for it, but cannot work as it is written: {why}"
    return reason, f"{problem.source}: {problem.text}"


def hidden_commands(case: Case) -> Opinion | None:
    """Ask about commands that are unknown before they run and may match a deny or ask rule."""
    if case.analysis is None or not (found := possible_matches(case)):
        return None
    reason = f"what it runs is not known in advance, and the rule {found[0].text} may apply to it"
    return Opinion(Strength.ASK, Verdict.ASK, "commands", reason, found[0].written)


def files_inside(case: Case) -> Opinion | None:
    """Ask about files that may be read and that a deny or ask rule matches, and where it is unknown which are."""
    if not case.files:
        return None
    below = [file for file in case.files if file.effect in INSIDE]
    if below and (found := denied_inside(below, case.policy)) is not None:
        file, rule = found
        reason = f"it {file.effect.value} {file.shown!r}, to which the rule {rule.text} applies"
        return Opinion(Strength.ASK, Verdict.ASK, "paths", reason, rule.written)
    doubts = [file.doubt for file in case.files if file.place is None and file.doubt and file.doubt != ELSEWHERE]
    if doubts and guards_files(case.policy):
        return Opinion(Strength.ASK, Verdict.ASK, "paths", f"{doubts[0]}, and a rule keeps some files back")
    return None


def named_folders(case: Case) -> Opinion | None:
    """Ask about a folder in the input of a foreign tool that holds kept back files; a rule for the tool lifts it."""
    if not case.named_files:
        return None
    below = [file for file in case.named_files if file.effect in INSIDE]
    if not below or any(rule.tool == case.tool for rule in allow_rules_by_name(case)):
        return None
    if (found := denied_inside(below, case.policy)) is not None:
        file, rule = found
        reason = f"a folder that it names holds {file.shown!r}, to which the rule {rule.text} applies"
        return Opinion(Strength.ASK, Verdict.ASK, "paths", reason, rule.written)
    doubt = next((file.doubt for file in below if file.place is None), "")
    return Opinion(Strength.ASK, Verdict.ASK, "paths", f"{doubt}, and a rule keeps some files back") if doubt else None


UNDECLARED = "declaration"
"""The layer of the question about a tool that does not say what it touches."""
BY_RULE = {kind: f"{kind.value} rule" for kind in Behaviour}


def by_rule(case: Case, kind: Behaviour, strength: Strength, verdict: Verdict) -> Opinion | None:
    if case.policy.index[kind].empty or not (found := matching_rules(case, kind)):
        return None
    rule = next((rule for rule in found if not rule.broken), found[0])
    if rule.broken:
        return Opinion(strength, verdict, "broken rule", *broken_reason(rule))
    return Opinion(strength, verdict, BY_RULE[kind], f"the rule {rule.text} matches", rule.written)


def allow_rules(case: Case) -> Opinion | None:
    """An allow rule that covers the call; for a command line, rules that together cover every part that needs one."""
    if case.analysis is None:
        return by_rule(case, Behaviour.ALLOW, Strength.ALLOW, Verdict.ALLOW)
    settled = bool(case.free) and all(case.free) and not case.analysis.problems
    if settled and case.policy.index[Behaviour.ALLOW].empty:
        return None
    found = coverage(case)
    if found.covered:
        rules = found.whole[:1] or found.used
        texts = ", ".join(rule.text for rule in rules)
        return Opinion(Strength.ALLOW, Verdict.ALLOW, "allow rule", f"covered by {texts}", rules[0].written)
    return None if settled else Opinion(Strength.PERSON, Verdict.ASK, "person", open_reason(case, found))


def plan(case: Case) -> Opinion | None:
    """Plan mode refuses everything that is not read-only, and asks about MCP tools that claim to be."""
    if case.policy.mode != "plan" or case.access.own or writes_plan(case):
        return None
    if not case.read_only and case.policy.can_ask:
        return Opinion(Strength.ASK, Verdict.ASK, "mode", "plan mode asks about everything that does not only read")
    if not case.read_only:
        return Opinion(Strength.DENY, Verdict.DENY, "mode", "plan mode refuses everything that does not only read")
    if case.mcp is not None:
        reason = f"plan mode does not rely on what the server {case.mcp.server!r} says of its tool"
        return Opinion(Strength.ASK, Verdict.ASK, "mode", reason)
    return None


def writes_plan(case: Case) -> bool:
    """Whether it writes the plan file, the only file that may be written in plan mode."""
    return (
        bool(case.policy.plan_file)
        and case.only_edits
        and all(file.place is not None and file.place.real == case.policy.plan_file for file in case.files)
    )


def agent_limits(case: Case) -> Opinion | None:
    """Refuse what the definition of the calling agent leaves out of a tool that it gives in part."""
    if not case.policy.agent_tools or (limit := exceeded_limit(case)) is None:
        return None
    reason = f"the definition of this agent gives it {limit.tool} only as {', '.join(limit.texts)}"
    return Opinion(Strength.DENY, Verdict.DENY, "agent", reason)


def writes_notes(case: Case) -> bool:
    """Whether it only writes notes of the calling agent."""
    notes = case.policy.notes
    return (
        bool(notes)
        and case.only_edits
        and bool(case.files)
        and all(file.place is not None and is_note(file.place, notes) for file in case.files)
    )


def needs_person(case: Case) -> Opinion | None:
    """Ask for tools whose answer comes from the user."""
    if not case.facts.needs_person:
        return None
    return Opinion(Strength.ASK, Verdict.ASK, "tool", "it needs a person's answer")


def critical_paths(case: Case) -> Opinion | None:
    """Ask before removing the root, home or project folder, or reaching an address that hands out credentials."""
    for target in (*case.targets, *case.named_targets):
        if target.reach is AddressClass.METADATA:
            return Opinion(Strength.CRITICAL_PATH, Verdict.ASK, "address", f"{target.host} hands out credentials")
    for file in case.files:
        if file.effect in REMOVING and file.place is not None and removes_all(case, file):
            return Opinion(Strength.CRITICAL_PATH, Verdict.ASK, "paths", f"{file.shown!r} must not be removed")
    return None


def removes_all(case: Case, file: FileAccess) -> bool:
    """Whether a critical folder is removed or partly emptied; working folders may be partly emptied."""
    assert file.place is not None
    policy, paths = case.policy, {file.place.absolute, file.place.real}
    if file.effect is FileEffect.REMOVE_SOME and all(inside_work(path, policy) for path in paths):
        return False
    return any(critical(path, policy.home, policy.working_dirs) for path in paths)


def inside_work(path: str, policy: Policy) -> bool:
    """True in a working folder, unless that is the home folder itself or above it."""
    return any(below(path, folder) and not below(policy.home, path) for folder in policy.working_dirs)


def protected_paths(case: Case) -> Opinion | None:
    """Ask before writing files that affect what runs later, and about disguised addresses, or inside without a rule."""
    if case.policy.mode == "plan" and writes_plan(case):
        return None
    found = ""
    for target in case.targets:
        inside = f"{target.host} is on this machine or in its network"
        named = case.policy.index[Behaviour.ALLOW].domains.allows_by_name(target)
        found = found or (inside if target.reach is AddressClass.INTERNAL and not named else target.doubt)
    for file in (*case.files, *case.named_files):
        if file.protected:
            found = f"{file.shown!r} is protected ({file.protected})"
            break
    return lift_in_bypass(case, Opinion(Strength.PROTECTED_PATH, Verdict.ASK, "paths", found)) if found else None


def tool_check(case: Case) -> Opinion | None:
    """The tool's own permission check."""
    check = case.facts.check
    if check.verdict is Verdict.DENY:
        return Opinion(Strength.DENY, Verdict.DENY, "tool", check.reason)
    if check.verdict is Verdict.ALLOW:
        return Opinion(Strength.MODE, Verdict.ALLOW, "tool", check.reason)
    if check.verdict is Verdict.ASK:
        return lift_in_bypass(case, Opinion(Strength.TOOL_ASK, Verdict.ASK, "tool", check.reason))
    return None


def validation(case: Case) -> Opinion | None:
    """Ask where the tool's validation was not sure."""
    doubtful = case.facts.doubt
    return lift_in_bypass(case, Opinion(Strength.TOOL_ASK, Verdict.ASK, "tool", doubtful)) if doubtful else None


def path_scope(case: Case) -> Opinion | None:
    """Ask about files outside the working folders, with odd spellings, of special kinds, or with secrets."""
    if case.policy.mode == "plan" and writes_plan(case):
        return None
    for file in case.files:
        if file.doubt and not file.clear:
            reason = file.doubt
            if file.secret:
                reason = f"{file.shown!r} may hold secrets, so only a rule that names its path allows it: {file.secret}"
            return lift_in_bypass(case, Opinion(Strength.TOOL_ASK, Verdict.ASK, "paths", reason))
    return None


def declaration(case: Case) -> Opinion | None:
    """Ask if rules keep files back and the files of a call are not declared; an allow rule by name lifts it."""
    access = case.facts.access
    if access.declared or not guards_files(case.policy) or (not access.failed and allowed_by_name(case)):
        return None
    says = (
        "cannot declare which files this call touches" if access.failed else "does not declare which files it touches"
    )
    reason = f"{case.tool} {says}, and there are rules that protect files"
    return Opinion(Strength.ASK, Verdict.ASK, UNDECLARED, reason)


def lift_in_bypass(case: Case, opinion: Opinion) -> Opinion:
    """In bypassPermissions, keep an objection for the record but give it no weight."""
    if case.policy.mode != "bypassPermissions":
        return opinion
    reason = f"{opinion.reason} (lifted by bypassPermissions)"
    return Opinion(Strength.PERSON, opinion.verdict, opinion.layer, reason, opinion.source)


READS = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "it only reads")
BYPASS = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "bypassPermissions lets it pass")
EDITS = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "it only edits files that may be edited")
HARMLESS = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "it changes nothing outside the conversation")
NOTES = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "it writes the agent's own notes")
PLAN_FILE = Opinion(Strength.MODE, Verdict.ALLOW, "mode", "it writes the plan")


def mode(case: Case) -> Opinion | None:
    """What the mode allows: reads in the working folders, read-only commands, accepted edits, or everything."""
    policy = case.policy
    if policy.mode == "bypassPermissions":
        return BYPASS
    if policy.mode == "plan" and writes_plan(case):
        return PLAN_FILE
    access = case.facts.access
    if access.own:
        return HARMLESS
    if policy.notes and writes_notes(case):
        return NOTES
    if leaves_machine(case) or case.mcp is not None:  # it may only read, but what it is asked for leaves the machine
        return None
    if access.runs is not None:
        if case.analysis is None or case.analysis.problems or not case.parts or access.changes_files:
            return None
        return None if not all(case.free) else READS if case.read_only else EDITS
    if case.read_only:
        return READS
    return EDITS if policy.mode == "acceptEdits" and case.only_edits else None


def classifier(case: Case) -> Opinion | None:
    """Mode auto only: what the classifier says where no other layer has an opinion."""
    if case.policy.mode != "auto":
        return None
    if case.facts.classifier is not None:
        said = case.facts.classifier
        return Opinion(Strength.CLASSIFIER, said.verdict, "classifier", said.reason, said.source)
    return classify(case)


def person(case: Case) -> Opinion:
    """Ask about everything that no layer decided."""
    reason = f"no rule allows {case.tool} here, and mode {case.policy.mode} does not allow it"
    return Opinion(Strength.PERSON, Verdict.ASK, "person", reason)


LAYERS: tuple[Layer, ...] = (
    hooks,
    addresses,
    deny_rules,
    agent_limits,
    plan,
    critical_paths,
    ask_rules,
    broken_rules,
    hidden_commands,
    files_inside,
    named_folders,
    declaration,
    needs_person,
    protected_paths,
    allow_rules,
    tool_check,
    validation,
    path_scope,
    mode,
    classifier,
)


def decide(case: Case) -> Decision:
    """The strongest opinion decides; without any, the user is asked. The decision keeps all opinions and places."""
    opinions = [opinion for layer in LAYERS if (opinion := layer(case)) is not None]
    if not opinions:
        opinions.append(person(case))
    decisive = strongest(opinions)
    if decisive.verdict is Verdict.ASK and case.policy.mode == "dontAsk":
        reason = f"dontAsk refuses what would be asked: {decisive.reason}"
        decisive = Opinion(Strength.DENY, Verdict.DENY, "mode", reason)
        opinions.append(decisive)
    return Decision(
        decisive.verdict,
        decisive.reason,
        tuple(opinions),
        case.policy.version,
        places=tuple([file.place for file in case.files if file.place]),
        left_out=tuple([(file.left_out, file.shown) for file in case.files if file.left_out]),
    )


def outcome(decision: Decision) -> str:
    """allow, ask or deny; error for an input that is refused as malformed."""
    return "error" if winner(decision).layer == "input" else decision.verdict.value


def winner(decision: Decision) -> Opinion:
    """The opinion that decided."""
    return strongest(decision.opinions)
