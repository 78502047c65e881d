"""
Policy from the server that the policy key `policyUrl` names, fetched when a session begins.

The last good answer is cached in the state folder, readable by its owner alone, and counts while the server gives none.
Without an answer and without a cached copy nothing runs.
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

from handrail.config.document import MAX_BYTES, SettingsDocument, document_of
from handrail.config.files import own_bytes, replace_file
from handrail.config.places import SettingsFile, policy_file
from handrail.config.problems import Problem
from handrail.errors import SettingsError, TransportError, UrlError
from handrail.files.private_folder import make_private_folder
from handrail.hooks.urls import url_problem
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest
from handrail.http.urls import is_loopback

TIMEOUT = 5.0
VERSION = 1
OK = 200


def policy_from(
    url: str, state: Path, env: Mapping[str, str], problems: list[Problem], timeout: float = TIMEOUT
) -> SettingsDocument:
    """The policy at an address, or the cached copy of it. Raises SettingsError if there is neither."""
    if problem := address_problem(url):
        raise SettingsError(
            f"policyUrl {url!r} cannot be used: {problem}. Nothing runs without it; ask your administrator."
        )
    file = policy_file(url)
    kept = state / "policy" / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"
    try:
        data = fetch(url, env, timeout)
        document = document_of(file, data)
        wrong = [str(problem) for problem in document.problems if not problem.hint]
        if wrong:
            raise OSError("its answer is not a policy: " + "; ".join(wrong))
    except OSError as error:
        return _last(file, kept, problems, f"{url} gave no policy: {error}")
    try:
        make_private_folder(kept.parent)
        copy = {"version": VERSION, "url": url, "at": time.time(), "policy": data.decode("utf-8")}
        replace_file(kept, json.dumps(copy).encode(), mode=0o600)
    except OSError as error:
        problems.append(Problem("policy", url, 0, f"no copy of this policy can be kept: {error.strerror or error}."))
    return document


def _last(file: SettingsFile, kept: Path, problems: list[Problem], why: str) -> SettingsDocument:
    try:
        copy = json.loads(own_bytes(kept, 2 * MAX_BYTES))
        data, at = str(copy["policy"]).encode(), float(copy["at"])
        if copy["version"] > VERSION or copy["url"] != file.shown:
            raise ValueError("of another version or address")
    except FileNotFoundError:
        raise SettingsError(
            f"{why}. There is no earlier copy. Nothing runs without it; ask your administrator."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{why}. The copy in {kept} cannot be used ({error}). Nothing runs without it; ask your administrator."
        ) from error
    problems.append(Problem("policy", file.shown, 0, f"{why}. The copy from {_ago(time.time() - at)} ago is used."))
    return document_of(file, data)


def _ago(seconds: float) -> str:
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}" + ("s" if count > 1 else "")
    return "less than a minute"


def fetch(url: str, env: Mapping[str, str], timeout: float) -> bytes:
    """The body of the answer to one GET, within the timeout. Raises OSError if there is none that can be used."""
    answers: list[bytes | Exception] = []

    def ask() -> None:
        try:
            with asyncio.Runner(loop_factory=_BlockingLookups) as runner:
                answers.append(runner.run(_get(url, env, timeout)))
        except (OSError, TransportError, UrlError) as error:
            answers.append(error)

    thread = threading.Thread(target=ask, daemon=True)  # a slow name server cannot hold us up
    thread.start()
    thread.join(timeout)
    match answers:
        case [bytes() as data]:
            return data
        case [Exception() as error] if str(error):
            raise OSError(str(error)) from error
        case _:
            raise TimeoutError(f"it did not answer within {timeout:g} seconds")


class _BlockingLookups(asyncio.SelectorEventLoop):
    """Looks names up in its own thread: asyncio's helper threads would delay the end of the program."""

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


async def _get(url: str, env: Mapping[str, str], seconds: float) -> bytes:
    request = HttpRequest(url, (("accept", "application/json"), ("connection", "close")), b"", "GET")
    async with HttpClient(env, proxy_loopback=False) as client:
        answer = await client.fetch(request, max_bytes=MAX_BYTES, timeout=seconds)
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
    return "it must begin with https, because others could change it on its way; http is for this machine only"
