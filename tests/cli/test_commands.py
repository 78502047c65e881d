"""The commands, as a person runs them."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.forked import program, unmeasured

from handrail.cli.main import run

TOO_DEEP = "nested too deeply" if sys.version_info < (3, 14) else "the input is not JSON"
"""Python 3.14 reads on to the end, which is missing."""
LIGHT = {"handrail", "handrail.__main__", "importlib", "typing"}


def handrail(
    *arguments: str, cwd: Path, stdin: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HANDRAIL_STATE_DIR": str(cwd / "state"), **(environment or {})},
    )


def test_the_version_loads_nothing_but_itself(tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules); sys.argv = ['handrail', '--version']\n"
        "from handrail.__main__ import main\n"
        "main(); print(' '.join(sorted(set(sys.modules) - before)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env=unmeasured()
    )

    version, modules = ran.stdout.splitlines()
    assert version.startswith("handrail 0.")
    loaded = set(modules.split())
    assert {name for name in loaded if name.startswith("handrail")} == {"handrail", "handrail.__main__"}
    assert not {name.partition(".")[0] for name in loaded} & {
        "argparse",
        "asyncio",
        "pydantic",
        "anyio",
        "json",
        "logging",
    }


def test_without_arguments_the_help_is_shown(tmp_path: Path) -> None:
    ran = handrail(cwd=tmp_path)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith('usage: handrail ["PROMPT"] [flags]')
    assert ran.stderr.endswith(
        "handrail: nothing was asked for. Give a prompt in quotes, a command, or piped input with -p.\n"
    )


def test_help_of_a_command_inside_a_command_is_its_own(tmp_path: Path) -> None:
    assert handrail("help", "permissions", "lint", cwd=tmp_path).stdout.startswith("usage: handrail permissions lint ")


def test_a_prompt_that_stream_json_has_no_place_for_is_named(tmp_path: Path) -> None:
    ran = handrail("-p", "hello", "--input-format", "stream-json", "--base-url", "http://127.0.0.1:9", cwd=tmp_path)

    assert "the prompt is not used: with --input-format stream-json, messages come from standard input" in ran.stderr


def test_a_call_loads_no_provider_and_no_user_interface(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['handrail', 'call', 'Sleep', '{\"seconds\": 0.001}']\n"
        "from handrail.__main__ import main\n"
        "main(); print(' '.join(sys.modules))"
    )
    # whoever measures coverage in there loads modules of its own
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env=unmeasured()
    )

    loaded = set(ran.stdout.splitlines()[-1].split())
    assert "handrail.builtin.sleep" in loaded
    assert not loaded & {"httpx2", "rich", "prompt_toolkit", "jsonschema_rs", "mcp", "anyio", "tomllib"}
    assert not loaded & {"handrail.builtin.glob", "handrail.builtin.read", "handrail.http.http1"}


@pytest.mark.proves("R14")
def test_importing_handrail_loads_no_dependency_and_opens_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; seen = []; sys.addaudithook(lambda event, args: seen.append(event))\n"
        "before = set(sys.modules); import handrail\n"
        "print(sorted(n for n in set(sys.modules) - before if n.startswith('handrail')))\n"
        "print([e for e in seen if e.split('.')[0] in ('socket', 'subprocess', 'os') and e not in ('os.listdir',)])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env=unmeasured()
    )

    assert ran.stdout.splitlines() == ["['handrail']", "[]"]


def test_the_tools_are_listed_as_a_run_offers_them(tmp_path: Path) -> None:
    ran = handrail("tools", cwd=tmp_path, environment={"PATH": "/nowhere"})

    assert ran.returncode == 0
    sections = {block.partition("\n")[0]: block.partition("\n")[2] for block in ran.stdout.split("\n\n")}
    offered, searched, held, names = sections.values()
    assert next(iter(sections)) == "offered with every request"
    assert [line.split()[:2] for line in offered.splitlines() if line.split()[0] in {"Bash", "Edit", "Read"}] == [
        ["Bash", "depends"],
        ["Edit", "changes"],
        ["Read", "reads"],
    ]
    assert re.search(r"^  NotebookEdit +changes  Replace, insert or delete", searched, re.MULTILINE)
    assert "Glob LS" in " ".join(names.split())
    assert "PowerShell it needs the program pwsh" in [" ".join(line.split()) for line in held.splitlines()]


@pytest.mark.proves("N8")
def test_every_tool_of_the_checklist_is_named_with_how_it_stands(tmp_path: Path) -> None:
    checklist = tomllib.loads((Path(__file__).parents[2] / "checklist.toml").read_text())
    wanted = {line["text"].split()[0] for line in checklist["N. Built-in tools"].values()} - {"Tools"}
    assert len(wanted) == 30  # all but the tools of MCP servers, which are named when there are servers

    shown = handrail("tools", cwd=tmp_path).stdout
    rows = [line.replace(",", "").split() for line in shown.splitlines() if line.startswith("  ")]
    first, aliases = {row[0] for row in rows}, {word for row in rows for word in row}

    assert wanted - first == {"LS"}  # another name of Glob
    assert "LS" in aliases
    assert all(len(row) > 1 for row in rows)


def test_what_rules_mode_and_flags_hold_back_is_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "settings.json").write_text('{"permissions": {"deny": ["Bash"]}}')

    def held(*flags: str) -> dict[str, str]:
        rows = json.loads(handrail("tools", "--json", *flags, cwd=tmp_path).stdout)
        return {row["name"]: row["why"] for row in rows if row["loaded"] == "never"}

    assert held()["Bash"] == "denied by project settings .handrail/settings.json:1: Bash"
    assert held("--permission-mode", "plan")["Edit"] == "plan mode offers only tools that read"
    assert held("--mode", "plan") == held("--permission-mode", "plan")
    named = held("--tools", "Read,Bash")
    assert named["Glob"] == "--tools does not name it"
    assert named["Bash"].startswith("denied by project settings")
    assert "Read" not in named
    assert held()["Skill"] == "there is no skill that the model may load"

    (tmp_path / ".handrail" / "skills" / "pdf").mkdir(parents=True)
    (tmp_path / ".handrail" / "skills" / "pdf" / "SKILL.md").write_text("---\ndescription: Reads.\n---\nRead it.")
    assert "Skill" not in held()


def test_the_tools_are_listed_for_programs(tmp_path: Path) -> None:
    listed = json.loads(handrail("tools", "--json", cwd=tmp_path).stdout)

    by_name = {tool["name"]: tool for tool in listed}
    assert by_name["Read"]["aliases"] == ["FileRead", "FileReadTool", "read_file", "NotebookRead"]
    assert by_name["Sleep"]["interrupt"] == "cancel"
    assert by_name["Glob"]["runs"] == "by what it touches"
    assert by_name["Read"]["input_schema"]["required"] == ["file_path"]


def test_a_call_prints_its_result(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    ran = handrail("call", "Read", '{"file_path": "a.txt"}', cwd=tmp_path)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1\tone\n2\ttwo\n", "")


def test_a_call_takes_its_input_from_a_pipe_and_an_old_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    ran = handrail("call", "FileRead", "-", cwd=tmp_path, stdin='{"file_path": "a.txt"}')

    assert (ran.returncode, ran.stdout) == (0, "1\tone\n")


def test_a_call_tells_programs_everything(tmp_path: Path) -> None:
    told = json.loads(handrail("call", "Sleep", '{"seconds": "0.001"}', "--json", cwd=tmp_path).stdout)

    assert told["status"] == "ok"
    assert told["content"] == [{"type": "text", "text": "Waited 0.001 seconds."}]
    assert told["decision"]["verdict"] == "allow"
    assert set(told["seconds"]) == {"queued", "validated", "decided", "ran", "fitted"}


def test_a_call_hands_programs_the_data_of_its_result_whatever_the_file_holds(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("größe äöüÄÖÜ\nbroken \udcff\n".encode("utf-8", "surrogateescape"))

    told = json.loads(handrail("call", "Read", '{"file_path": "a.txt"}', "--json", cwd=tmp_path).stdout)
    failed = json.loads(handrail("call", "Read", '{"file_path": "b.txt"}', "--json", cwd=tmp_path).stdout)

    about = {"filePath": str(tmp_path / "a.txt"), "content": "größe äöüÄÖÜ\nbroken \udcff"}
    assert told["data"] == {"type": "text", "file": {**about, "numLines": 2, "startLine": 1, "totalLines": 2}}
    assert (failed["status"], failed["data"]) == ("error", None)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(["call", "Reed", "{}"], 2, "Did you mean 'Read'?", id="an unknown tool with a near name"),
        pytest.param(
            ["call", "LSP", "{}"], 2, "held back here: language servers need a trusted folder", id="held back"
        ),
        pytest.param(["call", "Read", "[" * 50_000], 2, TOO_DEEP, id="deep JSON"),
        pytest.param(["call", "Read", "{"], 2, "the input is not JSON", id="broken JSON"),
        pytest.param(["call", "Read", "[]"], 2, "a JSON list, and an object is needed", id="JSON that is no object"),
        pytest.param(["call", "Read", "{}"], 2, "'file_path' is missing", id="an invalid input"),
        pytest.param(["call", "Read", '{"file_path": "no"}'], 1, "does not exist", id="a tool error"),
        pytest.param(
            ["call", "Read", '{"file_path": "/etc/hostname"}'], 3, "outside the working folders", id="a denied call"
        ),
        pytest.param(["call", "Read", '{"file_path": ".env"}'], 3, "may hold secrets", id="a secret"),
        pytest.param(["call", "Read"], 2, "required: JSON", id="a missing argument"),
        pytest.param(["nonsense"], 2, "there is no command 'nonsense'", id="an unknown command"),
        pytest.param([], 2, "COMMAND", id="no command"),
    ],
)
def test_what_goes_wrong_is_said_and_told_by_the_exit_code(
    arguments: list[str], code: int, says: str, tmp_path: Path
) -> None:
    ran = handrail(*arguments, cwd=tmp_path)

    assert ran.returncode == code
    assert says in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize(
    "command",
    [
        "agents show nope",
        "audit why nope",
        "call Read x",
        "cassette show nope",
        "config get model",
        "mcp get nope",
        "permissions test nope",
        "sessions show nope",
        "skills show nope",
        "undo",
        "view nope",
    ],
)
def test_a_command_that_fails_says_why_to_programs_too(tmp_path: Path, command: str) -> None:
    ran = handrail(*command.split(), "--json", cwd=tmp_path)

    assert ran.returncode in (1, 2)
    assert ran.stderr == f"handrail: {json.loads(ran.stdout)['error']}\n"
    assert handrail(*command.split(), cwd=tmp_path).stdout == ""


def test_nothing_is_written_anywhere_without_need(tmp_path: Path) -> None:
    handrail("tools", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []

    handrail("call", "Glob", '{"pattern": "*"}', cwd=tmp_path)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.parent.relative_to(tmp_path) for path in written] == [Path("state/audit")]  # the decision, and no more


def test_an_interrupt_while_the_program_loads_ends_it_without_a_traceback(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'handrail.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from handrail.__main__ import program\n"
        "program()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "-p", "hi"],
        cwd=tmp_path,
        env=unmeasured(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


def test_an_interrupted_call_ends_with_130(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", INTERRUPTED],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"

    process.send_signal(signal.SIGINT)

    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "")


INTERRUPTED = """
import sys
from handrail.builtin.sleep import Sleep
from handrail.__main__ import main

