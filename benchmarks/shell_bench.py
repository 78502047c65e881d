"""
How fast the shell analysis is: over the corpus of command lines, on inputs made to be slow, and to import.

    python benchmarks/shell_bench.py

The cache is left out of the figures but for its own line.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.shell.corpus_report import lines  # noqa: E402 - the line above makes it importable

from handrail.shell.analysis import analyse  # noqa: E402
from handrail.shell.gate import MAX_BYTES  # noqa: E402

ROUNDS = 5
UNITS = [
    "a ", "'", '"', "\\", "$(", "`", "{a,b}", "{", "[", "*", "~", "(", ")", ";", "|", "&&ls", "ls;", "ls|", "<", ">",
    "<<E ", "<<E\n", "\n",
    "#", "é", "\\\n", "$x", "${x}", "$((", "if ", "for x in a; do ", "case a in a) ", "x=1;", "[[ a ", "! ", "time ",
    "f(){ ", "sh -c '", "a=$(", "<(ls) ",
    "sh -c ", "env ", "nice ", "xargs ", "timeout 5 ", "find . -exec ", "eval ", "sudo ", "-a", "x=a; $x ", '"$x"',
    '"$(ls)" ', "$'a' ", "cd a;", "cd a||", "ls -a ",
    "x=1&&", "if ls; then cd a; fi;", "{1..9}", "a'b'", '"a b" ', "((", "x=(", "((x '", '((x "a b"',
]  # fmt: skip


def milliseconds(command: str) -> float:
    started = time.thread_time()  # not the wall clock: others may use the machine
    analyse.__wrapped__(command)
    return (time.thread_time() - started) * 1000


def best(command: str) -> float:
    return min(milliseconds(command) for _ in range(ROUNDS))


def hostile() -> list[str]:
    """One thing over and over, up to the cap, alone and closed, and beyond the cap."""
    full = [unit * (MAX_BYTES // len(unit.encode())) for unit in UNITS]
    few = [unit * 190 for unit in UNITS]
    closed = ["$(" * 25 + "ls" + ")" * 25, "( " * 28 + "ls" + " )" * 28, "{ " * 28 + "ls" + "; }" * 28]
    words = ["ls " + " ".join(f"f{n}" for n in range(1_400)), "((x;" + " ".join(f"f{n}" for n in range(1_400))]
    return [*full, *few, *closed, *words, "a " * 100_000, "((" + "'x y' " * 20_000]


def import_cost() -> float:
    """CPU milliseconds that importing the package adds to a bare interpreter."""

    def cpu(code: str) -> float:
        used: Callable[[], float] = lambda: sum(os.times()[2:4])  # noqa: E731
        before = used()
        for _ in range(10):
            subprocess.run([sys.executable, "-I", "-c", code], check=True, cwd=ROOT)
        return (used() - before) * 100

    path = f"import sys; sys.path[:0] = {[str(ROOT / 'src'), *sys.path[2:]]!r}\n"
    cpu(path + "import handrail.shell")
    return min(cpu(path + "import handrail.shell") - cpu(path) for _ in range(3))


def main() -> None:
    corpus = [line.command for line in lines()]
    for command in corpus:
        analyse.__wrapped__(command)  # tables and parsers are loaded with the first line that needs them
    times = sorted(best(command) for command in corpus)
    cuts = statistics.quantiles(times, n=100)
    print(f"corpus, {len(corpus)} lines      p50 {cuts[49]:.3f} ms   p99 {cuts[98]:.3f} ms   worst {times[-1]:.3f} ms")
    analyse(corpus[0])
    started = time.perf_counter()
    for _ in range(10_000):
        analyse(corpus[0])
    print(f"the same line again     {(time.perf_counter() - started) * 100:.2f} us")
    slow = sorted(((best(command), command) for command in hostile()), reverse=True)
    print(f"made to be slow, {len(slow)}    worst {slow[0][0]:.1f} ms")
    for took, command in slow[:5]:
        print(f"    {took:6.1f} ms  {command[:30]!r}, {len(command)} characters")
    print(f"import                  {import_cost():.1f} ms of CPU over a bare interpreter")


if __name__ == "__main__":
    main()
