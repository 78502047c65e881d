"""The `sandbox` section: read totally, and careful where it is not understood."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.processes.sandbox.settings import Domain, Filesystem, Network, SandboxSettings, read_settings


def read(section: object) -> SandboxSettings:
    return read_settings(section, folder="/proj", home="/home/dev")


def test_nothing_said_means_no_sandbox() -> None:
    assert read(None) == SandboxSettings()
    assert read({}) == SandboxSettings()


def test_a_whole_section() -> None:
    section = {
        "enabled": True,
        "autoAllowBashIfSandboxed": False,
        "excludedCommands": ["docker *", "git push"],
        "allowUnsandboxedCommands": False,
        "network": {
            "allowedDomains": ["Example.com", "*.example.org", "registry.test:8080", "10.0.0.0/8", "[::1]:80"],
            "deniedDomains": ["bad.example.com."],
            "allowUnixSockets": ["/run/x.sock"],
        },
        "filesystem": {
            "allowWrite": ["~/cache", "build/**"],
            "denyWrite": ["./vendor/"],
            "allowRead": ["/opt/../srv"],
            "denyRead": ["~"],
        },
    }

    assert read(section) == SandboxSettings(
        enabled=True,
        auto_allow=False,
        excluded_commands=("docker *", "git push"),
        allow_unsandboxed=False,
        network=Network(
            allowed=(
                Domain("example.com"),
                Domain("*.example.org"),
                Domain("registry.test", 8080),
                Domain("10.0.0.0/8"),
                Domain("::1", 80),
            ),
            denied=(Domain("bad.example.com"),),
            unix_sockets=("/run/x.sock",),
        ),
        filesystem=Filesystem(("/home/dev/cache", "/proj/build"), ("/proj/vendor",), ("/srv",), ("/home/dev",)),
    )


@pytest.mark.parametrize(
    ("section", "problem", "broken"),
    [
        pytest.param([], "sandbox is []", True, id="not an object"),
        pytest.param({"network": "off"}, "sandbox.network is 'off'", True, id="a part that is not an object"),
        pytest.param({"filesystem": {"denyRead": "x"}}, "sandbox.filesystem.denyRead is 'x'", True, id="a deny list"),
        pytest.param({"filesystem": {"denyWrite": [1]}}, "denyWrite[0] is 1", True, id="an entry of a deny list"),
        pytest.param(
            {"filesystem": {"denyRead": ["**/.env"]}}, "denyRead[0] is '**/.env'", True, id="a denied pattern"
        ),
        pytest.param({"filesystem": {"allowWrite": ["*"]}}, "allowWrite[0] is '*'", False, id="an allowed pattern"),
        pytest.param({"filesystem": {"allowRead": ["~eve/x"]}}, "allowRead[0] is '~eve/x'", False, id="another home"),
        pytest.param({"network": {"deniedDomains": ["https://x.y/z"]}}, "deniedDomains[0]", True, id="a denied URL"),
        pytest.param({"network": {"allowedDomains": ["x.y/z"]}}, "allowedDomains[0]", False, id="an allowed URL"),
        pytest.param({"network": {"allowedDomains": ["x.y:99999"]}}, "allowedDomains[0]", False, id="no port"),
        pytest.param({"excludedCommands": [" "]}, "excludedCommands[0]", False, id="an empty command"),
        pytest.param({"colour": 1}, "sandbox.colour is not known", False, id="an unknown key"),
    ],
)
def test_a_value_that_is_not_understood_is_named(section: Any, problem: str, broken: bool) -> None:
    settings = read(section)

    assert len(settings.problems) == 1
    assert problem in settings.problems[0]
    assert settings.broken is broken


def test_a_switch_that_is_not_understood_takes_the_careful_side() -> None:
    settings = read({"enabled": "no", "autoAllowBashIfSandboxed": 1, "allowUnsandboxedCommands": None})

    assert (settings.enabled, settings.auto_allow, settings.allow_unsandboxed) == (True, False, False)
    assert len(settings.problems) == 3


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["enabled", "network", "filesystem", "allowedDomains", "deniedDomains", "denyRead", "allowWrite", "host"]
)


@given(JSON | st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON)))
def test_every_value_is_answered(section: Any) -> None:
    settings = read(section)

    assert not settings.broken or settings.problems
    paths = settings.filesystem
    assert all(p.startswith("/") for p in (*paths.allow_write, *paths.deny_write, *paths.allow_read, *paths.deny_read))
