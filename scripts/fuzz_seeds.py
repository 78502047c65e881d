"""
The lines from which the fuzzer of the shell analysis starts: those of the tests, and tests/shell/corpus/fuzz.jsonl, one
JSON string a line.

    fuzz_seeds.py unpack FOLDER    a file for each line, as libFuzzer wants them
    fuzz_seeds.py pack FOLDER      the shortest of the lines that reached new code
"""

import hashlib
import json
import sys
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "tests" / "shell" / "corpus"
SEEDS = CORPUS / "fuzz.jsonl"
MOST_BYTES = 400
MOST_SEEDS = 1500


def unpack(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for text in of_tests() + [json.loads(line) for line in SEEDS.read_text().splitlines()]:
        data = text.encode()[:MOST_BYTES]
        (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


def pack(folder: Path) -> None:
    texts = {path.read_bytes().decode("utf-8", "ignore") for path in folder.iterdir()} - {*of_tests()}
    shortest = sorted(texts, key=lambda text: (len(text), text))[:MOST_SEEDS]
    SEEDS.write_text("".join(json.dumps(text, ensure_ascii=False) + "\n" for text in sorted(shortest)))


def of_tests() -> list[str]:
    return [json.loads(line)["command"] for line in (CORPUS / "bash.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    {"unpack": unpack, "pack": pack}[sys.argv[1]](Path(sys.argv[2]))
