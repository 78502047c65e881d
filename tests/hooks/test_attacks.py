"""Hooks that are broken in every way a program can be, and hooks that want to break out."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Hooks, RunContext
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.results import HookResult
from handrail.tools.permission import Verdict
from tests.processes.seen import alive, noted, stay

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


DENY = (
    '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}'
)
ALLOW = DENY.replace("deny", "allow")
CALL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "1"}
MEGABYTE = "head -c 1200000 /dev/zero | tr '\\0' x"


async def asked(folder: Path, *lines: str, fields: Any = None, event: str = "PreToolUse", **more: Any) -> HookResult:
    section = {event: [{"hooks": [{"type": "command", "command": line, "timeout": 15, **more} for line in lines]}]}
    hooks = Hooks(section, environment=HookEnvironment(dict(os.environ), folder=folder / "state"))
    with anyio.fail_after(30):
        return await hooks.fire(event, CALL if fields is None else fields, RunContext(folder))


# What a command may do -> what becomes of the call (None: nothing is thought of it) and a word of the reason
ATTACKS = {
    "a flood": (MEGABYTE, Verdict.ASK, "too long"),
    "a no behind a flood": (f"{MEGABYTE}; echo; echo '{DENY}'", Verdict.ASK, "too long"),
    "a yes before a flood": (f"echo '{ALLOW}'; {MEGABYTE}", Verdict.ASK, "too long"),
    "a flood of errors beside a no": (f"{MEGABYTE} >&2; echo '{DENY}'", Verdict.DENY, "no"),
    "a flood of errors and exit 2": (f"{MEGABYTE} >&2; exit 2", Verdict.DENY, "cut"),
    "bytes that are no text": ("printf '\\377\\376{'", Verdict.ASK, "not UTF-8"),
    "bytes that are no text, and exit 2": ("printf '\\377'; exit 2", Verdict.DENY, "no reason"),
    "a yes with a broken byte": (f"printf %s '{ALLOW}' | sed 's/allow/allow\\xff/'", Verdict.ASK, "not UTF-8"),
    "a no in another encoding": (f"printf %s '{DENY}' | iconv -t UTF-16", Verdict.ASK, "not UTF-8"),
    "a no in another encoding without a mark": (f"printf %s '{DENY}' | iconv -t UTF-16LE", Verdict.ASK, "not JSON"),
    "zero bytes": ("printf '{\\0}'", Verdict.ASK, "not JSON"),
    "two answers": (f"echo '{DENY}'; echo '{ALLOW}'", Verdict.ASK, "not JSON"),
    "deep JSON": ("printf '{\"a\":%.0s' $(seq 5000)", Verdict.ASK, "not JSON"),
    "stdin closed at once": ("exec 0<&-; exit 0", None, ""),
    "output closed at once": ("exec 1>&- 2>&-; exit 2", Verdict.DENY, "no reason"),
    "kills itself": ("kill -9 $$", Verdict.ASK, "signal 9"),
    "kills its group": ("kill -9 0", Verdict.ASK, "signal 9"),
    "a folder as a script": ("./state", Verdict.ASK, "could not be started"),
    "a script without rights": ("touch s; ./s", Verdict.ASK, "could not be started"),
    "a pipe as a script": ("mkfifo p; chmod +x p; ./p", Verdict.ASK, "could not be started"),
    "a script that leads to itself": ("ln -sf loop loop; ./loop", Verdict.ASK, "could not be started"),
}


@pytest.mark.parametrize(("line", "verdict", "reason"), ATTACKS.values(), ids=ATTACKS)
@pytest.mark.proves("R2", "H2")
async def test_nothing_but_a_clean_yes_is_a_yes(
    line: str, verdict: Verdict | None, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()

    answer = await asked(tmp_path, line)

    assert answer.verdict is verdict
    assert reason in answer.reason
    assert len(answer.reason) <= 10_000


async def test_a_hook_that_does_not_read_a_big_input_is_heard(tmp_path: Path) -> None:
    big = {**CALL, "tool_input": {"command": "x" * 3_000_000}}

    assert (await asked(tmp_path, f"exec 0<&-; echo '{DENY}'", fields=big)).verdict is Verdict.DENY


async def test_text_that_no_encoding_knows_reaches_a_hook(tmp_path: Path) -> None:
    """File names may hold any bytes."""
    strange = {**CALL, "tool_input": {"command": "cat a\udcff"}}

    answer = await asked(tmp_path, f"cat > seen; echo '{DENY}'", fields=strange)

    assert answer.verdict is Verdict.DENY
    assert json.loads((tmp_path / "seen").read_text())["tool_input"]["command"].startswith("cat a")


async def test_a_pipe_that_nobody_writes_to_is_given_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "guard.sh")

    answer = await asked(tmp_path, "sh ./guard.sh", timeout=0.3)

    assert answer.verdict is Verdict.ASK
    assert "did not answer within 0.3 seconds" in answer.reason


@pytest.mark.proves("R8")
async def test_a_process_that_leaves_its_session_does_not_outlive_the_hook(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    inner = f"echo $$ >> pids; echo > ready; {stay(tmp_path)}"
    (tmp_path / "inner.sh").write_text(inner)

    await asked(tmp_path, "setsid sh inner.sh </dev/null >/dev/null 2>&1 & read x < ready")

    assert noted(tmp_path)
    assert not any(map(alive, noted(tmp_path)))


@pytest.mark.parametrize(
    "given", [["ls"], "ls", 7, True, {"command": float("inf")}], ids=["list", "text", "number", "true", "infinite"]
)
async def test_an_input_that_is_none_is_no_answer(given: Any, tmp_path: Path) -> None:
    output = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": given}

    answer = await asked(tmp_path, f"echo '{json.dumps({'hookSpecificOutput': output})}'")

    assert (answer.verdict, answer.updated_input) == (Verdict.ASK, None)


async def test_of_very_many_hooks_each_is_asked_and_one_no_counts(tmp_path: Path) -> None:
    """But not all at once: a machine has an end."""
    now, most, count = 0, 0, 0
    lock = threading.Lock()

    async def look(_event: dict[str, Any]) -> None:
        nonlocal now, most, count
        with lock:
            now, count = now + 1, count + 1
            most = max(most, now)
        await anyio.sleep(0)
        now -= 1

    class Another:
        """Each is another hook."""

        async def __call__(self, event: dict[str, Any]) -> None:
            await look(event)

    callbacks: list[Any] = [Another().__call__ for _ in range(3000)]
    hooks = Hooks(callbacks={"PreToolUse": [*callbacks, lambda _event: json.loads(DENY)]})
    with anyio.fail_after(30):
        answer = await hooks.fire("PreToolUse", CALL, RunContext(tmp_path))

    assert (answer.verdict, count) == (Verdict.DENY, 3000)
    assert 1 < most <= 64
