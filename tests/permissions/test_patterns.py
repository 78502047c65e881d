"""Path patterns: where they start, how deep they reach, and that allow is read narrowly, deny and ask widely."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.permissions.matching import all_matches
from handrail.permissions.patterns import Anchors, PathIndex
from handrail.permissions.rules import Behaviour, Rule, RuleSource, parse_rule
from tests.permissions.world import World

CASES = [
    # pattern, file, allow, deny
    ("src/**", "src/a.py", True, True),
    ("src/**", "vendor/src/a.py", False, True),
    ("./src/**", "vendor/src/a.py", False, False),
    ("./src/**", "src/a.py", True, True),
    ("src/*", "src/a.py", True, True),
    ("src/*", "src/deep/a.py", False, True),
    ("src", "src/a.py", True, True),
    ("src/", "src/a.py", True, True),
    (".env", "sub/.env", True, True),
    (".env", ".ENV", False, True),
    (".env", ".environment", False, False),
    ("*.py", "a/b/c.py", True, True),
    ("*.py", "a/b/c.pyc", False, False),
    ("**/*.py", "c.py", True, True),
    ("**/test/**", "a/test/b/c", True, True),
    ("a/**/b", "a/b", True, True),
    ("a/**/b", "a/x/y/b", True, True),
    ("a/**/b", "a/x/y/c", False, False),
    ("/src/**", "src/a.py", True, True),
    ("/src/**", "vendor/src/a.py", False, False),
    ("//etc/**", "/etc/hosts", True, True),
    ("/etc/**", "/etc/hosts", False, False),
    ("~/notes/**", "/home/dev/notes/a", True, True),
    ("~/notes/**", "/home/dev/notes-x/a", False, False),
    ("~", "/home/dev/x/y", True, True),
    ("../other/**", "/home/dev/other/x", True, True),
    ("../other/**", "/home/dev/othere/x", False, False),
    ("[ab].txt", "a.txt", True, True),
    ("[!ab].txt", "a.txt", False, False),
    ("[id].tsx", "d.tsx", True, True),
    (r"\[id\].tsx", "[id].tsx", True, True),
    ("src/?.py", "src/a.py", True, True),
    ("src/?.py", "src/ab.py", False, False),
    ("src/a.py", "src/../src/./a.py", True, True),
    ("**", "a/b/c", True, True),
    ("**", "/home/dev/x", False, False),
]


@pytest.mark.proves("G22")
@pytest.mark.parametrize(("pattern", "file", "allow", "deny"), CASES)
def test_a_pattern_reaches_as_far_as_it_says(pattern: str, file: str, allow: bool, deny: bool, tmp_path: Path) -> None:
    for kind, expected in (("allow", allow), ("deny", deny), ("ask", deny)):
        world = World(tmp_path, rules={kind: [f"Read({pattern})"]})
        assert bool(all_matches(world.case("Read", {"file_path": file}))) == expected, kind


@pytest.mark.parametrize(
    ("rule", "tool", "matches"),
    [
        ("Edit(src/**)", "Edit", True),
        ("Edit(src/**)", "Write", True),
        ("Edit(src/**)", "NotebookEdit", True),
        ("Edit(src/**)", "Read", False),
        ("Read(src/**)", "Grep", True),
        ("Read(src/**)", "Glob", True),
        ("Read(src/**)", "Edit", False),
        ("Write(src/**)", "Write", False),
        ("Glob(src/**)", "Glob", False),
        ("Write", "Write", True),
        ("Edit", "Write", False),
    ],
)
def test_an_allow_rule_grants_what_it_names(rule: str, tool: str, matches: bool, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": [rule]})
    values = {"file_path": "src/a", "notebook_path": "src/a", "path": "src", "pattern": "*"}

    assert bool(all_matches(world.case(tool, values))) == matches


@pytest.mark.parametrize("tool", ["Read", "Edit", "Write", "NotebookEdit", "Grep"])
def test_what_may_not_be_read_may_not_be_written(tool: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": ["Read(secrets/**)"]})

    assert world.says(tool, {"file_path": "secrets/x", "notebook_path": "secrets/x", "path": "secrets/x"}) == "deny"


def test_a_deny_of_a_name_holds_in_every_working_folder(tmp_path: Path) -> None:
    dirs = ("/home/dev/proj", "/home/dev/lib")
    world = World(tmp_path, working_dirs=dirs, rules={"deny": ["Read(.env)"]})

    assert world.says("Read", {"file_path": "/home/dev/lib/a/.env"}) == "deny"


def test_an_allow_needs_the_link_and_its_target(tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Edit(src/**)"]})
    world.link("src/out", "/home/dev/other")
    world.link("src/in", "/home/dev/proj/src")

    assert world.says("Edit", {"file_path": "src/out/x"}) == "ask"
    assert world.says("Edit", {"file_path": "src/in/x"}) == "allow"


@pytest.mark.parametrize("start", ["link/key", "src/../secrets/key", "SECRETS/key", "a/../secrets/./key"])
def test_a_deny_holds_however_the_path_is_written(start: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": ["Read(secrets/**)"]})
    world.link("link", "/home/dev/proj/secrets")

    assert world.says("Read", {"file_path": start}) == "deny"


NAMES = st.sampled_from(["a", "b", "src", ".env", "x.py", "y.lock"])
PATTERNS = st.lists(st.one_of(NAMES, st.sampled_from(["*", "**", "*.py", "?", "s*c"])), min_size=1, max_size=4)


@given(PATTERNS, st.lists(NAMES, min_size=1, max_size=5), st.sampled_from(["", "/", "//p/", "./"]), st.booleans())
def test_the_index_finds_what_a_search_through_all_rules_finds(
    parts: list[str], path: list[str], start: str, narrow: bool
) -> None:
    kind = Behaviour.ALLOW if narrow else Behaviour.DENY
    rule = parse_rule(f"Read({start}{'/'.join(parts)})", kind)
    if not isinstance(rule, Rule) or rule.spec is None:
        return
    index = PathIndex([rule], Anchors("/p", "/h"), narrow=narrow)
    patterns = [pattern for group in (index.folders, index.names, index.endings) for pattern in group.values()]
    every = [pattern for group in (*patterns, index.others) for pattern, _ in group]
    text = "/p/" + "/".join(path)

    assert bool(index.find(text)) == any(pattern.regex.fullmatch(text) for pattern in every)
    if narrow:
        wide = parse_rule(rule.text, Behaviour.DENY)
        assert isinstance(wide, Rule)
        assert not index.find(text) or PathIndex([wide], Anchors("/p", "/h"), narrow=False).find(text)


def plainly(spec: str, *, narrow: bool) -> str:
    """The same pattern as an expression that tries everything."""
    parts = spec.split("/")
    out = "(?:/[^/]+)*" if not narrow or len(parts) == 1 else ""
    below = parts[-1] == "**"
    for part in parts[:-1] if below else parts:
        names = {"*": "[^/]*", "?": "[^/]"}
        out += "(?:/[^/]+)*" if part == "**" else "/" + "".join(names.get(char, char) for char in part)
    if below:
        return out + ("(?:/.*)?" if not narrow or len(parts) == 1 else "/.*")
    return out + ("/?" if narrow and set(parts[-1]) & {"*", "?"} else "(?:/.*)?")


PARTS = st.one_of(st.just("**"), st.text("ab*?", min_size=1, max_size=5).filter(lambda text: text != "**"))


@given(
    st.lists(PARTS, min_size=1, max_size=6).map("/".join),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=7).map("/".join),
    st.sampled_from(["", "/"]),
    st.booleans(),
)
def test_a_pattern_matches_what_trying_everything_would_match(spec: str, path: str, end: str, narrow: bool) -> None:
    kind = Behaviour.ALLOW if narrow else Behaviour.DENY
    rule = parse_rule(f"Read({spec})", kind, RuleSource("project"))
    if not isinstance(rule, Rule) or rule.spec is None:
        return
    found = PathIndex([rule], Anchors("/w", "/h"), narrow=narrow).find(f"/w/{path}{end}")

    assert bool(found) == bool(re.fullmatch("/w" + plainly(spec, narrow=narrow), f"/w/{path}{end}"))


@pytest.mark.parametrize(
    "spec", ["**/a/**/a/**/a/**/a/**/a/**/b", "*a*a*a*a*a*a*a*b", "**/**/**/**/x", "?*?*?*?*?*?*?*b", "[a]*" * 9 + "b"]
)
def test_wildcards_of_a_hostile_project_hold_nobody_up(spec: str) -> None:
    rule = parse_rule(f"Read({spec})", Behaviour.DENY, RuleSource("project"))
    assert isinstance(rule, Rule)
    index = PathIndex([rule], Anchors("/w", "/h"), narrow=False)

    assert index.find("/w" + "/a" * 1_000) == []
    assert index.find("/w/" + "a" * 2_000) == []


SPELLED = [
    # deny rule, path: the same name for some file system
    ("caf\u00e9.txt", "cafe\u0301.txt"),
    ("cafe\u0301.txt", "caf\u00e9.txt"),
    ("cafe\u0301/**", "CAF\u00c9/x"),
    ("\u1e9b\u0323.txt", "\u017f\u0323\u0307.txt"),
    ("*.\u00e9", "a.e\u0301"),
    ("/src/\uac00*", "src/\u1100\u1161x"),
]


@pytest.mark.parametrize(("pattern", "path"), SPELLED)
def test_a_deny_rule_knows_a_name_in_every_way_it_can_be_composed(pattern: str, path: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": [f"Read({pattern})"]})

    assert world.says("Read", {"file_path": path}) == "deny"
    assert world.bash(f"cat {path}") in ("deny", "ask")


def test_an_allow_rule_means_the_name_as_it_is_written(tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Edit(caf\u00e9.txt)"]})

    assert world.says("Write", {"file_path": "caf\u00e9.txt"}) == "allow"
    assert world.says("Write", {"file_path": "cafe\u0301.txt"}) == "ask"
