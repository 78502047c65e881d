"""Which session a run writes to: a new one, one that goes on, or a fork of one."""

import os
from collections.abc import Mapping
from pathlib import Path

from handrail.app.state import session_store
from handrail.conversation.redact import Redactor
from handrail.errors import SessionError
from handrail.records import record
from handrail.sessions.log import Durability
from handrail.sessions.rebuild import Rebuilt
from handrail.sessions.store import Opened, conversation


@record
class SessionWish:
    """What the command line says about the session. `newest`: go on with the newest one of the folder."""

    keep: bool = True
    session_id: str = ""
    resume: str = ""
    newest: bool = False
    fork: bool = False
    upto: str = ""
    name: str = ""


NEW_SESSION = SessionWish()


def open_session(
    wish: SessionWish,
    cwd: Path,
    env: Mapping[str, str],
    *,
    redactor: Redactor | None = None,
    durability: Durability = "process",
) -> Opened | Rebuilt | None:
    """
    The session of a run; one that is not to be kept is only read, and None is a new one that is not kept.

    Raises:
        SessionError: there is none such, it is in use, or it cannot be written.
    """
    store = session_store(env, redactor, durability)
    folder = os.path.realpath(cwd)
    if not wish.resume and not wish.newest:
        if not wish.keep:
            return None
        return _named(store.create(folder, wish.session_id), wish.name)
    if wish.session_id and not wish.fork:
        raise SessionError("--session-id gives a new session its id. With --resume or --continue use --fork-session.")
    path = store.newest(folder) if wish.newest else store.find(wish.resume, folder)
    if not wish.keep:
        return conversation(path, wish.upto)
    if wish.fork:
        return _named(store.fork(path, folder, wish.session_id, upto=wish.upto), wish.name)
    return _named(store.resume(path, folder, upto=wish.upto), wish.name)


def _named(opened: Opened, name: str) -> Opened:
    if name:
        opened.scribe.note("title", title=name)
    return opened
