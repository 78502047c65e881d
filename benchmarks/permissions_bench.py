"""
What a decision costs, and whether it grows with rules that cannot match: python benchmarks/permissions_bench.py

Cases are built beforehand for `decide`; `whole` also resolves the path; `gate` is the decision of a call as the engine
asks for it, `audited` the same with its line in the audit log. Ratios compare 10,000 rules with 10 in one run.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from handrail.builtin.read.tool import Read
from handrail.cli.permissions.calls import KnownTools
from handrail.conversation.blocks import ToolUse
from handrail.conversation.redact import build_redactor
from handrail.dispatch.approval.audit import Audit
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.files.paths import exists, list_folder, locate, match_files, resolve
from handrail.permissions.case import Case, make_case
from handrail.permissions.facts import NOTHING_SAID, facts_of
from handrail.permissions.file_access import Lookup
from handrail.permissions.hidden_files import hidden_file_check
from handrail.permissions.layers import decide
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.session.services import default_services
from handrail.session.tools import builtin_loaders
from handrail.tools.abort import AbortSignal
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Decision
from handrail.tools.request import CallRequest

LOOKUP = Lookup(resolve, locate, match_files, exists, list_folder)
ROUNDS = 3_000
USES = {
    "Read, inside": ToolUse("1", "Read", {"file_path": "src/app.py"}),
    "Edit, by rule": ToolUse("1", "Edit", {"file_path": "src/app.py"}),
    "Bash, read-only": ToolUse("1", "Bash", {"command": "git status"}),
    "Bash, by rule": ToolUse("1", "Bash", {"command": "npm run test -- --watch"}),
    "Bash, asks": ToolUse("1", "Bash", {"command": "npm publish && git push origin main"}),
    "WebFetch, by rule": ToolUse("1", "WebFetch", {"url": "https://docs.example.org/page"}),
    "MCP, by rule": ToolUse("1", "mcp__db__query", {}),
}
WANTED = ("Edit(src/**)", "Bash(npm run test:*)", "WebFetch(domain:docs.example.org)", "mcp__db")
FORMS = (
    "Bash(tool{0} run:*)",
    "Bash(npm run task{0})",
    "Read(//srv/data{0}/**)",
    "Edit(//srv/data{0}/*.txt)",
    "Read(secret{0}.txt)",
    "WebFetch(domain:host{0}.example.com)",
    "mcp__server{0}__tool",
    "Agent(kind{0})",
)


def policy(folder: str, count: int) -> Policy:
    source = RuleSource("project", ".handrail/settings.json", 1, folder)
    made = Policy.empty(folder, "/home/nobody").adding(Behaviour.ALLOW, WANTED, source)
    others = [FORMS[at % len(FORMS)].format(at) for at in range(count - len(WANTED))]
    third = len(others) // 3
    for kind, texts in zip(Behaviour, (others[:third], others[third : 2 * third], others[2 * third :]), strict=True):
        made = made.adding(kind, texts, source)
    return made


def median(action: Callable[[], object]) -> float:
    """Microseconds of one call, the median of many."""
    samples = []
    for _ in range(ROUNDS):
        started = time.perf_counter_ns()
        action()
        samples.append(time.perf_counter_ns() - started)
    return statistics.median(samples) / 1_000


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = str(Path(made).resolve())
        Path(folder, "src").mkdir()
        Path(folder, "src", "app.py").touch()
        few, many = policy(folder, 10), policy(folder, 10_000)
        print(f"{'':20} {'10 rules':>10} {'10,000':>10} {'ratio':>7} {'whole':>8}   microseconds, median")
        for name, use in USES.items():
            report(name, use, few, many)
        gates(folder, many)
        searches(folder, many)
        examples(folder)


def gates(folder: str, policy: Policy) -> None:
    """The bar: a decision with its path resolved and its line written takes under 120 microseconds."""
    audit = Audit(Path(folder, "audit"), build_redactor(os.environ))
    for name, log in (("gate", None), ("audited", audit)):
        print(f"Read, {name:14} {asyncio.run(gate_cost(folder, policy, log)):10.1f}   microseconds, median")
    audit.close()


async def gate_cost(folder: str, policy: Policy, audit: Audit | None) -> float:
    gate = PolicyGate(LivePolicy(lambda: policy), audit=audit)
    tool, use = Read(default_services({}, Path(folder))), USES["Read, inside"]
    ctx = ToolContext(RunContext(Path(folder)), use, AbortSignal(), lambda _: None, refuse)
    request = CallRequest.of(use, tool, tool.parse(use.input), ctx)
    samples = []
    for _ in range(ROUNDS):
        started = time.perf_counter_ns()
        await gate.decide(request, NOTHING_SAID)
        samples.append(time.perf_counter_ns() - started)
    return statistics.median(samples) / 1_000


async def refuse(_use: ToolUse, _run: RunContext) -> Decision:
    raise LookupError


def searches(folder: str, policy: Policy) -> None:
    left_out = hidden_file_check(policy)
    names = [f"{folder}/src/part{at % 40}/file{at}.py" for at in range(20_000)]
    started = time.perf_counter()
    kept = sum(not left_out(name) for name in names)
    cost = (time.perf_counter() - started) / len(names) * 1e6
    print(f"a file of a search   {cost:10.1f}   microseconds, {kept} of {len(names)} kept")


def examples(folder: str) -> None:
    """The bar: 1,000 lines under 3 seconds, including start."""
    file = Path(folder, "examples.jsonl")
    commands = [use.input["command"] for use in USES.values() if use.name == "Bash"]
    lines = [
        {
            "id": at,
            "tool": "Bash",
            "input": {"command": f"{commands[at % len(commands)]} {at}"},
            "expect": ["allow", "ask"],
            "rules": {"allow": [f"Bash(tool{at} *)", *WANTED]},
        }
        for at in range(1_000)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    started = time.perf_counter()
    command = [sys.executable, "-m", "handrail", "permissions", "test", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print(f"permissions test     {time.perf_counter() - started:10.2f}   seconds: {done.stdout.strip()}")


def report(name: str, use: ToolUse, few: Policy, many: Policy) -> None:
    def deciding(case: Case) -> Callable[[], object]:
        return lambda: decide(case)

    request = CallRequest.hypothetical(use, KnownTools(builtin_loaders({})).get(use.name), RunContext(Path(few.cwd)))
    small = median(deciding(make_case(use, few, LOOKUP, facts_of(request, NOTHING_SAID))))
    large = median(deciding(make_case(use, many, LOOKUP, facts_of(request, NOTHING_SAID))))
    whole = median(lambda: decide(make_case(use, many, LOOKUP, facts_of(request, NOTHING_SAID))))
    print(f"{name:20} {small:10.1f} {large:10.1f} {large / small:7.2f} {whole:8.1f}")


if __name__ == "__main__":
    main()
