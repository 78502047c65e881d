"""A search beside a file with the name of a secret leaves that file out and says so."""

from pathlib import Path

import pytest

from handrail.builtin.support.ripgrep import packaged_rg
from handrail.files import paths
from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = pytest.mark.anyio


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path, {"PATH": f"{Path(packaged_rg()).parent}:/usr/bin:/bin"})


@pytest.fixture(autouse=True)
def secrets(session: Session) -> None:
    (session.project / "src/.aws").mkdir(parents=True)
    for name in (".env", "src/.env.production", "src/.aws/config", "src/server.key"):
        (session.project / name).write_text("TOKEN=hunter2\n")
    (session.project / "src/app.py").write_text("TOKEN = read()\n")


@pytest.mark.proves("X24")
@pytest.mark.parametrize(
    "line",
    [
        "grep -rn TOKEN .",
        "grep -r TOKEN src --include='.env*' --include=app.py",
        "cat src/app.py; for x in 1; do grep -r TOKEN .; done",
        "(grep -rh TOKEN . | sort)",
        "grep -r TOKEN",
        'echo "$(grep -r TOKEN .)"',
        "rg TOKEN --sort path",
        "rg -uuu TOKEN",
        "rg --hidden -g '*' -g '.env' -g 'src/**' --iglob '**/SERVER.key' --iglob '*' TOKEN",
        "rg -t py -t sh TOKEN --no-ignore -.",
        "rg TOKEN src .",
        "for x in 1; do rg -uu TOKEN | sort; done",
    ],
)
async def test_a_search_shows_everything_but_secrets(session: Session, line: str) -> None:
    outcome = await session.bash(line, session.rules())

    assert outcome.status is Status.OK
    assert "TOKEN = read()" in outcome.result.text
    assert "hunter2" not in outcome.result.text
    assert "src/server.key" in outcome.result.text.partition("left out")[2]


@pytest.mark.parametrize(
    "line",
    [
        "grep TOKEN .env",
        "command grep -r TOKEN .",
        "env grep -r TOKEN .",
        "grep -r TOKEN -- .",
        "cat .env; grep -r x .",
        "grep -R TOKEN .",
        "grep -r TOKEN . {-n,--}",
        "for o in -n --; do grep -r TOKEN $o .; done",
        "x=-e; grep -r -e TOKEN . $x",
        "mv .env b.txt; grep -r TOKEN .",
        "unset -f grep; grep -r TOKEN .",
        "exec grep -r TOKEN .",
        "POSIXLY_CORRECT=1 grep -r TOKEN .",
        "rg TOKEN .env",
        "rg TOKEN src/.aws",
        "rg -L TOKEN",
        "rg TOKEN -- .",
        "command rg TOKEN",
        "echo . | xargs rg TOKEN",
        "x=--; rg -uu TOKEN $x .",
        "rg -uu TOKEN . -e",
        "mv .env b.txt; rg TOKEN",
    ],
)
async def test_a_secret_that_is_named_or_cannot_be_left_out_is_asked_about(session: Session, line: str) -> None:
    outcome = await session.bash(line, session.rules())

    assert outcome.status is Status.DENIED
    assert "hunter2" not in outcome.result.text


async def test_an_ignore_file_of_the_project_does_not_bring_a_secret_back(session: Session) -> None:
    (session.project / ".ignore").write_text("!.env\n!src/.aws\n!*.key\n")

    outcome = await session.bash("rg TOKEN", session.rules())

    assert "TOKEN = read()" in outcome.result.text
    assert "hunter2" not in outcome.result.text


@pytest.mark.parametrize("line", ["rg -uuu TOKEN", "grep -r TOKEN ."])
async def test_in_a_folder_with_too_many_files_every_name_of_a_secret_is_left_out(
    session: Session, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MAX_BENEATH", 3)
    (session.project / "ID_RSA").write_text("TOKEN=hunter2\n")

    outcome = await session.bash(line, session.rules())

    assert "TOKEN = read()" in outcome.result.text
    assert "hunter2" not in outcome.result.text
    assert "left out, since they may hold secrets: all files with the name of a secret" in outcome.result.text


@pytest.mark.parametrize(
    "line",
    ["grep -r url .git/modules/a", "cd .git/modules/a && grep -r url", "grep -r url .git", "rg -uuu url .git",
     "cd .git && rg -uuu url .", "grep -rh url secret.git", "cd .git && grep -r url --exclude-dir=x ."],
)  # fmt: skip
async def test_in_a_large_repository_no_token_of_its_settings_is_found(
    session: Session, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MAX_BENEATH", 3)
    for folder in (".git", ".git/modules/a", "secret.git"):
        for name in ("config", "config.worktree", "b", "c", "d"):
            file = session.project / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("url = https://me:s3cr3tt0k3nvalue@example.org/a.git\n" if "config" in name else "url\n")

    assert "s3cr3tt0k3nvalue" not in (await session.bash(line, session.rules())).result.text


async def test_in_bypass_nothing_is_left_out(session: Session) -> None:
    outcome = await session.bash("grep -rh TOKEN .", session.rules("bypassPermissions"))

    assert "hunter2" in outcome.result.text
