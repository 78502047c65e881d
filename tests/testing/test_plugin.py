"""The pytest plugin, in test runs of its own: recorded against a loopback model server, replayed without it."""

import asyncio
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from handrail.conversation.blocks import Text
from handrail.providers.cassette.tape import load
from handrail.testing.model_server import ModelServer, Reply
from handrail.testing.plugin import cassette_path
from tests.forked import program, unmeasured

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[2]

TESTS = """
import asyncio
import pytest
from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.request import History, Request
from handrail.conversation.stream import BlockEnd
from handrail.errors import CassetteMissError

def ask(cassette, words, model="m", system=()):
    async def answer():
        provider = cassette.provider(model, provider="anthropic")
        request = Request(model, History([UserMessage((Text(words),))]), system=system)
        events = [event async for event in provider.stream(request)]
        await provider.aclose()
        return "".join(event.block.text for event in events if isinstance(event, BlockEnd))
    return asyncio.run(answer())
"""


def run(folder: Path, *options: str, **env: str) -> tuple[int, str]:
    surroundings = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "OPENAI", "PYTEST"))},
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **env,
    }
    command: list[str | Path] = [
        program("pytest"),
        "-q",
        "-p",
        "handrail.testing.plugin",
        "-p",
        "no:cacheprovider",
        *options,
    ]
    done = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


async def record(folder: Path, *replies: Reply) -> tuple[int, str]:
    async with ModelServer(replies) as server:
        return await asyncio.to_thread(
            run, folder, "--handrail-record", "-W", "error", ANTHROPIC_BASE_URL=server.url, MY_API_KEY="the-key-itself"
        )


def write(folder: Path, tests: str, name: str = "test_agent.py") -> None:
    (folder / name).write_text(TESTS + tests)


async def test_a_test_is_recorded_once_and_replayed_without_key_and_network(tmp_path: Path) -> None:
    tests = """
def test_greets(cassette, tmp_path):
    assert cassette.recording == ("--record" in cassette.flags)
    assert ask(cassette, f"Say hi in {tmp_path}") == f"Hi in {tmp_path}" or cassette.recording
    assert ask(cassette, "again") == "Hello"
"""
    write(tmp_path, tests)
    code, output = await record(tmp_path, Reply((Text("Hi the-key-itself"),)), Reply((Text("Hello"),)))
    assert code == 0, output
    path = tmp_path / "cassettes" / "test_agent" / "test_greets.jsonl"
    assert len(load(path).recordings) == 2
    assert "the-key-itself" not in path.read_text()
    path.write_text(path.read_text().replace("Hi [redacted:MY_API_KEY]", "Hi in {{handrail:tmp}}"))

    code, output = run(tmp_path)

    assert code == 0, output
    assert "1 passed" in output


async def test_without_a_cassette_the_test_says_how_to_record_it(tmp_path: Path) -> None:
    write(tmp_path, "def test_new(cassette): pass")

    code, output = run(tmp_path)

    assert code == 1
    assert (
        "cassettes/test_agent/test_new.jsonl yet. Record it: pytest --handrail-record 'test_agent.py::test_new'"
        in output
    )


async def test_a_miss_fails_with_the_difference_even_if_the_code_under_test_swallows_it(tmp_path: Path) -> None:
    write(tmp_path, "def test_one(cassette):\n    ask(cassette, 'one thing')")
    assert (await record(tmp_path, Reply((Text("Hi"),))))[0] == 0
    write(
        tmp_path,
        "def test_one(cassette):\n    try:\n        ask(cassette, 'another thing')\n"
        "    except CassetteMissError:\n        pass",
    )

    code, output = run(tmp_path)

    assert code == 1
    assert '-     "text": "one thing"' in output
    assert '+     "text": "another thing"' in output
    assert "To record: pytest --handrail-record 'test_agent.py::test_one'" in output


async def test_a_test_that_fails_while_recording_leaves_the_old_cassette(tmp_path: Path) -> None:
    write(tmp_path, "def test_one(cassette):\n    assert ask(cassette, 'x') == 'good'")
    assert (await record(tmp_path, Reply((Text("good"),))))[0] == 0

    code, output = await record(tmp_path, Reply((Text("bad"),)))

    assert code == 1, output
    assert run(tmp_path)[0] == 0
    assert [path.suffix for path in (tmp_path / "cassettes").rglob("*.*")] == [".jsonl"]


