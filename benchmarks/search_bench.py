"""
Grep and Glob, whole governed calls, beside ripgrep itself on a tree of more than 30,000 files.

    python -m benchmarks.search_bench [FOLDER]

Without a folder the tree is made of links to this environment's packages. Both sides take turns, and the ratio is that
of the first quartiles, because other programs on the machine only ever add time.
"""

import asyncio
import os
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.folder_gate import NO_FILES

from handrail.builtin.support.ripgrep import ripgrep_path
from handrail.conversation.blocks import Json
from handrail.session.services import default_services
from handrail.session.single_call import call_tool

FILES = 30_000
ROUNDS = 15


def packages() -> Path:
    """The folder with the packages of this environment: the largest on the path."""
    folders = [Path(name) for name in (*sys.path, sysconfig.get_paths()["purelib"]) if name.endswith("site-packages")]
    return max(folders, key=lambda folder: len(list(folder.iterdir())))


def grow(root: Path, source: Path | None = None) -> int:
    """A tree of copies of this environment's packages, or of another folder; how many files there are."""
    count = 0
    while count < FILES:
        copy = root / f"set{count}"
        shutil.copytree(source or packages(), copy, copy_function=linked, ignore=shutil.ignore_patterns("__pycache__"))
        count = sum(len(files) for _, _, files in os.walk(root))
    return count


def linked(source: str, target: str) -> None:
    """A copy that takes no room."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def spent() -> float:
    """Seconds of processor time of this process and of those that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measure(what: str, mine: Callable[[], object], base: Callable[[], object], bar: float) -> None:
    """Both in turns: the time on the clock, which counts, and that of the processor, which others disturb less."""
    times: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for _ in range(ROUNDS):
        for side, seen in zip((mine, base), times, strict=True):
            start, used = time.perf_counter(), spent()
            side()
            seen.append((time.perf_counter() - start, spent() - used))
    (ours, our_work), (theirs, their_work) = (
        [statistics.quantiles(column, n=4)[0] for column in zip(*seen, strict=True)] for seen in times
    )
    verdict = "ok" if ours / theirs <= bar else "TOO SLOW"
    figures = f"{ours * 1e3:8.1f} ms  against {theirs * 1e3:8.1f}  ratio {ours / theirs:5.2f}"
    work = f"processor {our_work * 1e3:.0f} ms against {their_work * 1e3:.0f}, ratio {our_work / their_work:.2f}"
    print(f"{what:<54} {figures}  (at most {bar})  {verdict};  {work}")


def main() -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        root = Path(os.path.realpath(sys.argv[1] if sys.argv[1:] else folder))
        print(f"{grow(root):,} files" if not sys.argv[1:] else root)
        env = dict(os.environ)
        rg = ripgrep_path(default_services(env, root))

        def tool(name: str, raw: Json) -> Callable[[], object]:
            def call() -> str:
                outcome = runner.run(call_tool(name, raw, root, env=env, flags=NO_FILES, on_warning=print)).outcome
                assert not outcome.result.is_error, outcome.result.text
                return outcome.result.text

            print(f"{name} {dict(raw)}: {call().splitlines()[-1][:70]}")
            return call

        def ripgrep(*arguments: str) -> Callable[[], object]:
            command = [rg, "--no-config", *arguments, "./"]
            return lambda: subprocess.run(command, cwd=root, capture_output=True, check=False)

        rare = "def _decompression_bomb_check"
        listing = ("--files", "--hidden", "--no-ignore")
        content = {"pattern": rare, "output_mode": "content"}
        measure("Grep, a rare literal", tool("Grep", {"pattern": rare}), ripgrep("-l", "--hidden", rare), 1.1)
        measure("Grep, its lines", tool("Grep", content), ripgrep("-n", "--hidden", rare), 1.1)
        few = tool("Glob", {"pattern": "**/test*/*.py"})
        measure("Glob, some matches, against rg --files", few, ripgrep(*listing), 1.2)
        every = tool("Glob", {"pattern": "**/*"})
        measure("Glob, all files, against rg --files", every, ripgrep(*listing), 1.5)
        measure(
            "Glob, all files, against rg --files --sortr modified", every, ripgrep(*listing, "--sortr=modified"), 1.5
        )
        # what the times cost a program in C: no way of ours to ask for them can cost less than the kernel's part
        timed = ["find", ".", "-type", "f", "-printf", "%T@ %P\\0"]
        plain = lambda: subprocess.run(timed, cwd=root, capture_output=True, check=False)  # noqa: E731
        measure("Glob, all files, against find with times", every, plain, 2.0)


if __name__ == "__main__":
    main()
