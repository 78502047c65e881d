"""An agent at work in a folder: told where it is and what people wrote down for it, kept within its window."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.config.execution import features_of, result_limits, scheduling_of
from handrail.config.flags import NO_FLAGS_GIVEN, SettingsFlags
from handrail.conversation.messages import Attachment, Message
from handrail.conversation.redact import Redactor
from handrail.conversation.request import History, Request
from handrail.conversation.stream import Usage
from handrail.dispatch.gate import Rails
from handrail.dispatch.results import ResultStore
from handrail.errors import HandrailError
from handrail.loop.compaction.plan import Compaction, CompactionRequest, SummaryPlan
from handrail.loop.memory import Memory, MemoryFile
from handrail.loop.prompt import context_attachment, memory_attachment, system_parts, system_prompt
from handrail.loop.side_request import side_request
from handrail.providers.choose import ModelOptions, choose, open_provider
from handrail.providers.client import Provider
from handrail.providers.cost import price_table
from handrail.records import record
from handrail.session.agent import Agent
from handrail.session.background import TaskFacts, task_over, unheard_tasks
from handrail.session.classifier import ModelClassifier
from handrail.session.compactor import Compactor
from handrail.session.environment import GitProbe, gather
from handrail.session.gate import GATE_MODULES, FolderGate
from handrail.session.late_hooks import LateHooks
from handrail.session.memory_files import Switches, places, read_memory, read_memory_near
from handrail.session.model_options import model_options, thinking_options
from handrail.session.redactor import redactor_for
from handrail.session.session_settings import on_standard_error, open_settings, tool_services
from handrail.session.state_folder import result_store, session_store, state_folder, undo_folder
from handrail.session.transcript import TranscriptOptions, open_transcript
from handrail.tools.context import AgentType, RunOptions, ToolContext
from handrail.tools.delegation import AgentReport, AgentTask
from handrail.tools.outcome import Outcome
from handrail.tools.pool import Deferral
from handrail.tools.stub import fetch
from handrail.transcripts.log import Durability, Mirror
from handrail.transcripts.rebuild import RebuiltTranscript
from handrail.transcripts.store import OpenTranscript
from handrail.transcripts.writer import new_id

if TYPE_CHECKING:
    from handrail.dispatch.approval.sdk import CanUseTool
    from handrail.hooks.runner import Hooks
    from handrail.hooks.specs import HookCallback
    from handrail.session.mcp_servers import Carry, Servers
    from handrail.session.subagents import Delegation

MEMORY_TYPES = {"policy": "Managed", "user": "User", "project": "Project", "local": "Local"}
NO_WISHES = ModelOptions()
NOT_KEPT = TranscriptOptions(keep=False)


@record
class Work:
    """
    Where, with which model, and what the model is told. `system` replaces our prompt; "" = no prompt at all.

    `can_use_tool` is asked about what the rules leave open; `callbacks` are hooks that are functions, by event;
    `agents` are sub-agents as programs give them; `servers` are MCP servers by scope, and `carry` reaches those that
    live in the program around us; with `strict_servers` no others are used.
    """

    cwd: Path
    wishes: ModelOptions = NO_WISHES
    system: str | None = None
    addition: str = ""
    interactive: bool = False
    debug: bool = False
    verbose: bool = False
    record: Path | None = None
    replay: Path | None = None
    asked: SettingsFlags = NO_FLAGS_GIVEN
    told: Callable[[str], None] = on_standard_error
    """Hears what a person should know about the settings."""
    session: TranscriptOptions = NOT_KEPT
    can_use_tool: "CanUseTool | None" = None
    callbacks: "Mapping[str, Sequence[HookCallback]]" = field(default_factory=dict)
    agents: Mapping[str, Any] = field(default_factory=dict)
    servers: Mapping[str, Any] = field(default_factory=dict)
    strict_servers: bool = False
    carry: "Carry | None" = None
    mirror: Mirror | None = None
    """Told of every record that the session gets."""


class Worker:
    """
    An agent in a folder and what belongs to it: settings, session, hooks, servers, git for facts, the connection.

    Raises:
        ProviderSetupError, CassetteError: the model cannot be asked.
        SettingsError: policy or flags cannot be used.
        SessionError: the session cannot be read or written.
    """

    def __init__(self, work: Work, env: Mapping[str, str], **options: Any) -> None:
        if not work.asked.flags_widen:
            work = replace(work, servers={})
        self.servers: Servers | None = None
        self._news: set[asyncio.Future[Any]] = set()
        self._delegate: Delegation | None = None
        self.live = open_settings(work.cwd, env, state_folder(env), work.asked, work.told)
        loaded = self.live.loaded
        self._start_env = env
        env = loaded.env
        if not work.replay:
            work = replace(work, wishes=model_options(loaded, work.wishes))
        self._patterns: tuple[str, ...] = tuple(loaded.settings.get("redact") or ())
        servers = {**loaded.settings.servers, **work.servers}
        self.redactor = redactor_for(env, self._patterns, servers, work.wishes.api_key)
        """Takes out the secrets of environment, settings and servers, and the model's key."""
        opened = self._opened(work, env)
        self.session = opened if isinstance(opened, OpenTranscript) else None
        self.id = self.session.writer.session_id if self.session else work.session.session_id or new_id()
        self._work = work
        self._cwd = work.cwd
        self._probe = GitProbe(work.cwd, env)
        self._where = places(work.cwd, env)
        if "user" not in self.sources:
            self._where = self._where._replace(user=())
        self._switches = Switches(project="project" in self.sources)
        self._memory = Memory()
        self._model, name = self._asked_model(work, env)
        self._spare: list[Provider] = []
        self._bill: list[tuple[str, Usage]] = []
        results = self._results(env)
        self._compactor = Compactor(self._summarise, results.folder)
        parts = system_parts(replacement=work.system or "", addition=work.addition, interactive=work.interactive)
        self.hooks = LateHooks(self.live, self._made_hooks, work.told)
        self.live.heard = self._settings_changed
        if loaded.hooks or work.callbacks:
            self.hooks.fill()
        self.gate = FolderGate(
            work.cwd,
            env,
            in_force=self.live.in_force,
            can_use_tool=work.can_use_tool,
            hooks=self.hooks,
            classifier=ModelClassifier(lambda: (self._model, self.agent.model), self._spend),
            redactor=self.redactor,
            kept=lambda: (results.folder, self.services().state, *self._hook_texts()),
            session=self.id,
        )
        self.compacts_itself = loaded.settings.get("autoCompactEnabled") is not False
        shared: dict[str, Any] = {"env": env, "compact": self._compact, "results": results}
        self.services = cache(
            tool_services(self.live, self.id, delegate=_Late(self._delegation), **self._variables(env))
        )
        self._shared = {**shared, "services": self.services}
        self.agent = Agent(
            self._model,
            model_name=name,
            system_prompt=work.addition if work.system == "" else system_prompt(parts),
            cwd=work.cwd,
            opening=self._opening,
            attach=self._attach,
            rails=Rails(self.gate),
            denied=self.live.denied,
            mode=loaded.mode.name,
            hooks=self.hooks,
            session=self.session,
            history=opened.messages if isinstance(opened, RebuiltTranscript) else (),
            features=features_of(loaded.settings, env),
            scheduling=scheduling_of(loaded.settings, env),
            options=self._run_options(work),
            spent_aside=self._billed,
            defers=not work.interactive,
            **self._shared,
            **{"deferral": deferral_of(env), **options, **thinking_options(loaded, options)},
        )

    @property
    def cwd(self) -> Path:
        """The folder it works in."""
        return self._cwd

    @property
    def sources(self) -> Collection[str]:
        """Whose memory files, commands and agents count: those of the project, of the user."""
        return self._work.asked.instruction_sources

    # What belongs to it

    def _opened(self, work: Work, env: Mapping[str, str]) -> OpenTranscript | RebuiltTranscript | None:
        settings = self.live.loaded.settings
        durability: Durability = "power" if settings.get("durability") == "power" else "process"
        self._store = session_store(env, self.redactor, durability, work.mirror)
        return open_transcript(work.session, work.cwd, self._store, env)

    def _asked_model(self, work: Work, env: Mapping[str, str]) -> tuple[Provider, str]:
        """The model to ask; without one there is no session either."""
        try:
            return open_model(work, env, self.redactor)
        except BaseException:
            if self.session is not None:
                self.session.writer.close()
            raise

    def _results(self, env: Mapping[str, str]) -> ResultStore:
        """Big results lie beside the session, so that they can still be read when it is resumed."""
        limits = result_limits(self.live.loaded.settings, env)
        if self.session is None:
            return result_store(env, limits)
        return ResultStore(self.session.path.with_suffix("") / "tool-results", limits)

    def _run_options(self, work: Work) -> RunOptions:
        """What tools may know of the session."""
        return RunOptions(
            interactive=work.interactive,
            debug=work.debug,
            verbose=work.verbose,
            commands=self._commands,
            agents=self._agent_types,
            mcp_servers=lambda: self.servers.by_status() if self.servers else {},
            mcp_resources=lambda: self.servers.resources() if self.servers else {},
        )

    def _commands(self) -> dict[str, str]:
        find = import_module("handrail.session.slash_files").find_commands
        return {name: each.description for name, each in find(self._cwd, self.live.loaded.env, self.sources).items()}

    def _agent_types(self) -> tuple[AgentType, ...]:
        if self.agent.tools.find_listed("Agent") is None:
            return ()
        return tuple(AgentType(name, text) for name, text in self.kinds().items())

    def _made_hooks(self) -> "Hooks":
        loaded = self.live.loaded
        transcript = str(self.session.path) if self.session else ""
        made: Hooks = import_module("handrail.session.hooks").session_hooks(
            loaded, loaded.env, self._cwd, self._work.callbacks, session_id=self.id, transcript=transcript
        )
        made.mode = lambda: self.mode
        if self.session is not None:
            made.on_title = partial(self._titled, self.session)
        return made

    @staticmethod
    def _titled(session: OpenTranscript, title: str) -> None:
        session.writer.set_title(title)

    def _hook_texts(self) -> Iterable[Path]:
        """Where the whole of what hooks said too lengthily lies."""
        folder = self.hooks.now.environment.folder if self.hooks.now else None
        return () if folder is None else (folder,)

    def _settings_changed(self, source: str) -> None:
        """Other settings count. May be called in a thread, for tools look too."""
        self.hooks.changed(source)
        if self.servers is not None:
            self._loop.call_soon_threadsafe(self._look_at_servers, self.servers)

    def _look_at_servers(self, servers: "Servers") -> None:
        self._news.add(task := asyncio.ensure_future(self._refused_servers(servers)))
        task.add_done_callback(self._news.discard)

    async def _refused_servers(self, servers: "Servers") -> None:
        if notes := await servers.look_again():
            self.agent.offer(servers.tools)
            for note in notes:
                self._work.told(note)

    def _variables(self, env: Mapping[str, str]) -> dict[str, Any]:
        """What hooks of the session's start may set for later commands reaches these through a file."""
        file = self.hooks.now.environment.env_file if self.hooks.now else None
        return {} if file is None else {"env": {**env, "CLAUDE_ENV_FILE": str(file)}}

    def _delegation(self) -> "Delegation":
        module = import_module("handrail.session.subagents")
        if self._delegate is None:
            agents, problems = module.find_agents(self._cwd, self._start_env, self._work.agents, self.sources)
            for problem in problems:
                self._work.told(problem)
            self._delegate = module.Delegation(
                agents, lambda: self.agent, self._shared, self.hooks, keep=self._keep_beside, spend=self._spend
            )
        made: Delegation = self._delegate
        return made

    async def connect(self) -> None:
        """Connect the MCP servers, if there are any, and offer their tools."""
        work, settings = self._work, self.live.loaded.settings
        others = {} if work.strict_servers else settings.servers
        if not work.servers and not others:
            return
        made: Servers = import_module("handrail.session.mcp_servers").Servers(
            self.live.loaded.env, self._cwd, work.carry, self.live.refuses_server
        )
        made.add(work.servers, "dynamic")
        made.add(others, "project")
        self.servers = made
        self._loop = asyncio.get_running_loop()
        for note in await made.connect():
            work.told(note)
        self.agent.offer(made.tools)

    async def set_model(self, name: str) -> None:
        """
        Ask another model from the next prompt on; an empty name means the one of the start.

        Raises:
            ProviderSetupError: it cannot be asked.
        """
        work = replace(self._work, wishes=replace(self._work.wishes, model=name or self._work.wishes.model))
        model, chosen = open_model(work, self.live.loaded.env, self.redactor)
        self._spare.append(self._model)
        self._model = model
        self.agent.set_model(model, chosen)
        await self.close_spare_models()

    async def close_spare_models(self) -> None:
        """Let go of models that are not asked any more; while a prompt is worked on, its model may be one of them."""
        if not self.agent.running:
            spare, self._spare = self._spare, []
            for each in spare:
                await each.aclose()

    def set_mode(self, mode: str) -> str:
        """
        Change the permission mode.

        Raises:
            HandrailError: it cannot be entered.
        """
        return self.gate.set_mode(mode)

    @property
    def mode(self) -> str:
        """The permission mode in force."""
        return self.gate.mode or self.live.loaded.mode.name

    @property
    def key_source(self) -> str:
        """Where the credential for the model comes from; `none` if there is none."""
        names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")
        helper = "apiKeyHelper" if self.live.loaded.settings.get("apiKeyHelper") else "none"
        return next((name for name in names if self.live.loaded.env.get(name)), helper)

    def kinds(self) -> dict[str, str]:
        """The kinds of sub-agents there are, and what each is for."""
        return {agent.name: agent.description for agent in self._delegation().agents.values()}

    def kind_source(self, name: str) -> str:
        """Where a kind of sub-agents comes from, in the words that programs know."""
        source = self._delegation().agents[name].source
        known = {"built-in": "built-in", "--agents": "flagSettings"}
        inside = "projectSettings" if Path(source).is_relative_to(self._cwd) else "userSettings"
        return known.get(source, inside)

    def unheard_tasks(self) -> tuple[TaskFacts, ...]:
        """Background tasks whose end the model does not know yet."""
        return unheard_tasks(self.services)

    async def task_over(self, task_id: str) -> TaskFacts:
        """A background task, when it has ended."""
        return await task_over(self.services, task_id)

    def memory_files(self) -> list[dict[str, Any]]:
        """The memory files that the model was told."""
        return [
            {"path": str(file.path), "type": MEMORY_TYPES[file.scope], "tokens": len(file.text) // 4}
            for file in self._memory.files
        ]

    async def stop_task(self, task_id: str) -> None:
        """
        End a background task, or a sub-agent.

        Raises:
            HandrailError: there is no such task.
        """
        if self._delegate is not None and self._delegate.stop(task_id):
            return
        task = import_module("handrail.builtin.support.background_tasks").tasks_of(self.services()).get(task_id)
        if task is None:
            raise HandrailError(f"There is no background task {task_id!r}.")
        await task.stop()

    def rewind(self, message_id: str) -> dict[str, Any]:
        """
        Bring files back to what they held before this message of the user.

        Raises:
            HandrailError: nothing is known of the message, or a file was changed by somebody else since.
        """
        undo, restore = import_module("handrail.files.undo"), import_module("handrail.files.restore")
        folder = undo_folder(self.live.loaded.env) / self.id
        done = restore.go_back(folder, restore.number_of(undo.read(folder), message_id))
        return {"restored": list(done.restored)}

    def mark(self, message_id: str) -> None:
        """From here on changes of files belong to this message of the user."""
        undo = self.services().undo
        if undo is not None:
            undo.point(message_id)

    def get_ready(self) -> None:
        """Import what the first call of a tool will need. Meant for a thread, while the model thinks."""
        for module in self.agent.tools.modules():
            fetch(module)
            time.sleep(0.001)  # a call that came meanwhile need not wait for the others
        for module in (*GATE_MODULES, "handrail.files.undo"):
            import_module(module)
        price_table()
        self.services()

    async def aclose(self) -> None:
        """Stop what runs, end git and servers, close connections, the recording and the session."""
        self._probe.close()
        if self.servers is None:
            await self.agent.aclose()
        elif self.agent.running:  # calls of servers end before these do
            await self.agent.aclose()
            await self.servers.aclose()
        else:
            await asyncio.gather(self.agent.aclose(), self.servers.aclose())
        for model in (*self._spare, self._model):
            await model.aclose()
        if self.session is not None:
            self.session.writer.close()
            loaded = self.live.loaded
            import_module("handrail.session.retention").tidy(loaded.env, loaded.settings.get("cleanupPeriodDays"))

    def _opening(self) -> Iterable[Attachment]:
        self._memory = read_memory(self._where, self._switches)
        self._loaded(self._memory.files, "session_start")
        names = tuple(tool.name for tool in self.agent.tools.listed)
        facts = gather(self._cwd, self._probe, model=self.agent.model, tools=names)
        return (context_attachment(facts, self._memory.files), *self._kinds())

    def _kinds(self) -> Iterable[Attachment]:
        if self.agent.tools.find_listed("Agent") is None:
            return ()
        note: Attachment = import_module("handrail.session.subagents").agent_types_note(self._delegation().agents)
        return (note,)

    def _attach(self, outcomes: Sequence[Outcome]) -> Iterable[Attachment]:
        """Memory that stands near the files that were just read."""
        shown = len(self._memory.files)
        for outcome in outcomes:
            for path in () if outcome.result.is_error else outcome.access.files:
                self._memory = read_memory_near(self._cwd / path, self._where, self._memory, self._switches)
        self._loaded(self._memory.files[shown:], "nested_traversal")
        attachment = memory_attachment(self._memory.files[shown:])
        return () if attachment is None else (attachment,)

    def _loaded(self, files: Iterable[MemoryFile], reason: str) -> None:
        if self.hooks.wants("InstructionsLoaded"):
            for file in files:
                about = {"file_path": str(file.path), "memory_type": MEMORY_TYPES[file.scope], "load_reason": reason}
                self.hooks.announce("InstructionsLoaded", about, self.agent.context)

    async def _compact(self, request: CompactionRequest) -> Compaction | SummaryPlan | None:
        if request.instructions is None and not self.compacts_itself:
            return None
        self._asked, self._summary_problem = request.model, ""
        planned = await self._compactor.plan(
            request.history.messages,
            request.model,
            request.context_tokens,
            forced=request.forced,
            instructions=request.instructions or "",
        )
        if request.instructions is None:
            return planned
        if isinstance(planned, SummaryPlan):
            return SummaryPlan(partial(self._summary, planned))
        return self._required(planned)

    async def _summary(self, planned: SummaryPlan) -> Compaction:
        return self._required(await planned.summarise())

    def _required(self, compaction: Compaction | None) -> Compaction:
        if compaction is None:
            raise HandrailError(self._summary_problem or "There is too little in the conversation to shorten it.")
        return compaction

    async def _summarise(self, messages: Sequence[Message]) -> str:
        answer = await side_request(self._model, Request(self._asked, History(messages)))
        self._spend(answer.model, answer.usage)
        if answer.failure:
            self._summary_problem = f"The model could not summarise the conversation: {answer.failure.message}"
        return "" if answer.failure else answer.text

    def _spend(self, model: str, usage: Usage) -> None:
        """What is used beside the conversation goes on its bill."""
        self._bill.append((model, usage))

    def _billed(self) -> Sequence[tuple[str, Usage]]:
        bill, self._bill = self._bill, []
        return bill

    def _keep_beside(self, agent_id: str) -> OpenTranscript | None:
        """Where the conversation of a sub-agent is kept, if this one is."""
        return self._store.create_subagent(self.session.path, agent_id, str(self._cwd)) if self.session else None


class _Late:
    """Sub-agents that are looked for when the first one is wanted."""

    def __init__(self, made: "Callable[[], Delegation]") -> None:
        self._made = made

    def agent_types(self) -> dict[str, bool]:
        return self._made().agent_types()

    async def work(self, task: AgentTask, ctx: ToolContext) -> AgentReport:
        return await self._made().work(task, ctx)


def deferral_of(env: Mapping[str, str]) -> Deferral:
    """Which definitions wait until they are searched for, as ENABLE_TOOL_SEARCH says; by default all that may."""
    wish, _, share = env.get("ENABLE_TOOL_SEARCH", "").partition(":")
    match wish:
        case "false" | "0":
            return Deferral(mode="off")
        case "auto":
            return Deferral(share=int(share) / 100) if share.isdecimal() else Deferral()
        case _:
            return Deferral(mode="on")


def open_model(work: Work, env: Mapping[str, str], redactor: Redactor | None = None) -> tuple[Provider, str]:
    """The model to ask and its name; answers come from a cassette, or go into one without secrets."""
    if work.replay:
        from handrail.providers.cassette.opening import (  # noqa: PLC0415  # only replays pay for it
            open_replayed_provider,
            open_replayer,
            replayed_choice,
            session_normalizer,
        )

        replayer = open_replayer(work.replay, session_normalizer(work.cwd, env, redactor=redactor))
        return open_replayed_provider(replayer, work.wishes), replayed_choice(replayer.cassette, work.wishes).model
    choice = choose(work.wishes, env)
    if not work.record:
        return open_provider(choice, env), choice.model
    from handrail.http.client import HttpClient  # noqa: PLC0415
    from handrail.providers.cassette.opening import session_normalizer  # noqa: PLC0415  # only recordings pay for it
    from handrail.providers.cassette.record import Recorder  # noqa: PLC0415

    surroundings = session_normalizer(work.cwd, env, redactor=redactor)
    recorder = Recorder(HttpClient(env), work.record, surroundings, timed=True)
    return open_provider(choice, env, recorder), choice.model
