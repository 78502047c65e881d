"""
The files and addresses that the input of a foreign tool names, as far as that can be known from outside.

    {"path": "notes/a.txt"}             a file: the name of the argument says so, or the format in its schema
    {"what": "file:///etc/passwd"}      a file
    {"what": "~/.ssh/config"}           a file: it is spelled as a path
    {"what": ".env"}                    a file, if there is one of that name
    {"url": "https://example.com/a"}    an address

What a program does with its input is its own affair, so this is not all that a call touches. It only gives deny and
ask rules something to look at; nothing is allowed because of it.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from handrail.records import record
from handrail.tools.access import Access

MAX_TEXTS = 2_000
MAX_DEPTH = 100
MAX_PATH = 4_096
PATH_NAMES = frozenset(
    [
        *("path", "paths", "file", "files", "filename", "filenames", "filepath", "filepaths", "dir", "dirs"),
        *("directory", "directories", "folder", "folders", "cwd", "root", "source", "src", "destination", "dest"),
    ]
)
PATH_FORMATS = frozenset(["path", "file-path", "directory-path", "file", "filename"])
URL_NAMES = frozenset(["url", "urls", "uri", "uris", "href", "link", "links", "host", "hostname", "domain", "website"])
WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
FILE_URI = re.compile(r"file:((?://[^/]*)?)(.*)", re.IGNORECASE | re.DOTALL)
HOME = re.compile(r"\$(?:HOME|\{HOME\})(?=/|\Z)")
WEB = re.compile(r"(https?|wss?):[/\\]*([^/\\?#]*)", re.IGNORECASE)
NAMED_HOST = re.compile(
    r"(?:[A-Za-z][\w+.-]*:[/\\]{2,}|[/\\]*)(?:[^/\\?#\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/\\?#@:\[\]]+)(:\d+)?(?:[/\\?#:].*)?",
    re.DOTALL,
)
"""A host with or without a scheme, user, port and path, also as ssh writes it: me@host:path."""
SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
REMOVED = re.compile(r"[\t\r\n]|\A[\0- ]+")
"""Characters that parsers of URLs leave out."""


@record
class KnownPlaces:
    """What an input names; `is_whole` is False if it has more texts than are looked at."""

    files: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    is_whole: bool = True


@record
class ServerPlace:
    """Where a server is: its address if it is reached by one, and the folder that its program works in."""

    address: str = ""
    folder: str = ""


NOWHERE = ServerPlace()


def named_access(
    given: Mapping[str, Any], schema: Mapping[str, Any], place: ServerPlace, cwd: str, undeclared: Access
) -> Access:
    """What is known of a call that declares nothing: the server's own address, and what the input names."""
    found = known_places(given, schema, [place.folder or cwd, cwd])
    own = web_address(place.address)
    return undeclared._replace(
        may_touch=found.files,
        may_reach=tuple(dict.fromkeys((*([own] if own else ()), *found.addresses))),
        failed=not found.is_whole,
    )


def known_places(given: Mapping[str, Any], schema: Mapping[str, Any], folders: Iterable[str]) -> KnownPlaces:
    """The places that an input names; relative paths may start in any of the folders."""
    folders = tuple(dict.fromkeys(folders))
    files: dict[str, None] = {}
    addresses: dict[str, None] = {}
    for count, (name, text, format_) in enumerate(_texts(given, schema, "", 0)):
        if count >= MAX_TEXTS:
            return KnownPlaces(tuple(files), tuple(addresses), is_whole=False)
        if (address := web_address(text, is_named=_last_word(name) in URL_NAMES)) is not None:
            addresses[address] = None
        is_path = format_ in PATH_FORMATS or _last_word(name) in PATH_NAMES
        for line in text.splitlines() if is_path else (text,):
            files.update(dict.fromkeys(_paths(line.strip(), folders, is_path=is_path)))
    return KnownPlaces(tuple(files), tuple(addresses))


def web_address(text: str, *, is_named: bool = False) -> str | None:
    """The scheme, host and port that a text leads to; None if it is no address. `is_named`: the scheme may lack."""
    text = REMOVED.sub("", text).strip()
    if found := WEB.match(text):
        host = found[2].rpartition("@")[2]
        return f"{SCHEMES[found[1].lower()]}://{host}/" if host else None
    if is_named and (found := NAMED_HOST.fullmatch(text)):
        return f"https://{found[1]}{found[2] or ''}/"
    return None


def _paths(text: str, folders: tuple[str, ...], *, is_path: bool) -> Iterator[str]:
    if found := FILE_URI.fullmatch(text):
        authority, path = found[1], found[2]
        inner = {path, f"{authority.removeprefix('//')}{path}"}  # some programs only cut "file://" off
        spellings = {each for name in inner for each in (name, unquote(name), unquote(re.split("[?#]", name)[0]))}
        for spelling in sorted(spellings):
            yield from _plain_paths(spelling, folders, is_path=True)
    else:
        yield from _plain_paths(text, folders, is_path=is_path)


def _plain_paths(text: str, folders: tuple[str, ...], *, is_path: bool) -> Iterator[str]:
    text = HOME.sub("~", text, 1) if text.startswith("$") else text
    if not text or len(text) > MAX_PATH or "\0" in text:
        return
    if text.startswith(("/", "~")):
        yield text
        return
    is_path = is_path or text.startswith(("./", "../"))
    for folder in folders:
        joined = f"{folder}/{text}"
        # some programs drop "x/.." before they look, whether there is an x or not
        for spelling in dict.fromkeys((joined, os.path.normpath(joined))):
            if is_path or os.path.lexists(spelling):
                yield spelling


def _texts(value: object, schema: object, name: str, depth: int) -> Iterator[tuple[str, str, object]]:
    """Every text in a value, keys included, each with the name of its argument and the format in the schema."""
    known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    if depth > MAX_DEPTH:
        yield from ((name, "", None) for _ in range(MAX_TEXTS + 1))  # too deep to look at all of it
    elif isinstance(value, str):
        yield name, value, known.get("format")
    elif isinstance(value, Mapping):
        inner = known.get("properties")
        properties: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
        for key, each in value.items():
            if key not in properties:
                yield "", str(key), None
            yield from _texts(each, properties.get(key), str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each, known.get("items"), name, depth + 1)


def _last_word(name: str) -> str:
    words = WORD.findall(name)
    return words[-1].lower() if words else ""
