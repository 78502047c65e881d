"""The first day of a security engineer: look at a folder, trust it, test its policy, and read what was decided."""

import errno
import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import Reply
from tests.cli.test_commands import handrail
from tests.cli.test_run import handrail as run_agent
from tests.forked import program

COLOUR = re.compile(r"\x1b\[[0-9]+m")
POLICY = {
    "permissions": {"allow": ["Bash(make *)"], "deny": ["Bash(curl *)"]},
    "env": {
        "NODE_OPTIONS": "--require ./x.js",
        "DEPLOY_TOKEN": "hush-hush-hush",
        "ODD": "a\x1b[2J\nenv.FAKE: harmless",
    },
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "sh ./guard.sh"}]}]},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository as one may have cloned it, with a policy, a guard and an MCP server of its own."""
    folder = tmp_path / "project"
    (folder / ".handrail").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (folder / ".handrail" / "settings.json").write_text(json.dumps(POLICY, indent=2))
    (folder / "guard.sh").write_text("grep -q release && { echo 'not on a Friday' >&2; exit 2; }; exit 0\n")
    return folder


def home(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder.parent / "home"), "HANDRAIL_STATE_DIR": str(folder.parent / "state")}


def in_terminal(
    folder: Path, words: Sequence[str], *, columns: int, typed: str = "", typed_before: str = "", **more: str
) -> tuple[int, str]:
    """The exit code and what a terminal of that width shows; a question is answered by what is typed."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    env |= {"TERM": "xterm", **home(folder), **more}
    with subprocess.Popen(
        [program(), *words], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as running:
        os.close(theirs)
        os.write(ours, typed_before.encode())
        shown = b""
        while piece := read_from(ours):
            shown += piece
            if typed and shown.endswith(b"[y/N] "):
                os.write(ours, typed.encode())
    os.close(ours)
    return running.returncode, shown.decode().replace("\r\n", "\n")


def read_from(terminal: int) -> bytes:
    """The next bytes; none when the program has ended, which Linux calls an error."""
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


@pytest.mark.proves("R2", "R9")
@pytest.mark.parametrize("family", [".handrail", ".claude"])
@pytest.mark.parametrize("line", ["touch release", "touch notes"])
def test_a_guard_that_changed_since_it_was_trusted_stops_its_calls_until_it_is_trusted_again(
    project: Path, family: str, line: str
) -> None:
    (project / ".handrail").rename(project / family)
    call = ("call", "Bash", json.dumps({"command": line}), "--allowedTools", "Bash(touch *)")
    trust = ("trust", "--yes")
    assert handrail(*trust, cwd=project, environment=home(project)).returncode == 0
    before = handrail(*call, cwd=project, environment=home(project))
    assert (before.returncode, "not on a Friday" in before.stderr) == ((3, True) if "release" in line else (0, False))

    (project / "guard.sh").write_text("exit 0\n")
    (project / "notes").unlink(missing_ok=True)
    changed = handrail(*call, cwd=project, environment=home(project))

    why = "cannot run: its folder changed since it was trusted. Look at the change and trust it: handrail trust"
    assert (changed.returncode, why in changed.stderr) == (3, True), changed.stderr
    assert [path.name for path in project.iterdir() if path.name in ("release", "notes")] == []
    assert handrail(*trust, cwd=project, environment=home(project)).returncode == 0
    assert handrail(*call, cwd=project, environment=home(project)).returncode == 0


def test_a_call_that_a_changed_guard_is_not_about_goes_on(project: Path) -> None:
    assert handrail("trust", "--yes", cwd=project, environment=home(project)).returncode == 0
    (project / "guard.sh").write_text("exit 0\n")

    read = handrail("call", "Read", '{"file_path": "guard.sh"}', cwd=project, environment=home(project))

    assert (read.returncode, read.stdout.splitlines()[0]) == (0, "1\texit 0"), read.stderr


def test_trust_shows_what_it_is_about_asks_and_tells_what_changed_since(project: Path) -> None:
    code, refused = in_terminal(project, ["trust"], columns=200, typed="n\n")

    assert code == 1
    assert "env.NODE_OPTIONS: --require ./x.js  (.handrail/settings.json:11)" in refused
    assert "env.DEPLOY_TOKEN: hush... (14 characters)" in refused
    assert "env.ODD: a\\x1b[2J\\nenv.FAKE: harmless" in refused  # one line, and it clears no screen
    assert "hooks[0].command: sh ./guard.sh\n      runs: guard.sh" in refused
    assert refused.endswith("handrail: nothing was changed\n")
    assert "is not trusted" in handrail("call", "Sleep", "{}", cwd=project, environment=home(project)).stderr

    code, agreed = in_terminal(project, ["trust"], columns=200, typed="y\n")
    assert (code, COLOUR.sub("", agreed).endswith(f"[y/N] y\n{project} is trusted now.\n")) == (0, True)

    (project / "guard.sh").write_text("exit 0\n")
    policy = {**POLICY, "permissions": {"allow": ["Bash(make *)", "Bash(npx *)"]}}
    (project / ".handrail" / "settings.json").write_text(json.dumps(policy))
    shown = handrail("trust", "--show", cwd=project, environment=home(project)).stdout

    assert "has changed since it was trusted" in shown.splitlines()[0]
    assert "1 new, 1 changed." in shown.splitlines()[0]
    assert "  new: permissions.allow: Bash(npx *)" in shown
    assert "  changed: hooks.PreToolUse" in shown
    script = handrail("trust", cwd=project, environment=home(project))
    assert (script.returncode, "handrail trust --yes" in script.stderr) == (2, True)
    assert handrail("trust", "--yes", cwd=project, environment=home(project)).returncode == 0


def test_the_rules_of_a_folder_can_be_checked_before_it_is_trusted(project: Path) -> None:
    checked = handrail("permissions", "lint", cwd=project, environment=home(project))

    assert (checked.returncode, ": wide: Bash(make *): make runs" in checked.stdout) == (1, True)
    assert "2 rules, 1 remark" in checked.stdout
    untrusted = handrail("permissions", "explain", "Bash(make all)", cwd=project, environment=home(project))
    assert untrusted.stdout.startswith("ask")


def test_a_policy_is_explained_with_its_hooks_and_a_slip_is_no_answer(project: Path) -> None:
    def explain(*words: str) -> subprocess.CompletedProcess[str]:
        return handrail("permissions", "explain", *words, cwd=project, environment=home(project))

    handrail("trust", "--yes", cwd=project, environment=home(project))
    told, asked = explain("Bash(make release)"), explain("Bash(make release)", "--run-hooks")

    assert (told.returncode, told.stdout.splitlines()[0]) == (0, "allow: covered by Bash(make *)")
    assert "1 hook would be asked first and may decide otherwise; --run-hooks asks now" in told.stdout
    assert "hooks\n  PreToolUse: sh ./guard.sh (project settings .handrail/settings.json" in told.stdout
    assert (asked.returncode, "objects: not on a Friday" in asked.stdout.splitlines()[0]) == (1, True)
    assert asked.stdout.startswith("deny: ")
    for words, hint in (
        (("bash(make)",), "there is no tool 'bash'. Names keep their case: Bash."),
        (("Bash", '{"comand": "make"}'), "Did you mean 'command'?"),
        (("Bash",), "The required field 'command' is missing."),
    ):
        slip = explain(*words)
        assert (slip.returncode, slip.stdout, hint in slip.stderr) == (2, "", True)
        assert "Traceback" not in slip.stderr


def test_explain_allows_no_more_than_a_run_while_a_settings_file_is_broken(tmp_path: Path) -> None:
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "settings.json").write_text('{"permissions": {"deny": ["Bash(touch *)"]}')

    for mode in ("acceptEdits", "bypassPermissions"):
        words = ("permissions", "explain", "Bash(touch x)", "--mode", mode)
        told = handrail(*words, cwd=tmp_path, environment=home(tmp_path))

        assert told.stdout.startswith("ask: ")
        assert f"{mode}: not used while a settings file is broken. Correct the file first." in told.stderr


