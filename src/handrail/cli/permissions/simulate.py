"""`handrail permissions simulate`: the calls of an audit log, decided again by another policy."""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from handrail.cli.permissions.calls import policy_of
from handrail.conversation.blocks import ToolUse
from handrail.conversation.plain import plain
from handrail.dispatch.approval.audit import FORMAT
from handrail.dispatch.approval.judging import judge
from handrail.errors import HandrailError
from handrail.permissions.case import Case, Facts
from handrail.permissions.layers import outcome, winner
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Source
from handrail.permissions.suggest import suggest
from handrail.records import record
from handrail.tools.permission import NO_OPINION, Check, Decision, Opinion, Strength, Verdict
from handrail.tools.tool import McpInfo

SAME, DIFFERENT = 0, 1
MAX_RULES = 20
PROPOSED = Source("proposed")


@record
class Surroundings:
    """Where a call was made."""

    cwd: str
    home: str
    folders: tuple[str, ...]
    kept: tuple[str, ...]
    mode: str


@record
class Recorded:
    """A call as the log has it: `before` is what the policy said then, `agreed` whether a person said yes."""

    use: ToolUse
    facts: Facts
    before: str
    agreed: bool
    refused: bool
    surroundings: Surroundings
    cut: bool


def run(chosen: argparse.Namespace) -> int:
    """0: nothing would change; 1: something would."""
    calls = read(chosen.audit)
    own = policy_of(chosen)
    replay = Replay(own, mode=chosen.mode)
    results = [(call, *replay.judge(call)) for call in calls]
    changed = [
        {
            "tool": call.use.name,
            "input": dict(call.use.input),
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
    told = {
        "calls": len(calls),
        "changed": changed,
        "prompts": {"before": sum(call.before == "ask" for call in calls), "after": len(asked)},
        "proposal": {"rules": rules, "prompts_saved": saved},
        "inexact": sum(call.cut for call in calls),
    }
    print(json.dumps(told, ensure_ascii=False) if chosen.json else plain(shown(told)))
    return DIFFERENT if changed else SAME


class Replay:
    """Decides recorded calls by other rules, in the surroundings that they had."""

    def __init__(self, own: Policy, *, mode: str) -> None:
        self._own = own
        self._mode = mode
        self._in = lru_cache(maxsize=256)(self._made)

    def judge(self, call: Recorded, extra: tuple[str, ...] = ()) -> tuple[Case, Decision]:
        return judge(call.use, self._in(call.surroundings, extra), call.facts)

    def _made(self, there: Surroundings, extra: tuple[str, ...]) -> Policy:
        policy = Policy.empty(there.cwd, there.home).with_flags(self._own.flags)
        policy = policy.with_directories(there.folders).with_kept(there.kept)
        policy = policy.with_rules((*self._own.rules, *self._own.problems)).with_mode(self._mode or there.mode)
        return policy.adding(Behaviour.ALLOW, extra, PROPOSED) if extra else policy


def proposal(
    asked: Iterable[tuple[Recorded, Case]], results: list[tuple[Recorded, Case, Decision]], replay: Replay
) -> tuple[list[str], int]:
    """
    The smallest set of rules we find that spares questions to which people always said yes.

    A rule is left out if it would let a call pass that somebody refused.
    """
    groups = Counter(rules for call, case in asked if call.agreed and (rules := wanted(case)))
    refused = [call for call, _, _ in results if call.refused]
    chosen: tuple[str, ...] = ()
    for rules, _ in groups.most_common():
        more = (*chosen, *(rule for rule in rules if rule not in chosen))
        if len(more) > MAX_RULES or more == chosen:
            continue
        if not any(outcome(replay.judge(call, more)[1]) == "allow" for call in refused):
            chosen = more
    saved = sum(outcome(replay.judge(call, chosen)[1]) == "allow" for call, _ in asked) if chosen else 0
    return list(chosen), saved


def wanted(case: Case) -> tuple[str, ...]:
    return tuple(each.rule for each in suggest(case) if each.rule)


# The log


def read(file: str) -> list[Recorded]:
    """
    The calls of an audit log.

    Raises:
        HandrailError: it is none, or of a newer version; the message names the line.
    """
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise HandrailError(f"{file} cannot be read: {reason}.") from error
    found = []
    for number, text in enumerate(lines, 1):
        try:
            found.append(recorded(json.loads(text)))
        except (ValueError, KeyError, TypeError) as error:
            raise HandrailError(f"{file}:{number}: this is no line of an audit log ({error!r}).") from error
    return found


def recorded(line: Mapping[str, Any]) -> Recorded:
    if line["v"] > FORMAT:
        raise HandrailError(f"the log has format {line['v']}, and this handrail reads up to {FORMAT}. Update it.")
    asked, decision = line.get("asked", False), line["decision"]
    text = json.dumps(line["input"])
    return Recorded(
        use=ToolUse(line["call"], line["tool"], dict(line["input"])),
        facts=facts_from(line),
        before="ask" if asked else decision,
        agreed=asked and decision == "allow" and line["by"] not in ("hooks", "classifier", "rules"),
        refused=asked and decision == "deny" and line["by"] in ("person", "callback", "coordinator"),
        surroundings=Surroundings(
            line["cwd"], line["home"], tuple(line["working_dirs"]), tuple(line.get("kept", ())), line["mode"]
        ),
        cut="[redacted:" in text or " more characters]" in text,
    )


def facts_from(line: Mapping[str, Any]) -> Facts:
    facts = line.get("facts", {})
    hook = next((each for each in line["opinions"] if each["layer"] == "hooks" and each["strength"] != "person"), None)
    verdict, reason = facts.get("check", (None, ""))
    return Facts(
        mcp=McpInfo(*facts["mcp"]) if "mcp" in facts else None,
        read_only=facts.get("read_only"),
        destructive=facts.get("destructive", False),
        needs_person=facts.get("needs_person", False),
        hook=hook
        and Opinion(
            Strength[hook["strength"].upper()], Verdict(hook["says"]), "hooks", hook["reason"], hook.get("rule", "")
        ),
        doubt=facts.get("doubt", ""),
        check=Check(Verdict(verdict), reason) if verdict else NO_OPINION,
        unmet=tuple(facts.get("unmet", ())),
    )


def shown(told: Mapping[str, Any]) -> str:
    lines = [f"{told['calls']} calls, {len(told['changed'])} would be decided differently"]
    for each in told["changed"]:
        rule = f" ({each['rule']})" if each["rule"] else ""
        lines.append(
            f"  {each['before']} -> {each['after']}  {each['tool']} {json.dumps(each['input'])}: {each['reason']}{rule}"
        )
    prompts, offer = told["prompts"], told["proposal"]
    lines.append(f"questions: {prompts['before']} then, {prompts['after']} with this policy")
    if offer["rules"]:
        lines.append(f"{offer['prompts_saved']} of these would be spared by rules that people's answers suggest")
        lines += [f"  allow {rule}" for rule in offer["rules"]]
    if told["inexact"]:
        lines.append(f"{told['inexact']} inputs were redacted or cut in the log, so their decisions may differ")
    return "\n".join(lines)
