"""`handrail audit`: what was allowed, asked about and denied, by rule, tool and session; and why one call was."""

import argparse
import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from handrail.cli.audit_log import (
    ALLOWED,
    ASKED,
    DENIED,
    KINDS,
    AuditedCall,
    find_call,
    is_session,
    parse_since,
    read_log,
    time_text,
)
from handrail.cli.permission_flags import warn
from handrail.cli.terminal import ReportScreen
from handrail.conversation.plain import plain_json
from handrail.dispatch.approval.approvers import NO_ANSWERER
from handrail.errors import HandrailError
from handrail.session.state_folder import state_folder
from handrail.tools.wording import several

MAX_SHOWN = 100
MAX_LISTED = 50

GROUPS: dict[str, Callable[[AuditedCall], str]] = {
    "rule": lambda call: call.rule or f"no rule ({'no one to ask' if call.by == NO_ANSWERER else call.by})",
    "tool": lambda call: call.tool,
    "session": lambda call: call.session,
    "origin": lambda call: origin_text(call.line.get("origin") or {}) or "this machine",
    "day": lambda call: time_text(call.at)[:10],
}


def run(chosen: argparse.Namespace) -> int:
    """0 = shown; 2 = the call that was asked about is not in the log."""
    folder = state_folder(os.environ) / "audit"
    log = read_log(folder, parse_since(chosen.since) if chosen.since else 0.0)
    if log.unreadable:
        warn(f"{several(log.unreadable, 'line')} in {folder} could not be read and were left out")
    if chosen.question:
        return explain_call(chosen, log.calls)
    if chosen.call:
        raise HandrailError(f"{chosen.call!r} is not understood. To explain a call, write: handrail audit why CALL.")
    calls = [call for call in log.calls if fits_filters(call, chosen)]
    if chosen.by:
        show_groups(chosen, calls)
    elif chosen.json:
        for call in calls[-chosen.limit :] if chosen.limit else calls:
            print(plain_json(call.as_json()))
    else:
        print("\n".join(listing(calls, chosen.limit or MAX_LISTED, ReportScreen(sys.stdout))))
    return 0


def fits_filters(call: AuditedCall, chosen: argparse.Namespace) -> bool:
    return (
        (not chosen.tool or call.tool == chosen.tool)
        and is_session(call, chosen.session)
        and (not chosen.only or not call.kinds.isdisjoint(chosen.only))
        and chosen.rule in call.rule
        and (not chosen.client or (call.line.get("origin") or {}).get("client") == chosen.client)
    )


# The list


def listing(calls: Sequence[AuditedCall], limit: int, screen: ReportScreen) -> Iterator[str]:
    """The newest calls, oldest first, and a summary."""
    if not calls:
        yield "No recorded decision matches."
        return
    rows = [
        (time_text(call.at)[:19].replace("T", " "), answer_of(call), call.ref, what(call)) for call in calls[-limit:]
    ]
    yield from (paint_answer(screen, line) for line in screen.table(rows, indent=""))
    if len(calls) > limit:
        yield f"... and {len(calls) - limit:,} before these; --limit shows more."
    yield ""
    yield from screen.wrap(summary(calls))
    yield from screen.wrap("Why one of them: handrail audit why CALL, with its id from the third column.")


def clock(call: AuditedCall) -> str:
    return time_text(call.at)[:19].replace("T", " ")


def paint_answer(screen: ReportScreen, line: str) -> str:
    """The first line of a row with its answer coloured, which stands behind the time."""
    return line[:21] + screen.paint_word(line[21:]) if line[:1].isdigit() else line


def answer_of(call: AuditedCall) -> str:
    """The answer in a word or two; of a question also what came of it."""
    if not call.asked:
        return call.kind
    if call.by == NO_ANSWERER:
        return f"{ASKED}: {call.decision.partition(':')[0] if call.decision != 'deny' else 'unanswered'}"
    return f"{ASKED}: {'yes' if call.decision == 'allow' else 'no'}"


def what(call: AuditedCall) -> str:
    """The call and the reason, in one line."""
    subject = " ".join(call.subject.split())
    shown = f"{call.tool}({subject[:MAX_SHOWN]}{'...' if len(subject) > MAX_SHOWN else ''})"
    client = (call.line.get("origin") or {}).get("client", "")
    why = call.reason if call.layer == "hooks" else call.rule or call.reason  # what a hook said, not where it stands
    return f"{shown}  {why}{f'  [for {client}]' if client else ''}"


