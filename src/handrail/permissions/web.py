"""Matches domain rules against URLs."""

import ipaddress
from collections.abc import Iterable
from typing import TypeAlias

from handrail.http.web_url import WebTarget, host_name
from handrail.lazy import lazy_pattern
from handrail.permissions.rules import Behaviour, Rule
from handrail.permissions.wildcards import WildcardPattern, parse_wildcards

PortRule: TypeAlias = tuple[int | None, Rule]
"""A rule with the port that it is about; None = every one."""

PORT = lazy_pattern(r"(.+):(\d{1,5})\Z")
SOME_HOST = lazy_pattern(r"[a-z0-9_*-]+(?:\.[a-z0-9_*-]+)*\Z|[0-9a-f*]*:[0-9a-f:*]*(?:\.[0-9*]+)*\Z")
"""A name or an address, with wildcards, as targets have it."""
ANY_LABEL = parse_wildcards("*")


class DomainIndex:
    """
    Finds the domain rules that match a target: `domain:example.com`, `domain:localhost:8080`.

    A rule without a port allows https at port 443, and denies and asks about every scheme and port. One with a port is
    about that port alone, by https or http.
    """

    __slots__ = ("exact", "others", "parents")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.exact: dict[str, list[PortRule]] = {}
        self.parents: dict[str, list[PortRule]] = {}
        self.others: list[tuple[tuple[WildcardPattern, ...], PortRule]] = []
        for rule in rules:
            if (rule.spec or "").startswith("domain:"):
                host, port = split_rule((rule.spec or "")[7:].strip())
                self.add((port, rule), host)

    def add(self, rule: PortRule, domain: str) -> None:
        if "*" not in domain:
            self.exact.setdefault(domain, []).append(rule)
        elif domain.startswith("*.") and "*" not in domain[2:]:
            self.parents.setdefault(domain[2:], []).append(rule)
        else:
            self.others.append((tuple(map(parse_wildcards, domain.split("."))), rule))

    def find(self, target: WebTarget, behaviour: Behaviour) -> list[Rule]:
        """The rules of this behaviour that match."""
        found = list(self.exact.get(target.host, ()))
        labels = target.host.split(".")
        if self.parents:
            for at in range(1, len(labels)):
                found += self.parents.get(".".join(labels[at:]), ())
        found += [rule for pattern, rule in self.others if fits(pattern, labels)]
        return [rule for port, rule in found if at_port(port, target, behaviour)]

    def allows_by_name(self, target: WebTarget) -> bool:
        """Whether an allow rule names this very host: only such a rule opens an address inside."""
        return any(at_port(port, target, Behaviour.ALLOW) for port, _ in self.exact.get(target.host, ()))


def split_rule(domain: str) -> tuple[str, int | None]:
    """The host of a rule, as targets have it, and its port, if it names one."""
    found = PORT.match(domain)
    port: int | None = None
    if found and (found[1].endswith("]") or ":" not in found[1]):
        domain, port = found[1], int(found[2])
    host = domain.removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(host)), port
    except ValueError:
        return host_name(host)[0], port


def at_port(port: int | None, target: WebTarget, behaviour: Behaviour) -> bool:
    if behaviour is Behaviour.ALLOW and (target.doubt or (port is None and not target.ordinary)):
        return False
    return port is None or port == target.port


def fits(pattern: tuple[WildcardPattern, ...], labels: list[str]) -> bool:
    """Whether a pattern matches: `*` stays inside one label, but as the whole first label it matches one or more."""
    if pattern[0] == ANY_LABEL:
        pattern = pattern[1:]
        if not pattern:
            return True
        labels = labels[len(labels) - len(pattern) :] if len(labels) > len(pattern) else []
    return len(pattern) == len(labels) and all(part.matches(label) for part, label in zip(pattern, labels, strict=True))


def may_match(domain: str) -> bool:
    """Whether the domain of a rule may match some host; if not, it surely matches none."""
    return SOME_HOST.match(split_rule(domain)[0]) is not None
