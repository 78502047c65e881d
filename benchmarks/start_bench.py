"""
What starting costs: `handrail --version` beside a bare interpreter, in CPU time of the child processes.

    python -m benchmarks.start_bench [--json]
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

RUNS = 25


def cpu(command: list[str]) -> float:
    """Milliseconds of CPU that a command takes, at the first quartile of several runs."""
    spent: list[float] = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(spent)[RUNS // 4] * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    bare = cpu([sys.executable, "-c", "pass"])
    version = cpu([str(Path(sys.executable).with_name("handrail")), "--version"])
    figures = {"bare interpreter (ms)": bare, "handrail --version (ms)": version, "ratio": version / bare}
    if parser.parse_args().json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:<40} {value:10.2f}")


if __name__ == "__main__":
    main()
