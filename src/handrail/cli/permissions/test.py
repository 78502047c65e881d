"""`handrail permissions test`: checks a policy against examples. No call is executed."""

import argparse
import asyncio
import codecs
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.cli.permissions.calls import KnownTools, hook_json, open_preview, rule_json
from handrail.cli.terminal import ReportScreen
from handrail.conversation.blocks import ToolUse
from handrail.conversation.plain import plain_json
from handrail.errors import HandrailError
from handrail.permissions.layers import outcome
from handrail.permissions.matching import all_matches
from handrail.permissions.modes import MODE_ALIASES, MODES
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, RuleSource, parse_rule
from handrail.records import record
from handrail.session.preview import PreviewedCall
from handrail.tools.wording import did_you_mean

ALL_AS_EXPECTED, NOT_AS_EXPECTED = 0, 1
ANSWERS = ("allow", "ask", "deny", "error")
FIELDS = ("tool", "input", "expect", "mode", "cwd", "home", "working_dirs", "rules")
"""What decides an example: another field may hold a note, unless it is one of these misspelt."""


@record
class Example:
    """One line of the file: a call, the expected decision, and the rules and mode to decide by."""

    id: str
    use: ToolUse
    expect: frozenset[str]
    line: int
    values: Mapping[str, Any]


def run(chosen: argparse.Namespace) -> int:
    """Exit code 0: all as expected; 1: at least one differs; 2: the file cannot be read."""
    examples = read(chosen.file)
    results = asyncio.run(check_all(chosen, examples))
    wrong = sum(not result["ok"] for result in results)
    for example, result in zip(examples, results, strict=True):
        if chosen.json:
            print(plain_json(result))
        elif not result["ok"]:
            expected = " or ".join(sorted(example.expect))
            shown = f"{result['id']}: {result['decision']}, expected {expected}: {result['reason']}"
            rule = f" ({result['rule']})" if result["rule"] else ""
            print("\n".join(ReportScreen(sys.stdout).wrap(f"{chosen.file}:{example.line}: {shown}{rule}", 2)))
    if not chosen.json:
        left = sum(bool(result["hooks"]) for result in results) if not chosen.run_hooks else 0
        note = f"; hooks would be asked about {left} of them, which --run-hooks does" if left else ""
        print(f"{len(examples) - wrong} of {len(examples)} as expected{note}")
    return NOT_AS_EXPECTED if wrong else ALL_AS_EXPECTED


async def check_all(chosen: argparse.Namespace, examples: list[Example]) -> list[dict[str, Any]]:
    """The results of all examples; a HandrailError names the line whose call cannot be one."""
    async with open_preview(chosen) as preview:
        policies = Policies(preview.policy, chosen.file, mode_given=bool(chosen.mode))
        tools = KnownTools(preview.loaders)
        results = []
        for example in examples:
            policy = policies.of(example)
            try:
                request = tools.request(example.use, policy.cwd)
            except HandrailError as error:
                raise HandrailError(f"{chosen.file}:{example.line}: {error}") from error
            results.append(check(example, await preview.look(request, policy)))
        return results


def check(example: Example, call: PreviewedCall) -> dict[str, Any]:
    """The decision on an example, and whether it was expected."""
    decision = call.decision
    said, why = outcome(decision), call.decider
    return {
        "id": example.id,
        "decision": said,
        "ok": said in example.expect,
        "layer": why.layer,
        "rule": why.source,
        "matched": [rule_json(rule) for rule in all_matches(call.case)],
        "hooks": [hook_json(hook) for hook in call.hooks],
        "sandbox": call.standing.where.value if call.standing else None,
        "reason": decision.reason,
    }


