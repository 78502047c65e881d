"""A changed settings file is noticed, whatever became of it or of the folder it is in."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.config.places import places_for
from handrail.config.watch import SettingsWatch, stamp

FILES = {
    ".handrail/settings.json": "project",
    ".handrail/settings.local.json": "local",
    ".claude/settings.json": "project",
    ".mcp.json": "project",
    "home/.handrail/settings.json": "user",
    "etc/settings.json": "trust",
}


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}" if not path.exists() else f"{{}}{' ' * path.stat().st_size}")


def remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)


def remove_folder(path: Path) -> None:
    if path.name != ".mcp.json":
        shutil.rmtree(path.parent, ignore_errors=True)


def move_folder(path: Path) -> None:
    """The folder becomes a link to where it went."""
    if path.name != ".mcp.json" and path.parent.is_dir() and not path.parent.is_symlink():
        moved = path.parent.rename(path.parent.with_name(f"{path.parent.name}-{os.urandom(4).hex()}"))
        path.parent.symlink_to(moved)


STEPS: list[Callable[[Path], None]] = [write, remove, make_folder, remove_folder, move_folder]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(sorted(FILES))), min_size=1, max_size=8))
def test_each_look_finds_what_changed_since_the_one_before(steps: list[tuple[Callable[[Path], None], str]]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        watch = SettingsWatch(places_for(root, {"HOME": str(root / "home")}, root / "state"), NO_FLAGS_GIVEN)
        watch.follow([str(root / "etc/settings.json")])
        for step, name in steps:
            before = {each: stamp(root / each) for each in FILES}
            step(root / name)
            changed = {FILES[each] for each in FILES if stamp(root / each) != before[each]}
            assert set(watch.changes()) == changed
            assert watch.changes() == {}
