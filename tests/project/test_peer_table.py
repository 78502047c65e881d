"""The table of other programs in docs/benchmarks.md is drawn from the figures that are kept."""

import runpy
from pathlib import Path
from types import SimpleNamespace

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
peers = SimpleNamespace(**runpy.run_path(str(BENCHMARKS / "peer_table.py")))


def test_the_table_is_drawn_from_the_kept_figures() -> None:
    assert peers.draw(peers.kept()) == peers.PAGE.read_text("utf-8"), "run: python -m benchmarks.peer_table"


def test_a_row_says_where_a_peer_is_ahead_and_leaves_empty_what_was_not_measured() -> None:
    figures = {"ours": {"first": 30.0}, "fast": {"first": 20.0}, "slow": {"first": 200.0}}
    versions = dict.fromkeys(("ours", "fast", "slow"), "1.0")

    rows = {"all": figures, "some": {**figures, "fast": {"first": 60.0}}, "one": {"ours": {"first": 30.0}}}
    lines = peers.table({"versions": versions, "rows": {row: {"figures": each} for row, each in rows.items()}})

    assert lines.splitlines()[2:] == [
        "| all (ms) | 30.0 | 20.0 | 200 | 1.50, **behind** |",
        "| some (ms) | 30.0 | 60.0 | 200 | 0.50 |",
        "| one (ms) | 30.0 |  |  |  |",
    ]
