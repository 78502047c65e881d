"""The throw-away folder of the demo: a project with a failing test and its own rules, a home and a state folder."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from handrail.errors import HandrailError
from handrail.records import record

RULES = ".handrail/settings.json"
TESTS = "python -m unittest"
FILES = {
    "prices.py": '''"""Prices with a discount."""


def discounted(price: float, percent: float) -> float:
    return price + price * percent / 100


def total(prices: list[float]) -> float:
    return round(sum(prices), 2)
''',
    "test_prices.py": """import unittest

from prices import discounted, total


class Prices(unittest.TestCase):
    def test_a_discount_makes_things_cheaper(self) -> None:
        self.assertEqual(discounted(200, 10), 180)

    def test_a_total_adds_up(self) -> None:
        self.assertEqual(total([0.1, 0.2]), 0.3)
""",
    "README.md": f"A tiny shop. Run the tests with: {TESTS}\n",
    ".gitignore": "__pycache__/\n",
    RULES: f"""{{
  "permissions": {{
    "allow": ["Edit(*.py)", "Bash({TESTS})"],
    "deny": ["Bash(rm -rf *)"]
  }}
}}
""",
}
SAME_IN_EVERY_RUN = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Demo",
    "GIT_AUTHOR_EMAIL": "demo@localhost",
    "GIT_AUTHOR_DATE": "2026-01-01T12:00:00Z",
    "GIT_COMMITTER_NAME": "Demo",
    "GIT_COMMITTER_EMAIL": "demo@localhost",
    "GIT_COMMITTER_DATE": "2026-01-01T12:00:00Z",
}


@record
class Ground:
    """The folders and the environment of the demo. None of the user's settings are in it."""

    project: Path
    env: Mapping[str, str]

    def git(self, *arguments: str) -> str:
        """Run git in the project and return its output."""
        ran = subprocess.run(  # noqa: S603  # our own words
            ["git", *arguments],  # noqa: S607  # the user's git is what is wanted
            cwd=self.project,
            env={**self.env, **SAME_IN_EVERY_RUN},
            check=False,
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            said = ran.stderr.strip() or f"exit code {ran.returncode}"
            raise HandrailError(f"git {arguments[0]} failed: {said}. The demo needs a git that works.")
        return ran.stdout


def lay_out(folder: Path) -> Ground:
    """Fill an empty folder with a repository of one commit in which a test fails, a home and a state folder."""
    project, home, programs, temporary = (folder / name for name in ("project", "home", "bin", "tmp"))
    for each in (project, home, programs, temporary):
        each.mkdir()
    (programs / "python").symlink_to(sys.executable)  # the tests run with the Python that runs handrail
    for name, text in FILES.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text, "utf-8")
    env = {
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HANDRAIL_STATE_DIR": str(folder / "state"),
    }
    ground = Ground(project, env)
    ground.git("init", "--quiet", "--template=")
    ground.git("add", ".")
    ground.git("commit", "--quiet", "--message", "A shop")
    return ground
