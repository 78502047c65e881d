"""Late imports: paid for at the first use, and as typed as a plain import."""

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, assert_type

import pytest

from handrail.lazy import lazy

if TYPE_CHECKING:
    import colorsys
    from fractions import Fraction
else:
    colorsys = lazy("colorsys")

SOURCE = Path(__file__).resolve().parents[1] / "src"


def lazy_names() -> Iterator[tuple[str, str | None]]:
    """What the source loads late: the module, and the class if one is named."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="lazy"), args=[ast.Constant(value=str(module))]):
                    yield module, None
                case ast.Call(
                    func=ast.Name(id="lazy"), args=[ast.Constant(value=str(module)), ast.Constant(value=str(name))]
                ):
                    yield module, name
                case _:
                    pass


def test_a_lazy_module_is_imported_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    absent, late = lazy("this_is_not_there"), lazy("colorsys")
    assert "colorsys" not in sys.modules

    assert late.rgb_to_hsv(0, 0, 0) == colorsys.rgb_to_hsv(0, 0, 0) == (0, 0, 0)
    assert "colorsys" in sys.modules
    with pytest.raises(ModuleNotFoundError, match="this_is_not_there"):
        _ = absent.anything


def test_a_class_is_returned_itself() -> None:
    found: type[Fraction] = lazy("fractions", "Fraction")

    assert found(1, 2) == import_module("fractions").Fraction(1, 2)


def test_what_the_source_loads_late_exists() -> None:
    for module, name in lazy_names():
        loaded = import_module(module)
        assert name is None or hasattr(loaded, name), (module, name)


def test_the_type_checker_sees_the_real_types_and_finds_wrong_names() -> None:
    found: type[Fraction] = lazy("fractions", "Fraction")

    assert_type(found(1).numerator, int)
    assert_type(colorsys.rgb_to_hsv(0, 0, 0), tuple[float, float, float])
    with pytest.raises(AttributeError, match="rgb_to_hvs"):
        _ = colorsys.rgb_to_hvs  # type: ignore[attr-defined]  # mypy complains if it finds no error here