async def test_what_changed_since_the_recording_is_a_warning_and_with_exact_matching_a_miss(tmp_path: Path) -> None:
    tests = """
def test_one(cassette):
    assert ask(cassette, 'Hi', system=SYSTEM) == 'Hello'

@pytest.mark.cassette(match="exact")
def test_two(cassette):
    assert "exact" in cassette.flags or cassette.recording
    assert ask(cassette, 'Hi', system=SYSTEM) == 'Hello'
"""
    write(tmp_path, tests.replace("SYSTEM", "('Be brief.',)"))
    code, output = await record(tmp_path, *[Reply((Text("Hello"),))] * 2)
    assert code == 0, output
    assert run(tmp_path, "-W", "error")[0] == 0
    write(tmp_path, tests.replace("SYSTEM", "('Be long.',)"))

    code, output = run(tmp_path, "-W", "default")

    assert "1 failed, 1 passed, 1 warning" in output
    assert "UserWarning: Since the cassette" in output
    assert "was recorded, this has changed: the system prompt" in output
    assert "with --replay-match conversation" in output


async def test_settings_name_what_is_secret_and_what_is_volatile(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nhandrail_secrets = ACME-\\d+\nhandrail_volatile = build \\d+\n")
    tests = "import os\ndef test_one(cassette):\n    ask(cassette, f\"ACME-77 in build {os.environ['BUILD']}\")"
    write(tmp_path, tests)
    async with ModelServer([Reply((Text("ACME-77"),))]) as server:
        code, output = await asyncio.to_thread(
            run, tmp_path, "--handrail-record", ANTHROPIC_BASE_URL=server.url, BUILD="1"
        )
    assert code == 0, output

    assert run(tmp_path, BUILD="2")[0] == 0
    assert "ACME" not in (tmp_path / "cassettes/test_agent/test_one.jsonl").read_text()


async def test_several_models_share_a_cassette_and_async_tests_may_use_it(tmp_path: Path) -> None:
    tests = """
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two(cassette, anyio_backend):
    for model in ("m", "n"):
        provider = cassette.provider(model, provider="openai")
        request = Request(model, History([UserMessage((Text("Hi"),))]))
        assert [event async for event in provider.stream(request)]
        await provider.aclose()
"""
    write(tmp_path, tests)
    async with ModelServer([Reply((Text("a"),)), Reply((Text("b"),))]) as server:
        url = f"{server.url}/v1"
        options = ("-p", "anyio", "-W", "error", "--handrail-record")
        code, output = await asyncio.to_thread(run, tmp_path, *options, OPENAI_BASE_URL=url)
    assert code == 0, output
    code, output = run(tmp_path, "-p", "anyio", "-W", "error")
    assert code == 0, output


@pytest.mark.proves("R14")
async def test_loading_the_plugin_costs_next_to_nothing() -> None:
    code = "import sys, pytest; before = {*sys.modules}; import handrail.testing.plugin; print({*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", code], env=unmeasured(), capture_output=True, text=True, check=True)

    loaded = eval(done.stdout)
    assert {name for name in loaded if name.startswith("handrail")} == {
        "handrail",
        "handrail.lazy",
        "handrail.testing",
        "handrail.testing.plugin",
    }
    assert not {"asyncio", "anyio", "pydantic"} & loaded


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"]["pytest11"] == {"handrail": "handrail.testing.plugin"}


def test_each_test_has_a_file_of_its_own_with_a_name_that_any_file_system_takes() -> None:
    def name(test: str) -> str:
        return cassette_path(Path("/t/test_a.py"), f"t/test_a.py::{test}").relative_to("/t/cassettes").as_posix()

    assert name("TestX::test_b[one]") == "test_a/TestX.test_b[one].jsonl"
    odd = [name(f"test_b[{text}]") for text in ("a/b", "a:b", "../../b", "ä", "x" * 500, "x" * 501)]
    assert len({*odd}) == len(odd)
    assert all(each.count("/") == 1 and each.isascii() and len(each) < 140 for each in odd)
