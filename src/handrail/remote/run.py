"""One run, from its record to its result: the same session and the same lines as `handrail -p`."""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.redact import Redactor, build_redactor
from handrail.dispatch.approval.audit import texts_in
from handrail.errors import HandrailError
from handrail.headless.lines import Lines, transcript_ids
from handrail.headless.task_watch import TaskWatch
from handrail.headless.wire import Line, failed_result, system
from handrail.loop.events import RunStarted
from handrail.providers.choose import ModelOptions
from handrail.remote.events import EventLog
from handrail.remote.places import RunPlace
from handrail.remote.questions import RunQuestions
from handrail.remote.records import ServedRunRecord
from handrail.session.build import open_session
from handrail.session.facts import session_facts
from handrail.session.session import Session
from handrail.session.spec import SessionHost, SessionSpec
from handrail.session.transcript import TranscriptOptions
from handrail.session.turns import all_turns
from handrail.stdio.streams import line_bytes
from handrail.tools.delegation import AgentNews
from handrail.transcripts.writer import new_id

GO_ON = (
    "The server on which you work was started again while you were at this. Look at what is done already, and go on "
    "from there."
)
MAX_RESULT = 4_000


class ServedRun:
    """A run that is under way. `env` are the variables of sessions; `on_begin`: its session holds the prompt now."""

    def __init__(
        self,
        record: ServedRunRecord,
        place: RunPlace,
        events: EventLog,
        env: Mapping[str, str],
        on_begin: Callable[[], None],
    ) -> None:
        self._record = record
        self._place = place
        self._events = events
        self._env = env
        self._on_begin = on_begin
        self._session: Session | None = None
        self._redactor = build_redactor(env)
        self.questions = RunQuestions(place.policy.question_seconds)
        self.is_stopped = False
        self.result: Mapping[str, Any] = {}
        """What came of it, as soon as it has a result."""

    def announce(self) -> None:
        """Say in its lines that it begins."""
        self._put(self._own_line(system("session_state_changed", state="running")))

    def open_questions(self) -> list[dict[str, Any]]:
        """The questions that wait for an answer, without secrets, as its lines show them."""
        return [without_secrets(each, self._redactor) for each in self.questions.as_json()]

    def stop(self) -> None:
        """End it soon, with a result."""
        self.is_stopped = True
        if self._session is not None:
            self._session.conversation.interrupt()
            self._session.agents.stop_all()

    async def work(self) -> None:
        """Work on the prompt to its end. It gets a result in any case, except when this is cancelled."""
        record = self._record
        try:
            session = self._open_session()
        except HandrailError as error:
            self._put(failed_result(str(error), record.id))
            return
        self._session, self._redactor = session, session.redactor
        try:
            await self._drive(session)
        except HandrailError as error:  # for example a session that can no longer be written
            if not self.result:
                self._put(failed_result(str(error), record.id))
        finally:
            self._session = None
            await session.aclose()

    def _open_session(self) -> Session:
        record, policy = self._record, self._place.policy
        spec = SessionSpec(
            cwd=Path(self._place.folder),
            model=ModelOptions(model=policy.model),
            limits=policy.limits,
            flags=replace(policy.flags, root=self._place.root),
            transcript=TranscriptOptions(resume_or_create=record.id),
            origin={**record.origin, "run": record.id},
            worktree="" if policy.worktree else None,
        )
        host = SessionHost(on_warning=self._warn, handler=self.questions if policy.questions else None)
        return open_session(spec, self._env, host)

    async def _drive(self, session: Session) -> None:
        lines = Lines(
            session.id,
            partial=self._record.partial,
            facts=partial(session_facts, session),
            uuid_of=transcript_ids(session.transcript.writer if session.transcript else None),
            window=session.model_facts.window,
        )

        def put(line: Line) -> None:
            self._put(lines.sign(line))

        async def tell(line: Line) -> None:
            put(line)

        def on_news(news: AgentNews) -> None:
            for line in lines.agents.on_news(news.call, news):
                put(line)

        self.questions.tell = put
        session.agents.listeners.append(on_news)
        message = UserMessage((Text(self._next_words(session)),))
        events = TaskWatch(session, tell).follow(all_turns(session, message, lambda: self.is_stopped))
        async with aclosing(events):
            async for event in events:
                if isinstance(event, RunStarted):
                    self._on_begin()
                for line in lines.of(event):
                    self._put(line)

    def _next_words(self, session: Session) -> str:
        """The prompt; what the session holds already is not said twice, it goes on from there."""
        is_said = self._record.is_said or (self._record.prompts == 1 and bool(session.conversation.messages))
        return GO_ON if is_said else self._record.prompt

    def _put(self, line: Line) -> None:
        shown = without_secrets(line, self._redactor)
        self._events.append(line_bytes(shown))
        if line["type"] == "result":
            self.result = summary_of(shown)

    def _warn(self, text: str) -> None:
        self._put(self._own_line(system("informational", text=text)))

    def _own_line(self, line: Line) -> Line:
        return {**line, "uuid": new_id(), "session_id": self._record.id}


def without_secrets(line: Line, redactor: Redactor) -> Line:
    """The line without secrets. Most have none, and one look at all their texts is cheaper than one at each."""
    if not redactor.patterns and not redactor.spans("\n".join(texts_in(line))):
        return line
    cleaned: Line = redactor.value(line)
    return cleaned


def summary_of(line: Mapping[str, Any]) -> dict[str, Any]:
    """What a record keeps of the line with the result."""
    names = ("subtype", "is_error", "num_turns", "total_cost_usd", "terminal_reason")
    return {name: line.get(name) for name in names} | {"result": str(line.get("result") or "")[:MAX_RESULT]}
