"""`handrail mcp logout`: forget the sign-in at a server."""

import argparse

from handrail.cli.mcp.targets import find_target, settings_here
from handrail.conversation.plain import plain_json
from handrail.mcp.oauth.tokens import TokenStore


def run(chosen: argparse.Namespace) -> int:
    """0 = forgotten, 1 = there was no sign-in."""
    settings = settings_here()
    target = find_target(chosen.server, settings)
    forgotten = bool(target.config.url) and TokenStore(settings.places.state).forget(target.config.url)
    if chosen.json:
        print(plain_json({"server": target.name, "forgotten": forgotten}))
    else:
        print(f"The sign-in at {target.name} is forgotten." if forgotten else f"{target.name} was not signed in.")
    return 0 if forgotten else 1
