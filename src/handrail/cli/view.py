"""`handrail view`: serve a page that shows what sessions did, until it is stopped."""

import argparse
import asyncio
import getpass
import json
import os
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.cli.permission_flags import report_failure, warn
from handrail.errors import SessionError
from handrail.lazy import lazy
from handrail.serve.guard import Door, new_token, token_digest
from handrail.serve.listen import Address, BindAddress, address_of, bind, check_endpoint, check_installed
from handrail.session.state_folder import session_store, state_folder

if TYPE_CHECKING:
    from handrail.cli import view_server
else:
    view_server = lazy("handrail.cli.view_server")  # needs the extra `serve`


def run(chosen: argparse.Namespace) -> int:
    """0 when it was stopped; 1 when the session is not there."""
    check_installed()
    state, store = state_folder(os.environ), session_store(os.environ)
    path: Path | None = None
    if chosen.session:
        try:
            path = store.find(chosen.session, str(Path.cwd()))
        except SessionError as error:
            report_failure(str(error), as_json=chosen.json)
            return 1
    certificate, key = (Path(each) if each else None for each in (chosen.tls_cert, chosen.tls_key))
    endpoint = BindAddress(chosen.host, chosen.port, certificate, key)
    check_endpoint(endpoint, token=True)
    people = {new_token(): name for name in chosen.people or (user_name(),)}
    listener = bind(endpoint)
    address = address_of(endpoint, listener)
    door = Door(
        address.hosts,
        address.origins,
        {token_digest(token): name for token, name in people.items()},
        view_server.PUBLIC,
        cookie=f"handrail-view-{address.port}",
    )
    library = view_server.SessionLibrary(store, state, {path.stem: path} if path else None)
    announce(chosen, addresses(address, people, f"/run/{path.stem}" if path else "/"))
    asyncio.run(view_server.serve_page(library, door, endpoint, listener, state if chosen.live else None))
    return 0


def user_name() -> str:
    """The name of the person at this machine, for records of their answers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def addresses(address: Address, people: Mapping[str, str], place: str) -> Sequence[tuple[str, str]]:
    """The address of each person. The key stands in the part that browsers do not send."""
    return [(name, f"{address.url}/#token={token}{place}") for token, name in people.items()]


def announce(chosen: argparse.Namespace, found: Sequence[tuple[str, str]]) -> None:
    """Print the addresses, and open the first one for a person at a terminal."""
    if chosen.json:
        print(json.dumps({"addresses": [{"person": name, "url": url} for name, url in found]}), flush=True)
        return
    for name, url in found:
        print(url if len(found) == 1 else f"{name}: {url}", flush=True)
    if sys.stderr.isatty():
        warn("the page is open until Ctrl+C; the address holds its key, so give it to no one else")
        if not chosen.no_open and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or is_mac()):
            webbrowser.open(found[0][1])


def is_mac() -> bool:
    """Whether a browser can be opened without a display variable."""
    return sys.platform == "darwin"
