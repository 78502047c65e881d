"""`handrail shell`: what a command line would do, told by words, by JSON and by the exit code."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.forked import program
from tests.shell.corpus_report import HOME, WORKSPACE, Line, lines

from handrail.cli.main import run


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ls", 0),
        ("cat a sub/b ./c", 0),
        ("cd sub && cat ../a", 0),
        ("rm a", 1),
        ("cat /etc/hostname", 1),
        ("cat ../a", 1),
        ("cd .. && ls", 1),
        ("git -C .. log", 1),
        ("cat link", 1),
        ("cat sub/../link/passwd", 1),
        ("cat .env", 1),
        ("cat ~/.ssh/id_rsa", 1),
        ("cat .en*", 1),
        ("wc -l < /dev/tty", 1),
        ("cat .env.example", 0),
        ("cat n*", 1),
        ("cat ?.txt", 1),
        ("cat [[:alpha:]].txt", 1),
        ("cat [^a].txt", 1),
        ("cat */passwd", 1),
        ('for f in n*; do cat "$f"; done', 1),
        ("cat s?/*", 1),
        ("cat zz*", 1),
        ("cat *.md sub/*", 0),
        ("cat 'a", 2),
        ("ls \u200b", 2),
        ("((x))", 2),
    ],
)
def test_the_exit_code_is_the_verdict(
    line: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "n.txt").symlink_to("/nosuch/outside")
    (tmp_path / "zz").symlink_to(".env")
    (tmp_path / "inside.md").symlink_to("sub")
    (tmp_path / "s2").mkdir()
    (tmp_path / "s2" / "up").symlink_to("../..")
    monkeypatch.chdir(tmp_path)

    assert run(["shell", line]) == code
    assert capsys.readouterr().out


def test_workspaces_folder_and_home_can_be_named(tmp_path: Path) -> None:
    def code(*options: str) -> int:
        return run(["shell", "cat ~/notes/a b", "--home", "/h", "--cwd", "/w", *options])

    assert code() == 1
    assert code("--workspace", "/w", "--workspace", "/h/notes") == 0
    assert code("--workspace", "/h") == 1


def test_the_explanation_names_commands_files_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    run(["shell", "cat 'a b' | sh -c 'nosuch x' > out", "--cwd", "/w"])

    assert capsys.readouterr().out.splitlines() == [
        "not read-only",
        "- cat 'a b': read-only",
        "    reads 'a b'",
        "- sh -c 'nosuch x': not read-only",
        "    writes out",
        "    out: written by redirection (bytes 31-34, command, entry 'sh')",
        "- nosuch x, inside sh: not read-only",
        "    nosuch: what it does is not known (bytes 0-6, command)",
    ]


def test_a_program_gets_json(capsys: pytest.CaptureFixture[str]) -> None:
    run(["shell", "cat ../x .env", "--json", "--cwd", "/w"])

    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["exit"]) == ("READ_ONLY", 1)
    assert told["reads"] == {"outside": ["../x"], "secrets": [".env"]}
    assert [word["text"] for word in told["segments"][0]["argv"]] == ["cat", "../x", ".env"]


@pytest.mark.parametrize(("given", "code"), [(b"cat a\nls\n", 0), (b"cat a\nrm b\n", 1), (b"ls \xff\n", 2)])
def test_the_line_can_come_from_a_pipe(given: bytes, code: int, tmp_path: Path) -> None:
    ran = subprocess.run(
        [program(), "shell", "-", "--json"],
        input=given,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (code, b"")


def some_of_each_class() -> list[Line]:
    """One line in ten of each class; tests/shell judges them all."""
    classes: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines():
        classes.setdefault((line.expect, line.tier, line.kind), []).append(line)
    return [line for members in classes.values() for line in members[::10]]


def test_no_attack_and_no_change_of_the_corpus_passes_this_door(capsys: pytest.CaptureFixture[str]) -> None:
    passed = [
        line.command
        for line in some_of_each_class()
        if line.expect != "allow_read_only"
        if run(["shell", line.command, "--cwd", WORKSPACE, "--home", HOME]) == 0
    ]
    capsys.readouterr()

    assert passed == []


def test_a_condition_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    run(["shell", "find . -name '*.py' | xargs wc -l"])

    needs = [line for line in capsys.readouterr().out.splitlines() if "needs:" in line]
    assert len(needs) == len(set(needs)) == 1
