"""How clients share a server: which run starts next, and whether one more may wait."""

from collections import Counter
from collections.abc import Iterable, Mapping

from handrail.remote.config import ServeConfig
from handrail.remote.records import ServedRunRecord


def may_start(config: ServeConfig, client: str, running: "Counter[str]") -> bool:
    """Whether there is room for one more run of a client beside those at work, counted by client."""
    known = config.clients.get(client)
    own = known.max_runs if known else None
    return running.total() < config.max_runs and (own is None or running[client] < own)


def next_run(
    config: ServeConfig, waiting: Iterable[ServedRunRecord], running: "Counter[str]", starts: Mapping[str, int]
) -> ServedRunRecord | None:
    """
    The run that starts next: of the client with the fewest at work, then of the one that waited longest for its turn.

    `starts` says when a run of each client was last started. Of one client's runs, the oldest comes first.
    """
    startable = [run for run in waiting if may_start(config, run.client, running)]
    return min(startable, key=lambda run: (running[run.client], starts.get(run.client, 0), run.created), default=None)


def refuse_to_wait(config: ServeConfig, client: str, running: "Counter[str]", waiting: "Counter[str]") -> str:
    """Why one more run of a client can neither start nor wait; empty if it can. Each client has its share of places."""
    if may_start(config, client, running):
        return ""
    all_taken = waiting.total() >= config.max_waiting
    if not all_taken and (not client or waiting[client] < config.share(config.max_waiting)):
        return ""
    yours = f", {waiting[client]} of them yours" if client else ""
    return f"{running.total()} runs are under way and {waiting.total()} wait{yours}. Try again later."
