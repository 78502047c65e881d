"""The content of a plugin as a whole."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from handrail.extensions.plugin_tree import remove_left_out


def test_two_programs_that_remove_what_is_no_part_of_a_plugin_do_not_disturb_each_other(tmp_path: Path) -> None:
    for round_ in range(5):
        root = tmp_path / str(round_)
        for number in range(200):
            file = root / f"{number % 20}/__pycache__/{number}.pyc"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        with ThreadPoolExecutor(4) as programs:
            list(programs.map(remove_left_out, [root] * 4))
        assert list(root.rglob("__pycache__")) == []
