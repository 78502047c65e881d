"""Fails when a deciding package is tested below its floor. The floor of the whole is `fail_under` in pyproject.toml."""

import json
import sys
from pathlib import Path
from typing import Any

FLOORS = {"tools": 95.0, "dispatch": 95.0, "shell": 95.0, "permissions": 95.0}
SOURCE = Path("src/handrail")


def percent(summaries: list[dict[str, Any]]) -> float:
    """Lines and branches together, as coverage itself counts them."""
    done = sum(s["covered_lines"] + s.get("covered_branches", 0) for s in summaries)
    all_of_it = sum(s["num_statements"] + s.get("num_branches", 0) for s in summaries)
    return 100.0 * done / all_of_it if all_of_it else 0.0


def measured(report: dict[str, Any], package: str) -> float:
    folder = SOURCE / package
    return percent([file["summary"] for name, file in report["files"].items() if Path(name).is_relative_to(folder)])


def main(report_path: str) -> int:
    report = json.loads(Path(report_path).read_text())
    present = {package: floor for package, floor in FLOORS.items() if (SOURCE / package).is_dir()}
    results = {package: measured(report, package) for package in present}
    for package, value in results.items():
        verdict = "ok" if value >= present[package] else "TOO LOW"
        print(f"coverage of {package}: {value:.1f} % (floor {present[package]:.0f} %) {verdict}")
    return int(any(value < present[package] for package, value in results.items()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
