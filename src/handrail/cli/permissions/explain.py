"""`handrail permissions explain`: why a call is allowed, asked about or denied, and what would change that."""

import argparse
import asyncio
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from handrail.cli.permissions.calls import KnownTools, hook_json, open_preview, rule_json
from handrail.cli.terminal import ReportScreen
from handrail.conversation.plain import plain_json
from handrail.dispatch.approval.question import FILES
from handrail.permissions.case import Case
from handrail.permissions.decide import case_of, listing_once
from handrail.permissions.layers import LAYERS, decide, outcome, winner
from handrail.permissions.matching import all_matches
from handrail.permissions.modes import MODES
from handrail.permissions.open_commands import CLEAN
from handrail.permissions.policy import Policy
from handrail.permissions.risk import risk
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.permissions.suggest import suggest
from handrail.processes.sandbox_contract import Standing, Where
from handrail.session.preview import PreviewedCall

TRUSTED = "if the folder is trusted: handrail trust"
EXIT = {"allow": 0, "ask": 1, "deny": 1, "error": 1}


def run(chosen: argparse.Namespace) -> int:
    """Exit code 0: the call would run without a question; 1: it would not."""
    explained = asyncio.run(explain(chosen))
    if chosen.json:
        print(plain_json(explained))
    else:
        print(format_explanation(explained, ReportScreen(sys.stdout)))
    return EXIT[explained["decision"]]


async def explain(chosen: argparse.Namespace) -> dict[str, Any]:
    async with open_preview(chosen) as preview:
        tools = KnownTools(preview.loaders)
        request = tools.request(tools.read_call(chosen.tool, chosen.input), preview.policy.cwd)
        found = await preview.look(request, preview.policy, lookup=listing_once())
        report = {**explanation(found, hooks_asked=chosen.run_hooks), "files": list(preview.files)}
        if preview.ignores_folder:
            async with open_preview(chosen, lambda _warning: None, trust=True) as trusted:
                report["changes"] = [
                    *try_change(found, report["decision"], trusted.policy, TRUSTED),
                    *report["changes"],
                ]
        return report


def explanation(call: PreviewedCall, *, hooks_asked: bool) -> dict[str, Any]:
    """Everything that led to a decision, as JSON."""
    case, decision = call.case, call.decision
    policy, why, danger = case.policy, call.decider, risk(case)
    return {
        "tool": case.use.name,
        "input": dict(case.use.input),
        "decision": outcome(decision),
        "reason": decision.reason,
        "layer": why.layer,
        "rule": why.source,
        "mode": policy.mode,
        "files": list(policy.settings_files),
        "version": decision.version,
        "risk": {"level": danger.level.value, "reasons": list(danger.reasons)},
        "opinions": list(opinions(call)),
        "matched": [rule_json(rule) for rule in all_matches(case)],
        "hooks": {
            "asked": hooks_asked,
            "answered": any(opinion.layer == "hooks" for opinion in decision.opinions),
            "matching": [hook_json(hook) for hook in call.hooks],
        },
        "sandbox": sandbox_json(call.standing),
        "paths": [path_json(file) for file in (*case.files, *case.named_files) if not file.shown.startswith("-")],
        "segments": list(segments(case)),
        "conditions": list(conditions(case)),
        "changes": list(changes(outcome(decision), call)),
    }


def sandbox_json(standing: Standing | None) -> dict[str, Any] | None:
    """Where a command line would run; None if no sandbox has to do with it."""
    if standing is None:
        return None
    return {"where": standing.where.value, "unasked": standing.spares, "reason": standing.reason}


def opinions(call: PreviewedCall) -> Iterator[dict[str, Any]]:
    """The opinion of each layer, in order; the one that decides is marked."""
    case, why = call.case, call.decider
    given = []
    for layer in LAYERS:
        opinion = layer(case)
        name = layer.__name__.replace("_", " ")
        if opinion is None:
            yield {"asked": name, "says": None}
            continue
        given.append(opinion)
        yield opinion_json(name, opinion, decides=opinion == why)
    for opinion in call.decision.opinions:
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


def changes(now: str, call: PreviewedCall) -> Iterator[dict[str, str]]:
    """Changes that would give another answer. Each of them was tried, with the answers that hooks gave."""
    case = call.case
    policy, tried = case.policy, partial(try_change, call, now)
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


