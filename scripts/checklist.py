"""
Where the promised behaviours stand: which are proven by a test, which should be and are not, which are to come.

    checklist.py            print the state, by section
    checklist.py --check    print only what is wrong; exit 1 if anything is

Reads checklist.toml and the `proves` marks in tests/ as source text, so it knows all tests without running any.
"""

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Promise:
    id: str
    section: str
    landed: bool
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A `proves` mark: the id it names (None if that is not plain text) and where it stands."""

    id: str | None
    place: str


def promises(file: Path) -> list[Promise]:
    return [
        Promise(identity, section, entry["landed"], entry["text"])
        for section, entries in tomllib.loads(file.read_text("utf-8")).items()
        for identity, entry in entries.items()
    ]


def claims(tests: Path) -> Iterator[Claim]:
    for file in sorted(tests.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"), str(file))):
            match node:
                case ast.Call(func=ast.Attribute(attr="proves"), args=args):
                    for arg in args:
                        place = f"{file.relative_to(tests.parent)}:{arg.lineno}"
                        plain = isinstance(arg, ast.Constant) and isinstance(arg.value, str)
                        yield Claim(ast.literal_eval(arg) if plain else None, place)


def problems(promised: list[Promise], claimed: list[Claim]) -> Iterator[str]:
    known = {promise.id for promise in promised}
    for claim in claimed:
        if claim.id is None:
            yield f"{claim.place}: proves() takes ids as plain strings, so that they can be found without running tests"
        elif claim.id not in known:
            yield f"{claim.place}: {claim.id!r} is not in checklist.toml. Correct the id, or add it there."
    proven = {claim.id for claim in claimed}
    for promise in promised:
        if promise.landed and promise.id not in proven:
            yield f"{promise.id} has landed, but no test proves it: {promise.text}"


def overview(promised: list[Promise], claimed: list[Claim]) -> Iterator[str]:
    proven = {claim.id for claim in claimed}
    for section in dict.fromkeys(promise.section for promise in promised):
        here = [promise for promise in promised if promise.section == section]
        states = {
            "proven": [p.id for p in here if p.id in proven and p.landed],
            "proven early": [p.id for p in here if p.id in proven and not p.landed],
            "UNPROVEN": [p.id for p in here if p.id not in proven and p.landed],
            "not landed": [p.id for p in here if p.id not in proven and not p.landed],
        }
        yield section
        yield from (f"  {state:<12} {len(ids):>3}  {' '.join(ids)}" for state, ids in states.items() if ids)
    landed = {promise.id for promise in promised if promise.landed}
    yield f"{len(promised)} promised, {len(landed)} landed, {len(landed & proven)} of these proven"


def main() -> int:
    parser = argparse.ArgumentParser(description="where the promised behaviours stand")
    parser.add_argument("--check", action="store_true", help="print only what is wrong, and fail if anything is")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="another checkout")
    options = parser.parse_args()

    promised = promises(options.root / "checklist.toml")
    claimed = list(claims(options.root / "tests"))
    wrong = list(problems(promised, claimed))
    if not options.check:
        print("\n".join(overview(promised, claimed)))
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
