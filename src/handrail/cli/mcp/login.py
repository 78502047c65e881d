"""`handrail mcp login`: sign in at a server in the browser."""

import argparse
import asyncio
import sys
import webbrowser

from handrail.cli.mcp.targets import find_target, settings_here
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError
from handrail.mcp.oauth.tokens import TokenStore


def run(chosen: argparse.Namespace) -> int:
    """Connect, and sign in if the server wants to know who asks."""
    settings = settings_here()
    target = find_target(chosen.server, settings)
    if target.config.transport == "stdio":
        raise HandrailError(f"{target.name!r} is a program on this machine, which has no sign-in.")
    if any(name.lower() == "authorization" for name in target.config.headers) or target.config.headers_helper:
        raise HandrailError(f"the entry of {target.name!r} sends a credential of its own, so there is no sign-in.")
    store = TokenStore(settings.places.state)
    before = store.read(target.config.url)

    async def open_browser(url: str) -> None:
        sys.stderr.write(f"Sign in here, in a browser on this machine:\n\n  {plain(url)}\n\n")
        sys.stderr.flush()
        if not chosen.no_browser:
            await asyncio.to_thread(webbrowser.open, url)

    async def sign_in() -> int:
        async with target.connect(open_browser=open_browser) as server:
            return len(server.tools)

    count = asyncio.run(sign_in())
    grants = store.read(target.config.url)
    signed_in = grants.current is not None and grants.current.tokens is not None
    if chosen.json:
        print(plain_json({"server": target.name, "signed_in": signed_in, "issuer": grants.issuer, "tools": count}))
    elif not signed_in:
        print(f"{target.name} does not want to know who asks: {count} tools.")
    else:
        already = "was signed in already" if grants == before else "is signed in"
        print(f"{target.name} {already} ({grants.issuer}): {count} tools.")
    return 0
