"""
The pytest plugin: `cassette`, a fixture that records what a model answers and replays it from then on.

    pytest --handrail-record     asks the real model, and writes cassettes beside the tests
    pytest                       replays them: no key, no network

Only pytest and a small helper are imported here; the rest comes with the first test that uses the fixture.
"""

import re
import warnings
from collections.abc import Generator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.testing import cassettes
else:
    cassettes = lazy("handrail.testing.cassettes")

RECORD = "--handrail-record"
LONGEST_NAME = 100
MATCH = "conversation"
FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option and two settings."""
    parser.getgroup("handrail").addoption(
        RECORD, action="store_true", help="ask real models in tests with the cassette fixture, and record the answers"
    )
    parser.addini("handrail_secrets", "regular expressions of what no cassette may hold", "linelist", default=[])
    parser.addini("handrail_volatile", "regular expressions of what changes from run to run", "linelist", default=[])
    parser.addini("handrail_match", "what of a request must be as recorded: exact, conversation, loose", default=MATCH)


def pytest_configure(config: pytest.Config) -> None:
    """The marker by which one test says how its requests are compared."""
    config.addinivalue_line("markers", "cassette(match): how requests are compared: exact, conversation or loose")
    import_as_written(config)


def import_as_written(config: pytest.Config) -> None:
    """
    Let pytest import our modules as they are.

    It would rewrite the assertions of every package that brings a plugin. Sessions import modules in a thread too, and
    two threads that parse at a time can fail with "AST constructor recursion depth mismatch" in Python 3.11.
    """
    getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set[str]()).discard("handrail")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether the test failed: then nothing is recorded."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> "Iterator[cassettes.TestCassette]":
    """The recorded model of this test, in a file of its own: cassettes/MODULE/TEST.jsonl beside the test."""
    config = request.config
    places = {"tmp": request.getfixturevalue("tmp_path")} if "tmp_path" in request.fixturenames else {}
    path = cassette_path(request.node.path, request.node.nodeid)
    recording = bool(config.getoption(RECORD))
    if not recording and not path.exists():
        pytest.fail(f"There is no cassette {path} yet. Record it: {_command(request)}", pytrace=False)
    secrets, volatile = config.getini("handrail_secrets"), config.getini("handrail_volatile")
    mark = request.node.get_closest_marker("cassette")
    match = (mark.kwargs.get("match") if mark else None) or config.getini("handrail_match")
    tape = cassettes.TestCassette(
        path, recording=recording, places=places, secrets=secrets, volatile=volatile, match=match
    )
    yield tape
    failed = request.node.stash.get(FAILED, False)
    tape.end(keep=not failed)
    for change in tape.changes:
        warnings.warn(f"{change} To record: {_command(request)}", UserWarning, stacklevel=1)
    if tape.misses and not failed:
        pytest.fail(f"{tape.misses[0]}\nTo record: {_command(request)}", pytrace=False)


def cassette_path(module: Path, nodeid: str) -> Path:
    """A file for each test, with a name that any file system takes, and no two tests share."""
    test = nodeid.partition("::")[2].replace("::", ".")
    name = re.sub(r"[^\w.\[\]-]+", "-", test, flags=re.ASCII)
    if name != test or len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}-{sha256(test.encode()).hexdigest()[:8]}"
    return module.parent / "cassettes" / module.stem / f"{name}.jsonl"


def _command(request: pytest.FixtureRequest) -> str:
    return f"pytest {RECORD} '{request.node.nodeid}'"
