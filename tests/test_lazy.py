"""Late imports and patterns: paid for at the first use, and as typed as plain ones."""

import ast
import copy
import re
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, assert_type

import pytest

from handrail.lazy import lazy, lazy_pattern, once

if TYPE_CHECKING:
    import colorsys
    from fractions import Fraction
else:
    colorsys = lazy("colorsys")

SOURCE = Path(__file__).resolve().parents[1] / "src"
NOT_INSTALLED = {"handrail.batch.cluster": "distributed"}
"""Modules of extras that set-up leaves out, and what they need."""


def lazy_names() -> Iterator[tuple[str, str | None]]:
    """What the source loads late: the module, and the class if one is named."""
    for file in SOURCE.rglob("*.py"):
        text = file.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "lazy" in text else ():
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
        try:
            loaded = import_module(module)
        except ModuleNotFoundError as error:
            assert error.name == NOT_INSTALLED.get(module), error  # noqa: PT017  # which module is missing
            continue
        assert name is None or hasattr(loaded, name), (module, name)


def test_the_type_checker_sees_the_real_types_and_finds_wrong_names() -> None:
    found: type[Fraction] = lazy("fractions", "Fraction")

    assert_type(found(1).numerator, int)
    assert_type(colorsys.rgb_to_hsv(0, 0, 0), tuple[float, float, float])
    with pytest.raises(AttributeError, match="rgb_to_hvs"):
        _ = colorsys.rgb_to_hvs  # type: ignore[attr-defined]  # mypy complains if it finds no error here


def test_a_lazy_pattern_does_what_the_compiled_one_does() -> None:
    late, plain = lazy_pattern(r"(?P<word>[a-z]+)-", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)-", re.IGNORECASE)

    assert copy.copy(late).pattern == plain.pattern
    assert_type(late, re.Pattern[str])
    for text in ("AB-c", "", "1", "a-b-c"):
        assert late.findall(text) == plain.findall(text)
        assert late.sub(r"<\g<word>>", text) == plain.sub(r"<\g<word>>", text)
        assert late.split(text) == plain.split(text)
        assert (late.match(text) is None, late.search(text) is None) == (
            plain.match(text) is None,
            plain.search(text) is None,
        )
    assert (late.flags, late.groups, dict(late.groupindex)) == (plain.flags, plain.groups, dict(plain.groupindex))


def test_a_lazy_pattern_is_compiled_when_it_is_first_used() -> None:
    wrong = lazy_pattern("(")

    with pytest.raises(re.error, match="unterminated"):
        wrong.match("")


def test_every_lazy_pattern_of_the_source_compiles() -> None:
    names = [
        ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        for file in SOURCE.rglob("*.py")
        if "lazy_pattern(" in file.read_text("utf-8")
    ]
    for name in names:
        for value in vars(import_module(name.removesuffix(".__init__"))).values():
            if type(value).__name__ == "LazyPattern":
                assert value.groups >= 0


def test_two_threads_that_need_a_value_first_get_the_same_one() -> None:
    begun, done = threading.Event(), threading.Event()
    got: list[object] = []

    def build() -> object:
        begun.set()
        assert done.wait(30)
        return object()

    value = once(build)
    threads = [threading.Thread(target=lambda: got.append(value())) for _ in range(2)]
    threads[0].start()
    assert begun.wait(30)
    begun.clear()
    threads[1].start()
    assert not begun.wait(0.01), "the second one does not build its own"
    done.set()
    for thread in threads:
        thread.join(30)

    assert len(got) == 2
    assert got[0] is got[1] is value()
