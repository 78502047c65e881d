"""Judging URLs: what they really name, domain rules, and addresses that are ours."""

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.http.addresses import AddressClass, address_class, ipv4
from handrail.http.web_url import read_url
from tests.permissions.world import World


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/",
        "http://017700000001/", "http://0x7f000001/", "http://127.0.0.1./", "http://0/", "http://0.0.0.0/",
        "http://10.0.0.1/", "http://172.16.5.4/", "http://192.168.0.1/", "http://100.64.0.1/", "http://198.18.0.1/",
        "http://192.0.2.1/", "http://224.0.0.1/", "http://240.0.0.1/", "http://255.255.255.255/", "http://[::1]/",
        "http://[::]/", "http://[fc00::1]/", "http://[fd12::1]/", "http://[ff02::1]/", "http://[::ffff:10.0.0.1]/",
        "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[2002:7f00:1::]/", "http://[64:ff9b::7f00:1]/",
        "http://[::ffff:0:7f00:1]/", "http://[4000::1]/",
        "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "http://[fe80::5efe:10.0.0.1]/", "http://[2001:db8::1]/",
        "http://localhost:3000/", "http://LOCALHOST/", "http://a.localhost/", "http://printer.local/", "http://router/",
        "http://x.internal/", "http://x.home.arpa/", "http://127.0.0.1.nip.io/", "http://x.lan/",
        "http://kubernetes.default.svc/", "http://vault.service.consul/",
        "http://\uff11\uff12\uff17.0.0.1/", "http://\u24dbocalhost/", "http://127\u30020\u30020\u30021/",
    ],
)  # fmt: skip
def test_an_address_inside_is_asked_about_whatever_is_allowed(url: str, tmp_path: Path) -> None:
    for mode in ("default", "auto", "acceptEdits"):
        world = World(tmp_path, mode=mode, rules={"allow": ["WebFetch", "WebFetch(domain:*)"]})
        assert world.says("WebFetch", {"url": url}) in ("ask", "error"), mode


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/", "http://169.254.43518/", "http://0xa9fea9fe/", "http://2852039166/",
        "http://[fd00:ec2::254]/", "http://[::ffff:169.254.169.254]/", "http://168.63.129.16/",
        "http://100.100.100.200/", "http://metadata.google.internal/", "http://METADATA.google.internal./",
        "http://[fe80::1]/", "http://169.254.170.2/",
    ],
)  # fmt: skip
def test_an_address_that_hands_out_credentials_is_asked_about_even_in_bypass(url: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode="bypassPermissions", rules={"allow": ["WebFetch"]})

    assert world.says("WebFetch", {"url": url}) == "ask"


@pytest.mark.parametrize(
    "url",
    [
        "", "x", "https://", "https:///x", "https:x", "//a.example/", "https://a b/", "https://a.example\t/",
        "https://a.example\\@b.example/", " https://a.example/", "https://a.example/\n", "https://[a.example]/",
        "https://[::1", "https://a.example:x/", "https://a.example:99999/", "https://a.example:0/", "https://a..b/",
        "https://-a.example/", "https://a%2eexample/", "https://1.2.3.4.5/", "https://256.1.1.1/", "https://a.1/",
        "https://[fe80::1%25eth0]x/", "https://a.example\u200b/", "https://.a.example/", "https://@/", "ftp://a.example/",
        "https://" + "a" * 64 + ".example/",
    ],
)  # fmt: skip
def test_a_malformed_url_is_an_error(url: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode="bypassPermissions", rules={"allow": ["WebFetch"]})

    assert world.says("WebFetch", {"url": url}) == "error"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "data:text/html,x", "ssh://a.example/", "javascript:x", "gopher://a"]
)
def test_other_schemes_are_refused(url: str, tmp_path: Path) -> None:
    assert World(tmp_path, rules={"allow": ["WebFetch"]}).says("WebFetch", {"url": url}) == "deny"


