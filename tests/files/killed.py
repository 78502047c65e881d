"""
Kills a process at every single step of a change, and says what was left: run by test_undo.py.

    python killed.py FOLDER CASE

Each step is a call from `handrail.files` into the system or the standard library. For each one a child process does
the change and kills itself right before it. One JSON line per child; the last child lives to the end.
"""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from handrail.files import replace
from handrail.files.journal import Note
from handrail.files.leftovers import remove_leftovers
from handrail.files.paths import locate
from handrail.files.replace import TargetFile
from handrail.files.restore import go_back
from handrail.files.undo import INDEX, Undo, read

OLD, NEW = b"old content\n" * 50, b"the new content\n" * 80


def write(path: Path, undo: Undo) -> None:
    with TargetFile(locate(str(path), "/")) as target:
        old = hashlib.sha256(OLD).hexdigest() if target.exists else ""
        target.write(lambda: iter((NEW[:100], NEW[100:])), old, undo, Note("Write", "call-1"))


def kill_at(step: int) -> None:
    """Kill this process right before the call of that number."""
    calls = 0

    def count(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        if event == "c_call" and "/handrail/files/" in frame.f_code.co_filename:
            calls += 1
            if calls == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


def prepared(root: Path, case: str) -> tuple[Path, Undo]:
    project = root / "project"
    project.mkdir(parents=True)
    undo = Undo(root / "state" / "undo" / "session", str(project))
    if case == "create":
        return project / "a" / "b" / "file", undo
    (project / "file").write_bytes(OLD)
    if case == "linked":
        os.link(project / "file", project / "other")
    if case == "restore":
        write(project / "file", undo)
    return project / "file", undo


def found(path: Path) -> str:
    if not path.exists():
        return "none"
    return {OLD: "old", NEW: "new"}.get(path.read_bytes(), "torn")


def main() -> None:
    folder, case = Path(os.path.realpath(sys.argv[1])), sys.argv[2]
    if case == "large":
        replace.LARGE = 1
    step, alive = 0, False
    while not alive:
        step += 1
        root = folder / str(step)
        path, undo = prepared(root, case)
        child = os.fork()
        if not child:
            kill_at(step)
            if case == "restore":
                go_back(undo.folder, 1)
            else:
                write(path, undo)
            sys.setprofile(None)
            os._exit(0)
        alive = os.waitpid(child, 0)[1] == 0
        left = found(path)
        remove_leftovers(undo.folder.parent)
        assert found(path) == left
        swept = sorted(each.name for each in (root / "project").rglob(f"*{replace.TEMP_END}"))
        if (undo.folder / INDEX).exists() and read(undo.folder).entries:
            go_back(undo.folder, 1)
        beside = sorted(str(each.relative_to(root / "project")) for each in (root / "project").rglob("*"))
        print(json.dumps({"step": step, "left": left, "restored": found(path), "beside": beside, "after_sweep": swept}))


if __name__ == "__main__":
    main()
