"""Which paths count as secrets or devices, by their names."""

import pytest

from handrail.shell.secrets import secret


@pytest.mark.parametrize(
    "path",
    [
        "/w/.env", "/w/.ENV", "/w/.env.local", "/h/.ssh/config", "/h/.ssh", "/h/.aws/x", "/w/server.pem", "/w/a/id_rsa",
        "/proc/self/environ", "/dev/sda", "/dev", "/sys/x", "/run/secrets/a", "/h/.config/gh/hosts.yml", "/w/.en*",
        "/w/id_*", "/etc/shadow", "/h/.bash_history", "/w/.npmrc", "/w/[.]env/.s?h",
    ],
)  # fmt: skip
def test_secrets_and_devices_are_known_by_name(path: str) -> None:
    assert secret(path)


@pytest.mark.parametrize(
    "path",
    ["/w/.env.example", "/w/environment", "/w/*", "/w/src/*.py", "/dev/null", "/w/.gitignore", "/w/devices", "/w"],
)
def test_ordinary_files_are_not(path: str) -> None:
    assert not secret(path)
