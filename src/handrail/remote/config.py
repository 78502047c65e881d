"""
What a server may start, and for whom: one JSON file of its operator.

    {"folders":  {"shop": {"path": "/srv/shop", "policies": ["review"]}},
     "policies": {"review": {"permissionMode": "dontAsk", "allow": ["Read"]}},
     "clients":  {"ann": {"tokenSha256": "...", "folders": ["shop"], "answers": true}}}
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from handrail.config.check import check_values
from handrail.config.flags import SettingsFlags
from handrail.config.json_paths import format_path
from handrail.config.places import SOURCES
from handrail.config.unused_keys import unused_keys
from handrail.errors import HandrailError, InputError
from handrail.loop.limits import Limits
from handrail.records import record
from handrail.session.arguments import check_rules
from handrail.tools.schema import parse_model
from handrail.tools.wording import did_you_mean

NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
FORM = (
    '{"folders": {"shop": {"path": "/srv/shop", "policies": ["review"]}}, "policies": {"review": {}}, '
    '"clients": {"ann": {"tokenSha256": "...", "folders": ["shop"]}}}'
)
DIGEST = re.compile(r"[0-9a-f]{64}")
MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk")
MAX_TURNS = 2_000
ALL = "*"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class FolderEntry(_Section):
    """A folder as the file names it."""

    path: str
    policies: list[str] = Field(min_length=1)
    schedules: str = ""


class PolicyEntry(_Section):
    """A policy as the file describes it."""

    permissionMode: Literal["default", "acceptEdits", "plan", "auto", "dontAsk"] = "default"  # noqa: N815
    allow: list[str] = []
    ask: list[str] = []
    deny: list[str] = []
    settings: dict[str, Any] = {}
    settingSources: list[Literal["user", "project", "local"]] = list(SOURCES)  # type: ignore[arg-type]  # noqa: N815
    model: str = ""
    maxTurns: Annotated[int, Field(gt=0)] = MAX_TURNS  # noqa: N815
    maxDollars: Annotated[float, Field(gt=0)] | None = None  # noqa: N815
    maxSeconds: Annotated[float, Field(gt=0)] | None = None  # noqa: N815
    questions: bool = True
    questionSeconds: Annotated[float, Field(gt=0)] = 3600.0  # noqa: N815
    worktree: bool = False


class ClientEntry(_Section):
    """A client as the file names it. Only the digest of its token is there: commands of a run could read the file."""

    tokenSha256: str  # noqa: N815
    folders: list[str]
    answers: bool = False
    maxRuns: Annotated[int, Field(gt=0)] | None = None  # noqa: N815


class ListenEntry(_Section):
    """Where to listen, and the names under which a reverse proxy passes requests on."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    tlsCert: str = ""  # noqa: N815
    tlsKey: str = ""  # noqa: N815
    names: list[str] = []


class ServeFile(_Section):
    """The whole file."""

    folders: dict[str, FolderEntry] = Field(min_length=1)
    policies: dict[str, PolicyEntry] = Field(min_length=1)
    clients: dict[str, ClientEntry] = Field(min_length=1)
    listen: ListenEntry = ListenEntry()
    maxRuns: Annotated[int, Field(gt=0)] = 200  # noqa: N815
    maxWaiting: Annotated[int, Field(ge=0)] = 1000  # noqa: N815
    keepDays: Annotated[float, Field(gt=0)] = 30.0  # noqa: N815
    onRestart: Literal["resume", "leave"] = "resume"  # noqa: N815


@record
class RunPolicy:
    """What the runs under a policy may do and use."""

    flags: SettingsFlags = SettingsFlags(mode="default", rules_from="serve")
    model: str = ""
    limits: Limits = Limits(turns=MAX_TURNS)
    questions: bool = True
    """Whether clients are asked what the rules leave open; else it is refused."""
    question_seconds: float = 3600.0
    worktree: bool = False
    """Whether each run works in a git worktree of its own."""


@record
class ServedFolder:
    """A folder in which runs may start, by its real path, and the names of their policies; the first is the usual."""

    name: str
    path: str
    policies: tuple[str, ...]
    schedules: str = ""
    """The policy of durable schedules; without one, they are not started here."""


@record
class ServeClient:
    """Who may ask: for which folders, and whether it may answer the questions of runs there."""

    name: str
    folders: frozenset[str]
    answers: bool = False
    max_runs: int | None = None
    """How many of its runs work at once; None = as many as there is room for."""