def try_change(call: PreviewedCall, now: str, policy: Policy, change: str) -> Iterator[dict[str, str]]:
    decision = decide(case_of(call.request, policy, call.evidence, call.lookup))
    then = outcome(decision)
    if then != now or " rule " in change:  # that a rule alone changes nothing is worth knowing
        yield {"change": change, "decision": then, "reason": decision.reason, "rule": winner(decision).source}


# For people


def format_explanation(explained: dict[str, Any], screen: ReportScreen) -> str:
    lines = [screen.paint_word(line) for line in screen.wrap(f"{explained['decision']}: {explained['reason']}", 2)]
    lines += screen.wrap(f"  {explained['rule']}", 2) if explained["rule"] else []
    lines += [line for text in cautions(explained) for line in screen.wrap(f"  {text}", 2)]
    lines += ["", f"mode {explained['mode']}, risk {explained['risk']['level']}"]
    lines += ["", screen.heading("what each layer says")]
    width = max(len(opinion["asked"]) for opinion in explained["opinions"])
    for opinion in explained["opinions"]:
        head = f"{'>' if opinion.get('decides') else ' '} {opinion['asked']:{width}}  {opinion['says'] or '-':5}  "
        rule = f"  [{opinion['rule']}]" if opinion.get("rule") else ""
        lines += screen.wrap_row(head, f"{opinion['reason']}{rule}" if opinion["says"] else "")
    lines += section(screen, "hooks", [hook_text(each) for each in explained["hooks"]["matching"]])
    lines += section(screen, "sandbox", [sandbox_text(explained["sandbox"])] if explained["sandbox"] else [])
    lines += section(screen, "commands", [segment_text(each) for each in explained["segments"]])
    lines += section(screen, "paths", [path_text(each) for each in explained["paths"]])
    lines += section(screen, "only while", explained["conditions"])
    lines += section(screen, "settings", explained["files"])
    answers = [f"{each['decision']:5}  {each['change']}" for each in explained["changes"]]
    lines += [screen.paint_word(line) for line in section(screen, "another answer", answers, hang=9)]
    return "\n".join(lines)


def cautions(explained: dict[str, Any]) -> Iterator[str]:
    """What the decision leaves out."""
    hooks = explained["hooks"]
    count = len(hooks["matching"])
    if count and hooks["asked"] and not hooks["answered"]:
        yield f"{count} hook{'s were' if count > 1 else ' was'} asked and had no opinion"
    elif count and not hooks["asked"]:
        yield f"{count} hook{'s' * (count > 1)} would be asked first and may decide otherwise; --run-hooks asks now"


def section(screen: ReportScreen, title: str, lines: list[str], hang: int = 4) -> list[str]:
    found = [line for text in dict.fromkeys(lines) for line in screen.wrap(f"  {text}", hang)]
    return ["", screen.heading(title), *found] if found else []


def hook_text(hook: dict[str, str]) -> str:
    return f"{hook['event']}: {hook['hook']} ({hook['source']})"


def sandbox_text(sandbox: dict[str, Any]) -> str:
    match Where(sandbox["where"]):
        case Where.INSIDE if sandbox["unasked"]:
            return "the command would run inside, which needs no consent"
        case Where.INSIDE:
            return "the command would run inside, and needs consent all the same"
        case Where.OUTSIDE:
            return f"the command would run outside: {sandbox['reason'] or 'it is exempt'}"
        case Where.REFUSED:
            return f"the command would not run: {sandbox['reason']}"


def segment_text(segment: dict[str, Any]) -> str:
    kind = "read-only" if segment["read_only"] else "not read-only"
    need = ", needs a rule" if segment["needs_rule"] else ""
    return f"{segment['command'] or '(the line)'}: {kind}{need}" + (f": {segment['why']}" if segment["why"] else "")


def path_text(path: dict[str, Any]) -> str:
    lead = f" -> {path['real']}" if path["real"] and path["real"] != path["path"] else ""
    remark = path["doubt"] or (f"protected ({path['protected']})" if path["protected"] else "")
    return f"{path['access']} {path['path']}{lead}" + (f": {remark}" if remark else "")
