"""The language servers that are found by themselves, and those that settings and plugins name."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from handrail.errors import LspError
from handrail.files.search_path import find_program
from handrail.records import record

START_SECONDS, ASK_SECONDS = 45.0, 60.0
MAX_RESTARTS = 3
PYTHON = {".py": "python", ".pyi": "python"}
SCRIPTS = {
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
}
C = {".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp"}
NO_CODE_OF_THE_PROJECT = {
    "cargo": {"buildScripts": {"enable": False}},
    "procMacro": {"enable": False},
    "checkOnSave": False,
}
"""What keeps rust-analyzer from running build scripts and macros, which the model may have written."""


@record
class LanguageServerSpec:
    """A language server: how it is started, and for which files. Settings and plugins name it by such entries."""

    name: str
    command: tuple[str, ...]
    languages: Mapping[str, str]
    """By the ending of file names, with its dot: the language in the words of the protocol."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of the session."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """`initializationOptions`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it is told when it asks for its configuration."""
    start_seconds: float = START_SECONDS
    ask_seconds: float = ASK_SECONDS
    """For one question, with the start of the server."""
    max_restarts: int = MAX_RESTARTS
    only_checks: bool = False
    """It has diagnostics, but knows nothing of definitions and references."""
    group: str = ""
    """Of those that are found by themselves, the first of a group is used."""
    install: str = ""

    @property
    def program(self) -> str:
        """What is started."""
        return self.command[0]


KNOWN = (
    LanguageServerSpec(
        "basedpyright",
        ("basedpyright-langserver", "--stdio"),
        PYTHON,
        group="python",
        install="pip install basedpyright",
    ),
    LanguageServerSpec(
        "pyright", ("pyright-langserver", "--stdio"), PYTHON, group="python", install="npm install -g pyright"
    ),
    LanguageServerSpec("ty", ("ty", "server"), PYTHON, group="python", install="pip install ty"),
    LanguageServerSpec("ruff", ("ruff", "server"), PYTHON, only_checks=True, install="pip install ruff"),
    LanguageServerSpec(
        "typescript",
        ("typescript-language-server", "--stdio"),
        SCRIPTS,
        install="npm install -g typescript typescript-language-server",
    ),
    LanguageServerSpec("gopls", ("gopls",), {".go": "go"}, install="go install golang.org/x/tools/gopls@latest"),
    LanguageServerSpec(
        "rust-analyzer",
        ("rust-analyzer",),
        {".rs": "rust"},
        options=NO_CODE_OF_THE_PROJECT,
        install="rustup component add rust-analyzer",
    ),
    # its background index would be written into the project
    LanguageServerSpec("clangd", ("clangd", "--background-index=false"), C, install="install the package clangd"),
)


def installed_servers(path: str, off: Collection[str] = ()) -> Iterator[LanguageServerSpec]:
    """The known servers that this search path has, one of each group, with the whole paths of their programs."""
    groups: set[str] = set()
    for each in KNOWN:
        if each.name in off or each.group in groups:
            continue
        program = find_program(each.program, path)
        if program and (found := _with_own_compiler(replace(each, command=(program, *each.command[1:])))):
            groups.update(filter(None, [each.group]))
            yield found


def is_any_installed(path: str) -> bool:
    """Whether this search path has one of the known servers."""
    return next(installed_servers(path), None) is not None


def _with_own_compiler(spec: LanguageServerSpec) -> LanguageServerSpec | None:
    """
    The server with the compiler that is installed beside it; None if there is none.

    Left to itself, the server of TypeScript runs the compiler in the project's node_modules, which the model may have
    written.
    """
    if spec.name != "typescript":
        return spec
    packages, found, _ = os.path.realpath(spec.program).rpartition("/typescript-language-server/")
    compiler = f"{packages}/typescript/lib/tsserver.js"
    if not found or not os.path.isfile(compiler):  # noqa: PTH113  # asked before each request
        return None
    return replace(spec, options={"tsserver": {"path": compiler}})


# Entries of settings and plugins