def summary(calls: Sequence[AuditedCall]) -> str:
    kinds = Counter(call.kind for call in calls)
    agreed = sum(call.asked and call.decision == "allow" for call in calls)
    sessions = several(len({call.session for call in calls}), "session")
    answers = f" ({agreed:,} yes, {kinds[ASKED] - agreed:,} no or unanswered)" if kinds[ASKED] else ""
    counts = f"{kinds[ALLOWED]:,} {ALLOWED}, {kinds[ASKED]:,} {ASKED}{answers}, {kinds[DENIED]:,} {DENIED} unasked"
    return f"{several(len(calls), 'call')} in {sessions}: {counts}."


def show_groups(chosen: argparse.Namespace, calls: Sequence[AuditedCall]) -> None:
    """Counts for each rule, tool, session or day, the largest first."""
    groups: dict[str, Counter[str]] = {}
    for call in calls:
        groups.setdefault(GROUPS[chosen.by](call), Counter())[call.kind] += 1
    ordered = sorted(groups.items(), key=lambda each: (-each[1].total(), each[0]))
    if chosen.json:
        for name, counts in ordered:
            print(plain_json({chosen.by: name, **{kind: counts[kind] for kind in KINDS}}))
        return
    rows = [(*KINDS, chosen.by), *((*(str(counts[kind]) for kind in KINDS), name) for name, counts in ordered)]
    print("\n".join(ReportScreen(sys.stdout).table(rows, indent="")))


# Why


def explain_call(chosen: argparse.Namespace, calls: tuple[AuditedCall, ...]) -> int:
    if not chosen.call:
        raise HandrailError("say which call: handrail audit why CALL. `handrail audit` lists them.")
    found = find_call(tuple(call for call in calls if fits_filters(call, chosen)), chosen.call)
    if not found:
        raise HandrailError(f"no recorded call has the id {chosen.call!r}. `handrail audit` lists them.")
    if len(found) > 1:
        warn(f"{len(found)} calls have this id; this is the newest. Name one of a session with SESSION/CALL.")
    call = found[-1]
    if chosen.json:
        print(plain_json(call.line))
        return 0
    screen = ReportScreen(sys.stdout)
    print("\n".join(screen.paint_word(line) for line in why(call, screen)))
    return 0


def why(call: AuditedCall, screen: ReportScreen) -> Iterator[str]:
    """Everything that was recorded of a decision, for people."""
    line = call.line
    yield from screen.wrap(f"{answer_of(call)}: {call.reason}", 2)
    if call.rule:
        yield from screen.wrap(f"  {call.rule}", 2)
    yield ""
    yield from screen.table([(name, value) for name, value in facts(call) if value], indent="")
    yield from ("", screen.heading("what each layer said"))
    rows = [
        (each["layer"], each["says"], f"{each['reason']}{'  [' + each['rule'] + ']' if each.get('rule') else ''}")
        for each in line["opinions"]
    ]
    yield from screen.table(rows)
    if places := line.get("places"):
        yield from ("", screen.heading("paths"))
        yield from screen.table([(each["access"], f"{each['path']}{_leads(each)}") for each in places])
    given = shlex.quote(json.dumps(call.input, ensure_ascii=False))
    yield ""
    yield from screen.wrap("What would be decided now:")
    yield from screen.wrap(
        f"  handrail permissions explain {call.tool} {given if len(given) <= MAX_SHOWN else 'JSON'}", 4
    )


def _leads(place: Any) -> str:
    return f" -> {place['real']}" if place["real"] and place["real"] != place["path"] else ""


def origin_text(origin: Mapping[str, str]) -> str:
    """Who started the run from afar, and how; empty for a run of this machine."""
    return ", ".join(f"{name} {value}" for name, value in origin.items())


def facts(call: AuditedCall) -> Iterator[tuple[str, str]]:
    line = call.line
    yield "call", f"{call.tool} {json.dumps(call.input, ensure_ascii=False)}"
    yield "ran as", json.dumps(line["ran"], ensure_ascii=False) if "ran" in line else ""
    yield "when", time_text(call.at)
    yield "where", f"{line.get('cwd', '')}, mode {line.get('mode', '')}"
    agent = " > ".join(line.get("agent_path") or ()) or line.get("agent")
    yield "session", call.session + (f", agent {agent}" if agent not in ("", "main", None) else "")
    yield "started by", origin_text(call.line.get("origin") or {})
    yield "answered by", call.by if call.asked and call.by != NO_ANSWERER else ""
    waited = line.get("micros", (0, 0))[1]
    yield "answered after", f"{waited / 1e6:.1f} s" if call.asked and call.by != NO_ANSWERER else ""
    yield "changed", json.dumps(line["updates"], ensure_ascii=False) if line.get("updates") else ""
    yield "problems", "; ".join(map(str, line.get("problems", ())))
