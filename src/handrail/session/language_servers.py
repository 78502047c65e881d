"""
The language servers of a session: which may be used here, how they are started, and which diagnostics follow an edit.

They run in a trusted folder only, because they read its configuration and some run its code. Nothing of `lsp` is loaded
before a pool asks in such a folder whether there is a server, and a server itself starts with the first question.
"""

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment
from handrail.errors import LspError, SandboxError
from handrail.files import search_path
from handrail.hooks.texts import reminder
from handrail.lazy import lazy
from handrail.session.settings.session_settings import SessionSettings
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome, Status

if TYPE_CHECKING:
    from handrail.files import paths
    from handrail.lsp import known, server, servers
    from handrail.mcp import config as variables
    from handrail.mcp import environment
    from handrail.processes import sandbox_contract, spawn
    from handrail.tools.code_questions import CodeAnswer, CodeQuestion, CodeView
else:
    environment = lazy("handrail.mcp.environment")  # a session without MCP servers loads nothing of them
    known = lazy("handrail.lsp.known")
    paths = lazy("handrail.files.paths")
    sandbox_contract = lazy("handrail.processes.sandbox_contract")
    servers = lazy("handrail.lsp.servers")
    spawn = lazy("handrail.processes.spawn")
    variables = lazy("handrail.mcp.config")

DIAGNOSTICS = "diagnostics"
GRACE = 0.4
UNTRUSTED = (
    "Language servers run in trusted folders only, and this one is not. The user can trust it with: handrail trust."
)
FOR_LANGUAGES = frozenset(
    """
    VIRTUAL_ENV CONDA_PREFIX PYTHONPATH GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS CARGO_HOME RUSTUP_HOME
    RUSTUP_TOOLCHAIN JAVA_HOME NODE_PATH NVM_DIR CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH
    """.split()  # noqa: SIM905
)
"""Where compilers and packages of languages are. Keys and tokens reach no server."""


