"""A search beside a file with the name of a secret leaves that file out and says so."""

import pytest

from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = pytest.mark.anyio


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
    ],
)
async def test_a_secret_that_is_named_or_cannot_be_left_out_is_asked_about(session: Session, line: str) -> None:
    outcome = await session.bash(line, session.rules())

    assert outcome.status is Status.DENIED
    assert "hunter2" not in outcome.result.text


async def test_in_bypass_nothing_is_left_out(session: Session) -> None:
    outcome = await session.bash("grep -rh TOKEN .", session.rules("bypassPermissions"))

    assert "hunter2" in outcome.result.text
