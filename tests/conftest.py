"""
What every test run keeps to.

- A test that needs a program which is not here is not run, and the end of the run says so. With CI=true that is a
  failure if set-up or scripts/system-deps could have provided it.
- A test may only claim to prove ids that stand in checklist.toml.
- Programs that our dependencies bring (ripgrep) count as installed.
- A Ctrl+C or hang-up sent to a program that a test started reaches it, also when the run itself is deaf to it (`nohup`,
  `&`).
- No test talks to any address but loopback.
- What is imported and collected stays to the end, so it is not looked through for garbage again and again.
- Property tests give the same examples on every run, unless asked for more (`make fuzz`). A broken property is told
  soon: its example is made smaller for at most 20 seconds.
- A test that never ends fails: see faulthandler_timeout in pyproject.toml.
"""

import gc
import ipaddress
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.internal.conjecture import engine

from handrail.conversation.blocks import ToolUse
from handrail.testing.plugin import import_as_written
from handrail.tools.abort import AbortSignal
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Decision, Verdict

ROOT = Path(__file__).resolve().parents[1]
NOT_RUN = "not run"
FOREIGN = {".mcp-servers": "make mcp-servers", ".xterm": "scripts/xterm", ".cluster": "scripts/cluster"}
"""Folders with what registries bring for some tests, and the way to get each. The gate does without them."""

FAST = tuple(phase for phase in Phase if phase is not Phase.explain)  # explaining tries as often as shrinking does
settings.register_profile("fast", derandomize=True, deadline=None, max_examples=60, phases=FAST)
settings.register_profile("thorough", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile("fast")
assert engine.MAX_SHRINKING_SECONDS, "Hypothesis bounds shrinking by another name now"
engine.MAX_SHRINKING_SECONDS = 20

os.environ["HANDRAIL_MCP_WAIT_MS"] = "60000"  # on a busy machine a server may need longer than people would wait
# behind all others, so that nothing else of the environment is found before what the system has
os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    import_as_written(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def state_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What handrail keeps of its runs goes to a folder of this test run."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["HOME"] = str(tmp_path_factory.mktemp("home"))  # also where a test gives an environment of its own


@pytest.fixture(scope="session", autouse=True)
def forked_programs() -> Iterator[None]:
    """They end before the coverage of all processes is put together."""
    yield
    if forked := sys.modules.get("tests.forked"):
        forked.end()


# What a tool is given


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> RunContext:
    return RunContext(cwd=tmp_path_factory.mktemp("cwd"))


@pytest.fixture
def ctx(run: RunContext) -> ToolContext:
    async def refuse(use: ToolUse, run: RunContext) -> Decision:
        return Decision(Verdict.DENY, f"{use.name} may not be used by a test")

    return ToolContext(run, ToolUse("call-1", "Any", {}), AbortSignal(), lambda progress: None, refuse)


# What is measured


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Coverage triples the price of a property and shows nothing new: each line it reaches, examples reach too."""
    if config.pluginmanager.hasplugin("_cov"):
        for item in items:
            if item.get_closest_marker("hypothesis"):
                item.add_marker(pytest.mark.no_cover)


# Programs that a test needs


def is_here(need: str) -> bool:
    """A need is a program, or a folder of the checkout when it starts with a dot."""
    return (ROOT / need).exists() if need.startswith(".") else shutil.which(need) is not None


def installable() -> frozenset[str]:
    listed = subprocess.run([ROOT / "scripts" / "system-deps", "--list"], capture_output=True, text=True, check=True)
    return frozenset(listed.stdout.split())


def way_to_get(need: str, by_script: frozenset[str]) -> str:
    if way := FOREIGN.get(need.partition("/")[0]):
        return way
    if need.startswith("."):
        return "make setup"
    return "scripts/system-deps" if need in by_script else "not installed by scripts/system-deps"


def pytest_runtest_setup(item: pytest.Item) -> None:
    missing = [need for mark in item.iter_markers("needs") for need in mark.args if not is_here(need)]
    if missing:
        item.user_properties.extend((NOT_RUN, need) for need in missing)
        pytest.skip(f"needs {', '.join(missing)}")


def not_run(config: pytest.Config) -> list[tuple[str, str]]:
    """(need, test) of every test that was left out, also when the tests ran in worker processes."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    return sorted((str(need), r.nodeid) for r in skipped for key, need in r.user_properties if key == NOT_RUN)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    left_out = not_run(config)
    if not left_out:
        return
    by_script = installable()
    terminalreporter.section("not run")
    for need in sorted({need for need, _ in left_out}):
        terminalreporter.line(f"{need} is missing ({way_to_get(need, by_script)}), so these were not run:")
        for test in (test for missing, test in left_out if missing == need):
            terminalreporter.line(f"  {test}")
    if fails_ci(left_out):
        terminalreporter.line("CI=true: what can be installed must be installed, so this run failed.", red=True)


def fails_ci(left_out: list[tuple[str, str]]) -> bool:
    if os.environ.get("CI") != "true" or not left_out:
        return False
    by_script = installable()
    here = [need for need, _ in left_out if need.partition("/")[0] not in FOREIGN]
    return any(need.startswith(".") or need in by_script for need in here)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and fails_ci(not_run(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


# Ids that a test proves


def promised_ids() -> frozenset[str]:
    with (ROOT / "checklist.toml").open("rb") as file:
        return frozenset(identity for section in tomllib.load(file).values() for identity in section)


PROMISED = promised_ids()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    unknown = [
        f"{item.nodeid} proves {identity!r}, which checklist.toml does not know. Correct the id, or add it there."
        for item in report.result or []
        if isinstance(item, pytest.Item)
        for mark in item.iter_markers("proves")
        for identity in mark.args
        if identity not in PROMISED
    ]
    if not unknown:
        return report
    return pytest.CollectReport(report.nodeid, "failed", "\n".join(unknown), [])


# No network


class NetworkUseError(RuntimeError):
    """Not an OSError on purpose: code under test that copes with a dead network must not cope with this."""


def is_loopback(host: object) -> bool:
    if not host or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def refuse_network(event: str, args: tuple[Any, ...]) -> None:
    if event in {"socket.connect", "socket.sendto"}:
        target = args[1][0] if isinstance(args[1], tuple) else None
    elif event == "socket.getaddrinfo":
        target = args[0].decode() if isinstance(args[0], bytes) else args[0]
    else:
        return
    if not is_loopback(target):
        raise NetworkUseError(f"a test tried to reach {target!r}. Tests may only talk to 127.0.0.1 and ::1.")


sys.addaudithook(refuse_network)
