"""`handrail trust`: show what a folder brings, trust it after a yes, or stop trusting it."""

import argparse
import os
import sys
import termios
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from handrail.cli.permission_flags import warn
from handrail.cli.terminal import ReportScreen
from handrail.config.flags import SettingsFlags
from handrail.config.json_paths import JsonPath
from handrail.config.load import load_settings
from handrail.config.needs_trust import TrustItem, files_named, fingerprint, starts_programs
from handrail.config.places import places_for
from handrail.config.snapshot import Settings
from handrail.config.trust import Trust, TrustChange, TrustRecord, TrustStore, changes_since, covers, records_for
from handrail.conversation.plain import plain_json
from handrail.errors import SettingsError
from handrail.session.state_folder import state_folder

DONE, NOT_DONE = 0, 1


def run(chosen: argparse.Namespace) -> int:
    """0 = done, 1 = the answer was no, or `--revoke` of a folder that was not trusted."""
    store = TrustStore(state_folder(os.environ))
    if chosen.list:
        return list_trusted(chosen, store)
    folder = Path(chosen.folder)
    if not folder.is_dir():
        raise SettingsError(f"{chosen.folder!r} is not a folder. Give the folder of a project.")
    places = places_for(folder, os.environ, state_folder(os.environ))
    if chosen.revoke:
        known_before = store.revoke(places.cwd)
        text = "is no longer trusted." if known_before else "was not trusted."
        say(chosen, {"folder": places.cwd, "revoked": known_before}, [f"{places.cwd} {text}"])
        return DONE if known_before else NOT_DONE
    settings = load_settings(places, os.environ, SettingsFlags())
    return show_and_trust(chosen, store, settings, places.cwd)


def list_trusted(chosen: argparse.Namespace, store: TrustStore) -> int:
    known = store.all()
    if not known and not chosen.json:
        warn("no folder is trusted")
        return DONE
    rows = [{"folder": record.folder, "at": record.at, "items": list(record.names)} for record in known]
    say(chosen, rows, [f"{record.folder}  ({record.at})" for record in known])
    return DONE


def show_and_trust(chosen: argparse.Namespace, store: TrustStore, settings: Settings, folder: str) -> int:
    """Show what the folder brings; trust exactly that after a yes. What changes meanwhile is not part of it."""
    now = records_for(folder, settings.items)
    pairs = [(store.record_of(each.folder), each) for each in now if each.items or each.hooks or len(now) == 1]
    known, changes = pairs[0][0], tuple(all_changes(pairs, folder))
    state = state_of(pairs)
    rows = [row_of(item, settings, folder, changes) for item in settings.items]
    gone = [each.before for each in changes if each.kind == "gone"]
    facts = {"folder": folder, "items": rows, "gone": gone}
    first = heading(settings, folder, known, changes, state)
    lines = [line for item, row in zip(settings.items, rows, strict=True) for line in describe(item, row)]
    lines += [f"  gone: {each}" for each in gone]
    if chosen.show:
        say(chosen, {**facts, "trust": state.value}, [first, *lines])
        return DONE
    for problem in settings.problems:
        warn(str(problem))
    if (settings.items or known) and state is not Trust.TRUSTED and not chosen.yes:
        if not can_ask(chosen):
            raise SettingsError(
                "trust needs a yes, and there is no terminal to ask on. Look at what the folder brings with: "
                "handrail trust --show. Then say so with: handrail trust --yes."
            )
        say(chosen, {}, [first, *lines, ""])
        if not ask("Trust the folder with this? [y/N] "):
            warn("nothing was changed")
            return NOT_DONE
        lines = []
    if state is not Trust.TRUSTED or changes:
        own, *above = now
        store.save(own)
        for record in above:
            store.extend(record)
        first = f"{folder} is trusted now" + (", with:" if lines else ".")
    say(chosen, {**facts, "trust": "trusted"}, [first, *lines])
    return DONE


