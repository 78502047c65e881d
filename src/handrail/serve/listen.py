"""
Where a server may listen: the rule, the socket and its address.

Loopback is the default. Beyond it a server listens only with TLS and a token: without them everybody on the network
could start commands on this machine, or read along.
"""

import errno
import socket
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from handrail.errors import ListenError
from handrail.records import record
from handrail.serve.guard import is_loopback, own_names


@record
class BindAddress:
    """An address to listen at; port 0 takes a free one. A certificate and its key make it TLS."""

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None

    @property
    def tls(self) -> bool:
        return self.certificate is not None


def check_installed() -> None:
    """Say how to get the packages of a server, before any of them is imported."""
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        raise ListenError("A server needs two more packages. Install them with: pip install 'handrail[serve]'")


def check_endpoint(endpoint: BindAddress, *, token: bool) -> None:
    """Refuse an address that others can reach without TLS or without a token."""
    if (endpoint.certificate is None) != (endpoint.key is None):
        raise ListenError("TLS needs both a certificate and its key; give --tls-cert and --tls-key together.")
    for file in (endpoint.certificate, endpoint.key):
        if file is not None and not file.is_file():
            raise ListenError(f"{file}: there is no such file; give a PEM file for TLS.")
    if is_loopback(endpoint.host):
        return
    if not endpoint.tls:
        raise ListenError(
            f"{endpoint.host!r} can be reached from other machines, so it needs TLS: give --tls-cert and --tls-key, "
            "or listen on 127.0.0.1 behind a reverse proxy."
        )
    if not token:
        raise ListenError(
            f"{endpoint.host!r} can be reached from other machines, so it needs a token; --no-token is for loopback."
        )


def bind(endpoint: BindAddress) -> socket.socket:
    """A socket that listens there, with the reason in plain words when it cannot."""
    host = endpoint.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # named as TCP, so that asyncio sends small answers at once instead of waiting 40 ms for more
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, endpoint.port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        busy = error.errno == errno.EADDRINUSE
        cure = "another program listens there; choose another --port" if busy else (error.strerror or str(error))
        raise ListenError(f"Cannot listen on {endpoint.host}:{endpoint.port}: {cure}.") from error
    except OverflowError as error:
        listener.close()
        raise ListenError(f"{endpoint.port} is not a port; choose one from 1 to 65535, or 0 for a free one.") from error
    return listener


@record
class Address:
    """Where a server listens, and the names and origins that mean it."""

    url: str
    port: int
    hosts: frozenset[str]
    origins: frozenset[str]


def address_of(endpoint: BindAddress, listener: socket.socket) -> Address:
    """The address of a bound socket, port known, as people and programs reach it."""
    port: int = listener.getsockname()[1]
    hosts, origins = own_names(endpoint.host, port, tls=endpoint.tls)
    host = endpoint.host.strip("[]")
    name = f"[{host}]" if ":" in host else host
    return Address(f"{'https' if endpoint.tls else 'http'}://{name}:{port}", port, hosts, origins)


def with_names(address: Address, names: Iterable[str]) -> Address:
    """The address with more names; its URL has the first of them."""
    names = [name.lower() for name in names]
    if not names:
        return address
    hosts = {host for name in names for host in (name, f"{name}:443", f"{name}:{address.port}")}
    return replace(
        address,
        url=f"{address.url.partition('://')[0]}://{names[0]}:{address.port}",
        hosts=address.hosts | hosts,
        origins=address.origins | {f"https://{host}" for host in hosts},
    )
