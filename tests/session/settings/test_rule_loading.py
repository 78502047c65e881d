"""Thousands of rules: what a start reads of them, and that what is read late is what is written."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.permissions.rules import Behaviour
from handrail.tools.tool import McpInfo
from tests.config.world import World

TEXTS = st.sampled_from(
    [
        *(
            "Bash",
            "Bash()",
            "Bash( * )",
            "Bash(rm *)",
            "Ba*",
            "*",
            "Read(.env)",
            "Task",
            "KillShell",
            "Bsh",
            "Bash(",
            ")",
        ),
        *("mcp__a", "mcp__a__*", "mcp__my server__q", "mcp__a__b", "mcp__*", "Edit(a)", "", "WebFetch(domain:x.org)"),
    ]
)
SERVERS = (("a", "b"), ("my server", "q"), ("b", "x"))
TOOLS = (
    *((name, None) for name in ("Bash", "Read", "Agent", "TaskStop", "Edit", "mcp__a__b")),
    *(
        (f"mcp__{server}__{tool}", McpInfo(server, tool))
        for server, tool in (("a", "b"), ("my server", "q"), ("b", "x"))
    ),
)


@given(deny=st.lists(TEXTS, max_size=4), ask=st.lists(TEXTS, max_size=2), flags=st.lists(TEXTS, max_size=2))
@settings(max_examples=60)
def test_a_start_takes_away_the_tools_that_the_whole_policy_takes_away(
    deny: list[str], ask: list[str], flags: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.write("user", {"permissions": {"deny": deny, "ask": ask}})
        live = world.live(disallowed=tuple(flags))

        at_start = [live.denies_tool(name, mcp) for name, mcp in TOOLS]
        policy = live.policy()

        assert at_start == [policy.denies_tool(name, mcp) for name, mcp in TOOLS]
        assert at_start == [live.denies_tool(name, mcp) for name, mcp in TOOLS]


STARTING = """
import sys
from pathlib import Path
from handrail.session.settings.session_settings import open_settings
from handrail.session.settings.caller_names import NO_NAMES
from handrail.config.flags import SettingsFlags

root = Path(sys.argv[1])
env, flags = {"HOME": str(root / "home")}, SettingsFlags()
live = open_settings(root / "project", env, root / "state", flags, print, names=NO_NAMES)
assert live.denies_tool("Glob", None) and not live.denies_tool("Read", None)
print(*(name for name in ("policy", "patterns", "shell", "index") if f"handrail.permissions.{name}" in sys.modules))
"""


def test_a_start_reads_only_the_rules_that_take_tools_away_and_still_tells_of_a_broken_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("user", {"permissions": {"deny": [*(f"Read(secret{at}.txt)" for at in range(500)), "Glob", "Bash("]}})

    def start() -> list[str]:
        ran = subprocess.run(
            [sys.executable, "-c", STARTING, str(world.root)], capture_output=True, text=True, check=True
        )
        return ran.stdout.splitlines()

    for _ in range(2):  # the second time, what was found is kept
        *notes, modules = start()
        assert modules == ""
        assert [note.partition(" - ")[2] for note in notes] == [
            "the bracket is not closed; add ). Until it is corrected, calls of Bash need consent."
        ]


def test_a_policy_prepared_while_the_model_thinks_is_the_one_in_force_until_a_file_changes(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("user", {"permissions": {"deny": ["Read(one.txt)"], "ask": ["Bash("]}})
    warnings: list[str] = []
    live = world.live(warnings)

    live.prepare_policy()
    assert warnings == [], "a thread prepares it, and tells nothing"
    first = live.policy()
    live.prepare_policy()

    assert live.policy() is first
    assert len(warnings) == 1
    assert first.index[Behaviour.DENY].read.find(f"{world.places.cwd}/one.txt")

    world.write("user", {"permissions": {"deny": ["Read(two.txt)"]}})
    changed = live.policy()
    assert changed.version > first.version
    assert not changed.index[Behaviour.DENY].read.find(f"{world.places.cwd}/one.txt")
    assert changed.index[Behaviour.DENY].read.find(f"{world.places.cwd}/two.txt")


def test_each_of_many_rules_knows_its_line(tmp_path: Path) -> None:
    texts = ["Bash(a b)", 'Bash(say "\u00e4")', *(f"Read(x{at})" for at in range(50)), "Edit(y)", "Edit(z)"]
    ends = [",\n"] * (len(texts) - 2) + [" , ", "\n"]
    world = World(tmp_path)
    file = world.write("user", {})
    file.write_text('{"permissions": {"deny": [\n' + "".join(map("{}{}".format, map(json.dumps, texts), ends)) + "]}}")

    lines = [rule.source.line for rule in world.live().policy().rules]

    assert lines == [*range(2, len(texts) + 1), len(texts)]
