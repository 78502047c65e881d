"""Where addresses and host names lead: to the public internet, into this machine and its network, or to credentials."""

import ipaddress
from enum import Enum

from handrail.lazy import lazy_pattern


class AddressClass(Enum):
    """Where an address leads."""

    PUBLIC = "public"
    INTERNAL = "internal"  # this machine, its network, or no ordinary address
    METADATA = "metadata"  # hands out credentials of the machine, or is link-local


CAREFUL = tuple(AddressClass)
"""From what anyone may reach to what no one should."""
NUMBER = lazy_pattern(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")
# Names of machines nearby, and domains that lead to whatever address is written in the name.
INTERNAL_NAMES = frozenset(
    (
        "localhost", "local", "internal", "localdomain", "lan", "home", "intranet", "corp", "private", "test",
        "invalid", "home.arpa", "in-addr.arpa", "svc", "consul",
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
TRANSLATED = ipaddress.IPv6Network("::ffff:0:0:0/96")
UNICAST = ipaddress.IPv6Network("2000::/3")
"""All addresses of the public internet; what else is reserved may lead anywhere."""
# ipaddress calls these global; they are reserved, or lead to addresses inside.
NOT_GLOBAL = tuple(
    ipaddress.ip_network(text)
    for text in ("192.88.99.0/24", "64:ff9b:1::/48", "2001::/23", "5f00::/16", "3fff::/20", "fec0::/10", "100::/64")
)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
    if isinstance(address, ipaddress.IPv6Address) and inner is None and address not in UNICAST:
        return AddressClass.INTERNAL
    return AddressClass.PUBLIC


def embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The embedded IPv4 address: mapped, compatible, translated, 6to4, Teredo, NAT64, ISATAP."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    value = int(address)
    if any(address in net for net in (*NAT64, TRANSLATED)) or (address in COMPATIBLE and value > 0xFFFF):
        return ipaddress.IPv4Address(value & 0xFFFFFFFF)
    if (value >> 32) & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):
        return ipaddress.IPv4Address(value & 0xFFFFFFFF)
    return None
