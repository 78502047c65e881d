"""`handrail trust`: trust the settings of a folder, or stop trusting them."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from handrail.config.flags import SettingsFlags
from handrail.config.load import load_settings
from handrail.config.places import places_for
from handrail.config.trust import TrustStore
from handrail.conversation.plain import plain
from handrail.errors import SettingsError
from handrail.session.state_folder import state_folder


def run(chosen: argparse.Namespace) -> int:
    """0 = done, 1 = `--revoke` of a folder that was not trusted."""
    store = TrustStore(state_folder(os.environ))
    if chosen.list:
        known = store.all()
        if not known and not chosen.json:
            sys.stderr.write("handrail: no folder is trusted\n")
            return 0
        rows = [{"folder": record.folder, "at": record.at, "items": list(record.names)} for record in known]
        say(chosen, rows, [f"{record.folder}  ({record.at})" for record in known])
        return 0
    folder = Path(chosen.folder)
    if not folder.is_dir():
        raise SettingsError(f"{chosen.folder!r} is not a folder.")
    places = places_for(folder, os.environ, state_folder(os.environ))
    if chosen.revoke:
        known_before = store.revoke(places.cwd)
        text = "is no longer trusted." if known_before else "was not trusted."
        say(chosen, {"folder": places.cwd, "revoked": known_before}, [f"{places.cwd} {text}"])
        return 0 if known_before else 1
    settings = load_settings(places, os.environ, SettingsFlags())
    lines = [f"  {item.shown}" for item in settings.items] or ["  nothing: no setting of it needs trust"]
    facts = {"folder": places.cwd, "items": [item.shown for item in settings.items]}
    if chosen.show:
        state = settings.trust if settings.items else store.judge(places.cwd, ()).value
        say(chosen, {**facts, "trust": state}, [f"{places.cwd} is {state}. It brings:", *lines])
        return 0
    for problem in settings.problems:
        sys.stderr.write(f"handrail: {plain(str(problem))}\n")
    store.trust(places.cwd, settings.items)
    say(chosen, {**facts, "trust": "trusted"}, [f"{places.cwd} is trusted now, with:", *lines])
    return 0


def say(chosen: argparse.Namespace, data: Any, lines: list[str]) -> None:
    """Print the same content for programs or for people."""
    print(json.dumps(data, ensure_ascii=False) if chosen.json else plain("\n".join(lines)))
