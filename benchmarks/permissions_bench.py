"""
What a decision costs, and whether it grows with rules that cannot match: python benchmarks/permissions_bench.py

Cases are built beforehand for `decide`; `whole` also resolves the path. Ratios compare 10,000 rules with 10 in one run.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from handrail.conversation.blocks import ToolUse
from handrail.files.paths import exists, expand, locate, resolve
from handrail.permissions.case import Case, make_case
from handrail.permissions.layers import decide
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Source
from handrail.permissions.touch import Lookup

LOOKUP = Lookup(resolve, locate, expand, exists)
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
    source = Source("project", ".handrail/settings.json", 1, folder)
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


def report(name: str, use: ToolUse, few: Policy, many: Policy) -> None:
    def deciding(case: Case) -> Callable[[], object]:
        return lambda: decide(case)

    small = median(deciding(make_case(use, few, LOOKUP)))
    large = median(deciding(make_case(use, many, LOOKUP)))
    whole = median(lambda: decide(make_case(use, many, LOOKUP)))
    print(f"{name:20} {small:10.1f} {large:10.1f} {large / small:7.2f} {whole:8.1f}")


if __name__ == "__main__":
    main()
