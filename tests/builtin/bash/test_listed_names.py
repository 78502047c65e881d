"""Names that git lists are looked at before a command reads the files: none is a secret, leads out or is an option."""

import os
import subprocess
from pathlib import Path

import pytest

from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.needs("git")]

USES = [
    "cat $(git ls-files)",
    "git ls-files | xargs cat",
    'for f in $(git ls-files); do cat "$f"; done',
    "git ls-files -z | xargs -0 cat",
    "cat $(git diff --name-only HEAD~1)",
    "git diff --name-only HEAD~1 | xargs cat",
    "git ls-files | head -n 50 | xargs -I{} cat {}",
]
OTHERS = [
    "git diff -z --name-only HEAD~1 | xargs -0 cat",
    "cat $(git ls-files -z)",
    "git ls-files -z | xargs -d q cat",
    "git ls-files | xargs -d q cat",
    'cat "$(git ls-files)"',
    "cat $(git ls-files; echo ../secret)",
    "cat $(git ls-files -o)",
    "cat $(git diff HEAD~1)",
    "git diff HEAD~1 | xargs cat",
    'for f in $(git ls-files); do cat ../"$f"; done',
    "cat $(git ls-files | sed s,^,../,)",
    "rm $(git ls-files)",
    "touch x; cat $(git ls-files)",
    "cat $(git ls-files) > out",
    "mv a.txt b.txt; cat $(git ls-files)",
    "git ls-files | (cd ..; xargs cat)",
    "git ls-files | xargs sh -c 'cat $1'",
]


def git(session: Session, *words: str, data: bytes = b"") -> str:
    env = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(session.home)}
    who = ("-c", "user.name=dev", "-c", "user.email=dev@example.org")
    words = ("git", *who, *words)
    done = subprocess.run(words, cwd=session.project, env=env, input=data, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = Session(tmp_path, {"PATH": "/usr/bin:/bin"})
    (session.project.parent / "secret").write_text("hunter2\n")
    for name, text in {"a.txt": "first\n", "sub/b.txt": "second\n", ".gitignore": ".env\n"}.items():
        (session.project / name).parent.mkdir(exist_ok=True)
        (session.project / name).write_text(text)
    git(session, "init", "-q")
    git(session, "commit", "-q", "--allow-empty", "-m", "one")
    git(session, "add", ".")
    git(session, "commit", "-qm", "two")
    (session.project / ".env").write_text("hunter2\n")
    return session


def add(session: Session, name: str) -> None:
    git(session, "add", "-f", "--", name)
    git(session, "commit", "-qm", "three")


@pytest.mark.proves("X24")
async def test_files_that_git_lists_are_read_beside_a_secret(session: Session) -> None:
    for line in USES:
        outcome = await session.bash(line, session.rules())

        assert outcome.status is Status.OK, outcome.result.text
        assert "second" in outcome.result.text
        assert "hunter2" not in outcome.result.text


def plant(session: Session, kind: str) -> None:
    project = session.project
    if kind == "secret":
        add(session, ".env")
    elif kind == "link out":
        (project / "notes").symlink_to("../secret")
        add(session, "notes")
    elif kind == "link to a secret":
        (project / "notes").symlink_to(".env")
        add(session, "notes")
    elif kind == "option":
        (project / "--help").write_text("hunter2\n")
        add(session, "--help")
    elif kind == "blank":
        (project / "x .env").write_text("")
        add(session, "x .env")
    elif kind == "pattern":
        (project / ".e*").write_text("")
        add(session, ".e*")
    elif kind == "pieces":
        for name in (".e", "nv"):
            (project / name).write_text("")
            add(session, name)
    elif kind == "removed from the index":
        add(session, ".env")
        git(session, "rm", "-q", "--cached", ".env")


@pytest.mark.proves("X24")
@pytest.mark.parametrize("kind", ["secret", "link out", "link to a secret", "option", "blank", "pattern", "pieces"])
async def test_no_name_that_git_lists_shows_a_secret(session: Session, kind: str) -> None:
    plant(session, kind)

    for line in (*USES, *OTHERS):
        assert "hunter2" not in (await session.bash(line, session.rules())).result.text, line


async def test_a_secret_that_only_a_commit_names_is_asked_about(session: Session) -> None:
    plant(session, "removed from the index")

    outcome = await session.bash("cat $(git diff --name-only HEAD)", session.rules())

    assert "hunter2" not in outcome.result.text
    assert "'.env', which git lists, may hold secrets" in outcome.result.text


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "..", "x\n/etc/passwd"])
async def test_a_tree_with_names_that_git_itself_would_not_write_is_asked_about(session: Session, name: str) -> None:
    blob = bytes.fromhex(git(session, "hash-object", "-w", "--stdin", data=b"x"))
    entry = b"100644 " + name.encode() + b"\0" + blob
    tree = git(session, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", data=entry)

    outcome = await session.bash(f"cat $(git diff --name-only HEAD {tree})", session.rules())

    assert outcome.status is Status.DENIED
    assert "hunter2" not in outcome.result.text
    assert "root:" not in outcome.result.text


async def test_what_is_not_just_the_list_is_asked_about(session: Session) -> None:
    unasked = [line for line in OTHERS if (await session.bash(line, session.rules())).status is not Status.DENIED]

    assert unasked == []
