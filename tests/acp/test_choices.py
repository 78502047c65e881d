"""Which modes and models an editor can choose, by flags, settings and environment."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from handrail.acp.choices import config_options, offered_modes, set_mode, set_option
from handrail.config.flags import SettingsFlags
from handrail.errors import JsonRpcError
from handrail.session.build import open_session
from handrail.session.session import Session
from handrail.session.spec import SessionHost, SessionSpec
from handrail.testing import ScriptedModel

pytestmark = pytest.mark.anyio

Open = Callable[..., Session]
USUAL = ["default", "acceptEdits", "plan"]


@pytest.fixture
async def open_in(tmp_path: Path) -> AsyncIterator[Open]:
    opened: list[Session] = []
    env = {"HOME": str(tmp_path), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "IS_SANDBOX": "1"}

    def open_with(flags: SettingsFlags) -> Session:
        host = SessionHost(model=ScriptedModel([]), on_warning=lambda _text: None)
        opened.append(open_session(SessionSpec(cwd=tmp_path, flags=flags), env, host))
        return opened[-1]

    yield open_with
    for session in opened:
        await session.aclose()


@pytest.mark.proves("O14")
@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        pytest.param(SettingsFlags(), USUAL, id="as usual"),
        pytest.param(SettingsFlags(allow_bypass=True), [*USUAL, "bypassPermissions"], id="the start allows more"),
        pytest.param(SettingsFlags(bypass=True), [*USUAL, "bypassPermissions"], id="it started so"),
        pytest.param(SettingsFlags(mode="dontAsk"), [*USUAL, "dontAsk"], id="it started in another one"),
        pytest.param(
            SettingsFlags(
                allow_bypass=True,
                settings=json.dumps({"permissions": {"disableBypassPermissionsMode": "disable"}}),
            ),
            USUAL,
            id="settings rule it out",
        ),
    ],
)
async def test_only_modes_that_can_be_entered_are_offered(
    open_in: Open, flags: SettingsFlags, wanted: list[str]
) -> None:
    session = open_in(flags)

    assert [*offered_modes(session)] == wanted
    for mode in {"bypassPermissions", "auto", "none"} - {*wanted}:
        with pytest.raises(JsonRpcError):
            set_mode(session, mode)
    for mode in wanted:
        set_mode(session, mode)
        assert session.mode == mode


@pytest.mark.parametrize(
    ("option", "value"),
    [
        pytest.param("effort", "enormous", id="an unknown effort"),
        pytest.param("colour", "red", id="an unknown option"),
        pytest.param("mode", True, id="a truth as mode"),
        pytest.param("model", None, id="no model"),
    ],
)
async def test_a_choice_that_is_none_is_refused_and_changes_nothing(open_in: Open, option: str, value: object) -> None:
    session = open_in(SettingsFlags())
    before = config_options(session)

    with pytest.raises(JsonRpcError):
        await set_option(session, option, value)

    assert config_options(session) == before
