"""Writes values as compact JSON, many times in the same way: `json` prepares its encoder anew for each value."""

import json
import json.encoder
from collections.abc import Callable
from typing import Any


def json_encoder(*, allow_nan: bool = True) -> Callable[[Any], str]:
    """The encoder of `json` without blanks, ASCII escapes and the check for circles."""
    plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, allow_nan=allow_nan)
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without the C part of the library
        return plain.encode
    quote: Any = json.encoder.encode_basestring
    parts = make(None, plain.default, quote, None, ":", ",", False, False, allow_nan)
    return lambda value: "".join(parts(value, 0))
