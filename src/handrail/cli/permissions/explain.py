"""`handrail permissions explain`: why a call is allowed, asked about or denied, and what would change that."""

import argparse
import asyncio
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from handrail.cli.permissions.calls import decide_call, policy_of, read_call, request_of, rule_json
from handrail.conversation.blocks import ToolUse
from handrail.conversation.plain import plain
from handrail.dispatch.approval.decide import ask_own_checks
from handrail.dispatch.approval.question import FILES
from handrail.permissions.case import Case
from handrail.permissions.facts import Evidence
from handrail.permissions.layers import CLEAN, LAYERS, outcome, winner
from handrail.permissions.matching import all_matches
from handrail.permissions.modes import MODES
from handrail.permissions.policy import Policy
from handrail.permissions.risk import risk
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.permissions.suggest import suggest
from handrail.tools.permission import Decision

EXIT = {"allow": 0, "ask": 1, "deny": 1, "error": 1}


def run(chosen: argparse.Namespace) -> int:
    """Exit code 0: the call would run without a question; 1: it would not."""
    use = read_call(chosen.tool, chosen.input)
    policy = policy_of(chosen)
    evidence = asyncio.run(ask_own_checks(request_of(use, policy.cwd)))
    case, decision = decide_call(use, policy, evidence)
    explained = explanation(case, decision, evidence)
    print(json.dumps(explained, ensure_ascii=False) if chosen.json else plain(format_explanation(explained)))
    return EXIT[explained["decision"]]


def explanation(case: Case, decision: Decision, evidence: Evidence) -> dict[str, Any]:
    """Everything that led to a decision, as JSON."""
    policy, why, danger = case.policy, winner(decision), risk(case)
    return {
        "tool": case.use.name,
        "input": dict(case.use.input),
        "decision": outcome(decision),
        "reason": decision.reason,
        "layer": why.layer,
        "rule": why.source,
        "mode": policy.mode,
        "version": decision.version,
        "risk": {"level": danger.level.value, "reasons": list(danger.reasons)},
        "opinions": list(opinions(case, decision)),
        "matched": [rule_json(rule) for rule in all_matches(case)],
        "paths": [path_json(file) for file in case.files if not file.shown.startswith("-")],
        "segments": list(segments(case)),
        "conditions": list(conditions(case)),
        "changes": list(changes(outcome(decision), case, evidence)),
    }


def opinions(case: Case, decision: Decision) -> Iterator[dict[str, Any]]:
    """The opinion of each layer, in order; the one that decides is marked."""
    why = winner(decision)
    given = []
    for layer in LAYERS:
        opinion = layer(case)
        name = layer.__name__.replace("_", " ")
        if opinion is None:
            yield {"asked": name, "says": None}
            continue
        given.append(opinion)
        yield opinion_json(name, opinion, decides=opinion == why)
    for opinion in decision.opinions:
        if opinion not in given:
            yield opinion_json("last resort", opinion, decides=opinion == why)


def opinion_json(asked: str, opinion: Any, *, decides: bool) -> dict[str, Any]:
    return {
        "asked": asked,
        "says": opinion.verdict.value,
        "strength": opinion.strength.name.lower(),
        "reason": opinion.reason,
        "rule": opinion.source,
        "decides": decides,
    }


def path_json(file: Any) -> dict[str, Any]:
    place = file.place
    return {
        "path": file.shown,
        "access": file.effect.value,
        "real": place.real if place else None,
        "kind": place.kind.value if place else None,
        "doubt": file.doubt,
        "protected": file.protected,
    }


def segments(case: Case) -> Iterator[dict[str, Any]]:
    """The commands of a line: whether each is read-only, why not, and whether it needs a rule."""
    for at, part in enumerate(case.parts):
        blocked = "; ".join(t.doubt for t in case.files if t.part == at and t.doubt and not t.clear)
        yield {
            "command": part.shown,
            "read_only": part.read_only,
            "why": part.why or blocked or (f"only where {CLEAN}" if part.conditional and not case.free[at] else ""),
            "needs_rule": not case.free[at],
        }
    for problem in case.analysis.problems if case.analysis else ():
        yield {"command": None, "read_only": False, "why": f"not understood: {problem.text}", "needs_rule": True}


def conditions(case: Case) -> Iterator[str]:
    """The conditions under which commands count as read-only."""
    for segment, part in zip(case.analysis.segments if case.analysis else (), case.parts, strict=True):
        if part.read_only:
            yield from (need.check for need in segment.requires)


def changes(now: str, case: Case, evidence: Evidence) -> Iterator[dict[str, str]]:
    """Changes that would give another answer. Each of them was tried."""
    policy, tried = case.policy, partial(try_change, case.use, now, evidence)
    for rule in all_matches(case):
        without = policy.with_rules([*(r for r in policy.rules if r != rule), *policy.problems])
        yield from tried(without, f"without the {rule.behaviour.value} rule {rule.text} ({rule.source})")
    proposals = [each for each in suggest(case) if each.rule]
    if proposals and now == "ask":
        added = policy.adding(Behaviour.ALLOW, [each.rule for each in proposals], RuleSource("local"))
        where = FILES[proposals[0].destination]
        rules = " and ".join(each.rule for each in proposals)
        yield from tried(added, f"with the allow rule {rules} in {where}")
    for mode in MODES:
        if mode != policy.mode:
            yield from tried(policy.with_mode(mode), f"in mode {mode}")


def try_change(use: ToolUse, now: str, evidence: Evidence, policy: Policy, change: str) -> Iterator[dict[str, str]]:
    _, decision = decide_call(use, policy, evidence)
    then = outcome(decision)
    if then != now or " rule " in change:  # that a rule alone changes nothing is worth knowing
        yield {"change": change, "decision": then, "reason": decision.reason, "rule": winner(decision).source}


# For people


def format_explanation(explained: dict[str, Any]) -> str:
    lines = [f"{explained['decision']}: {explained['reason']}"]
    lines += [f"  {explained['rule']}"] if explained["rule"] else []
    lines += ["", f"mode {explained['mode']}, risk {explained['risk']['level']}", "", "what each layer says"]
    width = max(len(opinion["asked"]) for opinion in explained["opinions"])
    for opinion in explained["opinions"]:
        says = opinion["says"] or "-"
        mark = ">" if opinion.get("decides") else " "
        reason = (
            f"{opinion['reason']}{'  [' + opinion['rule'] + ']' if opinion.get('rule') else ''}"
            if opinion["says"]
            else ""
        )
        lines.append(f"{mark} {opinion['asked']:{width}}  {says:5}  {reason}".rstrip())
    lines += section("commands", [segment_text(each) for each in explained["segments"]])
    lines += section("paths", [path_text(each) for each in explained["paths"]])
    lines += section("only while", explained["conditions"])
    lines += section("another answer", [f"{each['decision']:5}  {each['change']}" for each in explained["changes"]])
    return "\n".join(lines)


def section(title: str, lines: list[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in dict.fromkeys(lines))] if lines else []


def segment_text(segment: dict[str, Any]) -> str:
    kind = "read-only" if segment["read_only"] else "not read-only"
    need = ", needs a rule" if segment["needs_rule"] else ""
    return f"{segment['command'] or '(the line)'}: {kind}{need}" + (f": {segment['why']}" if segment["why"] else "")


def path_text(path: dict[str, Any]) -> str:
    lead = f" -> {path['real']}" if path["real"] and path["real"] != path["path"] else ""
    remark = path["doubt"] or (f"protected ({path['protected']})" if path["protected"] else "")
    return f"{path['access']} {path['path']}{lead}" + (f": {remark}" if remark else "")