@pytest.mark.anyio
async def test_the_way_out_of_a_broken_rule_is_the_place_where_it_is_written(tmp_path: Path) -> None:
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "settings.json").write_text('{"permissions": {\n"deny": [\n"Bash(curl"]}}')
    replies = [Reply((ToolUse("t1", "Bash", {"command": "ls"}),)), Reply((Text("Done."),))]
    place = "project settings .handrail/settings.json:3: Bash(curl"

    told, _ = await run_agent(replies, tmp_path, "-p", "go")
    lines, _ = await run_agent(replies, tmp_path, "-p", "go", "--output-format", "json")

    assert f"To allow what was refused: correct the rule in {place}" in told.errors
    assert json.loads(lines.out)["permission_denials"][0]["broken_rule"] == place


@pytest.mark.anyio
async def test_after_a_run_the_audit_says_what_was_decided_and_why(tmp_path: Path) -> None:
    uses = (
        ToolUse("t1", "Bash", {"command": "ls"}),
        ToolUse("t2", "Bash", {"command": "curl http://127.0.0.1:9/"}),
        ToolUse("t3", "Bash", {"command": "make"}),
    )
    flags = ("--disallowedTools", "Bash(curl *)")
    await run_agent([Reply(uses), Reply((Text("Done."),))], tmp_path, "-p", "go", *flags)
    env = {"HANDRAIL_STATE_DIR": f"{tmp_path}-state", "HOME": str(tmp_path / "home")}

    def audit(*words: str) -> subprocess.CompletedProcess[str]:
        return handrail("audit", *words, cwd=tmp_path, environment=env)

    rows = [json.loads(line) for line in audit("--json", "--since", "1h").stdout.splitlines()]
    assert [(row["call"], row["kind"], row["rule"]) for row in sorted(rows, key=lambda row: str(row["call"]))] == [
        ("t1", "allowed", ""),
        ("t2", "denied", "command line: Bash(curl *)"),
        ("t3", "asked", ""),
    ]
    assert "3 calls in 1 session: 1 allowed, 1 asked (0 yes, 1 no or unanswered), 1 denied unasked." in audit().stdout
    why = audit("why", "t2").stdout
    assert why.startswith("denied: the rule Bash(curl *) matches\n  command line: Bash(curl *)\n")
    assert """handrail permissions explain Bash '{"command": "curl http://127.0.0.1:9/"}'""" in why


SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        info = {"name": "notes", "version": "1"}
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked.get("method") == "tools/list":
        answer = {"tools": [{"name": "find", "description": "Find a note.", "inputSchema": {"type": "object"}}]}
    elif "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


def test_the_tools_of_a_run_are_listed_with_what_is_held_back_and_servers_only_when_asked(project: Path) -> None:
    (project / "server.py").write_text(SERVER)
    servers = {"mcpServers": {"notes": {"command": sys.executable, "args": ["server.py"]}}}
    (project / ".mcp.json").write_text(json.dumps(servers))
    handrail("trust", "--yes", cwd=project, environment=home(project))

    listed = handrail("tools", "--disallowedTools", "Write", cwd=project, environment=home(project)).stdout
    asked = handrail("tools", "--connect", "--json", cwd=project, environment=home(project)).stdout

    slip = handrail("tools", "--tools", "read", cwd=project, environment=home(project))

    assert "no built-in tool 'read' here, so it is left out. Did you mean 'Read'?" in slip.stderr
    assert re.search(r"^  Write +denied by command line: Write$", listed, re.MULTILINE)
    assert "MCP servers\n  notes  not asked for its tools; --connect does\n" in listed
    [found] = [row for row in json.loads(asked) if row["name"] == "mcp__notes__find"]
    assert (found["server"], found["loaded"]) == ("notes", "when searched for")


