"""
Parses URLs, matches domain rules against them, and classifies their addresses.

This uses no network. The HTTP client has to check again: `address_class` for every address that the name resolves to,
and `read_url` for every redirect.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Iterable
from enum import Enum
from fnmatch import fnmatchcase

from handrail.permissions.rules import Behaviour, Rule
from handrail.records import record


class AddressClass(Enum):
    """Where an address leads."""

    PUBLIC = "public"
    INTERNAL = "internal"  # this machine, its network, or no ordinary address
    METADATA = "metadata"  # hands out credentials of the machine, or is link-local


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
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)\Z", re.DOTALL)
AUTHORITY = re.compile(r"//([^/?#]*)")
NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z"
)
NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")
DOTS = re.compile(r"[\u3002\uff0e\uff61]")

# Names of machines nearby, and domains that lead to whatever address is written in the name.
INTERNAL_NAMES = frozenset(
    (
        "localhost", "local", "internal", "localdomain", "lan", "home", "intranet", "corp", "private", "test",
        "invalid", "home.arpa", "in-addr.arpa",
        "localtest.me", "lvh.me", "vcap.me", "nip.io", "sslip.io", "xip.io",
    )
)  # fmt: skip
METADATA_NAMES = frozenset(
    ("metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal")
)
METADATA_ADDRESSES = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "192.0.0.192")
)
NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
COMPATIBLE = ipaddress.IPv6Network("::/96")
# ipaddress calls these global; they are reserved, or lead to addresses inside.
NOT_GLOBAL = tuple(
    ipaddress.ip_network(text)
    for text in ("192.88.99.0/24", "64:ff9b:1::/48", "2001::/23", "5f00::/16", "3fff::/20", "fec0::/10", "100::/64")
)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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


def ipv4(text: str) -> ipaddress.IPv4Address | None:
    """The address as the C library reads it: one to four parts, each decimal, octal or hexadecimal."""
    parts = text.split(".")
    if not 1 <= len(parts) <= 4 or not all(NUMBER.match(part) for part in parts):
        return None
    try:
        values = [number(part) for part in parts]
    except ValueError:
        return None
    *heads, last = values
    if any(head > 255 for head in heads) or last >= 256 ** (5 - len(parts)):
        return None
    total = last
    for at, head in enumerate(heads):
        total += head << (24 - 8 * at)
    return ipaddress.IPv4Address(total)


def number(part: str) -> int:
    if part[:2].lower() == "0x":
        return int(part[2:] or "0", 16)
    return int(part, 8) if len(part) > 1 and part.startswith("0") else int(part)


def name_class(name: str) -> AddressClass:
    if name in METADATA_NAMES:
        return AddressClass.METADATA
    labels = name.split(".")
    if len(labels) == 1:
        return AddressClass.INTERNAL
    endings = {".".join(labels[at:]) for at in range(len(labels))}
    return AddressClass.PUBLIC if endings.isdisjoint(INTERNAL_NAMES) else AddressClass.INTERNAL


def address_class(address: Address) -> AddressClass:
    """Where an address leads; an IPv6 address that embeds an IPv4 address is classified by both."""
    inner = embedded_ipv4(address) if isinstance(address, ipaddress.IPv6Address) else None
    inside = AddressClass.PUBLIC if inner is None else address_class(inner)
    if address in METADATA_ADDRESSES or address.is_link_local or inside is AddressClass.METADATA:
        return AddressClass.METADATA
    if inside is not AddressClass.PUBLIC:
        return AddressClass.INTERNAL
    if not address.is_global or address.is_multicast or any(address in net for net in NOT_GLOBAL):
        # A mapped address leads where its IPv4 address leads.
        mapped = isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
        return AddressClass.PUBLIC if mapped else AddressClass.INTERNAL
    return AddressClass.PUBLIC


def embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The embedded IPv4 address: mapped, compatible, 6to4, Teredo, NAT64, ISATAP."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    value = int(address)
    if any(address in net for net in NAT64) or (address in COMPATIBLE and value > 0xFFFF):
        return ipaddress.IPv4Address(value & 0xFFFFFFFF)
    if (value >> 32) & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):
        return ipaddress.IPv4Address(value & 0xFFFFFFFF)
    return None


class DomainIndex:
    """Finds the domain rules that match a target."""

    __slots__ = ("exact", "others", "parents")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.exact: dict[str, list[Rule]] = {}
        self.parents: dict[str, list[Rule]] = {}
        self.others: list[tuple[tuple[str, ...], Rule]] = []
        for rule in rules:
            if (rule.spec or "").startswith("domain:"):
                self.add(rule, host_name((rule.spec or "")[7:].strip())[0])

    def add(self, rule: Rule, domain: str) -> None:
        if "*" not in domain:
            self.exact.setdefault(domain, []).append(rule)
        elif domain.startswith("*.") and "*" not in domain[2:]:
            self.parents.setdefault(domain[2:], []).append(rule)
        else:
            self.others.append((tuple(domain.split(".")), rule))

    def find(self, target: WebTarget, behaviour: Behaviour) -> list[Rule]:
        """Allow rules match https at port 443; deny and ask rules match every scheme and port."""
        if behaviour is Behaviour.ALLOW and not (target.ordinary and not target.doubt):
            return []
        found = list(self.exact.get(target.host, ()))
        labels = target.host.split(".")
        if self.parents:
            for at in range(1, len(labels)):
                found += self.parents.get(".".join(labels[at:]), ())
        found += [rule for pattern, rule in self.others if fits(pattern, labels)]
        return found


def fits(pattern: tuple[str, ...], labels: list[str]) -> bool:
    """Whether a pattern matches: `*` stays inside one label, but as the whole first label it matches one or more."""
    if pattern == ("*",):
        return True
    if pattern[0] == "*" and len(pattern) > 1:
        labels = labels[len(labels) - len(pattern) + 1 :] if len(labels) >= len(pattern) else []
        pattern = pattern[1:]
    return len(pattern) == len(labels) and all(map(fnmatchcase, labels, pattern))
