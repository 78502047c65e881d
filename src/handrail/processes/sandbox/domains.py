"""Decides which hosts a list of domains covers."""

import ipaddress
from collections.abc import Callable, Iterable

from handrail.processes.sandbox.settings import Domain, network_of

WEB_PORTS = (80, 443)

Public = Callable[[str], bool]
"""Whether an address leads to the public internet: not to this machine, its network or a metadata service."""


def names(pattern: str, host: str) -> bool:
    """Whether the pattern covers the host; `*.example.com` covers every sub-domain, not example.com itself."""
    host = host.lower().removesuffix(".")
    network = network_of(pattern)
    if network is not None:
        return network_of(host) is not None and ipaddress.ip_address(host) in network
    if network_of(host) is not None:
        return False  # an address is never meant by a name, not even by `*`
    return pattern in ("*", host) or (pattern.startswith("*.") and host.endswith(pattern[1:]) and host != pattern[2:])


def refusal(host: str, port: int, allowed: Iterable[Domain], denied: Iterable[Domain]) -> str:
    """Why the host may not be reached, or nothing. A denied domain is denied at every port."""
    if any(names(domain.pattern, host) for domain in denied):
        return f"{host} is denied by sandbox.network.deniedDomains"
    ports = (port, 0) if port in WEB_PORTS else (port,)
    if not any(domain.port in ports and names(domain.pattern, host) for domain in allowed):
        return f"{host}:{port} is not among sandbox.network.allowedDomains"
    return ""


def address_refusal(address: str, allowed: Iterable[Domain], denied: Iterable[Domain], public: Public) -> str:
    """Why the address that a name led to may not be reached: an inner one must be allowed as an address."""
    if any(network_of(domain.pattern) and names(domain.pattern, address) for domain in denied):
        return f"{address} is denied by sandbox.network.deniedDomains"
    if public(address) or any(network_of(d.pattern) and names(d.pattern, address) for d in allowed):
        return ""
    return f"{address} is an address of this machine or its network, and is not among sandbox.network.allowedDomains"