def test_what_was_typed_before_the_question_does_not_trust_a_folder(project: Path) -> None:
    code, shown = in_terminal(project, ["trust"], columns=200, typed_before="y\ny\nyes\ny", typed="n\n")

    assert (code, "nothing was changed" in shown) == (1, True)


REPORTS = (
    ["doctor"],
    ["tools"],
    ["trust", "--show"],
    ["permissions", "explain", "Bash(make all && curl http://example.com/a/long/path/to/something/to/wrap)"],
    ["audit"],
)
PLAIN_REPORTS = (["permissions", "lint"], ["shell", "git -c alias.x=!id x"], ["sessions", "list", "--all"])


STEERING = "\x1b[2J\x1b]0;owned\x07\x9b5m\u202e\r"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder in which every name and value tries to steer the terminal."""
    folder = tmp_path / f"project{STEERING}"
    (folder / ".claude" / "commands").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (folder / ".claude" / "commands" / "go.md").write_text(
        f"---\nallowed-tools: Bash(x{STEERING})\n---\n!`x{STEERING}`"
    )
    hook = {"matcher": f"Bash{STEERING}", "hooks": [{"type": "command", "command": f"./guard{STEERING}"}]}
    settings = {
        "model": f"model{STEERING}",
        "permissions": {"allow": [f"Bash(x{STEERING} *)"], "deny": [f"Ba{STEERING}sh(", f"Read(a{STEERING})"]},
        "env": {f"A{STEERING}": f"b{STEERING}"},
        "hooks": {"PreToolUse": [hook], f"No{STEERING}": []},
    }
    (folder / ".claude" / "settings.json").write_text(json.dumps(settings))
    servers = {f"a{STEERING}": {"command": f"b{STEERING}", "env": {f"C{STEERING}": STEERING}}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    handrail("call", "Bash", json.dumps({"command": f"touch {STEERING}"}), cwd=folder, environment=home(folder))
    return folder


def test_no_folder_steers_the_terminal_of_the_person_who_looks_at_it(hostile: Path) -> None:
    steered: list[tuple[Sequence[str], str]] = []
    for words in (
        *REPORTS,
        ["trust", "--show", "--json"],
        ["trust", "--yes"],
        ["trust", "--list"],
        ["config", "get", "model"],
        ["config", "list", "--show-source"],
        ["config", "list", "--json"],
        ["permissions", "explain", f"Bash(touch {STEERING})"],
        ["permissions", "lint"],
        ["audit", "--json"],
        ["audit", "--by", "rule"],
        ["audit", "why", "call"],
        ["call", "Read", json.dumps({"file_path": f"a{STEERING}"})],
    ):
        shown = COLOUR.sub("", in_terminal(hostile, words, columns=100)[1])
        steered += [(words, shown) for char in STEERING if not char.isprintable() and char in shown]

    assert steered == []


@pytest.mark.parametrize("columns", [60, 200])
def test_reports_fit_the_terminal_and_colour_is_left_out_where_it_is_not_wanted(project: Path, columns: int) -> None:
    handrail("call", "Bash", '{"command": "touch a file with a long name"}', cwd=project, environment=home(project))

    for words in PLAIN_REPORTS:
        assert max(map(len, in_terminal(project, words, columns=columns)[1].splitlines())) <= columns, words
    for words in REPORTS:
        code, shown = in_terminal(project, words, columns=columns)
        plain = COLOUR.sub("", shown)
        assert code in (0, 1), plain
        assert max(map(len, plain.splitlines())) <= columns, words
        assert COLOUR.search(shown), words
        assert in_terminal(project, words, columns=columns, NO_COLOR="1")[1] == plain, words
        assert not COLOUR.search(handrail(*words, cwd=project, environment=home(project)).stdout), words
