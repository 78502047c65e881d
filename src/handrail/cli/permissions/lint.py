"""`handrail permissions lint`: rules that do not do what they look like."""

import argparse
import json

from handrail.cli.permissions.calls import installed, policy_of
from handrail.conversation.plain import plain
from handrail.permissions.lint import TOOLS, lint

CLEAN, FOUND = 0, 1


def run(chosen: argparse.Namespace) -> int:
    """0: nothing to say; 1: something is."""
    policy = policy_of(chosen)
    findings = lint(policy, TOOLS | frozenset(installed()))
    for found in findings:
        if chosen.json:
            source = found.source
            place = {"file": source.file, "line": source.line, "source": source.name}
            print(json.dumps({"kind": found.kind, "rule": found.rule, **place, "message": found.message}))
        else:
            place_text = f"{found.source.file}:{found.source.line}" if found.source.file else str(found.source)
            print(plain(f"{place_text}: {found.kind}: {found.rule}: {found.message}"))
    if not chosen.json:
        print(f"{len(policy.rules) + len(policy.problems)} rules, {len(findings)} remarks")
    return FOUND if findings else CLEAN
