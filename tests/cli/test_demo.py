"""The demo, as a person watches it: the shipped cassette on the real tools."""

import errno
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.forked import program, unmeasured
from tests.processes.seen import wait_for_end

from handrail.cli.demo import CASSETTE, drawable

ROOT = Path(__file__).resolve().parents[2]
DEMO = (sys.executable, "-m", "handrail", "demo")
READS = ("Grep discounted", "Glob **/*.py", "Read prices.py", "Read test_prices.py", "Bash git log --oneline")
CHANGES = ("Edit prices.py", "Bash python -m unittest")
DANGEROUS = "Bash rm -rf __pycache__ .git"


class User:
    """Somebody whose own settings forbid everything and must not matter, with folders that must stay as they are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        forbidding = json.dumps({"permissions": {"deny": ["Bash", "Edit", "Read", "Grep", "Glob"]}})
        for name in (".handrail", ".claude"):
            (folder / name).mkdir()
            (folder / name / "settings.json").write_text(forbidding)
        (folder / ".gitconfig").write_text("[core]\n\thooksPath = /nowhere\n[commit]\n\tgpgSign = true\n")
        self.before = self.files()
        self.env = {
            **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")},
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(self.temporary),
            "GIT_DIR": str(folder / "no-repository"),
            "PYTHONPATH": str(folder / "no-modules"),
        }

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() if path.is_file() else b"" for path in self.folder.rglob("*")}

    def has_nothing_new(self) -> bool:
        return self.files() == self.before and all(map(wait_for_end, self.processes()))

    def processes(self) -> Iterator[int]:
        """Those that were started with this user's environment, or with one that the demo made."""
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                theirs = str(self.temporary).encode() in environ.read_bytes()
            except OSError:
                continue
            if theirs:
                yield int(environ.parent.name)


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    user = User(tmp_path_factory.mktemp("piped"))

    ran = subprocess.run(DEMO, cwd=user.folder, env=user.env, capture_output=True, text=True, timeout=60, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert user.has_nothing_new()
    return ran.stdout


def part(shown: str, title: str) -> str:
    """What stands below a title, up to the next one."""
    return re.split(r"\n\n(?=[A-Z][^\n]*:\n\n)", shown.partition(f"{title}:\n\n")[2])[0]


def rows(shown: str) -> list[tuple[str, str]]:
    """The timeline: what each row is about, and the note behind it."""
    found = re.findall(r"^(\S.*?)  .*?\d+ ms(?: (\w+))?$", part(shown, "When everything happened"), re.MULTILINE)
    return [(label.strip(), note) for label, note in found]


def test_it_says_openly_that_the_model_is_a_cassette_of_ours(shown: str) -> None:
    assert "a cassette that we wrote ourselves, no real model said it" in " ".join(shown.split())
    note = json.loads((ROOT / "src/handrail/cli" / CASSETTE).read_text("utf-8").partition("\n")[0])["note"]
    assert note == "Written by the makers of handrail for its demo; no real model said this."


def test_the_shipped_cassette_is_the_one_that_the_script_writes() -> None:
    command = [sys.executable, "scripts/record_demo.py", "--print"]
    written = subprocess.run(command, cwd=ROOT, env=unmeasured(), capture_output=True, check=True).stdout

    assert written == (ROOT / "src/handrail/cli" / CASSETTE).read_bytes()


def test_it_searches_reads_and_changes_things_while_the_model_talks(shown: str) -> None:
    turns: list[list[tuple[str, str]]] = []
    for label, note in rows(shown):
        turns += [[]] if label == "model" else []
        turns[-1].append((label, note))

    assert [turn[0] for turn in turns] == [("model", "streaming")] * 4
    assert turns[0][1:] == [*((label, "early") for label in READS), ("Bash python -m unittest", "error")]
    assert [label for label, _ in turns[1][1:]] == list(CHANGES)
    assert turns[1][1] == (CHANGES[0], "early")  # the other one may come with the last byte of the answer
    assert turns[2][1:] == [("Bash git status --short", "early"), (DANGEROUS, "denied")]
    assert turns[3][1:] == []


def test_the_test_fails_before_the_edit_and_passes_after_it(shown: str) -> None:
    said = [line for line in shown.splitlines() if line.startswith("  Bash python -m unittest: ")]

    assert said == [
        "  Bash python -m unittest: exit code 1, FAILED (failures=1)",
        "  Bash python -m unittest: OK",
    ]


def test_every_decision_is_shown_with_its_rule_and_the_line_that_it_is_written_in(shown: str) -> None:
    trace = [line.strip() for line in part(shown, "Who decided, and why").splitlines()]
    reads = [line for read in READS for line in (f"allowed  {read}", "mode: allow, it only reads")]
    tests = "allow rule: project settings .handrail/settings.json:3: Bash(python -m unittest)"

    assert trace[: len(reads)] == reads
    assert trace[len(reads) :][:10] == [
        "allowed  Bash python -m unittest",
        tests,
        "allowed  Edit prices.py",
        "allow rule: project settings .handrail/settings.json:3: Edit(*.py)",
        "allowed  Bash python -m unittest",
        tests,
        "allowed  Bash git status --short",
        "mode: allow, it only reads",
        f"refused  {DANGEROUS}",
        "deny rule: project settings .handrail/settings.json:4: Bash(rm -rf *)",
    ]


def test_the_cited_lines_are_those_of_the_rules_that_are_shown(shown: str) -> None:
    rules = part(shown, "The rules of the project, .handrail/settings.json").splitlines()

    assert '  3      "allow": ["Edit(*.py)", "Bash(python -m unittest)"],' in rules
    assert '  4      "deny": ["Bash(rm -rf *)"]' in rules


def test_the_refusal_is_said_at_once_and_with_its_reason(shown: str) -> None:
    said = f"{DANGEROUS}: refused by the deny rule: project settings .handrail/settings.json:4: Bash(rm -rf *)"

    assert said in " ".join(shown.partition("When everything happened")[0].split())


def test_the_diff_is_the_repair_and_nothing_else(shown: str) -> None:
    changed = [line for line in part(shown, "What changed").splitlines() if re.match(r"[-+](?![-+])", line)]

    assert changed == ["-    return price + price * percent / 100", "+    return price - price * percent / 100"]


@pytest.mark.parametrize("page", ["README.md", "docs/scheduling.md"])
def test_the_pictures_in_the_documentation_are_what_one_sees(shown: str, page: str) -> None:
    found = re.search(r"```console\n\$ (?:make|handrail) demo\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    assert found
    picture = [steady(line) for line in found[1].splitlines() if line.strip() not in {"", "..."}]

    assert [line for line in picture if line not in set(map(steady, shown.splitlines()))] == []


def steady(line: str) -> str:
    """A line without what differs from run to run: times, bars, numbers of lines."""
    return " ".join(re.sub(r"[▒█·]+|\d+ ms(?: early)?|\(\+\d+ lines\)", " ", line).split())


@pytest.mark.parametrize(("encoding", "drawn"), [("utf-8", "▒▒·█"), ("ascii", "==.#"), ("latin-1", "==.#")])
def test_a_terminal_without_blocks_gets_other_characters(encoding: str, drawn: str) -> None:
    assert drawable("▒▒·█", encoding) == drawn


def test_it_fits_a_terminal_of_80_columns(user: User) -> None:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen([program(), "demo"], cwd=user.folder, env=user.env, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        shown = b"".join(iter(lambda: from_terminal(ours), b"")).decode()
    os.close(ours)

    assert running.returncode == 0
    assert max(map(len, shown.splitlines())) == 80
    assert [label for label, _ in rows(shown.replace("\r\n", "\n"))].count("model") == 4
    assert user.has_nothing_new()


def from_terminal(descriptor: int) -> bytes:
    """The next bytes; none when everybody has left, which Linux calls an error."""
    try:
        return os.read(descriptor, 65536)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_in_the_middle_it_leaves_nothing_behind(user: User, number: signal.Signals, code: int) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(DEMO, cwd=user.folder, env=user.env, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stdout
        assert running.stderr
        for line in running.stdout:
            if "git log --oneline" in line:  # the test run is next
                running.send_signal(number)
                break
        rest, complaints = running.stdout.read(), running.stderr.read()

    assert (running.returncode, complaints) == (code, "")
    assert "What changed" not in rest
    assert user.has_nothing_new()


def test_a_reader_that_leaves_is_no_error(user: User) -> None:
    line = f"{program()} demo | head -n 1"
    ran = subprocess.run(line, shell=True, cwd=user.folder, env=user.env, capture_output=True, text=True, check=True)

    assert ran.stdout.startswith("An agent repairs")
    assert ran.stderr == ""
    assert user.has_nothing_new()


def test_without_git_it_says_so(user: User) -> None:
    env = {**user.env, "PATH": str(user.folder)}
    ran = subprocess.run([program(), "demo"], cwd=user.folder, env=env, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "handrail: the demo needs the program git, and it is not here. Install it and try again.\n"
