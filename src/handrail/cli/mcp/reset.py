"""`handrail mcp reset-project-choices`: forget which servers of `.mcp.json` were approved or refused here."""

import argparse
from collections.abc import Mapping
from dataclasses import replace

from handrail.cli.mcp.targets import settings_here
from handrail.config.rewrite import remove_key
from handrail.config.trust import TrustRecord, TrustStore
from handrail.config.write import edit
from handrail.conversation.plain import plain_json

KEYS = ("enableAllProjectMcpServers", "enabledMcpjsonServers", "disabledMcpjsonServers")


def run(chosen: argparse.Namespace) -> int:
    """Take the choices out of this project's local settings, and its servers out of what is trusted."""
    places = settings_here().places
    file, gone = places.file("local"), []
    if file.path.exists():

        def change(text: str) -> str:
            for key in KEYS:
                shorter = remove_key(text, (key,))
                gone.extend([key] if shorter != text else [])
                text = shorter
            return text

        edit(file, places, change)
    store = TrustStore(places.state)
    servers = [name for folder in places.folders if (known := store.record_of(folder)) for name in forget(store, known)]
    if chosen.json:
        print(plain_json({"settings": gone, "servers": servers}))
    else:
        what = ", ".join([*gone, *servers])
        again = "Approve servers again with: handrail trust" if servers else "handrail trust approves servers."
        print(f"Forgotten: {what}. {again}" if what else "No server of .mcp.json was approved or refused here.")
    return 0


def forget(store: TrustStore, known: TrustRecord) -> list[str]:
    """Trust the servers of a folder no longer; their names."""
    servers = {text: shown for text, shown in known.shown.items() if shown.startswith("mcpServers.")}
    if not servers:
        return []
    shown: Mapping[str, str] = {text: each for text, each in known.shown.items() if text not in servers}
    store.save(replace(known, items=known.items - servers.keys(), names=tuple(shown.values()), shown=shown))
    return [each.partition(": ")[0].removeprefix("mcpServers.") for each in servers.values()]
