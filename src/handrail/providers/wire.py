"""JSON on the wire: compact stable bytes out, tolerant values in."""

import json
import math
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 100
MAX_TOKENS = 10**12
"""More than any answer can have used."""


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        raise ValueError(f"{literal[:40]} is not a finite number")
    return number


_decoder = json.JSONDecoder()
_strict_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, allow_nan=False)
_lax_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)

EMPTY: Mapping[str, Any] = {}


def load(text: str, decoder: json.JSONDecoder = _decoder) -> Any:
    """The JSON value that a text is. Raises ValueError, and RecursionError if it is nested too deeply."""
    try:
        value, end = decoder.raw_decode(text)
    except ValueError:
        return decoder.decode(text)  # there may be blanks before it
    return value if end == len(text) else decoder.decode(text)


def whole_characters(text: str) -> str:
    """`text` with surrogate pairs joined and lone halves replaced: some servers cut a character between two strings."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def dump(value: object) -> bytes:
    """Compact UTF-8 JSON with the keys in the order given; always valid. `null` stands for NaN and infinity."""
    try:
        text = _encoder.encode(value)
    except ValueError:
        text = _encoder.encode(json.loads(_lax_encoder.encode(value), parse_float=_or_null, parse_constant=_or_null))
    return text.encode() if text.isascii() else whole_characters(text).encode()


def echo(value: object) -> bytes:
    """A received value encoded again unchanged, with NaN and infinity, which `arguments` then refuses."""
    return whole_characters(_lax_encoder.encode(value)).encode()


def sound(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A received object as one that can be stored and sent again; what is nested too deeply is left out of it."""
    if not value:
        return value
    shallow = {key: each for key, each in value.items() if not _deeper(each, MAX_DEPTH)}
    try:
        _encoder.encode(shallow).encode()
    except ValueError:  # NaN, infinity, half characters
        whole: Mapping[str, Any] = json.loads(dump(shallow))
        return whole
    return shallow


def _or_null(literal: str) -> float | None:
    number = float(literal)
    return number if math.isfinite(number) else None


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else EMPTY


def string(value: object) -> str:
    """`value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """`value` if it is an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def tokens(value: object) -> int | None:
    """`value` if it can be a number of tokens, else None: some servers send -1 for what they do not know."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS else None


def arguments(text: str) -> Mapping[str, Any] | str:
    """
    The input of a call from its complete argument text, or what is wrong with it.

    Empty text, blanks and `null` are an empty input; a JSON string is parsed again, because some servers encode twice.
    """
    value: Any = text
    for _ in range(2):
        if not value.strip():
            return {}
        brackets = value.count("{") + value.count("[")
        try:
            value = load(value, _strict_decoder)
        except ValueError as error:
            return f"its arguments are not valid JSON ({error})"
        except RecursionError:
            return "its arguments are nested too deeply"
        if value is None:
            return {}
        if isinstance(value, dict):
            deep = brackets > MAX_DEPTH and _deeper(value, MAX_DEPTH)
            return "its arguments are nested too deeply" if deep else value
        if not isinstance(value, str):
            break
    return f"its arguments are a JSON {type(value).__name__}, not an object"


def _deeper(value: object, levels: int) -> bool:
    """Whether a value is nested deeper than that: no tool needs it, and later code could fail on it."""
    if not isinstance(value, dict | list):
        return False
    return levels == 0 or any(
        _deeper(each, levels - 1) for each in (value.values() if isinstance(value, dict) else value)
    )