@pytest.mark.parametrize(
    ("rule", "url", "allow", "deny"),
    [
        ("docs.example", "https://docs.example/x?y#z", True, True),
        ("docs.example", "https://DOCS.Example./", True, True),
        ("DOCS.example.", "https://docs.example/", True, True),
        ("docs.example", "https://docs.example:443/", True, True),
        ("docs.example", "https://docs.example:8443/", False, True),
        ("docs.example", "http://docs.example/", True, True),
        ("docs.example", "http://docs.example:80/", False, True),
        ("docs.example:8443", "https://docs.example:8443/", True, True),
        ("docs.example:8443", "https://docs.example/", False, False),
        ("*.example.org:8443", "https://a.example.org:8443/", True, True),
        ("*.example.org:8443", "https://a.example.org:8444/", False, False),
        ("localhost:3000", "http://localhost:3000/x", True, True),
        ("localhost:3000", "http://localhost:3001/x", False, False),
        ("localhost", "http://localhost:3000/x", False, True),
        ("*.localhost:3000", "http://a.localhost:3000/x", False, True),
        ("[::1]:3000", "http://[0:0::1]:3000/", True, True),
        ("127.0.0.1:80", "http://127.1/", False, True),
        ("169.254.169.254:80", "http://169.254.169.254/", False, True),
        ("docs.example", "https://a.docs.example/", False, False),
        ("docs.example", "https://user@docs.example/", False, True),
        ("docs.example", "https://docs.example@evil.example/", False, False),
        ("docs.example", "https://evil.example/docs.example", False, False),
        ("docs.example", "https://docs.example.evil.example/", False, False),
        ("*.example.org", "https://a.b.example.org/", True, True),
        ("*.example.org", "https://example.org/", False, False),
        ("*.example.org", "https://aexample.org/", False, False),
        ("example.*", "https://example.org/", True, True),
        ("example.*", "https://example.co.uk/", False, False),
        ("*.example.*", "https://a.example.org/", True, True),
        ("*.exam*le.org", "https://a.example.org/", True, True),
        ("*.e?ample.*", "https://a.example.org/", False, False),
        ("*.[e]xample.*", "https://a.example.org/", False, False),
        ("*.*.example.org", "https://a.example.org/", False, False),
        ("bücher.example", "https://bücher.example/", True, True),
        ("bücher.example", "https://xn--bcher-kva.example/", True, True),
        ("docs.example", "https://\uff44ocs.example/", False, True),
        ("docs.example", "https://d\u043e\u0441s.example/", False, False),
        ("docs.example", "https://docs\u3002example/", False, True),
    ],
)
def test_a_domain_rule_matches_that_host(rule: str, url: str, allow: bool, deny: bool, tmp_path: Path) -> None:
    assert (
        World(tmp_path, rules={"allow": [f"WebFetch(domain:{rule})"]}).says("WebFetch", {"url": url}) == "allow"
    ) is allow
    denied = World(tmp_path, rules={"allow": ["WebFetch"], "deny": [f"WebFetch(domain:{rule})"]})
    assert (denied.says("WebFetch", {"url": url}) == "deny") is deny


def test_public_addresses_are_public() -> None:
    for text in ("8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"):
        assert address_class(ipaddress.ip_address(text)) is AddressClass.PUBLIC, text


@given(st.text())
def test_every_text_is_judged(url: str) -> None:
    target = read_url(url)

    assert target.problem or target.refused or target.host


@given(st.text(alphabet="https:/@.[]0x127afe%#?\\ localhost-_\u3002\uff10"))
def test_texts_made_of_the_signs_of_urls_are_judged(rest: str) -> None:
    target = read_url("https://" + rest)

    assert target.problem or target.host


@given(st.ip_addresses(v=4))
def test_every_spelling_of_an_ipv4_address_is_the_same_address(address: ipaddress.IPv4Address) -> None:
    value, parts = int(address), str(address).split(".")
    forms = [
        str(value),
        hex(value),
        f"0{value:o}",
        ".".join(hex(int(part)) for part in parts),
        ".".join(f"0{int(part):o}" for part in parts),
        f"{parts[0]}.{value & 0xFFFFFF}",
        f"{parts[0]}.{parts[1]}.{value & 0xFFFF}",
    ]

    assert {ipv4(form) for form in forms} == {address}
    assert {read_url(f"http://{form}/").reach for form in forms} == {address_class(address)}


@given(st.ip_addresses(v=4))
def test_an_ipv6_address_is_no_safer_than_the_ipv4_address_in_it(address: ipaddress.IPv4Address) -> None:
    value = int(address)
    carriers = [0xFFFF << 32 | value, 0x2002 << 112 | value << 80, 0x64FF9B << 96 | value]

    for carrier in carriers:
        inner, outer = address_class(address), address_class(ipaddress.IPv6Address(carrier))
        assert inner is AddressClass.PUBLIC or outer is not AddressClass.PUBLIC