@record
class ServeConfig:
    """Everything that a server may do."""

    folders: Mapping[str, ServedFolder]
    policies: Mapping[str, RunPolicy]
    clients: Mapping[str, ServeClient]
    tokens: Mapping[str, str] = field(default_factory=dict)
    """The names of clients by the digests of their tokens."""
    listen: ListenEntry = ListenEntry()
    max_runs: int = 200
    max_waiting: int = 1000
    keep_days: float = 30.0
    resumes: bool = True
    """Whether runs that ended with the server go on when it starts again."""

    def share(self, most: int) -> int:
        """How many of so many places one client may take, so that each has as many."""
        return max(1, most // max(1, len(self.clients)))


def read_config(file: Path) -> ServeConfig:
    """The configuration of a file; HandrailError if it is not understood as a whole, or others could change it."""
    try:
        found = file.stat()
        value = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise HandrailError(f"{file} cannot be read: {error.strerror}. Give a JSON file: {FORM}.") from error
    except (ValueError, RecursionError) as error:
        raise HandrailError(f"{file} is not JSON: {error}. Write {FORM}.") from error
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
        raise HandrailError(f"{file} can be changed by others, who could let themselves in. Do: chmod go-w {file}")
    try:
        parsed = parse_model(ServeFile, value if isinstance(value, dict) else {})
    except InputError as error:
        raise HandrailError(f"{file}: {' '.join(error.problems)}") from error
    return build_config(parsed, str(file), file.resolve().parent)


def build_config(file: ServeFile, source: str, base: Path) -> ServeConfig:
    """The configuration that a file describes; relative paths begin at `base`."""
    for kind, names in (("folders", file.folders), ("policies", file.policies), ("clients", file.clients)):
        if wrong := [name for name in names if not NAME.fullmatch(name)]:
            raise HandrailError(f"{source}: {kind}.{wrong[0]} is not a name. Use up to 40 of A-Z, a-z, 0-9, _ and -.")
    policies = {name: _policy(entry, f"{source}: policies.{name}") for name, entry in file.policies.items()}
    folders = {
        name: _folder(name, entry, f"{source}: folders.{name}", policies, base) for name, entry in file.folders.items()
    }
    tokens: dict[str, str] = {}
    for name, client in file.clients.items():
        if not DIGEST.fullmatch(client.tokenSha256):  # it may be the token itself, so it is not shown
            raise HandrailError(
                f"{source}: clients.{name}.tokenSha256 must be the digest of a token, 64 hexadecimal digits. "
                "handrail serve --new-token prints a token and its digest."
            )
        if other := tokens.get(client.tokenSha256):
            raise HandrailError(f"{source}: clients.{name} has the token of {other!r}. Give each one of its own.")
        tokens[client.tokenSha256] = name
        _check_names(f"{source}: clients.{name}.folders", client.folders, (*folders, ALL))
    clients = {
        name: ServeClient(
            name, frozenset(folders if ALL in entry.folders else entry.folders), entry.answers, entry.maxRuns
        )
        for name, entry in file.clients.items()
    }
    return ServeConfig(
        folders,
        policies,
        clients,
        tokens,
        file.listen,
        file.maxRuns,
        file.maxWaiting,
        file.keepDays,
        file.onRestart == "resume",
    )


def _folder(name: str, entry: FolderEntry, where: str, policies: Mapping[str, RunPolicy], base: Path) -> ServedFolder:
    path = os.path.realpath(base / Path(entry.path).expanduser())
    if not os.path.isdir(path):  # noqa: PTH112  # a text
        raise HandrailError(f"{where}.path is {entry.path!r}, which is not a folder. Make it, or leave it out.")
    if path == "/":
        raise HandrailError(f"{where}.path is the root of the whole machine. Name the folder of a project.")
    _check_names(f"{where}.policies", entry.policies, policies)
    if entry.schedules:
        _check_names(f"{where}.schedules", [entry.schedules], entry.policies)
    return ServedFolder(name, path, tuple(entry.policies), entry.schedules)


def _check_names(where: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            listed = ", ".join(known)
            raise HandrailError(f"{where} names {name!r}.{did_you_mean(name, known)} There are {listed}.")


def _policy(entry: PolicyEntry, where: str) -> RunPolicy:
    rules: dict[str, tuple[str, ...]] = {}
    for kind, texts in (("allow", entry.allow), ("ask", entry.ask), ("deny", entry.deny)):
        try:
            rules[kind] = check_rules(kind, texts)
        except HandrailError as error:
            raise HandrailError(f"{where}: {error}") from error
    _check_settings(entry.settings, f"{where}.settings")
    flags = SettingsFlags(
        settings=json.dumps(entry.settings) if entry.settings else "",
        sources=tuple(entry.settingSources),
        mode=entry.permissionMode,
        allowed=rules["allow"],
        ask=rules["ask"],
        disallowed=rules["deny"],
        rules_from="serve",
    )
    limits = Limits(turns=entry.maxTurns, dollars=entry.maxDollars, seconds=entry.maxSeconds)
    return RunPolicy(flags, entry.model, limits, entry.questions, entry.questionSeconds, entry.worktree)


def _check_settings(values: dict[str, Any], where: str) -> None:
    """Refuse settings without an effect: a misspelt one may be a limit, such as the sandbox."""
    for problem in check_values(values)[1]:
        raise HandrailError(f"{where}: {format_path(problem.path)} {problem.message}")
    for path in unused_keys(values):
        raise HandrailError(f"{where}: {format_path(path)} has no effect here. Leave it out.")