SHAPES = (
    ("command", str, "a text"),
    ("args", list, "a list"),
    ("extensionToLanguage", Mapping, "an object"),
    ("env", Mapping, "an object"),
    ("initializationOptions", Mapping, "an object"),
    ("settings", Mapping, "an object"),
    ("startupTimeout", int, "a number of milliseconds"),
    ("requestTimeout", int, "a number of milliseconds"),
    ("maxRestarts", int, "a number"),
    ("disabled", bool, "true or false"),
)


def parse_server(name: str, entry: object, expand: Callable[[str], str] = str) -> LanguageServerSpec | None:
    """
    The server of an entry of `lspServers`; None if the entry switches off the one of that name.

    `expand` fills in variables. Raises LspError if the entry cannot be used.
    """
    if not isinstance(entry, Mapping):
        raise LspError(f"lspServers.{name} must be an object.")
    for key, kind, wanted in SHAPES:
        value = entry.get(key)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise LspError(f"lspServers.{name}.{key} must be {wanted}, and is {str(value)[:100]!r}.")
    if entry.get("disabled"):
        return None
    known = next((each for each in KNOWN if each.name == name), None)
    if not entry.get("command") and known is None:
        raise LspError(f'lspServers.{name} has no command. Please add "command", the program to start.')
    languages = entry.get("extensionToLanguage") or (known.languages if known else {})
    if not languages:
        raise LspError(
            f'lspServers.{name} names no files. Please add "extensionToLanguage", for example {{".py": "python"}}.'
        )
    command = (expand(entry["command"]),) if entry.get("command") else known.command[:1] if known else ()
    given = entry.get("args")
    args = [expand(str(word)) for word in given] if given is not None else known.command[1:] if known else ()
    restarts = entry.get("maxRestarts")
    return LanguageServerSpec(
        name,
        (*command, *args),
        {_ending(str(each)): str(language) for each, language in languages.items()},
        env={str(each): expand(str(value)) for each, value in (entry.get("env") or {}).items()},
        options=entry.get("initializationOptions") or (known.options if known else {}),
        settings=entry.get("settings") or {},
        start_seconds=_seconds(entry.get("startupTimeout"), START_SECONDS),
        ask_seconds=_seconds(entry.get("requestTimeout"), ASK_SECONDS),
        max_restarts=MAX_RESTARTS if restarts is None else max(0, restarts),
        only_checks=known.only_checks if known else False,
    )


def _seconds(milliseconds: int | None, usual: float) -> float:
    return usual if milliseconds is None else max(0.1, milliseconds / 1000)


def _ending(text: str) -> str:
    return text if text.startswith(".") else f".{text}"


def language_of(spec: LanguageServerSpec, path: str) -> str:
    """The language of a file, in the words of the protocol; empty if the server is not for it."""
    return spec.languages.get(os.path.splitext(path)[1].lower(), "")  # noqa: PTH122  # costs less


def advice_for(path: str) -> str:
    """What to install for a file."""
    ending = os.path.splitext(path)[1].lower()  # noqa: PTH122
    fitting = [each for each in KNOWN if ending in each.languages and not each.only_checks]
    if not fitting:
        return f"No server for {ending or 'such'} files is known; name one in the settings under lspServers."
    return f"Install {' or '.join(each.name for each in fitting)} ({fitting[0].install})."


def missing_servers(served: Collection[str]) -> dict[str, list[LanguageServerSpec]]:
    """By language, the known servers that could be installed for files of which these endings are not served."""
    found: dict[str, list[LanguageServerSpec]] = {}
    for each in KNOWN:
        if not each.only_checks and not set(each.languages).intersection(served):
            found.setdefault(next(iter(each.languages.values())), []).append(each)
    return found


def choose_servers(
    configured: Sequence[LanguageServerSpec], installed: Iterable[LanguageServerSpec]
) -> tuple[LanguageServerSpec, ...]:
    """All servers that may be used, the configured ones first. Those found by themselves only fill what is left."""
    names = {each.name for each in configured}
    served = {ending for each in configured if not each.only_checks for ending in each.languages}
    found = [each for each in installed if each.name not in names]
    return (*configured, *(each for each in found if each.only_checks or not served.intersection(each.languages)))
