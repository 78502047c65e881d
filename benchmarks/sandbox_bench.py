"""
What the sandbox costs: `true` and eight `sleep 0.2` at once, beside the same without a sandbox, in one run.

    python -m benchmarks.sandbox_bench
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from handrail.processes.sandbox.choose import Tried, tried
from handrail.processes.sandbox.confine import Sandbox
from handrail.processes.sandbox.plan import Protected
from handrail.processes.sandbox.settings import read_settings

ROUNDS = 40
PROTECTED = Protected(
    project=(
        ".handrail", ".claude", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".mcp.json",
        ".envrc", ".npmrc", ".gitmodules", ".pre-commit-config.yaml", ".yarnrc", ".yarnrc.yml",
    ),
    home=(".bashrc", ".profile"),
)  # fmt: skip


def plain(argv: list[str], cwd: Path) -> None:
    subprocess.run(argv, cwd=cwd, check=True, stdin=subprocess.DEVNULL)


def confined(sandbox: Sandbox) -> Callable[[list[str], Path], None]:
    def start(argv: list[str], cwd: Path) -> None:
        with sandbox.wrap(argv, str(cwd)) as wrapped:
            subprocess.run(wrapped.argv, cwd=cwd, check=True, stdin=subprocess.DEVNULL, pass_fds=wrapped.pass_fds)

    return start


def at_once(sandbox: Sandbox | None, cwd: Path) -> float:
    """Seconds until eight sleeps that were started together have ended."""
    start = time.perf_counter()
    wrapped = [sandbox.wrap(["sleep", "0.2"], str(cwd)) for _ in range(8)] if sandbox else []
    vectors = [(each.argv, each.pass_fds) for each in wrapped] or [(["sleep", "0.2"], ())] * 8
    running = [subprocess.Popen(argv, cwd=cwd, stdin=subprocess.DEVNULL, pass_fds=fds) for argv, fds in vectors]
    assert [process.wait() for process in running] == [0] * 8
    for each in wrapped:
        each.close()
    return time.perf_counter() - start


def spent(do: Callable[[], None]) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def measure(method: Tried, project: Path, state: Path) -> None:
    sandbox = Sandbox(
        read_settings({"enabled": True}, folder=str(project), home=str(Path.home())),
        home=os.path.realpath(Path.home()),
        working_dirs=lambda: (str(project),),
        state=state,
        protected=PROTECTED,
        own=(str(state),),
        method=method,
    )
    inside = confined(sandbox)
    inside(["true"], project)
    pairs = [(spent(lambda: plain(["true"], project)), spent(lambda: inside(["true"], project))) for _ in range(ROUNDS)]
    bare, boxed = (statistics.median(each) * 1e3 for each in zip(*pairs, strict=True))
    least = (min(boxed for _, boxed in pairs) - min(bare for bare, _ in pairs)) * 1e3
    wrap = statistics.median(spent(lambda: sandbox.wrap(["true"], str(project)).close()) for _ in range(ROUNDS)) * 1e3
    print(
        f"{method.method.value}: true {bare:.1f} ms bare, {boxed:.1f} ms confined, "
        f"{boxed - bare:.1f} ms more (bar 15), {least:.1f} at the quietest moment"
    )
    print(f"{method.method.value}: of that, wrap and close {wrap:.2f} ms")
    sleeps = [(at_once(None, project), at_once(sandbox, project)) for _ in range(5)]
    bare, boxed = (statistics.median(each) * 1e3 for each in zip(*sleeps, strict=True))
    least = min(boxed for _, boxed in sleeps) * 1e3
    print(
        f"{method.method.value}: eight sleeps of 200 ms {bare:.0f} ms bare, {boxed:.0f} ms confined, "
        f"{least:.0f} at the quietest moment (bar 300)"
    )
    sandbox.close()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        project, state = Path(folder).resolve() / "project", Path(folder).resolve() / "state"
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        for method in tried():
            if method.works:
                measure(method, project, state)
            else:
                print(f"{method.method.value}: not measured, {method.reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
