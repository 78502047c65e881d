"""What is asked before a conversation begins: whether the folder is trusted, and what to do without a key."""

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Protocol

from handrail.cli import config as config_command
from handrail.cli.session_choice import choose_session
from handrail.cli.trust import all_changes, describe, heading, row_of, state_of
from handrail.config.flags import SettingsFlags
from handrail.config.load import load_settings
from handrail.config.places import places_for
from handrail.config.trust import Trust, TrustStore, records_for
from handrail.errors import DemoWantedError, HandrailError, ProviderSetupError
from handrail.session.session import Session
from handrail.session.state_folder import state_folder
from handrail.tui.interactive.dialog import DialogChoice, DialogQuestion, DialogReply
from handrail.tui.text import clip, wrap

LOCAL = "http://127.0.0.1:11434/v1"
Open = Callable[[dict[str, str]], Session]
KEPT, ONCE, SERVER, DEMO, LEAVE = "kept", "once", "server", "demo", "leave"
GREETING = """handrail works in {folder}. What should it do?
You are asked before anything that the rules and the mode do not allow.
@ names a file, / a command. /help shows more, {interrupt} interrupts, Ctrl+D exits."""


class Asks(Protocol):
    """What asks the person."""

    async def ask(self, question: DialogQuestion) -> DialogReply | None: ...


async def ask_trust(chosen: argparse.Namespace, asker: Asks) -> None:
    """Ask whether what a new or changed folder wants to run and allow shall count; HandrailError = leave."""
    if chosen.trust or chosen.bare or chosen.safe_mode:
        return
    state = state_folder(os.environ)
    places = places_for(".", os.environ, state)
    settings = load_settings(places, os.environ, SettingsFlags())
    now, store = records_for(places.cwd, settings.items), TrustStore(state)
    pairs = [(store.record_of(each.folder), each) for each in now if each.items or each.hooks or len(now) == 1]
    standing = state_of(pairs)
    if not settings.items or standing is Trust.TRUSTED:
        return
    changes = tuple(all_changes(pairs, places.cwd))
    rows = [row_of(item, settings, places.cwd, changes) for item in settings.items]
    lines = [line for item, row in zip(settings.items, rows, strict=True) for line in describe(item, row)]
    title = heading(settings, places.cwd, pairs[0][0], changes, standing)

    def body(width: int, _rows: int) -> Sequence[str]:
        return [clip(row, width) for line in (title, *lines) for row in wrap(line, width, "    ")]

    choices = (
        DialogChoice("trust", "Trust the folder with this", word="yes"),
        DialogChoice("without", "Go on without it: nothing that would allow or run something takes effect", word="no"),
        DialogChoice("leave", "Exit"),
    )
    reply = await asker.ask(DialogQuestion("Trust this folder?", choices, body, selected=1))
    if reply is None or reply.value == "leave":
        raise HandrailError("nothing was trusted, and nothing was started.")
    if reply.value == "trust":
        own, *above = now
        store.save(own)
        for record in above:
            store.extend(record)


async def ask_session(chosen: argparse.Namespace, asker: Asks) -> None:
    """Ask which session to go on with, if --resume names none; HandrailError = leave."""
    if chosen.resume is not False:
        return
    found = await choose_session(asker, places_for(".", os.environ, state_folder(os.environ)).cwd)
    if not found:
        why = "this folder has no session yet" if found is None else "no session was chosen"
        raise HandrailError(f"{why}, and nothing was started. Leave --resume out to begin a new one.")
    chosen.resume = found


def greet(chosen: argparse.Namespace, session: Session, say: Callable[[str], None], *, interrupt: str = "Esc") -> None:
    """Say how to begin, and the key that interrupts, if nothing was said yet."""
    if not session.conversation.messages and not any(chosen.words):
        say(GREETING.format(folder=session.settings.places.cwd, interrupt=interrupt))


async def open_with_key(chosen: argparse.Namespace, asker: Asks, open_session: Open) -> Session:
    """The session; without a key for its model, the person chooses what to do about it."""
    env = dict(os.environ)
    while True:
        try:
            return open_session(env)
        except ProviderSetupError as error:
            if "There is no key" not in str(error):
                raise
            problem = str(error)
        await ask_key(chosen, asker, env, problem)


async def ask_key(chosen: argparse.Namespace, asker: Asks, env: dict[str, str], problem: str, slip: str = "") -> None:
    """Ask for a key or a server, and put it where the person says; HandrailError = leave."""
    choices = (
        DialogChoice(KEPT, "Enter a key, and save it in ~/.handrail/settings.json", edit=""),
        DialogChoice(ONCE, "Enter a key for this session only", edit=""),
        DialogChoice(SERVER, f"Use a server that needs no key (its address, or just Enter for {LOCAL})", edit=""),
        DialogChoice(DEMO, "Watch the demo first: an agent repairs a small project, without a key or a network"),
        DialogChoice(LEAVE, "Exit"),
    )

    def body(width: int, _rows: int) -> Sequence[str]:
        return [clip(f"  {row}", width) for row in wrap(f"{slip} {problem}".strip(), max(width - 2, 10))]

    reply = await asker.ask(DialogQuestion("handrail needs a model", choices, body))
    if reply is not None and reply.value == DEMO:
        raise DemoWantedError(problem)
    text = reply.text.strip() if reply else ""
    if reply is not None and reply.value == SERVER:
        chosen.base_url, chosen.provider = text or LOCAL, chosen.provider or "openai"
        return
    if reply is None or reply.value == LEAVE or not text:
        raise HandrailError(problem)
    if not text.isascii() or len(text.split()) > 1:
        slip = "That is not a key: it has spaces or characters beyond ASCII. Nothing was saved."
        await ask_key(chosen, asker, env, problem, slip)
        return
    name = "ANTHROPIC_API_KEY" if text.startswith("sk-ant") or "OPENAI" not in problem else "OPENAI_API_KEY"
    env[name] = os.environ[name] = text
    if reply.value == KEPT:
        keep_key(name, text)


def keep_key(name: str, key: str) -> None:
    """Write a key into the user's settings."""
    wanted = argparse.Namespace(way="set", key=f"env.{name}", value=key, scope="user", json=False)
    with redirect_stdout(StringIO()):
        config_command.run(wanted)
