"""
Reads the `sandbox` section of the settings: every value gives settings, and problems that name what is wrong.

A value that should narrow and is not understood makes the settings `broken`: nothing runs in a sandbox whose limits
are not known. A value that should widen and is not understood widens nothing.
"""

import ipaddress
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from handrail.lazy import lazy_pattern
from handrail.records import record

Value = TypeVar("Value")


@record
class Domain:
    """An entry of a list of domains: `example.com`, `*.example.com`, `*`, an address or a network; maybe `:port`."""

    pattern: str
    port: int = 0
    """0 stands for the usual ports of the web."""


@record
class Network:
    """What a sandboxed command may reach; nothing by default."""

    allowed: tuple[Domain, ...] = ()
    denied: tuple[Domain, ...] = ()
    unix_sockets: tuple[str, ...] = ()
    host: bool = False
    """The network of the machine, unfiltered."""


@record
class Filesystem:
    """Absolute paths, beside the working folders."""

    allow_write: tuple[str, ...] = ()
    deny_write: tuple[str, ...] = ()
    allow_read: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()


@record
class SandboxSettings:
    """The section as it was understood."""

    enabled: bool = False
    auto_allow: bool = True
    """Commands in the sandbox need no consent."""
    excluded_commands: tuple[str, ...] = ()
    allow_unsandboxed: bool = True
    """A command may ask to run outside; it then needs consent like any other."""
    network: Network = Network()
    filesystem: Filesystem = Filesystem()
    problems: tuple[str, ...] = ()
    broken: bool = False


HOST = lazy_pattern(r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\Z")
PATTERN = frozenset("*?[]{}")


def read_settings(section: object, *, folder: str, home: str) -> SandboxSettings:
    """The section as found in JSON; relative paths start at `folder`. Answers for every value; never raises."""
    reader = _SettingsReader(folder, home)
    top = reader.table("sandbox", section)
    net = reader.table("sandbox.network", top.pop("network", None))
    files = reader.table("sandbox.filesystem", top.pop("filesystem", None))
    enabled = reader.flag(top, "enabled", False, careful=True)
    auto_allow = reader.flag(top, "autoAllowBashIfSandboxed", True, careful=False)
    excluded = reader.texts(top, "sandbox", "excludedCommands", str)
    allow_unsandboxed = reader.flag(top, "allowUnsandboxedCommands", True, careful=False)
    network = Network(
        allowed=reader.texts(net, "sandbox.network", "allowedDomains", _domain),
        denied=reader.texts(net, "sandbox.network", "deniedDomains", _domain, narrows=True),
        unix_sockets=reader.texts(net, "sandbox.network", "allowUnixSockets", reader.path),
        host=reader.flag(net, "host", False, careful=False, where="sandbox.network"),
    )
    filesystem = Filesystem(
        allow_write=reader.texts(files, "sandbox.filesystem", "allowWrite", reader.path),
        deny_write=reader.texts(files, "sandbox.filesystem", "denyWrite", reader.path, narrows=True),
        allow_read=reader.texts(files, "sandbox.filesystem", "allowRead", reader.path),
        deny_read=reader.texts(files, "sandbox.filesystem", "denyRead", reader.path, narrows=True),
    )
    for where, left in (("sandbox", top), ("sandbox.network", net), ("sandbox.filesystem", files)):
        reader.problems += [f"{where}.{name} is not known here and has no effect." for name in left]
    problems = tuple(reader.problems)
    return SandboxSettings(
        enabled, auto_allow, excluded, allow_unsandboxed, network, filesystem, problems, reader.broken
    )


class _SettingsReader:
    """Takes values out of tables and collects what is wrong with them."""

    def __init__(self, folder: str, home: str) -> None:
        self.folder, self.home = folder, home
        self.problems: list[str] = []
        self.broken = False

    def table(self, where: str, value: object) -> dict[str, Any]:
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return {str(key): each for key, each in value.items()}
        self.wrong(f"{where} is {value!r}. Write an object.", narrows=True)
        return {}

    def flag(self, table: dict[str, Any], name: str, default: bool, *, careful: bool, where: str = "sandbox") -> bool:
        value = table.pop(name, default)
        if isinstance(value, bool):
            return value
        self.wrong(f"{where}.{name} is {value!r}. Write true or false; until then it counts as {str(careful).lower()}.")
        return careful

    def texts(
        self, table: dict[str, Any], where: str, name: str, read: Callable[[str], Value], *, narrows: bool = False
    ) -> tuple[Value, ...]:
        value = table.pop(name, [])
        if not isinstance(value, list):
            self.wrong(f"{where}.{name} is {value!r}. Write a list of texts.", narrows=narrows)
            return ()
        values: list[Value] = []
        for at, each in enumerate(value):
            try:
                values.append(read(_text(each)))
            except ValueError as error:
                self.wrong(f"{where}.{name}[{at}] is {each!r}. {error}", narrows=narrows)
        return tuple(values)

    def path(self, text: str) -> str:
        plain = text.removesuffix("/**").removesuffix("/*") or "/"
        if not PATTERN.isdisjoint(plain) or "\0" in plain:
            raise ValueError("Patterns are not understood here; name the file or folder itself.")
        if plain == "~" or plain.startswith("~/"):
            plain = self.home + plain[1:]
        elif plain.startswith("~"):
            raise ValueError("Only your own home folder can be written as ~.")
        return "/" + posixpath.normpath(posixpath.join(self.folder, plain)).lstrip("/")

    def wrong(self, problem: str, *, narrows: bool = False) -> None:
        self.problems.append(problem)
        self.broken = self.broken or narrows


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("Write a text that is not empty.")
    return value.strip()


def _domain(text: str) -> Domain:
    host, port = text.lower(), 0
    found = re.match(r"(.*[^:]):(\d{1,5})\Z", host) if host.count(":") == 1 or "]:" in host else None
    if found:
        host, port = found[1], int(found[2])
    host = host.removeprefix("[").removesuffix("]").removesuffix(".")
    if port > 65_535 or not (host == "*" or HOST.match(host) or network_of(host)):
        raise ValueError("Write a domain such as example.com or *.example.com, without https:// or a path.")
    return Domain(host, port)


def network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The network that an address or a range names, or None for a domain."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
