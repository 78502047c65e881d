"""Which MCP servers the settings let be used, and that the others are never started, wherever they are named."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.config.document import document_of
from handrail.config.places import SettingsFile
from handrail.config.server_lists import refusal_reason
from handrail.config.snapshot import Layer, Settings
from handrail.errors import HandrailError
from handrail.session.servers.servers import Servers, refused_by
from tests.config.world import World
from tests.forked import reference_server

DB = {"command": "uvx", "args": ["db-mcp"]}
WEB = {"type": "http", "url": "https://api.example.com/mcp"}
SDK = {"type": "sdk", "name": "own"}


def settings_of(values: Any, source: str = "user") -> Settings:
    document = document_of(SettingsFile(source, Path("s.json"), "s.json", "/", "handrail"), json.dumps(values).encode())
    policy = document.values if source == "policy" else {}
    return Settings((Layer(document, document.values),), document.values, policy, doubtful=document.doubtful)


def denied(*entries: Any) -> Settings:
    return settings_of({"deniedMcpServers": entries})


def allowed(*entries: Any) -> Settings:
    return settings_of({"allowedMcpServers": entries})


NAMED, RUN, AT = {"serverName": "db"}, {"serverCommand": ["uvx", "db-mcp"]}, {"serverUrl": "https://*.example.com/*"}

CASES = [
    # settings, name, configuration, may be used
    (settings_of({}), "db", DB, True),
    (denied(NAMED), "db", DB, False),
    (denied(NAMED), "other", DB, True),
    (denied(NAMED), "DB", DB, False),
    (denied({"serverName": "my srv"}), "my_srv", SDK, False),
    (denied(RUN), "anything", DB, False),
    (denied(RUN), "anything", {"command": "/opt/bin/uvx", "args": ["db-mcp"]}, False),
    (denied(RUN), "anything", {"command": "uvx", "args": ["db-mcp", "--more"]}, True),
    (denied(RUN), "anything", WEB, True),
    (denied(AT), "web", WEB, False),
    (denied(AT), "web", {"type": "http", "url": "HTTPS://API.EXAMPLE.COM/mcp"}, False),
    (denied(AT), "web", {"type": "http", "url": "https://example.org/mcp"}, True),
    (denied({"serverName": "scraper"}), "scraper ", DB, False),  # their tools would have the same names
    (denied({"serverName": "my_srv"}), "my__srv", DB, False),
    *(
        (denied({"serverUrl": "https://api.example.com/*"}), "web", {"type": "http", "url": url}, False)
        for url in (
            "https://api.example.com:443/mcp",
            "https://api.example.com./mcp",
            "https://me@api.example.com/mcp",
            "https://api.example.com",
            "https://api.example.com?a",
            "https://api.example.com.:443/",
        )
    ),
    (denied({"serverUrl": "https://api.example.com/*"}), "web", {"url": "https://api.example.com:8443/mcp"}, True),
    (denied({"serverUrl": "*"}), "db", DB, True),
    (denied({"serverCommand": []}), "db", DB, True),
    (allowed(), "db", DB, False),
    (allowed(), "own", SDK, False),
    (allowed(NAMED), "db", DB, True),
    (allowed(NAMED), "DB", DB, False),
    (allowed(NAMED), "own", SDK, False),
    (allowed(NAMED, {"serverName": "own"}), "own", SDK, True),
    (allowed(RUN), "any name", DB, True),
    (allowed(RUN), "any name", {"command": "/tmp/uvx", "args": ["db-mcp"]}, False),
    (allowed(RUN, NAMED), "db", {"command": "sh", "args": ["-c", "x"]}, False),  # a name proves nothing
    (allowed(RUN, NAMED), "db", WEB, True),
    (allowed(AT, {"serverName": "web"}), "web", {"type": "http", "url": "https://evil.org/?.example.com/"}, False),
    (allowed(AT), "web", WEB, True),
    (allowed(AT), "web", {"command": "evil", "url": "https://api.example.com/mcp"}, False),
    (allowed(RUN), "web", {**DB, "type": "http", "url": "https://evil.org/"}, False),
    (allowed(NAMED), "db", {**DB, "url": "https://evil.org/"}, False),
    (allowed(AT), "web", {"type": "http", "url": "https://api.example.com@evil.org/"}, False),
    (settings_of({"allowedMcpServers": [NAMED], "deniedMcpServers": [RUN]}), "db", DB, False),
    (settings_of({"deniedMcpServers": [{"serverNam": "x"}]}), "db", DB, False),  # it is unknown who was meant
    (settings_of({"deniedMcpServers": [{"serverName": "x", "serverUrl": "y"}]}), "db", DB, False),
    (settings_of({"deniedMcpServers": [{"serverCommand": ["uvx", 5]}]}), "db", DB, False),
    (settings_of({"deniedMcpServers": "db"}), "other", DB, False),
    (settings_of({"allowedMcpServers": [{"serverNam": "db"}]}), "db", DB, False),
    (settings_of({"allowManagedMcpServersOnly": True}, "policy"), "db", DB, False),
    (settings_of({"allowManagedMcpServersOnly": True, "allowedMcpServers": [NAMED]}, "policy"), "db", DB, True),
]


@pytest.mark.parametrize(("settings", "name", "config", "may"), CASES, ids=range(len(CASES)))
def test_lists_of_servers_are_read_as_written_and_deny_wins(
    settings: Settings, name: str, config: dict[str, Any], may: bool
) -> None:
    assert (refusal_reason(settings, name, [config]) == "") is may


ENTRY = st.one_of(
    st.fixed_dictionaries({"serverName": st.sampled_from(["db", "own", "x"])}),
    st.fixed_dictionaries({"serverCommand": st.lists(st.sampled_from(["uvx", "db-mcp"]), max_size=3)}),
    st.fixed_dictionaries({"serverUrl": st.text("htps:/.*exam", max_size=12)}),
)


@given(st.lists(ENTRY, max_size=4), ENTRY, st.sampled_from(["db", "own"]), st.sampled_from([DB, WEB, SDK]))
def test_one_more_denied_server_never_lets_another_one_in(
    deny: list[Any], more: Any, name: str, config: dict[str, Any]
) -> None:
    if refusal_reason(denied(*deny), name, [config]):
        assert refusal_reason(denied(*deny, more), name, [config])


def test_what_policy_insists_on_leaves_out_what_others_allow_but_not_what_they_deny(world: World) -> None:
    world.write("policy", {"allowManagedMcpServersOnly": True, "allowedMcpServers": [NAMED]})
    world.write("user", {"allowedMcpServers": [{"serverName": "mine"}], "deniedMcpServers": []})
    settings = world.gather()

    assert refusal_reason(settings, "db", [DB]) == ""
    assert "managed-settings.json:3" in refusal_reason(settings, "mine", [DB])
    world.write("user", {"deniedMcpServers": [NAMED]})
    assert refusal_reason(world.gather(), "db", [DB]) == "deniedMcpServers of ~/.handrail/settings.json:3 denies it"


def test_an_untrusted_project_may_deny_servers_and_not_allow_any(world: World) -> None:
    world.write("user", {"allowedMcpServers": [NAMED]})
    world.write("project", {"allowedMcpServers": [{"serverName": "evil"}], "deniedMcpServers": [NAMED]})
    settings = world.gather()

    assert refusal_reason(settings, "evil", [DB])
    assert refusal_reason(settings, "db", [DB])


@pytest.mark.anyio
async def test_a_refused_server_is_never_started_and_says_which_line_refuses_it(tmp_path: Path, world: World) -> None:
    marker = tmp_path / "started"
    program = ["-c", f"open({str(marker)!r}, 'w')"]
    world.write("user", {"deniedMcpServers": [{"serverCommand": [Path(sys.executable).name, *program]}]})
    live = world.live()
    carried: list[str] = []

    async def carry(name: str, message: Any) -> Any:
        carried.append(name)
        return {}

    servers = Servers({**world.env, "PY": sys.executable}, tmp_path, carry, refused_by(live))
    servers.add({"spelled": {"command": "${PY}", "args": program}}, "dynamic")
    world.write(
        "user", {"deniedMcpServers": [{"serverCommand": ["x"]}, {"serverName": "own"}, *_denied_programs(program)]}
    )
    live.policy()
    servers.add({"own": {"type": "sdk", "name": "own"}}, "dynamic")
    with anyio.fail_after(20):
        notes = await servers.connect()

    assert not marker.exists()
    assert carried == []
    assert [status["status"] for status in servers.status()] == ["failed", "failed"]
    assert all("deniedMcpServers of ~/.handrail/settings.json:" in status["error"] for status in servers.status())
    assert all("deniedMcpServers of ~/.handrail/settings.json:" in note for note in notes)


def _denied_programs(program: list[str]) -> list[Any]:
    return [{"serverCommand": [Path(sys.executable).name, *program]}]


@pytest.mark.anyio
async def test_a_server_that_comes_to_be_denied_is_let_go_and_cannot_be_had_again(tmp_path: Path, world: World) -> None:
    world.write("user", {})
    live = world.live()
    servers = Servers(world.env, tmp_path, None, refused_by(live))
    servers.add({"db": reference_server()}, "project")
    with anyio.fail_after(30):
        try:
            assert await servers.connect() == ()
            assert servers.tools
            assert await servers.look_again() == ()

            world.write("user", {"deniedMcpServers": [NAMED]})
            live.policy()
            [note] = await servers.look_again()

            assert "settings.json:3 denies it" in note
            assert servers.tools == ()
            with pytest.raises(HandrailError, match="denies it"):
                await servers.reconnect("db")
        finally:
            await servers.aclose()
