"""
The window and the price of each model: what variables and settings say, else the tables that handrail ships.

    HANDRAIL_CONTEXT_WINDOW, HANDRAIL_MODEL_PRICE > the setting `models` > tables
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from handrail.errors import SettingsError
from handrail.loop.windows import window_of
from handrail.providers.cost import price_of
from handrail.providers.prices import Price
from handrail.records import record

PRICES = {
    "input": "inputPrice",
    "output": "outputPrice",
    "cache_read": "cacheReadPrice",
    "cache_write": "cacheWritePrice",
}


@record
class ModelFacts:
    """
    What is known of models. `own_window` and `own_price` count for every model.

    `rows` are entries of the setting `models`, by the beginning of a model's name; the longest that fits counts.
    """

    own_window: int | None = None
    own_price: Price | None = None
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def window(self, model: str) -> int:
        """How many tokens the window of a model holds."""
        given: int | None = self._row(model, "contextWindow").get("contextWindow")
        return self.own_window or given or window_of(model)

    def price(self, model: str) -> Price | None:
        """The price of a model; None = not known."""
        row = self._row(model, "inputPrice")
        if self.own_price or not row:
            return self.own_price or price_of(model)
        return Price(**{part: row[name] for part, name in PRICES.items() if name in row})

    def _row(self, model: str, key: str) -> Mapping[str, Any]:
        bare = model.rpartition("/")[2]
        fitting = [start for start in self.rows if key in self.rows[start] and _is_start(start, model, bare)]
        return self.rows[max(fitting, key=len)] if fitting else {}


def _is_start(start: str, *names: str) -> bool:
    return any(name.startswith(start) for name in names)


def model_facts(settings: Any, env: Mapping[str, str]) -> ModelFacts:
    """What variables and settings say; SettingsError if it makes no sense."""
    window, prices = env.get("HANDRAIL_CONTEXT_WINDOW", ""), env.get("HANDRAIL_MODEL_PRICE", "")
    if window and not (window.isdecimal() and int(window)):
        raise SettingsError(f"HANDRAIL_CONTEXT_WINDOW is {window!r}. Give the number of tokens, such as 131072.")
    rows: Mapping[str, Mapping[str, Any]] = settings.get("models") or {}
    for name, row in rows.items():
        if any(key in row for key in PRICES.values()) and not {"inputPrice", "outputPrice"} <= {*row}:
            raise SettingsError(f"models.{name} in the settings lacks a price. Give both inputPrice and outputPrice.")
    return ModelFacts(int(window) if window else None, _price(prices) if prices else None, rows)


def _price(text: str) -> Price:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not 2 <= len(numbers) <= len(PRICES) or not all(0 <= number < 1e6 for number in numbers):
        raise SettingsError(
            f"HANDRAIL_MODEL_PRICE is {text!r}. Give dollars per million tokens, input and output, such as 0.5,1.5; "
            "prices of cached input may follow: 0.5,1.5,0.05,0.6."
        )
    return Price(*numbers)
