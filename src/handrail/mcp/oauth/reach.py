"""
Where the authorization of a server may lead: to the public internet, and to what is no more private than the server.

A server on the internet could else send our requests to machines of this network, which trust us.
"""

import ipaddress
from collections.abc import Iterable, Sequence

from handrail.errors import McpError
from handrail.http.addresses import CAREFUL, AddressClass, address_class
from handrail.http.client import look_up
from handrail.http.urls import parse_target
from handrail.http.web_url import read_url


def check_reach(host: str, reach: AddressClass, server: AddressClass) -> None:
    """Raise McpError if a host is more private than the server whose authorization names it."""
    if CAREFUL.index(reach) > CAREFUL.index(server):
        raise McpError(f"its authorization points into this network ({host}), so it is not followed.")


def url_reach(url: str) -> AddressClass:
    """Where an address leads, as far as its text says."""
    return read_url(url).reach


class ReachGuard:
    """Looks up hosts for one server. Those that turn out to be more private than the server itself are refused."""

    def __init__(self, server_url: str) -> None:
        self._url = server_url
        self._reach: AddressClass | None = None

    async def look_up(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host; McpError if it may not be asked."""
        found = await look_up(host, port)
        if self._reach is None:
            own = parse_target(self._url)
            # who chooses the addresses of its name could add a private one to be taken for a private server
            least = min(_reaches(await look_up(own.host, own.port)), key=CAREFUL.index)
            self._reach = max(url_reach(self._url), least, key=CAREFUL.index)
        check_reach(host, max(_reaches(found), key=CAREFUL.index), self._reach)
        return found


def _reaches(addresses: Iterable[str]) -> list[AddressClass]:
    return [address_class(ipaddress.ip_address(each)) for each in addresses]
