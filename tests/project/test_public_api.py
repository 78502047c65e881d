"""The public API changes on purpose or not at all."""

import subprocess
import sys
from pathlib import Path

from tests.forked import unmeasured

ROOT = Path(__file__).resolve().parents[2]


def api_of(package: str, path: Path) -> str:
    script = ROOT / "scripts" / "public_api.py"
    done = subprocess.run(
        [sys.executable, script, package],
        cwd=path,
        env={**unmeasured(), "PYTHONPATH": str(path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_public_api_is_the_pinned_one() -> None:
    pinned = (Path(__file__).parent / "public_api.txt").read_text("utf-8")

    assert api_of("handrail", ROOT / "src") == pinned, "if the change is meant, run: make api"


def test_signatures_defaults_and_public_members_are_pinned_and_private_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(
        "__all__ = ['wrap', 'LIMIT', 'Box']\n"
        "LIMIT = 3\n"
        "class Box(dict[str, int]):\n"
        "    size: int = 1\n"
        "    _hidden: int = 2\n"
        "    async def open(self, *, now: bool = True) -> None: ...\n"
        "    def _secret(self) -> None: ...\n"
        "def wrap(value: 'str | None' = None) -> Box: ...\n"
    )

    assert api_of("sample", tmp_path).splitlines() == [
        "class Box(dict[str, int])",
        "    size: int = 1",
        "    async def open(self, *, now: bool=True) -> None",
        "LIMIT = 3",
        "def wrap(value: 'str | None'=None) -> Box",
    ]
