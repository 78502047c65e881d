"""What is connected to is what was judged, however a URL is spelled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.http.addresses import AddressClass
from handrail.http.urls import parse_target
from handrail.http.web_url import canonical_url, https_first, next_url, read_url

SIGNS = st.text(alphabet="abz019.:/@?#[]%-_xX\\ \t\u3002\uff10\u00e9\u0430;=&", max_size=40)
HOSTS = st.sampled_from(
    [
        "docs.example", "DOCS.Example.", "127.1", "0x7f.1", "2130706433", "0177.1", "[::1]", "[::ffff:10.0.0.1]",
        "b\u00fccher.example", "user@docs.example", "a:b@127.0.0.1", "docs.example:8443", "[::1]:80", "localhost:",
    ]
)  # fmt: skip


@given(st.sampled_from(["http", "https", "HTTPS"]), HOSTS | SIGNS, SIGNS)
def test_the_parser_that_connects_sees_the_host_and_port_that_were_judged(scheme: str, host: str, rest: str) -> None:
    target = read_url(f"{scheme}://{host}{rest}")

    if not target.problem and not target.refused:
        there = parse_target(canonical_url(target))
        assert (there.scheme, there.host, there.port) == (target.scheme, target.host, target.port)
        assert there.credentials == ""


@given(HOSTS | SIGNS, SIGNS)
def test_the_rebuilt_url_is_judged_no_more_mildly(host: str, rest: str) -> None:
    target = read_url(f"http://{host}{rest}")

    if not target.problem and not target.refused:
        again = read_url(canonical_url(target))
        assert (again.host, again.port, again.reach) == (target.host, target.port, target.reach)


@given(HOSTS | SIGNS, SIGNS)
def test_https_first_changes_nothing_but_the_scheme(host: str, rest: str) -> None:
    before = read_url(f"http://{host}{rest}")
    after = read_url(https_first(f"http://{host}{rest}"))

    assert (after.host, after.reach, bool(after.problem)) == (before.host, before.reach, bool(before.problem))
    if after.scheme != before.scheme:
        assert (before.port, after.port, after.reach) == (80, 443, AddressClass.PUBLIC)


@pytest.mark.parametrize(
    ("url", "fetched"),
    [
        ("http://docs.example/a?b", "https://docs.example/a?b"),
        ("HTTP://docs.example", "https://docs.example"),
        ("http://docs.example:80/", "http://docs.example:80/"),
        ("http://docs.example:8080/", "http://docs.example:8080/"),
        ("http://localhost/", "http://localhost/"),
        ("http://10.0.0.1/", "http://10.0.0.1/"),
        ("https://docs.example/", "https://docs.example/"),
        ("http://", "http://"),
        ("nonsense", "nonsense"),
    ],
)
def test_public_pages_are_fetched_by_https(url: str, fetched: str) -> None:
    assert https_first(url) == fetched


@given(SIGNS)
def test_every_redirect_is_judged(location: str) -> None:
    target = next_url("https://docs.example/a/b", location)

    assert target.problem or target.refused or target.host
