"""Deny rules about files as plain paths, for the sandbox, which enforces them outside of a decision."""

import posixpath
from collections.abc import Iterator

from handrail.permissions.patterns import Anchors, anchor
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour


def denied_patterns(policy: Policy, tool: str) -> Iterator[str]:
    """The deny rules of `Read` or `Edit` as absolute patterns without `**`; at any depth means at the top."""
    anchors = Anchors(policy.cwd, policy.home, policy.working_dirs, policy.worktrees)
    for rule in policy.rules:
        if rule.behaviour is not Behaviour.DENY or rule.tool != tool or rule.spec is None:
            continue
        bases, rest, _ = anchor(rule, anchors, narrow=False)
        parts = [part for part in rest.split("/") if part not in ("", ".")]
        while parts[:1] == ["**"]:
            parts = parts[1:]
        while parts[-1:] == ["**"]:
            parts = parts[:-1]
        if "**" not in parts:
            yield from (posixpath.normpath(posixpath.join(base, *parts)) for base in dict.fromkeys(bases))
