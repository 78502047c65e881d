"""Settings and remotes of git are shown unasked unless one of them holds a password or token."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.bash.shown_settings import holds_secret
from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.needs("git"), pytest.mark.proves("X25")]

PLAIN = st.text("abcXYZ019._-", min_size=1, max_size=30)

SHOWING = (
    "git config --list",
    "git config -l --show-origin",
    "git config list",
    "git config --get-regexp .",
    "git remote -v",
    "git remote get-url origin",
    "git remote show -n origin",
    "git var -l",
    "cd src && git remote -v",
    "git -C src remote -v | cat",
)
SECRETS = {
    "remote.origin.url": "https://dev:hunter22@example.org/x.git",
    "remote.fork.url": "https://0123456789abcdef0123@example.org/x.git",
    "remote.origin.pushurl": "https://dev:hunter22@example.org/x.git",
    "url.https://dev:hunter22@example.org/.insteadOf": "https://example.org/",
    "http.https://example.org/.extraheader": "AUTHORIZATION: basic aHVudGVyMjI=",
    "sendemail.smtppass": "hunter22",
    "github.token": "hunter22",
    "http.proxy": "http://dev:hunter22@proxy.example.org:80",
    "submodule.a.url": "https://dev:hunter22@example.org/x.git",
}
HARMLESS = {
    "remote.origin.url": "https://dev@example.org/x.git",
    "remote.fork.url": "git@example.org:dev/x.git",
    "remote.ssh.url": "ssh://git@example.org:22/x.git",
    "user.signingkey": "0123456789ABCDEF",
    "credential.helper": "cache --timeout=3600",
}


def project(folder: Path, settings: dict[str, str], where: str = "--local") -> Session:
    session = Session(folder, {"PATH": os.environ["PATH"]})
    (session.project / "src").mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(session.home), "GIT_CONFIG_NOSYSTEM": "1"}
    words = [["init", "-q"], ["config", "remote.origin.url", "git@example.org:x.git"]]
    words += [["config", where, name, value] for name, value in settings.items()]
    for each in words:
        subprocess.run(["git", *each], cwd=session.project, env=env, check=True, capture_output=True)
    return session


@pytest.mark.parametrize("name", SECRETS)
async def test_a_secret_among_the_settings_is_asked_about_and_not_named(name: str, tmp_path: Path) -> None:
    session = project(tmp_path, {name: SECRETS[name]})

    outcome = await session.bash("git config --list", session.rules())

    assert outcome.status is Status.DENIED
    assert "may hold a password or token" in outcome.result.text
    assert "hunter22" not in outcome.result.text


@pytest.mark.parametrize("where", ["--local", "--global"])
async def test_no_way_to_show_a_secret_of_the_project_or_of_the_user_runs_unasked(where: str, tmp_path: Path) -> None:
    session = project(tmp_path, {"remote.fork.url": SECRETS["remote.origin.url"]}, where)

    for line in SHOWING:
        assert (await session.bash(line, session.rules())).status is Status.DENIED, line


async def test_settings_without_a_secret_are_shown(tmp_path: Path) -> None:
    session = project(tmp_path, HARMLESS)

    for line in SHOWING:
        outcome = await session.bash(line, session.rules())

        assert outcome.status is not Status.DENIED, outcome.result.text


async def test_one_other_setting_is_shown_beside_a_secret(tmp_path: Path) -> None:
    session = project(tmp_path, {"user.name": "dev", **SECRETS})

    outcome = await session.bash("git config --get user.name", session.rules())
    hidden = await session.bash("git config --get remote.origin.url", session.rules())

    assert outcome.result.text == "dev"
    assert hidden.status is Status.DENIED


async def test_the_address_of_a_remote_is_no_field_of_a_branch(tmp_path: Path) -> None:
    session = project(tmp_path, {"branch.main.remote": "https://dev:hunter22@example.org/x.git"})

    for line in ("git branch --format='%(push:remotename)'", "git for-each-ref --format='%(upstream:remotename)'"):
        assert (await session.bash(line, session.rules())).status is Status.DENIED


async def test_a_rule_of_the_user_lets_git_show_them(tmp_path: Path) -> None:
    session = project(tmp_path, SECRETS)

    outcome = await session.bash("git remote -v", session.rules(allow=["Bash(git remote *)"]))

    assert outcome.status is Status.OK


@given(
    st.sampled_from(("remote.a.url", "http.proxy", "x.y", "url.{}.insteadOf")),
    PLAIN,
    PLAIN,
    st.sampled_from(("https", "http", "ftp")),
)
def test_an_address_with_a_password_is_a_secret_wherever_it_stands(
    name: str, user: str, password: str, kind: str
) -> None:
    address = f"{kind}://{user}:{password}@example.org/x.git"

    assert holds_secret(name.format(address), "y" if "{}" in name else address)
    assert not holds_secret("remote.a.url", f"ssh://git@example.org/{user[:8]}")
