"""Rules that people agree to, kept in the settings of the folder."""

import asyncio
import json
from pathlib import Path

import pytest

from handrail.app.keeping import KeptRules
from handrail.app.live import live_settings
from handrail.config.asked import NOTHING_ASKED
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.gate import NOTHING_SAID
from handrail.tools.permission import Verdict
from tests.dispatch.approval.desk import Bash, Desk, Someone, all_met, until

pytestmark = pytest.mark.anyio


@pytest.mark.proves("G34", "G8")
async def test_always_allow_is_in_the_local_settings_and_counts_in_the_next_session(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    env = {"HOME": str(tmp_path / "home")}
    live = live_settings(folder, env, tmp_path / "state", NOTHING_ASKED, print)
    person = Someone()
    gate = PolicyGate(LivePolicy(live.policy, KeptRules(live)), person, conditions=all_met)
    request = Desk(folder).request(Bash(), command="npm run build")

    asking = asyncio.create_task(gate.decide(request, NOTHING_SAID))
    await until(lambda: person.asked)
    assert person.asked[0].proposals[0].where == ".handrail/settings.local.json"
    person.now(person.asked[0].always())

    assert (await asking).verdict is Verdict.ALLOW
    written = json.loads((folder / ".handrail" / "settings.local.json").read_text())
    assert written == {"permissions": {"allow": ["Bash(npm run build *)"]}}
    again = live_settings(folder, env, tmp_path / "state", NOTHING_ASKED, print)
    assert [rule.written for rule in again.policy().rules] == [
        "local settings .handrail/settings.local.json:4: Bash(npm run build *)"
    ]
    assert (await gate.decide(request, NOTHING_SAID)).verdict is Verdict.ALLOW
    assert len(person.asked) == 1
