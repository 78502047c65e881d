"""robots.txt, as RFC 9309 reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.web_fetch.robots import may_fetch, read_robots

FILE = """
# comment
User-agent: Googlebot
Disallow: /

User-Agent: *
Disallow: /private
Allow: /private/open$
Disallow: /*.pdf$
Disallow: /*?session=
Disallow:
"""
FOR_US = "User-agent: other\nUser-agent: handrail/1.0\nDisallow: /ours\n\nUser-agent: *\nDisallow: /\n"


@pytest.mark.parametrize(
    ("file", "path", "allowed"),
    [
        (FILE, "/", True),
        (FILE, "/private", False),
        (FILE, "/private/x", False),
        (FILE, "/%70rivate/x", False),
        (FILE, "/private/open", True),
        (FILE, "/private/open/x", False),
        (FILE, "/a/b.pdf", False),
        (FILE, "/a/b.pdf?x", True),
        (FILE, "/a?session=1", False),
        (FOR_US, "/ours/x", False),
        (FOR_US, "/theirs", True),
        ("", "/x", True),
        ("<html>not a robots file: at all</html>", "/x", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
    ],
)
def test_the_longest_rule_for_us_decides(file: str, path: str, allowed: bool) -> None:
    assert may_fetch(read_robots(file), path) is allowed


@given(st.text(), st.text())
def test_every_file_is_read(file: str, path: str) -> None:
    assert may_fetch(read_robots(file), f"/{path}") in (True, False)


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    rules = read_robots(f"User-agent: *\nDisallow: /{'*a' * 1000}$")

    assert may_fetch(rules, "/" + "b" * 2000)