def state_of(pairs: Sequence[tuple[TrustRecord | None, TrustRecord]]) -> Trust:
    """How folders stand, by what was trusted in each and what is there now: as the worst of them."""
    if any(known is None for known, _ in pairs):
        return Trust.UNTRUSTED
    return Trust.TRUSTED if all(known and covers(known, now) for known, now in pairs) else Trust.CHANGED


def all_changes(pairs: Sequence[tuple[TrustRecord | None, TrustRecord]], folder: str) -> Iterator[TrustChange]:
    """What changed since each folder was trusted. What else was trusted in a folder above is not seen from here."""
    for known, now in pairs:
        if known is not None:
            own = now.folder == folder
            yield from (change for change in changes_since(known, now) if own or change.kind != "gone")


def row_of(item: TrustItem, settings: Settings, folder: str, changes: tuple[TrustChange, ...]) -> dict[str, Any]:
    """One setting as data, with what changed about it."""
    printed = fingerprint(item, item.folder or folder)
    change = next((each for each in changes if each.fingerprint == printed), None)
    files = sorted(set(files_named(item.value, folder))) if starts_programs(item) else []
    return {
        "name": item.name,
        "value": item.safe_value,
        "source": item.source,
        "at": place_of(item, settings),
        "runs": [os.path.relpath(name, folder) for name in files],
        "change": change.kind if change else None,
        "before": change.before if change else "",
    }


def describe(item: TrustItem, row: dict[str, Any]) -> Iterator[str]:
    """One setting in lines: where it is, its whole value, the project's files that it runs, and what it was."""
    first, *rest = item.lines
    mark = f"{row['change']}: " if row["change"] else ""
    yield f"  {mark}{first}" + (f"  ({row['at']})" if row["at"] else "")
    yield from (f"    {line}" for line in rest)
    yield from (f"      runs: {name}" for name in row["runs"])
    if row["change"] == "changed":
        unkept = "a value, a header or a file that it runs was different; these are not kept"
        yield f"      before: {unkept if row['before'] == item.shown else row['before']}"


def heading(
    settings: Settings, folder: str, known: TrustRecord | None, changes: tuple[TrustChange, ...], state: Trust
) -> str:
    """How the folder stands, and what changed since it was trusted."""
    brings = "It brings:" if settings.items else "It brings nothing that needs trust."
    if known is None:
        return f"{folder} is untrusted. {brings}"
    kinds = [each.kind for each in changes]
    count = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)) or "nothing has changed"
    if state is Trust.TRUSTED:
        return f"{folder} is trusted since {known.at}: {count}. {brings}"
    return f"{folder} has changed since it was trusted ({known.at}), so it is untrusted: {count}. {brings}"


def place_of(item: TrustItem, settings: Settings) -> str:
    """The file and line that an item is written in; empty if that is not known."""
    if item.path[0] == "mcpServers":
        return next((each.shown for each in settings.written_servers if each.entry is item.value), "")
    for layer in settings.layers:
        document = layer.document
        if document.file.source == item.source and _value_at(document.values, item.path) == item.value:
            line = document.line(item.path)
            return f"{document.file.shown}{f':{line}' if line else ''}"
    return ""


def _value_at(value: Any, path: JsonPath) -> Any:
    try:
        for step in path:
            value = value[step]
    except (KeyError, IndexError, TypeError):
        return None
    return value


def can_ask(chosen: argparse.Namespace) -> bool:
    return not chosen.json and sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> bool:
    """A yes or no from the terminal; the end of the input is a no."""
    sys.stdout.flush()
    termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before there was a question is no answer to it
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def say(chosen: argparse.Namespace, data: Any, lines: list[str]) -> None:
    """Print the same content for programs or for people."""
    if chosen.json:
        print(plain_json(data))
        return
    screen = ReportScreen(sys.stdout)
    first, *rest = lines
    for part in screen.wrap(first, 2):
        print(screen.heading(part))
    for line in rest:
        for part in screen.wrap(line, len(line) - len(line.lstrip()) + 2):
            print(screen.paint_word(part))
