"""`handrail permissions simulate`: the calls of audit logs or sessions, decided again by another policy."""

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from handrail.cli.permissions.calls import policy_of
from handrail.cli.permissions.recorded import Recorded, Surroundings, of_session, read
from handrail.conversation.plain import plain
from handrail.permissions.case import Case
from handrail.permissions.decide import case_of, decide_case
from handrail.permissions.layers import outcome, winner
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.permissions.suggest import suggest
from handrail.session.state_folder import session_store, state_folder
from handrail.tools.permission import Decision

SAME, DIFFERENT = 0, 1
MAX_RULES = 20
PROPOSED = RuleSource("proposed")


def run(chosen: argparse.Namespace) -> int:
    """Exit code 0: no decision would change; 1: at least one would."""
    own = policy_of(chosen)
    calls = calls_of(chosen)
    replay = Replay(own, mode=chosen.mode)
    results = [(call, *replay.decide(call)) for call in calls]
    changed = [
        {
            "tool": call.request.use.name,
            "input": dict(call.request.use.input),
            "before": call.before,
            "after": outcome(decision),
            "reason": decision.reason,
            "rule": winner(decision).source,
        }
        for call, _, decision in results
        if outcome(decision) != call.before
    ]
    asked = [(call, case) for call, case, decision in results if outcome(decision) == "ask"]
    rules, saved = proposal(asked, results, replay)
    report = {
        "calls": len(calls),
        "changed": changed,
        "prompts": {"before": sum(call.before == "ask" for call in calls), "after": len(asked)},
        "proposal": {"rules": rules, "prompts_saved": saved},
        "inexact": sum(call.cut for call in calls),
    }
    print(json.dumps(report, ensure_ascii=False) if chosen.json else plain(format_report(report)))
    return DIFFERENT if changed else SAME


def calls_of(chosen: argparse.Namespace) -> list[Recorded]:
    """The calls that were chosen; HandrailError if a log or a session cannot be read."""
    if chosen.audit:
        return [call for file in chosen.audit for call in read(file)]
    store, state, cwd = session_store(os.environ), state_folder(os.environ), os.path.realpath(chosen.cwd or ".")
    if chosen.sessions:
        paths = [Path(entry.path) for entry in store.entries() if entry.cwd == cwd]
    else:
        paths = [store.find(chosen.session, cwd)]
    return [call for path in paths for call in of_session(path, state / "audit")]


class Replay:
    """Decides recorded calls by other rules, in the folder and mode that they had."""

    def __init__(self, own: Policy, *, mode: str) -> None:
        self._own = own
        self._mode = mode
        self._in = lru_cache(maxsize=256)(self._build_policy)

    def decide(self, call: Recorded, extra: tuple[str, ...] = ()) -> tuple[Case, Decision]:
        case = case_of(call.request, self._in(call.surroundings, extra), call.evidence)
        return case, decide_case(case)

    def _build_policy(self, there: Surroundings, extra: tuple[str, ...]) -> Policy:
        policy = Policy.empty(there.cwd, there.home).with_availability(self._own.availability)
        policy = policy.with_directories(there.folders).with_kept(there.kept).with_own(self._own.own)
        policy = policy.with_rules((*self._own.rules, *self._own.problems)).with_mode(self._mode or there.mode)
        return policy.adding(Behaviour.ALLOW, extra, PROPOSED) if extra else policy


def proposal(
    asked: Iterable[tuple[Recorded, Case]], results: list[tuple[Recorded, Case, Decision]], replay: Replay
) -> tuple[list[str], int]:
    """A small set of rules for questions always answered with yes; none of them allows a call that a person refused."""
    suggested = (tuple(each.rule for each in suggest(case) if each.rule) for call, case in asked if call.agreed)
    groups = Counter(filter(None, suggested))
    refused = [call for call, _, _ in results if call.refused]
    chosen: tuple[str, ...] = ()
    for rules, _ in groups.most_common():
        more = (*chosen, *(rule for rule in rules if rule not in chosen))
        if len(more) > MAX_RULES or more == chosen:
            continue
        if not any(outcome(replay.decide(call, more)[1]) == "allow" for call in refused):
            chosen = more
    saved = sum(outcome(replay.decide(call, chosen)[1]) == "allow" for call, _ in asked) if chosen else 0
    return list(chosen), saved


def format_report(report: Mapping[str, Any]) -> str:
    lines = [f"{report['calls']} calls, {len(report['changed'])} would be decided differently"]
    for each in report["changed"]:
        rule = f" ({each['rule']})" if each["rule"] else ""
        lines.append(
            f"  {each['before']} -> {each['after']}  {each['tool']} {json.dumps(each['input'])}: {each['reason']}{rule}"
        )
    prompts, offer = report["prompts"], report["proposal"]
    lines.append(f"questions: {prompts['before']} then, {prompts['after']} with this policy")
    if offer["rules"]:
        lines.append(f"{offer['prompts_saved']} of these would be spared by rules that people's answers suggest")
        lines += [f"  allow {rule}" for rule in offer["rules"]]
    if report["inexact"]:
        lines.append(f"{report['inexact']} inputs were redacted or cut in the log, so their decisions may differ")
    return "\n".join(lines)
