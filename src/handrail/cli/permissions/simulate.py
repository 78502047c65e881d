"""`handrail permissions simulate`: the calls of audit logs or sessions, decided again by another policy."""

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from handrail.cli.permissions.calls import KnownTools, open_preview
from handrail.cli.permissions.recorded import Recorded, Surroundings, of_session, read
from handrail.cli.terminal import ReportScreen
from handrail.conversation.plain import plain_json
from handrail.permissions.decide import case_of
from handrail.permissions.layers import decide, outcome
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.permissions.suggest import suggest
from handrail.processes.sandbox_contract import Where
from handrail.session.preview import PreviewedCall
from handrail.session.state_folder import session_store, state_folder

SAME, DIFFERENT = 0, 1
MAX_RULES = 20
PROPOSED = RuleSource("proposed")


def run(chosen: argparse.Namespace) -> int:
    """Exit code 0: no decision would change; 1: at least one would."""
    report = asyncio.run(simulate(chosen))
    lines = [plain_json(report)] if chosen.json else ReportScreen(sys.stdout).wrap(format_report(report))
    print("\n".join(lines))
    return DIFFERENT if report["changed"] else SAME


async def simulate(chosen: argparse.Namespace) -> dict[str, Any]:
    async with open_preview(chosen) as preview:
        calls = calls_of(chosen, KnownTools(preview.loaders))
        replay = Replay(preview.policy, mode=chosen.mode)
        results = [(call, await preview.look(call.request, replay.policy(call), call.evidence)) for call in calls]
    changed = [
        {
            "tool": call.request.use.name,
            "input": dict(call.request.use.input),
            "before": call.before,
            "after": outcome(found.decision),
            "reason": found.decision.reason,
            "rule": found.decider.source,
        }
        for call, found in results
        if outcome(found.decision) != call.before
    ]
    asked = [(call, found) for call, found in results if outcome(found.decision) == "ask"]
    rules, saved = proposal(asked, results, replay)
    return {
        "calls": len(calls),
        "changed": changed,
        "prompts": {"before": sum(call.before == "ask" for call in calls), "after": len(asked)},
        "proposal": {"rules": rules, "prompts_saved": saved},
        "inexact": sum(call.cut for call in calls),
        "hooks": {"asked": chosen.run_hooks, "calls": sum(bool(found.hooks) for _, found in results)},
        "inside_sandbox": sum(
            found.standing is not None and found.standing.where is Where.INSIDE for _, found in results
        ),
    }


def calls_of(chosen: argparse.Namespace, tools: KnownTools) -> list[Recorded]:
    """The calls that were chosen; HandrailError if a log or a session cannot be read."""
    if chosen.audit:
        return [call for file in chosen.audit for call in read(file, tools)]
    store, state, cwd = session_store(os.environ), state_folder(os.environ), os.path.realpath(chosen.cwd or ".")
    if chosen.sessions:
        paths = [Path(entry.path) for entry in store.entries() if entry.cwd == cwd]
    else:
        paths = [store.find(chosen.session, cwd)]
    return [call for path in paths for call in of_session(path, state / "audit", tools)]


class Replay:
    """The policies to decide recorded calls by: other rules, in the folder and mode that the calls had."""

    def __init__(self, own: Policy, *, mode: str) -> None:
        self._own = own
        self._mode = mode
        self._in = lru_cache(maxsize=256)(self._build_policy)

    def policy(self, call: Recorded, extra: tuple[str, ...] = ()) -> Policy:
        """The policy for a call, with some more rules that allow."""
        return self._in(call.surroundings, extra)

    def allows(self, call: Recorded, found: PreviewedCall, extra: tuple[str, ...]) -> bool:
        """Whether a call would pass with these rules."""
        return outcome(decide(case_of(found.request, self.policy(call, extra), found.evidence))) == "allow"

    def _build_policy(self, there: Surroundings, extra: tuple[str, ...]) -> Policy:
        own = self._own
        policy = Policy.empty(there.cwd, there.home).with_availability(own.availability)
        policy = policy.with_directories(there.folders).with_kept(there.kept).with_own(own.own)
        policy = policy.with_rules((*own.rules, *own.problems)).with_mode(self._mode or there.mode)
        return policy.adding(Behaviour.ALLOW, extra, PROPOSED) if extra else policy


def proposal(
    asked: list[tuple[Recorded, PreviewedCall]], results: list[tuple[Recorded, PreviewedCall]], replay: Replay
) -> tuple[list[str], int]:
    """A small set of rules for questions always answered with yes; none of them allows a call that a person refused."""
    suggested = (tuple(each.rule for each in suggest(found.case) if each.rule) for call, found in asked if call.agreed)
    groups = Counter(filter(None, suggested))
    refused = [(call, found) for call, found in results if call.refused]
    chosen: tuple[str, ...] = ()
    for rules, _ in groups.most_common():
        more = (*chosen, *(rule for rule in rules if rule not in chosen))
        if len(more) > MAX_RULES or more == chosen:
            continue
        if not any(replay.allows(call, found, more) for call, found in refused):
            chosen = more
    saved = sum(replay.allows(call, found, chosen) for call, found in asked) if chosen else 0
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
    if report["inside_sandbox"]:
        lines.append(f"{report['inside_sandbox']} command lines would run inside the sandbox")
    if report["hooks"]["calls"]:
        how = "were asked again" if report["hooks"]["asked"] else "would be asked again, which --run-hooks does"
        lines.append(f"hooks {how}, about {report['hooks']['calls']} of the calls")
    if report["inexact"]:
        lines.append(f"{report['inexact']} inputs were redacted or cut in the log, so their decisions may differ")
    return "\n".join(lines)
