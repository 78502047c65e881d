"""
Policy from a server: the address that the policy key `policyUrl` names, asked when a session begins.

The last good answer is kept in the state folder, for its owner alone, and counts while the server gives none. Without
an answer and without such a copy nothing runs.
"""

import asyncio
import hashlib
import json
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from handrail.config.document import MAX_BYTES, Document, document_of
from handrail.config.files import own_bytes, replace_file
from handrail.config.places import Spot
from handrail.config.problems import Problem
from handrail.errors import SettingsError, TransportError, UrlError
from handrail.files.private_folder import make_private_folder
from handrail.hooks.urls import url_problem
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest
from handrail.http.urls import is_loopback

PATIENCE = 5.0
VERSION = 1
OK = 200


def policy_from(
    url: str, state: Path, env: Mapping[str, str], news: list[Problem], patience: float = PATIENCE
) -> Document:
    """
    The policy at an address, or the last one that came from there. `env` holds the proxy and CA variables.

    Raises:
        SettingsError: there is neither.
    """
    if problem := address_problem(url):
        raise SettingsError(f"policyUrl {url!r} cannot be used: {problem}. Nothing runs without it.")
    spot = Spot("policy", Path(url), url, "/", "")
    kept = state / "policy" / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"
    try:
        data = fetch(url, env, patience)
        document = document_of(spot, data)
        wrong = [str(problem) for problem in document.problems if not problem.hint]
        if wrong:
            raise OSError("what it answered is no policy: " + "; ".join(wrong))
    except OSError as error:
        return _last(spot, kept, news, f"{url} gave no policy: {error}")
    try:
        make_private_folder(kept.parent)
        copy = {"version": VERSION, "url": url, "at": time.time(), "policy": data.decode("utf-8")}
        replace_file(kept, json.dumps(copy).encode(), mode=0o600)
    except OSError as error:
        news.append(Problem("policy", url, 0, f"no copy of this policy can be kept: {error.strerror or error}."))
    return document


def _last(spot: Spot, kept: Path, news: list[Problem], why: str) -> Document:
    try:
        copy = json.loads(own_bytes(kept, 2 * MAX_BYTES))
        data, at = str(copy["policy"]).encode(), float(copy["at"])
        if copy["version"] > VERSION or copy["url"] != spot.shown:
            raise ValueError("of another version or address")
    except FileNotFoundError:
        raise SettingsError(f"{why}. There is no copy of an earlier one. Nothing runs without it.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{why}. The copy in {kept} cannot be used ({error}). Nothing runs without it.") from error
    news.append(Problem("policy", spot.shown, 0, f"{why}. The copy of {_ago(time.time() - at)} ago counts."))
    return document_of(spot, data)


def _ago(seconds: float) -> str:
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}" + ("s" if count > 1 else "")
    return "less than a minute"


def fetch(url: str, env: Mapping[str, str], patience: float) -> bytes:
    """
    What a server answers to one GET. No redirect is followed, and it takes no longer than this.

    Raises:
        OSError: there was no answer, or one that cannot be used.
    """
    answers: list[bytes | Exception] = []

    def ask() -> None:
        try:
            with asyncio.Runner(loop_factory=_BlockingLookups) as runner:
                answers.append(runner.run(_get(url, env, patience)))
        except (OSError, TransportError, UrlError) as error:
            answers.append(error)

    asking = threading.Thread(target=ask, daemon=True)  # a name server cannot hold us up
    asking.start()
    asking.join(patience)
    match answers:
        case [bytes() as data]:
            return data
        case [Exception() as error] if str(error):
            raise OSError(str(error)) from error
        case _:
            raise TimeoutError(f"it did not answer within {patience:g} seconds")


class _BlockingLookups(asyncio.SelectorEventLoop):
    """Looks names up in its own thread: asyncio's helper threads would hold up the end of the program."""

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002  # asyncio's own name
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        return socket.getaddrinfo(host, port, family, type, proto, flags)


async def _get(url: str, env: Mapping[str, str], patience: float) -> bytes:
    request = HttpRequest(url, (("accept", "application/json"), ("connection", "close")), b"", "GET")
    async with HttpClient(env, proxy_loopback=False) as client:
        answer = await client.fetch(request, max_bytes=MAX_BYTES, timeout=patience)
    if answer.status != OK:
        raise OSError(f"it answered with status {answer.status}")
    if answer.cut:
        raise OSError(f"it answered with more than {MAX_BYTES:,} bytes")
    return answer.body


def address_problem(url: str) -> str:
    """Why policy may not come from an address; empty if it may."""
    if problem := url_problem(url):
        return problem
    parts = urlsplit(url)
    if parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return ""
    return "only https keeps others from changing it on its way; http is for this machine alone"
