"""
Parses URLs as the web tools and the rules about them read them. This uses no network.

Who connects has to check again: `address_class` for every address that the name resolves to, and `read_url` for every
redirect; and it connects to `canonical_url`, so that no other parser has a say.
"""

import ipaddress
import re
import unicodedata
from urllib.parse import quote, urljoin

from handrail.http.addresses import NUMBER, AddressClass, address_class, ipv4, name_class
from handrail.http.urls import IN_PATH
from handrail.lazy import lazy_pattern
from handrail.records import record


@record
class WebTarget:
    """A parsed URL. With a `problem` it is refused as malformed; with a `doubt` the user is asked."""

    url: str
    scheme: str = ""
    host: str = ""
    """Lower case, as DNS looks it up, without a trailing dot."""
    port: int = 0
    reach: AddressClass = AddressClass.PUBLIC
    problem: str = ""
    doubt: str = ""
    refused: str = ""
    """A scheme that is never fetched."""

    @property
    def ordinary(self) -> bool:
        """Whether it is https at port 443, which is what a domain rule allows."""
        return self.scheme == "https" and self.port == 443


MAX_URL = 2_000
PORTS = {"https": 443, "http": 80}
# These name a host but are not the web: an honest mistake. Every other scheme reads files or runs something.
NOT_THE_WEB = frozenset(("ftp", "ftps"))
SCHEME = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)\Z", re.DOTALL)
AUTHORITY = lazy_pattern(r"//([^/?#]*)")
NAME = lazy_pattern(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z"
)
DOTS = lazy_pattern(r"[\u3002\uff0e\uff61]")


def read_url(url: str) -> WebTarget:
    """Parse a URL. Never raises."""
    if not url or any(unicodedata.category(char)[0] in "CZ" for char in url) or "\\" in url:
        return WebTarget(url, problem="the URL is empty or holds blanks, backslashes or characters that cannot be seen")
    found = SCHEME.match(url)
    if not found:
        return WebTarget(url, problem="the URL has no scheme; write https://")
    scheme, rest = found[1].lower(), found[2]
    if scheme in NOT_THE_WEB:
        return WebTarget(url, scheme, problem=f"{scheme} is not the web; only https and http can be fetched")
    if scheme not in PORTS:
        return WebTarget(url, scheme, refused=f"only https and http can be fetched, not {scheme!r}")
    authority = AUTHORITY.match(rest)
    if not authority or not authority[1]:
        return WebTarget(url, scheme, problem="the URL names no host")
    return read_authority(url, scheme, authority[1])


def canonical_url(target: WebTarget) -> str:
    """
    The URL of a target without a problem, rebuilt from what was judged: no user name, password or fragment.

    It is written as it is sent: a path that spells out a sentence cannot be read as one of ours.
    """
    rest = target.url.partition(":")[2]
    authority = AUTHORITY.match(rest)
    path = rest[authority.end() if authority else 0 :].partition("#")[0]
    host = f"[{target.host}]" if ":" in target.host else target.host
    port = "" if target.port == PORTS[target.scheme] else f":{target.port}"
    path = quote(path, safe=IN_PATH, errors="surrogatepass")
    return f"{target.scheme}://{host}{port}{path if path.startswith('/') else f'/{path}'}"


def https_first(url: str) -> str:
    """
    The URL that is fetched for this one: https where plain http at its usual port is written.

    Addresses inside mostly have no certificate, so theirs stay as they are; so does a URL that writes out the port.
    """
    target = read_url(url)
    authority = AUTHORITY.match(url[5:]) if url[:5].lower() == "http:" else None
    plain = authority is not None and not re.search(r":\d*\Z", authority[1])
    return f"https{url[4:]}" if plain and target.host and target.reach is AddressClass.PUBLIC else url


def next_url(base: str, location: str) -> WebTarget:
    """Where a redirect leads."""
    try:
        return read_url(urljoin(base, location))
    except ValueError:
        return WebTarget(location, problem=f"the redirect leads to {location[:200]!r}, which is not a URL")


def read_authority(url: str, scheme: str, authority: str) -> WebTarget:
    _, at, place = authority.rpartition("@")
    host, port, problem = split_port(place, PORTS[scheme])
    if problem:
        return WebTarget(url, scheme, problem=problem)
    if host.startswith("["):
        return with_doubts(read_ipv6(url, scheme, host, port), at)
    name, doubt = host_name(host)
    target = WebTarget(url, scheme, name, port, doubt=doubt)
    if NUMBER.match(name.rpartition(".")[2]):
        return with_doubts(numeric(target), at)
    if not NAME.match(name):
        return WebTarget(url, scheme, problem=f"{host!r} is not the name of a host")
    return with_doubts(WebTarget(url, scheme, name, port, name_class(name), doubt=doubt), at)


def with_doubts(target: WebTarget, at: str) -> WebTarget:
    if target.problem:
        return target
    doubt = target.doubt
    if at:
        doubt = "the URL holds a user name or password"
    elif len(target.url) > MAX_URL:
        doubt = f"the URL is longer than {MAX_URL} characters"
    return WebTarget(target.url, target.scheme, target.host, target.port, target.reach, doubt=doubt)


def split_port(place: str, usual: int) -> tuple[str, int, str]:
    host, colon, port = place.rpartition(":")
    if not colon or port.endswith("]"):
        return place, usual, ""
    if port == "":
        return host, usual, ""
    if not (port.isascii() and port.isdigit()) or not 0 < int(port[:6]) < 65_536:
        return host, 0, f"{port!r} is not a port"
    return host, int(port), ""


def host_name(host: str) -> tuple[str, str]:
    """The name as DNS looks it up (IDNA, lower case, no trailing dot), and why it may be disguised; else empty."""
    if host.isascii():
        return host.lower().removesuffix("."), ""
    plain = DOTS.sub(".", unicodedata.normalize("NFKC", host)).casefold().removesuffix(".")
    doubt = "" if plain == host.casefold().removesuffix(".") else f"{host!r} is a disguised spelling of {plain!r}"
    try:
        return plain.encode("idna").decode("ascii"), doubt
    except UnicodeError:
        return "", ""


def read_ipv6(url: str, scheme: str, host: str, port: int) -> WebTarget:
    try:
        address = ipaddress.IPv6Address(host[1:-1] if host.endswith("]") else "")
    except ValueError:
        return WebTarget(url, scheme, problem=f"{host!r} is not an IPv6 address")
    return WebTarget(url, scheme, str(address), port, address_class(address))


def numeric(target: WebTarget) -> WebTarget:
    """A host whose last part is a number is an IPv4 address in one of its spellings, or invalid."""
    address = ipv4(target.host)
    if address is None:
        return WebTarget(target.url, target.scheme, problem=f"{target.host!r} is not an IPv4 address")
    odd = "" if str(address) == target.host else f"{target.host!r} is another spelling of {address}"
    return WebTarget(target.url, target.scheme, str(address), target.port, address_class(address), doubt=odd)
