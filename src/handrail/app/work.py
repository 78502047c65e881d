"""An agent at work in a folder: told where it is and what people wrote down for it, kept within its window."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from handrail.app.agent import Agent
from handrail.app.compacting import Compactor
from handrail.app.facts import GitProbe, gather
from handrail.app.gate import GATE_MODULES, FolderGate
from handrail.app.judge import ModelJudge
from handrail.app.keeping import KeptRules
from handrail.app.live import live_settings, on_standard_error, outfit_of
from handrail.app.memory import places, read_memory, read_memory_near
from handrail.app.state import result_store, state_folder
from handrail.app.wishes import thought, wishes_of
from handrail.config.asked import NOTHING_ASKED, Asked
from handrail.conversation.messages import Attachment, Message
from handrail.conversation.request import History, Request
from handrail.conversation.stream import Usage
from handrail.dispatch.gate import Rails
from handrail.loop.aside import ask_aside
from handrail.loop.memory import Memory
from handrail.loop.prompt import near_memory, opening, system_parts, system_prompt
from handrail.loop.setup import Shortened, Situation
from handrail.providers.choose import Wishes, choose, open_provider
from handrail.providers.client import Provider
from handrail.providers.cost import price_table
from handrail.records import record
from handrail.tools.outcome import Outcome
from handrail.tools.stand_in import fetch

FILE_FIELDS = ("file_path", "notebook_path")
NO_WISHES = Wishes()


@record
class Work:
    """Where, with which model, and what the model is told. `system` replaces our prompt; "" = no prompt at all."""

    cwd: Path
    wishes: Wishes = NO_WISHES
    system: str | None = None
    addition: str = ""
    interactive: bool = False
    record: Path | None = None
    replay: Path | None = None
    asked: Asked = NOTHING_ASKED
    told: Callable[[str], None] = on_standard_error
    """Hears what a person should know about the settings."""


class Worker:
    """
    An agent in a folder and what belongs to it: the git that is asked for facts, the connection, the recording.

    Raises:
        ProviderSetupError, CassetteError: the model cannot be asked.
        SettingsError: policy or flags cannot be used.
    """

    def __init__(self, work: Work, env: Mapping[str, str], **options: Any) -> None:
        self.live = live_settings(work.cwd, env, state_folder(env), work.asked, work.told)
        loaded = self.live.loaded
        env = loaded.env
        if not work.replay:
            work = replace(work, wishes=wishes_of(loaded, work.wishes))
        self._cwd = work.cwd
        self._probe = GitProbe(work.cwd, env)
        self._where = places(work.cwd, env)
        self._memory = Memory()
        self._model, name = open_model(work, env)
        self._bill: list[tuple[str, Usage]] = []
        self._compactor = Compactor(self._summarise, result_store(env).folder)
        parts = system_parts(replacement=work.system or "", addition=work.addition, interactive=work.interactive)
        self.agent = Agent(
            self._model,
            model_name=name,
            system_prompt=work.addition if work.system == "" else system_prompt(parts),
            cwd=work.cwd,
            opening=self._opening,
            attach=self._attach,
            compact=self._shorten,
            rails=Rails(
                FolderGate(
                    work.cwd,
                    env,
                    policy=self.live.policy,
                    judge=ModelJudge(self._model, name),
                    persist=KeptRules(self.live),
                )
            ),
            env=env,
            denied=self.live.denied,
            mode=loaded.mode.name,
            outfit=outfit_of(self.live),
            **{**options, **thought(loaded, options)},
        )

    def get_ready(self) -> None:
        """Import what the first call of a tool will need. Meant for a thread, while the model thinks."""
        for module in self.agent.tools.modules():
            fetch(module)
            time.sleep(0.001)  # a call that came meanwhile need not wait for the others
        for module in GATE_MODULES:
            import_module(module)
        price_table()

    async def aclose(self) -> None:
        """Stop what runs, end git, close connections and the recording."""
        self._probe.close()
        await self.agent.aclose()
        await self._model.aclose()

    def _opening(self) -> Iterable[Attachment]:
        self._memory = read_memory(self._where)
        names = tuple(tool.name for tool in self.agent.tools.listed)
        facts = gather(self._cwd, self._probe, model=self.agent.model, tools=names)
        return (opening(facts, self._memory.files),)

    def _attach(self, outcomes: Sequence[Outcome]) -> Iterable[Attachment]:
        """Memory that stands near the files that were just read."""
        shown = len(self._memory.files)
        for outcome in outcomes:
            named = next((outcome.use.input[field] for field in FILE_FIELDS if field in outcome.use.input), None)
            if isinstance(named, str) and not outcome.result.is_error:
                self._memory = read_memory_near(self._cwd / named, self._where, self._memory)
        attachment = near_memory(self._memory.files[shown:])
        return () if attachment is None else (attachment,)

    async def _shorten(self, situation: Situation) -> Shortened | None:
        self._asked = situation.model
        made = await self._compactor.shorten(
            situation.history.messages,
            situation.model,
            situation.context_tokens,
            forced=situation.forced,
            allowed=situation.may_summarise,
        )
        bill, self._bill = self._bill, []
        return None if made is None else Shortened(made.messages, made.kind, made.note, tuple(bill))

    async def _summarise(self, messages: Sequence[Message]) -> str:
        answer = await ask_aside(self._model, Request(self._asked, History(messages)))
        self._bill.append((answer.model, answer.usage))
        return "" if answer.failure else answer.text


def open_model(work: Work, env: Mapping[str, str]) -> tuple[Provider, str]:
    """The model to ask and its name; answers come from a cassette, or go into one, if that is wanted."""
    if work.replay:
        from handrail.providers.cassette.opening import (  # noqa: PLC0415  # only replays pay for it
            open_replayed_provider,
            open_replayer,
            replayed_choice,
            surroundings_of,
        )

        replayer = open_replayer(work.replay, surroundings_of(work.cwd, env))
        return open_replayed_provider(replayer, work.wishes), replayed_choice(replayer.cassette, work.wishes).model
    choice = choose(work.wishes, env)
    if not work.record:
        return open_provider(choice, env), choice.model
    from handrail.providers.cassette.opening import surroundings_of  # noqa: PLC0415  # only recordings pay for it
    from handrail.providers.cassette.record import Recorder  # noqa: PLC0415
    from handrail.providers.http import HttpTransport  # noqa: PLC0415

    recorder = Recorder(HttpTransport(env), work.record, surroundings_of(work.cwd, env), timed=True)
    return open_provider(choice, env, recorder), choice.model