class SessionLanguageServers:
    """The language servers of one session. `given` gives entries like those of the settings, for example of plugins."""

    def __init__(
        self,
        settings: SessionSettings,
        services: Callable[[], ToolServices],
        given: Callable[[], Mapping[str, Any]],
        on_warning: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._services = services
        self._given = given
        self._on_warning = on_warning
        self._told: set[str] = set()
        self._running: servers.SessionServers | None = None

    def is_available(self) -> bool:
        """Whether a server may be used and is there: one of the settings, or one that is installed."""
        if not self._settings.is_trusted():
            return False
        return bool(self.usable()) if self.entries() else known.is_any_installed(self._path)

    def entries(self) -> dict[str, Any]:
        """The configured servers, as they are written."""
        return {**self._given(), **(self._settings.loaded.settings.get("lspServers") or {})}

    def specs(self) -> "tuple[known.LanguageServerSpec, ...]":
        """The servers that may be used now, the best first; none in a folder that is not trusted."""
        return self.usable() if self._settings.is_trusted() else ()

    def usable(self) -> "tuple[known.LanguageServerSpec, ...]":
        """The servers that may be used once the folder is trusted."""
        configured, off = [], set()
        for name, entry in self.entries().items():
            try:
                spec = known.parse_server(name, entry, self._expand)
            except LspError as error:
                self._warn(str(error))
                continue
            if spec is None:
                off.add(name)
            else:
                configured.append(spec)
        return known.choose_servers(configured, known.installed_servers(self._path, off))

    async def ask(self, question: "CodeQuestion", view: "CodeView") -> "CodeAnswer":
        """The answer; LspError if no server can give it."""
        if not self._settings.is_trusted():
            raise LspError(UNTRUSTED)
        if self._running is None:
            wait = variables.seconds(self._settings.loaded.env.get("HANDRAIL_LSP_WAIT_MS"), servers.NOTE_SECONDS)
            self._running = servers.SessionServers(self.specs, self._prepare, self._settings.places.cwd, wait)
        return await self._running.ask(question, view)

    def after_calls(
        self, outcomes: Sequence[Outcome], run: RunContext
    ) -> Coroutine[Any, Any, tuple[Attachment, ...]] | None:
        """What is told of the files that calls have changed; None if no server was ever asked."""
        if self._running is None or not outcomes:
            return None
        return self._notes(self._running, outcomes, run)

    async def _notes(
        self, running: "servers.SessionServers", outcomes: Sequence[Outcome], run: RunContext
    ) -> tuple[Attachment, ...]:
        services = self._services()
        tells = self._settings.loaded.settings.get("lspDiagnostics") is not False
        changes = list(changed_files(outcomes, run, services.home))

        def shows(real: str) -> bool:
            return search_path.lies_in(real, services.working_dirs()) and not services.is_hidden(real)

        text = await running.note_changes(changes, run.cwd, shows, tells=tells)
        return (Attachment(DIAGNOSTICS, (Text(reminder(text)),)),) if text else ()

    async def aclose(self) -> None:
        """End all servers; the next question starts them again."""
        running, self._running = self._running, None
        if running is not None:
            await running.aclose()

    async def _prepare(self, spec: "known.LanguageServerSpec", root: str) -> "servers.Prepared":
        """How a server is started: in the sandbox, if commands are."""
        program = spec.program if "/" in spec.program else search_path.find_program(spec.program, self._path)
        if not program:
            raise LspError(
                f"The language server {spec.name!r} cannot be started: there is no {spec.program!r} on PATH."
            )
        argv = [os.path.join(root, program), *spec.command[1:]]  # noqa: PTH118  # or absolute
        env = {**self._basics(), **spec.env}
        sandbox = self._services().sandbox
        standing = await sandbox.standing([argv]) if sandbox else sandbox_contract.UNCONFINED
        if standing.where is sandbox_contract.Where.REFUSED:
            raise LspError(f"The language server {spec.name!r} cannot be started: {standing.reason}")
        if sandbox is None or standing.where is sandbox_contract.Where.OUTSIDE:
            return spawn.ProcessSpec(argv, root, env, grace=GRACE), _nothing
        try:
            wrapped = sandbox.wrap(argv, root)
        except SandboxError as error:
            raise LspError(f"The language server {spec.name!r} cannot run in the sandbox. {error}") from error
        changed: dict[str, str | None] = {**env, **wrapped.env}
        process = spawn.ProcessSpec(
            wrapped.argv,
            root,
            {name: value for name, value in changed.items() if value is not None},
            grace=GRACE,
            pass_fds=wrapped.pass_fds,
            restrictions=wrapped.restrictions,
        )
        return process, wrapped.close

    @property
    def _path(self) -> str:
        return self._settings.loaded.env.get("PATH", os.defpath)

    def _basics(self) -> dict[str, str]:
        env = self._settings.loaded.env
        return {
            name: value for name, value in env.items() if name in FOR_LANGUAGES or environment.is_basic(name, value)
        }

    def _expand(self, text: str) -> str:
        cwd = self._settings.places.cwd
        folders = {"CLAUDE_PROJECT_DIR": cwd, "HANDRAIL_PROJECT_DIR": cwd}
        return variables.expand_variables(text, {**self._settings.loaded.env, **folders})

    def _warn(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._on_warning(text)


def _nothing() -> None:
    """There is nothing to let go of."""


def changed_files(outcomes: Sequence[Outcome], run: RunContext, home: str) -> "Iterator[servers.FileChange]":
    """The files that calls say they have written or removed, each once, with the previous text if it is known."""
    seen = set()
    for outcome in outcomes:
        if outcome.status is not Status.OK or not outcome.access.changes_files:
            continue
        data = outcome.output.data if outcome.output else None
        before = data.get("originalFile") if isinstance(data, dict) else None
        is_new = isinstance(data, dict) and "originalFile" in data and before is None
        for spelling in (*outcome.access.writes, *outcome.access.removes):
            place = paths.resolve(spelling, str(run.cwd), home)
            if place.real in seen:
                continue
            seen.add(place.real)
            is_gone = place.kind is not paths.FileKind.FILE
            kind: server.ChangeKind = "deleted" if is_gone else "created" if is_new else "changed"
            yield servers.FileChange(place.real, kind, before if isinstance(before, str) else None)
