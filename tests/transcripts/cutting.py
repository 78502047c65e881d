"""
Handrail whose writes to session files go wrong at a record: started as a program, it reads from CUT where.

`ran(..., cut=Cut(3, 500, "kill"))` of `tests.transcripts.killing` ends a run in the middle of its third record.
"""

import json
import os
import runpy
import signal
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cut:
    """
    Where writing goes wrong: at the record of that number, after so many thousandths of it.

    `how`: `kill`, and the process ends there as with kill -9; or `full`, and no more fits on the disk from there on.
    """

    record: int
    part: int
    how: str

    def variables(self) -> dict[str, str]:
        return {"CUT": json.dumps(asdict(self))}


def break_writing(cut: Cut) -> None:
    whole = os.write
    records = 0

    def write(file: int, data: bytes) -> int:
        nonlocal records
        place = Path(f"/proc/self/fd/{file}").readlink()
        if place.suffix != ".jsonl" or "sessions" not in place.parts:
            return whole(file, data)
        records += 1
        if records < cut.record:
            return whole(file, data)
        fits = len(data) * cut.part // 1000 if records == cut.record else 0
        done = whole(file, data[:fits])
        if cut.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    os.write = write  # type: ignore[assignment]  # only bytes are ever given to it


if __name__ == "__main__":
    break_writing(Cut(**json.loads(os.environ.pop("CUT"))))
    runpy.run_module("handrail", run_name="__main__")
