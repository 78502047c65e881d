"""
Policy from a server: the address that the policy key `policyUrl` names, asked when a session begins.

The last good answer is kept in the state folder, for its owner alone, and counts while the server gives none. Without
an answer and without such a copy nothing runs.
"""

import hashlib
import http.client
import ipaddress
import json
import ssl
import threading
import time
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from handrail.config.document import MAX_BYTES, Document, document_of
from handrail.config.files import own_bytes, replace_file
from handrail.config.places import Spot
from handrail.config.problems import Problem
from handrail.errors import SettingsError
from handrail.files.owned import owned_folder
from handrail.hooks.urls import url_problem

PATIENCE = 5.0
VERSION = 1


def policy_from(url: str, state: Path, news: list[Problem], patience: float = PATIENCE) -> Document:
    """
    The policy at an address, or the last one that was had from there.

    Raises:
        SettingsError: there is neither.
    """
    if problem := address_problem(url):
        raise SettingsError(f"policyUrl {url!r} cannot be used: {problem}. Nothing runs without it.")
    spot = Spot("policy", Path(url), url, "/", "")
    kept = state / "policy" / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"
    try:
        data = fetched(url, patience)
        document = document_of(spot, data)
        wrong = [str(problem) for problem in document.problems if not problem.hint]
        if wrong:
            raise OSError("what it answered is no policy: " + "; ".join(wrong))
    except OSError as error:
        return _last(spot, kept, news, f"{url} gave no policy: {error}")
    try:
        owned_folder(kept.parent)
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


def fetched(url: str, patience: float) -> bytes:
    """
    What a server answers to one GET. No redirect is followed, and it takes no longer than this.

    Raises:
        OSError: there was no answer, or one that cannot be used.
    """
    parts = urlsplit(url)
    came: list[bytes | Exception] = []

    def ask() -> None:
        try:
            came.append(_asked(parts, patience))
        except (OSError, http.client.HTTPException, ValueError) as error:
            came.append(error)

    asking = threading.Thread(target=ask, daemon=True)  # a name server or a slow drip cannot hold us up
    asking.start()
    asking.join(patience)
    match came:
        case [bytes() as data]:
            return data
        case [Exception() as error]:
            raise error if isinstance(error, OSError) else OSError(f"it does not speak HTTP ({error!r})") from error
        case _:
            raise TimeoutError(f"it did not answer within {patience:g} seconds")


def address_problem(url: str) -> str:
    """Why policy may not come from an address; empty if it may."""
    if problem := url_problem(url):
        return problem
    parts = urlsplit(url)
    if parts.scheme == "https" or _is_this_machine(parts.hostname or ""):
        return ""
    return "only https keeps others from changing it on its way; http is for this machine alone"


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _asked(parts: SplitResult, patience: float) -> bytes:
    assert parts.hostname
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=patience, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=patience)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", target, headers={"Accept": "application/json", "Connection": "close"})
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise OSError(f"it answered with status {answer.status}")
        data = answer.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise OSError(f"it answered with more than {MAX_BYTES:,} bytes")
        if answer.length:
            raise OSError("its answer ended too early")
        return data
    finally:
        connection.close()