def read(file: str) -> list[Example]:
    """The examples of a file or, for `-`, of standard input; a HandrailError names the line that is none."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        lines = data.removeprefix(codecs.BOM_UTF8).decode().split("\n")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise HandrailError(f"{file} cannot be read: {reason}. Give a file with one JSON object per line.") from error
    found = [example(text, number, file) for number, text in enumerate(lines, 1) if text.strip()]
    if not found:
        raise HandrailError(f"{file} holds no examples, so nothing was tested. Write one JSON object per line.")
    return found


def example(text: str, number: int, file: str) -> Example:
    def no(problem: str) -> HandrailError:
        return HandrailError(f"{file}:{number}: {problem}")

    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise no(f"this is not JSON: {error.msg} (column {error.colno}). Write one JSON object per line.") from error
    if not isinstance(values, dict):
        raise no('this is not an object. Write {"tool": "Bash", "input": {}, "expect": "ask"}.')
    for name in values.keys() - FIELDS:
        if hint := did_you_mean(name, FIELDS):
            raise no(f"{name!r} is not a field of an example.{hint}")
    if "expect" not in values:
        raise no("expect is missing; add the decision that is right: allow, ask or deny, or a list of them.")
    if not isinstance(values.get("tool"), str) or not isinstance(values.get("input"), dict):
        raise no("tool must be a name and input an object.")
    expect = values["expect"]
    wanted = [expect] if isinstance(expect, str) else expect
    if not isinstance(wanted, list) or not wanted or not all(each in ANSWERS for each in wanted):
        raise no(f"expect is {expect!r}; use allow, ask or deny, or a list of them.")
    if problem := surroundings_problem(values):
        raise no(problem)
    use = ToolUse(str(values.get("id", number)), values["tool"], values["input"])
    return Example(use.id, use, frozenset(wanted), number, values)


def surroundings_problem(values: Mapping[str, Any]) -> str:
    """Problems in the optional fields of an example."""
    mode = values.get("mode", "default")
    if MODE_ALIASES.get(mode, mode) not in MODES:
        return f"there is no mode {mode!r}. Use one of {', '.join(MODES)}."
    for name in ("cwd", "home"):
        if name in values and not (isinstance(values[name], str) and values[name].startswith("/")):
            return f"{name} is {values[name]!r}, not an absolute path."
    if not is_texts(values.get("working_dirs", [])):
        return "working_dirs is not a list of paths."
    rules = values.get("rules", {})
    if not isinstance(rules, dict) or not all(map(is_texts, rules.values())):
        return 'rules is not an object of lists: {"allow": [], "ask": [], "deny": []}.'
    unknown = [kind for kind in rules if kind not in ("allow", "ask", "deny")]
    return f"there is no kind of rule {unknown[0]!r}. Use allow, ask or deny." if unknown else ""


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


class Policies:
    """The policies that examples are decided by; examples with equal fields share one."""

    def __init__(self, own: Policy, file: str, *, mode_given: bool) -> None:
        self._own = own
        self._file = file
        self._mode_given = mode_given
        self._made: dict[str, Policy] = {}

    def of(self, example: Example) -> Policy:
        """The user's own policy, or what the example puts in its place."""
        values = {name: example.values.get(name) for name in ("mode", "cwd", "home", "working_dirs", "rules")}
        key = json.dumps(values)
        if key not in self._made:
            self._made[key] = self._make(values, example.line)
        return self._made[key]

    def _make(self, values: Mapping[str, Any], line: int) -> Policy:
        own = self._own
        cwd = os.path.realpath(values["cwd"]) if values["cwd"] else own.cwd
        home = os.path.realpath(values["home"]) if values["home"] else own.home
        folders = own.working_dirs if not values["cwd"] else (cwd,)
        if values["working_dirs"] is not None:
            folders = tuple(os.path.realpath(Path(cwd, folder)) for folder in values["working_dirs"])
        replaced = values["rules"] is not None
        rules: list[Rule | RuleProblem] = [] if replaced else [*own.rules, *own.problems]
        source = RuleSource("test", self._file, line, cwd)
        for kind, texts in (values["rules"] or {}).items():
            rules += [parse_rule(text, Behaviour(kind), source) for text in texts]
        policy = Policy.empty(cwd, home).with_availability(own.availability).with_directories(folders).with_own(own.own)
        policy = policy.with_rules(rules)
        default = own.mode if self._mode_given or not replaced else "default"
        return policy.with_mode(values["mode"] or default)
