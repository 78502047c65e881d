"""The variables that an MCP server gets besides those of its entry: never a key or a token."""

from collections.abc import Mapping

GATEWAY = "HANDRAIL_GATEWAY"
"""Set for servers behind a gateway, so that a gateway that is configured behind itself does not start for ever."""
BASICS = frozenset(
    """
    HOME USER LOGNAME SHELL PATH TERM TZ LANG LANGUAGE TMPDIR
    XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS
    LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC
    LC_PAPER LC_TELEPHONE LC_TIME
    HANDRAIL_GATEWAY
    """.split()  # noqa: SIM905
)
PROXIES = frozenset(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"))


def basic_environment(env: Mapping[str, str]) -> dict[str, str]:
    """What programs need to run and to find files, certificates and proxies; a proxy with a password is left out."""
    return {name: value for name, value in env.items() if is_basic(name, value)}


def is_basic(name: str, value: str) -> bool:
    return name in BASICS or (name.upper() in PROXIES and "@" not in value)
