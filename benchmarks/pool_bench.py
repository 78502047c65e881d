"""
Ten thousand tools: assembling, serialising and searching a pool.

    python benchmarks/pool_bench.py [--tools 10000] [--json]

Times are CPU times of the one thread that works: the best (assembling) or the median (searching) of several runs.
Ratios compare them with each other and with a plain loop, so that they mean the same on a slow machine.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable

from handrail.builtin.table import base_tools
from handrail.session.services import default_services
from handrail.tools.catalog import Catalog
from handrail.tools.pool import AnyTool, Deferral, Ingredients, Pool, assemble, definition_json
from handrail.tools.raw import RawTool
from handrail.tools.tool import PLAIN_VIEW, McpInfo, PromptView

VERBS = "list get create update delete search export import merge close open assign tag move copy archive".split()  # noqa: SIM905  # easier to read and change
NOUNS = "issue branch commit file page message channel invoice contact ticket release build log metric user".split()  # noqa: SIM905  # easier to read and change
WORDS = [f"{verb}{noun}" for verb in VERBS for noun in NOUNS] + VERBS + NOUNS


class Served(RawTool):
    """A tool as an MCP server of usual size offers it."""

    def __init__(self, server: str, name: str, text: str) -> None:
        properties = {
            "id": {"type": "string", "description": "Which one."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many at the most."},
            "filter": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        }
        super().__init__(f"mcp__{server}__{name}", {"type": "object", "properties": properties, "required": ["id"]})
        self.mcp = McpInfo(server, name)
        self.text = text

    def prompt(self, view: PromptView) -> str:
        return self.text


def many_tools(count: int) -> tuple[AnyTool, ...]:
    chance = random.Random(1)
    return tuple(
        Served(
            f"server{number % 100}",
            f"{chance.choice(VERBS)}_{chance.choice(NOUNS)}_{number}",
            " ".join(chance.choices(WORDS, k=15)),
        )
        for number in range(count)
    )


def catalog(mcp: tuple[AnyTool, ...], deferral: Deferral) -> Catalog:
    made = Catalog(
        Ingredients(entries=base_tools(lambda: made, lambda: default_services({})), mcp=mcp, deferral=deferral)
    )
    return made


def seconds(action: Callable[[], object]) -> float:
    start = time.thread_time()
    action()
    return time.thread_time() - start


def serialise(pool: Pool) -> bytes:
    return b"[" + b",".join([definition_json(tool, PLAIN_VIEW) for tool in pool.active]) + b"]"


def measure(count: int) -> dict[str, float]:
    loop = min(seconds(lambda: sum(number * number for number in range(1_000_000))) for _ in range(3))
    tools = many_tools(count)
    off, on = Deferral(mode="off"), Deferral(mode="on")
    kept = catalog(tools, off)
    what = Ingredients(entries=base_tools(lambda: kept, lambda: default_services({})), mcp=tools)
    assemble(what)  # imports the built-in tools, once in the life of a process
    whole = [seconds(lambda: serialise(assemble(what))) for _ in range(7)]
    serialise(kept.pool)
    again = [seconds(lambda: kept.refresh(mcp=tools)) for _ in range(100)]
    shuffled = tuple(random.Random(2).sample(tools, count))
    refreshed = seconds(lambda: serialise(kept.refresh(mcp=shuffled)))

    searching = catalog(tools, on)
    first = seconds(lambda: searching.search("create invoice", 5))
    chance = random.Random(3)
    queries = [
        chance.choice(("", "+server1 ", "+list "))
        + " ".join(chance.choices(VERBS + NOUNS + ["crea", "unknown"], k=chance.randint(1, 4)))
        for _ in range(500)
    ]
    searches = [seconds(lambda: searching.search(query, 5)) for query in queries]  # noqa: B023  # used at once
    searching.activate([tools[0].name])
    activated = seconds(lambda: serialise(searching.pool))
    return {
        "tools": count,
        "a_loop_of_a_million_ms": loop * 1e3,
        "bytes": len(serialise(kept.pool)),
        "assemble_and_serialise_ms": min(whole) * 1e3,
        "refresh_in_another_order_ms": refreshed * 1e3,
        "nothing_changed_us": statistics.median(again) * 1e6,
        "first_search_ms": first * 1e3,
        "search_p50_ms": statistics.median(searches) * 1e3,
        "search_p95_ms": sorted(searches)[int(len(searches) * 0.95)] * 1e3,
        "activate_one_of_all_held_back_ms": activated * 1e3,
        "assemble_and_serialise_in_loops": min(whole) / loop,
        "search_p50_in_loops": statistics.median(searches) / loop,
        "unchanged_is_faster_by": min(whole) / max(statistics.median(again), 1e-9),
        "searches_per_index_build": first / statistics.median(searches),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1] if __doc__ else "")
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    figures = measure(chosen.tools)
    if chosen.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):40} {value:>14,.3f}")


if __name__ == "__main__":
    main()
