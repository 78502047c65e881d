"""The table and the picture of docs/benchmarks.md are drawn from the figures that are kept."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
table = SimpleNamespace(**runpy.run_path(str(BENCHMARKS / "table.py")))


def test_the_table_and_the_picture_are_drawn_from_the_kept_figures() -> None:
    page, picture = table.draw(table.kept())

    assert page == table.PAGE.read_text("utf-8"), "run: python -m benchmarks.table --draw"
    assert picture == table.PICTURE.read_text("utf-8"), "run: python -m benchmarks.table --draw"


def test_every_row_comes_from_a_benchmark_and_has_a_figure() -> None:
    assert table.kept().keys() == {row.name for row in table.ROWS}
    assert all((BENCHMARKS / f"{row.bench}.py").exists() for row in table.ROWS)


def test_a_row_beyond_its_bar_is_called_missed_and_its_bar_is_cut() -> None:
    ratios = {row.name: row.bar for row in table.ROWS}
    first = table.ROWS[0].name

    assert "missed" not in table.table(ratios)
    assert table.table({**ratios, first: 99.0}).count("missed") == 1
    drawn = ElementTree.fromstring(table.picture({**ratios, first: 99.0}))
    widths = [float(each.attrib["width"]) for each in drawn.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths == [table.UNIT * table.LONGEST, *[table.UNIT] * (len(table.ROWS) - 1)]