call = Sleep.call
async def announced(self, args, ctx):
    print("running")
    return await call(self, args, ctx)
Sleep.call = announced
sys.argv = ["handrail", "call", "Sleep", '{"seconds": 60}']
sys.exit(main())
"""


TIMED_OUT = """
import sys
from handrail.builtin.sleep import Sleep
from handrail.__main__ import main

Sleep.timeout = 0.01
sys.argv = ["handrail", "call", "Sleep", '{"seconds": 60}']
sys.exit(main())
"""


def test_a_call_that_takes_too_long_ends_with_4(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", TIMED_OUT], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert ran.returncode == 4
    assert "did not finish within 0.01 seconds" in ran.stderr


def test_a_folder_that_is_gone_is_told_in_a_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && {sys.executable} -m handrail tools"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert (
        ran.stderr == "handrail: the folder that you are in does not exist any more. Change to another one: cd FOLDER\n"
    )


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "too many files are open (`ulimit -n` shows the limit). Raise"),
        (RuntimeError("can't start new thread"), "no more processes or threads are allowed (`ulimit -u` shows the"),
        (OSError(errno.EACCES, "Permission denied", "/x"), "Permission denied (/x). Look at its owner and mode."),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device. Make room on the disk, then try"),
    ],
)
def test_what_the_machine_does_not_allow_is_told_in_a_line(
    error: Exception, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_arguments: object) -> int:
        raise error

    monkeypatch.setattr("handrail.cli.tools.run", fail)

    assert run(["tools"]) == 1
    assert says in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    ran = subprocess.run(
        f"{program()} tools --json | head -n 1",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert (ran.stdout, ran.stderr) == ("[\n", "")


@pytest.mark.parametrize("command", ["handrail tools", 'handrail call Glob \'{"pattern": "*"}\'', "handrail --version"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output_is_no_error(tmp_path: Path, command: str, closed: str) -> None:
    line = f"{command.replace('handrail', f'{sys.executable} -m handrail')} {closed}"

    ran = subprocess.run(
        ["sh", "-c", line],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HANDRAIL_STATE_DIR": str(tmp_path / "state")},
    )

    assert (ran.returncode, ran.stderr) == (0, "")
