"""The record of decisions: complete, private, bounded, and never in the way."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.redact import build_redactor
from handrail.dispatch.approval.audit import Audit
from handrail.dispatch.approval.classifier import Classification
from handrail.permissions.facts import Evidence
from handrail.tools.context import AgentIdentity
from handrail.tools.permission import Allow, Deny, Verdict
from tests.dispatch.approval.desk import Classifier, Desk, HookAnswers, Someone, Write, until

pytestmark = pytest.mark.anyio

SECRET = "correct-horse-battery"
ENV = {"MY_API_KEY": SECRET}
ROOT = Path(__file__).resolve().parents[3]


def kept(audit: Audit) -> list[dict[str, Any]]:
    return [json.loads(line) for line in audit.file.read_text().splitlines()]


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return Audit(tmp_path / "state" / "audit", build_redactor(ENV))


@pytest.mark.proves("G33", "G21")
async def test_every_decision_is_kept_with_its_opinions_rules_places_and_snapshot(tmp_path: Path, audit: Audit) -> None:
    desk = Desk(tmp_path, allow=["Edit(src/**)"], deny=["Edit(src/gen/**)"], audit=audit)
    await desk.bash("ls", agent=AgentIdentity("a1", "Explore"))
    await desk.gate.decide(desk.request(Write(), file_path="src/gen/a.py"), Evidence())
    [read, written] = kept(audit)

    assert (read["decision"], read["by"], read["agent"]) == ("allow", "mode", "a1")
    assert {name: written[name] for name in ("v", "call", "tool", "input", "decision", "by", "mode", "version")} == {
        "v": 1,
        "call": "call-1",
        "tool": "Write",
        "input": {"file_path": "src/gen/a.py"},
        "decision": "deny",
        "by": "deny rule",
        "mode": "default",
        "version": desk.live().version,
    }
    assert written["opinions"][0] == {
        "layer": "deny rule",
        "says": "deny",
        "strength": "deny",
        "reason": "the rule Edit(src/gen/**) matches",
        "rule": "project settings .handrail/settings.json:3: Edit(src/gen/**)",
    }
    assert [each["layer"] for each in written["opinions"]] == ["deny rule", "allow rule"]
    assert written["places"] == [{"path": "src/gen/a.py", "real": f"{desk.folder}/src/gen/a.py", "access": "write"}]
    assert written["micros"][0] > 0


@pytest.mark.proves("G33")
async def test_who_answered_what_and_what_was_changed_is_kept(tmp_path: Path, audit: Audit) -> None:
    rule = {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": "npm *"}]}
    person = Someone().now(Deny("no"))
    desk = Desk(tmp_path, handler=person, audit=audit)
    await desk.bash("npm one")
    person.now(Allow({"command": "npm three"}, (rule, {"type": "odd"})))
    await desk.bash("npm two")
    [no, yes] = kept(audit)

    assert (no["decision"], no["by"], no["reason"]) == ("deny", "person", "no")
    assert (yes["decision"], yes["by"]) == ("allow", "person")
    assert (yes["input"], yes["ran"]) == ({"command": "npm two"}, {"command": "npm three"})
    assert yes["updates"] == [rule, {"type": "odd"}]
    [problem] = yes["problems"]
    assert problem.startswith("there is no update of type 'odd'. Use one of addRules, ")


@pytest.mark.proves("G33")
async def test_a_question_that_ends_without_an_answer_is_kept(tmp_path: Path, audit: Audit) -> None:
    person = Someone()
    desk = Desk(tmp_path, handler=person, audit=audit)
    asking = asyncio.create_task(desk.bash("npm publish"))
    await until(lambda: person.asked)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    class Broken(Someone):
        async def ask(self, question: Any) -> Any:
            raise ValueError("no dialog")

    await Desk(tmp_path, handler=Broken(), audit=audit).bash("npm publish")

    assert [(line["decision"], line["by"]) for line in kept(audit)] == [("cancelled", "nobody"), ("deny", "person")]
    assert person.taken_back == 1


@pytest.mark.proves("G3")
async def test_what_only_a_classifier_let_pass_can_be_found_with_its_text(tmp_path: Path, audit: Audit) -> None:
    classifier = Classifier().now(Classification(safe=True, reason="it runs the tests"))
    desk = Desk(tmp_path, mode="auto", classifier=classifier, audit=audit)
    await desk.bash("npm test")
    await desk.bash("touch a.txt")
    await desk.bash("ls")
    by_model, built_in, not_at_all = kept(audit)

    assert [line["by"] == "classifier" for line in (by_model, built_in, not_at_all)] == [True, True, False]
    assert (by_model["decision"], built_in["decision"]) == ("allow", "allow")
    assert json.loads(by_model["classified"])["call"] == "npm test"
    assert by_model["opinions"][-1]["rule"] == "a model"


@pytest.mark.proves("R10")
async def test_no_secret_reaches_the_record(tmp_path: Path, audit: Audit) -> None:
    person = Someone().now(Allow({"command": f"echo {SECRET} two"}))
    desk = Desk(tmp_path, deny=[f"Bash(curl -H {SECRET} *)"], handler=person, hooks=HookAnswers(), audit=audit)
    await desk.bash(f"deploy --token {SECRET}")
    await desk.bash("deploy --header 'Authorization: Bearer abcdef0123456789abcdef'")
    await desk.bash(f"curl -H {SECRET} x")
    await desk.gate.decide(desk.request(Write(), file_path=f"notes/{SECRET}.txt"), Evidence())
    text = audit.file.read_text()

    assert SECRET not in text
    assert "abcdef0123456789" not in text
    assert text.count("[redacted:MY_API_KEY]") >= 4
    assert len(kept(audit)) == 4


@pytest.mark.proves("R10")
async def test_no_value_reaches_the_record_whose_name_says_that_it_is_secret(tmp_path: Path, audit: Audit) -> None:
    desk = Desk(tmp_path, audit=audit)
    await desk.gate.decide(desk.request(Write(), file_path="a.txt", password="swordfish"), Evidence())

    assert "swordfish" not in audit.file.read_text()
    assert kept(audit)[0]["input"]["password"] == "[redacted:password]"


async def test_patterns_of_the_user_count_as_secrets(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit", build_redactor({}, ["^ls$"]))
    await Desk(tmp_path, audit=audit).bash("ls")

    assert kept(audit)[0]["input"] == {"command": "[redacted:pattern]"}


async def test_the_record_is_for_its_owner_only(tmp_path: Path, audit: Audit) -> None:
    await Desk(tmp_path, audit=audit).bash("ls")

    assert stat.S_IMODE(audit.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(audit.file.parent.stat().st_mode) == 0o700


async def test_nothing_is_made_before_there_is_something_to_keep(tmp_path: Path, audit: Audit) -> None:
    assert not (tmp_path / "state").exists()
    audit.close()


@pytest.mark.proves("R6")
async def test_long_inputs_are_cut_and_a_full_file_gives_way_to_a_new_one(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit", build_redactor({}), max_file=40_000)
    desk = Desk(tmp_path, audit=audit)
    for length in (100_000, 5, 5, 100_000, 100_000):
        await desk.bash("echo " + "x" * length)
    files = sorted(audit.file.parent.iterdir())

    assert len(files) == 2
    assert all(file.stat().st_size <= 40_000 for file in files)
    assert kept(audit)[-1]["input"]["command"].endswith("[84005 more characters]")


def full_folder(path: Path) -> Path:
    """A folder with four old files of 1,000 bytes each."""
    path.mkdir()
    for number in range(4):
        old = path / f"{number}.jsonl"
        old.write_text("x" * 1_000)
        os.utime(old, (number, number))
    return path


async def test_old_records_give_way_when_the_folder_is_full(tmp_path: Path) -> None:
    folder = full_folder(tmp_path / "audit")
    audit = Audit(folder, build_redactor({}), max_folder=2_500)
    await Desk(tmp_path, audit=audit).bash("ls")
    audit.close()

    assert sorted(file.name for file in folder.iterdir() if file != audit.file) == ["2.jsonl", "3.jsonl"]


async def test_old_records_give_way_while_a_session_goes_on(tmp_path: Path) -> None:
    folder = full_folder(tmp_path / "audit")
    audit = Audit(folder, build_redactor({}), max_folder=2_500)
    await Desk(tmp_path, audit=audit).bash("ls")

    async with asyncio.timeout(10):
        while (folder / "0.jsonl").exists():  # the oldest goes last
            await asyncio.sleep(0.01)

    assert sorted(file.name for file in folder.iterdir() if file != audit.file) == ["2.jsonl", "3.jsonl"]
    audit.close()


async def test_a_record_that_cannot_be_written_is_said_once_and_holds_up_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "audit").write_text("a file where the folder should be")
    desk = Desk(tmp_path, audit=Audit(tmp_path / "audit", build_redactor({})))

    assert [(await desk.bash("ls")).verdict for _ in range(3)] == [Verdict.ALLOW] * 3
    assert caplog.text.count("decisions are not recorded") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_a_full_disk_is_said_once_and_holds_up_nothing(
    tmp_path: Path, audit: Audit, caplog: pytest.LogCaptureFixture
) -> None:
    audit._fd = os.open("/dev/full", os.O_WRONLY)
    desk = Desk(tmp_path, audit=audit)

    assert [(await desk.bash("ls")).verdict for _ in range(3)] == [Verdict.ALLOW] * 3
    assert caplog.text.count("No space left on device") == 1
    audit.close()


async def test_text_that_is_no_unicode_is_kept_as_an_escape(tmp_path: Path, audit: Audit) -> None:
    await Desk(tmp_path, audit=audit).bash("echo \udcff")

    assert kept(audit)[0]["input"] == {"command": "echo \udcff"}


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from handrail.conversation.redact import build_redactor
from handrail.dispatch.approval.audit import Audit
from tests.dispatch.approval.desk import Desk

async def main() -> None:
    desk = Desk(Path(sys.argv[1]), audit=Audit(Path(sys.argv[1], "audit"), build_redactor({})))
    for number in range(50):
        await desk.bash(f"echo {number}")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.proves("G33")
def test_what_was_decided_outlives_a_kill(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}"},
        check=False,
    )
    [file] = (tmp_path / "audit").iterdir()

    assert done.returncode == -signal.SIGKILL
    assert [json.loads(line)["input"]["command"] for line in file.read_text().splitlines()] == [
        f"echo {number}" for number in range(50)
    ]
