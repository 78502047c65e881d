"""The target of a request: the parts of its URL, and the proxy from the environment."""

import base64
import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit

from handrail.errors import UrlError
from handrail.records import record

PORTS = {"http": 80, "https": 443}
IN_PATH = "/?%:@!$&'()*+,;=~-._"
"""Characters of a path and a query that are sent as they are."""
MAX_LABEL = 64
USER = r"(?s)(?:(?<=://)|^(?!.*://)).*@"  # up to the last @: a password may hold anything


@record
class HttpTarget:
    """A server that is connected to."""

    scheme: str
    host: str
    port: int
    path: bytes = b"/"
    credentials: str = ""

    @property
    def secure(self) -> bool:
        """Whether it is reached by TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> bytes:
        """Host and port as the Host header has them."""
        return self._bracketed if self.port == PORTS[self.scheme] else self.authority_with_port

    @property
    def authority_with_port(self) -> bytes:
        """Host and port as CONNECT has them."""
        return self._bracketed + b":%d" % self.port

    @property
    def _bracketed(self) -> bytes:
        host = self.host.encode("idna") if not self.host.isascii() else self.host.encode()
        return b"[" + host + b"]" if b":" in host else host

    @property
    def auth_headers(self) -> list[tuple[str, str]]:
        """The header for a proxy with user name and password."""
        if not self.credentials:
            return []
        return [("proxy-authorization", f"Basic {base64.b64encode(self.credentials.encode()).decode()}")]

    @property
    def origin(self) -> "HttpTarget":
        """The server without path and credentials."""
        return HttpTarget(self.scheme, self.host, self.port)

    @property
    def url(self) -> str:
        """For messages: no path, no credentials."""
        return f"{self.scheme}://{self.authority.decode()}"


@lru_cache(maxsize=64)
def parse_target(url: str) -> HttpTarget:
    """The parts of an http or https URL. Raises UrlError if it is not such a URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
        _check_host(parts.hostname or "")
    except ValueError as error:  # its message may quote a password
        reason = "" if "@" in url else f": {error}"
        raise UrlError(f"{without_user(url)!r} is not a URL{reason}. Give one like https://host:port/v1.") from None
    if parts.scheme not in PORTS or not parts.hostname or re.search(r"\s", parts.hostname):
        raise UrlError(f"{without_user(url)!r} is not an http or https URL. Give one like https://host:port/v1.")
    if port == 0:
        raise UrlError(f"{without_user(url)!r} has the port 0, which is never in use. Give the real one.")
    path = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=IN_PATH)
    user = unquote(parts.username or "")
    password = unquote(parts.password or "")
    credentials = f"{user}:{password}" if user or password else ""
    return HttpTarget(parts.scheme, parts.hostname, port or PORTS[parts.scheme], path.encode(), credentials)


def _check_host(host: str) -> None:
    """UnicodeError if there is no such name. The codec itself is loaded for names that need it: it costs 2 ms."""
    if not host.isascii():
        host.encode("idna")
    *labels, last = host.split(".")
    if not all(0 < len(label) < MAX_LABEL for label in labels) or len(last) >= MAX_LABEL:
        raise UnicodeError("label empty or too long")


def without_user(url: str) -> str:
    """The URL for a message: without user name and password."""
    return re.sub(USER, "", url, count=1)


def proxy_for(target: HttpTarget, env: Mapping[str, str]) -> HttpTarget | None:
    """The proxy for this target, by HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY; lower case names win."""
    url = _proxy_variable(env, f"{target.scheme}_proxy") or _proxy_variable(env, "all_proxy")
    if not url or _is_excluded(target, _proxy_variable(env, "no_proxy")):
        return None
    if "://" not in url:
        url = f"http://{url}"
    if url.startswith("socks"):
        raise UrlError(f"The proxy {without_user(url)!r} speaks SOCKS, which is not supported. Set an HTTP proxy.")
    return parse_target(url)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _proxy_variable(env: Mapping[str, str], name: str) -> str:
    return env.get(name) or env.get(name.upper()) or ""


def _is_excluded(target: HttpTarget, no_proxy: str) -> bool:
    for entry in no_proxy.replace(",", " ").split():
        host, _, port = entry.lower().partition(":") if entry.count(":") == 1 else (entry.lower(), "", "")
        if port and port != str(target.port):
            continue
        host = host.removeprefix("*").removeprefix(".").strip("[]")
        if not host or target.host == host or target.host.endswith(f".{host}"):
            return True
    return False
