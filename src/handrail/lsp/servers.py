"""
The language servers of a session: started when they are first asked, shared, restarted when they die, ended with it.

A server belongs to a root folder: the project, or the worktree of an agent in it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from handrail.errors import LspAnswerError, LspError
from handrail.lsp.answers import shown_path
from handrail.lsp.known import LanguageServerSpec, advice_for, language_of
from handrail.lsp.positions import split_text
from handrail.lsp.problems import CodeProblem, new_problems, problem_line
from handrail.lsp.project import main_file
from handrail.lsp.questions import OPERATIONS, ask_file, ask_project
from handrail.lsp.server import ChangeKind, LanguageServer
from handrail.lsp.source import read_text, text_now
from handrail.processes.spawn import ProcessSpec
from handrail.records import record
from handrail.tools.code_questions import CodeAnswer, CodeQuestion, CodeView
from handrail.tools.wording import several

LOAD_SECONDS = 25.0
"""How long an empty answer is doubted while a server still loads the project."""
PAUSES = (0.3, 0.6, 1.2)
"""Seconds after which a server is asked again that has not found anything yet: some answer before they know a file."""
MAX_DOUBTS = 3
"""How many empty answers of such a server are doubted."""
CHECK_SECONDS = 15.0
NOTE_SECONDS = 1.5
"""How long the next request waits for what edits bring."""
MAX_SERVERS = 8
MAX_MISSES = 3
"""So often in a row a server may be late with its diagnostics before edits no longer wait for it."""
MAX_SHOWN = 100
MAX_NOTED = 10
LOADING = "(The language server is still loading the project, so results may be missing. Ask again later.)"

Prepared: TypeAlias = tuple[ProcessSpec, Callable[[], None]]
Prepare: TypeAlias = Callable[[LanguageServerSpec, str], Awaitable[Prepared]]
"""How a server is started in a root folder, and what is called when it has ended; LspError if it may not be."""


@record
class FileChange:
    """A file that a call has changed. `before` is its old text, None if that is not known; empty for a new file."""

    path: str
    kind: ChangeKind
    before: str | None = None


class ServerSlot:
    """One server in one root folder, over its restarts."""

    def __init__(self, spec: LanguageServerSpec, root: str) -> None:
        self.spec = spec
        self.root = root
        self.starting: asyncio.Task[LanguageServer] | None = None
        self.failures = 0
        self.misses = 0
        self.doubts = MAX_DOUBTS
        self.reason = ""

    @property
    def server(self) -> LanguageServer | None:
        """The server, if it runs."""
        task = self.starting
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return None if task.result().end_reason else task.result()

    async def get(self, prepare: Prepare) -> LanguageServer:
        """The server, started if need be; LspError if it cannot be had, or has died too often."""
        if self.starting is not None and self.starting.done() and self.server is None:
            await self._note_failure()
        if self.starting is None:
            if self.failures > self.spec.max_restarts:
                raise LspError(
                    f"The language server {self.spec.name!r} is not started again in this session: it failed "
                    f"{self.failures} times. {self.reason}"
                )
            self.starting = asyncio.create_task(self._start(prepare))
        return await asyncio.shield(self.starting)

    async def _start(self, prepare: Prepare) -> LanguageServer:
        process, release = await prepare(self.spec, self.root)
        return await LanguageServer.start(self.spec, self.root, process, release)

    async def _note_failure(self) -> None:
        task, self.starting = self.starting, None
        assert task is not None
        self.failures += 1
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self.reason = str(error)
        else:
            self.reason = f"The last time {task.result().end_reason}"
            await task.result().aclose()

    async def aclose(self) -> None:
        """End it."""
        task, self.starting = self.starting, None
        if task is None:
            return
        if not task.done():
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, LspError):
            await (await task).aclose()


class SessionServers:
    """The servers of one session. `specs` gives those that may be used now, the best first."""

    def __init__(
        self,
        specs: Callable[[], Sequence[LanguageServerSpec]],
        prepare: Prepare,
        project: str,
        note_seconds: float = NOTE_SECONDS,
    ) -> None:
        self._note_seconds = note_seconds
        self._specs = specs
        self._prepare = prepare
        self._project = project
        self._slots: dict[tuple[str, str], ServerSlot] = {}

    async def ask(self, question: CodeQuestion, view: CodeView) -> CodeAnswer:
        """The answer; LspError if no server can give it."""
        place = question.place
        if place is None and question.operation != "workspaceSymbol":
            raise LspError(f"{question.operation} is about a file. Give its path as file_path.")
        if question.operation == "diagnostics" and place is not None:
            text = await asyncio.to_thread(read_text, place)
            return await self._check(place.real, text, view)
        return await self._ask_first(question, view)

    async def _ask_first(self, question: CodeQuestion, view: CodeView) -> CodeAnswer:
        """The answer of the first server that has one."""
        if question.place is not None:
            path, text = question.place.real, await asyncio.to_thread(read_text, question.place)
        else:
            path, text = await asyncio.to_thread(main_file, self._project, self._endings(), view.shows)
        answer: CodeAnswer | None = None
        refusals: list[str] = []
        for slot in await self._slots_for(path):
            try:
                async with asyncio.timeout(slot.spec.ask_seconds):
                    found = await self._ask_one(slot, question, path, text, view)
            except TimeoutError:
                refusals.append(await self._give_up(slot))
                continue
            except LspAnswerError as error:
                refusals.append(str(error))
                continue
            if found is None:
                refusals.append(f"The language server {slot.spec.name!r} does not know {question.operation}.")
                continue
            answer = answer or found
            if found.count:
                return found
        if answer is None:
            raise LspError(" ".join(refusals))
        return answer

    async def _ask_one(
        self, slot: ServerSlot, question: CodeQuestion, path: str, text: str, view: CodeView
    ) -> CodeAnswer | None:
        """The answer of one server; None if it does not know such questions."""
        server = await slot.get(self._prepare)
        if not server.offers(OPERATIONS[question.operation].provider):
            return None
        await self._refresh(server)
        await server.open(path, text)

        async def ask() -> CodeAnswer:
            if question.place is None:
                return await ask_project(server, question, view)
            return await ask_file(server, question, path, text, view)

        answer = await ask()
        if not answer.count and server.is_loading:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOAD_SECONDS):
                    await server.wait_until_loaded()
            answer = await ask()
        if not answer.count and slot.doubts:
            slot.doubts -= 1
            answer = await _ask_again(ask, answer)
        slot.doubts = 0 if answer.count else slot.doubts
        slot.misses = 0
        return CodeAnswer(f"{answer.text}\n{LOADING}", answer.count) if server.is_loading else answer

    async def _refresh(self, server: LanguageServer) -> None:
        """Bring the documents that it has open up to date with the files."""
        texts = await asyncio.to_thread(lambda: {path: text_now(path) for path in list(server.documents)})
        for path, text in texts.items():
            if text is not None:
                await server.open(path, text)
        gone: dict[str, ChangeKind] = {path: "deleted" for path, text in texts.items() if text is None}
        if gone:
            await server.files_changed(gone)

    async def _check(self, path: str, text: str, view: CodeView) -> CodeAnswer:
        """What all servers for a file find wrong with it."""
        lines, name = split_text(text), shown_path(path, view.cwd)
        found: list[CodeProblem] = []
        silent: list[str] = []

        async def check(slot: ServerSlot) -> None:
            try:
                server = await slot.get(self._prepare)
                await self._refresh(server)
                wait = slot.spec.ask_seconds if slot.doubts else CHECK_SECONDS
                async with asyncio.timeout(wait):
                    found.extend(await server.check(path, text))
                slot.misses = slot.doubts = 0
            except TimeoutError:
                slot.doubts = 0
                silent.append(f"(The language server {slot.spec.name!r} said nothing about it.)")
            except LspError as error:
                silent.append(f"({error})")

        slots = await self._slots_for(path, checks=True)
        await asyncio.gather(*map(check, slots))
        if len(silent) == len(slots):
            raise LspError(" ".join(each[1:-1] for each in silent))
        found.sort(key=lambda each: (each.severity, each.line, each.character))
        shown = [problem_line(each, name, lines) for each in found[:MAX_SHOWN]]
        if len(found) > MAX_SHOWN:
            shown.append(f"({len(found) - MAX_SHOWN:,} more are not listed.)")
        head = f"{several(len(found), 'diagnostic')}:" if found else f"No diagnostics for {name}."
        return CodeAnswer("\n".join([head, *shown, *silent]), len(found))

    # What calls have changed

    async def note_changes(
        self, changes: Sequence[FileChange], cwd: Path, shows: Callable[[str], bool], *, tells: bool = True
    ) -> str:
        """
        Tell running servers what has changed, and return what is newly wrong there, within a moment.

        Without `tells` nothing is waited for.
        """
        running = [slot for slot in self._slots.values() if slot.server is not None]
        if not running:
            return ""
        tasks = [
            asyncio.ensure_future(self._check_change(slot, each, tells=tells))
            for slot in running
            for each in changes
            if shows(each.path) or each.kind == "deleted"
        ]
        if not tasks:
            return ""
        try:
            await asyncio.wait(tasks, timeout=self._note_seconds)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        new = [task.result() for task in tasks if not task.cancelled() and task.exception() is None]
        texts = [_note(path, cwd, found, lines) for path, found, lines in new if found]
        return "\n".join(texts)

    async def _check_change(
        self, slot: ServerSlot, change: FileChange, *, tells: bool
    ) -> tuple[str, Sequence[CodeProblem], Sequence[str]]:
        """What is newly wrong with a file, in the words of one server."""
        server = slot.server
        nothing: tuple[str, Sequence[CodeProblem], Sequence[str]] = (change.path, (), ())
        if server is None or not _is_below(change.path, slot.root):
            return nothing
        await server.files_changed({change.path: change.kind})
        text = None if change.kind == "deleted" else await asyncio.to_thread(text_now, change.path)
        if text is None or not language_of(slot.spec, change.path):
            return nothing
        if not tells or slot.misses >= MAX_MISSES:
            await server.open(change.path, text)
            return nothing
        slot.misses += 1
        known = await self._known_before(server, change)
        after = await server.check(change.path, text)
        slot.misses = 0
        lines = split_text(text)
        if known is None:
            return nothing
        return change.path, new_problems(known[1], split_text(known[0]), after, lines), lines

    async def _known_before(
        self, server: LanguageServer, change: FileChange
    ) -> tuple[str, Sequence[CodeProblem]] | None:
        """The text and the problems of a file before it was changed; None if that cannot be known in time."""
        document, checked = server.documents.get(change.path), server.checked.get(change.path)
        if change.kind == "created":
            return "", ()
        if checked is not None and document is not None and checked[0] == document.text:
            return checked
        before = change.before if change.before is not None else document.text if document else None
        if before is None:
            return None
        try:
            async with asyncio.timeout(self._note_seconds / 2):
                return before, await server.check(change.path, before)
        except TimeoutError:
            return None

    # Slots

    def _endings(self) -> frozenset[str]:
        return frozenset(ending for spec in self._specs() if not spec.only_checks for ending in spec.languages)

    async def _slots_for(self, path: str, *, checks: bool = False) -> list[ServerSlot]:
        """The servers for a file, the best first; LspError if there is none."""
        specs = self._specs()
        await self._close_others(specs)
        fitting = [spec for spec in specs if language_of(spec, path)]
        chosen = [spec for spec in fitting if checks or not spec.only_checks]
        if not chosen:
            only = f" Only {fitting[0].name} is there, which knows diagnostics alone." if fitting else ""
            raise LspError(f"No language server is there for {Path(path).name!r}.{only} {advice_for(path)}")
        root = root_of(path, self._project)
        slots = []
        for spec in chosen:
            slot = self._slots.pop((spec.name, root), None) or ServerSlot(spec, root)
            self._slots[spec.name, root] = slot
            slots.append(slot)
        while len(self._slots) > max(MAX_SERVERS, len(slots)):
            await self._slots.pop(next(iter(self._slots))).aclose()
        return slots

    async def _close_others(self, specs: Sequence[LanguageServerSpec]) -> None:
        """Close those that may not be used any more, or are started in another way by now."""
        for key, slot in list(self._slots.items()):
            if slot.spec not in specs:
                del self._slots[key]
                await slot.aclose()

    async def _give_up(self, slot: ServerSlot) -> str:
        """A server gave no answer in time. One that says it is loading may go on."""
        server = slot.server
        if server is not None and server.is_loading:
            return f"The language server {slot.spec.name!r} is still loading the project. Ask again later."
        failures = slot.failures + 1
        await slot.aclose()
        late = f"gave no answer within {slot.spec.ask_seconds:g} s"
        slot.failures, slot.reason = failures, f"The last time it {late}."
        return f"The language server {slot.spec.name!r} {late}, and was ended."

    async def aclose(self) -> None:
        """End all servers."""
        slots, self._slots = list(self._slots.values()), {}
        await asyncio.gather(*(slot.aclose() for slot in slots))


async def _ask_again(ask: Callable[[], Awaitable[CodeAnswer]], answer: CodeAnswer) -> CodeAnswer:
    """Put a question a few times more, until something is found."""
    for pause in PAUSES:
        await asyncio.sleep(pause)
        answer = await ask()
        if answer.count:
            break
    return answer


def root_of(path: str, project: str) -> str:
    """The root folder of a file: the agent's worktree that holds it, else the project."""
    base = f"{project.rstrip('/')}/.handrail/worktrees/"
    name, slash, _ = path.removeprefix(base).partition("/") if path.startswith(base) else ("", "", "")
    return f"{base}{name}" if slash else project


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root.rstrip('/')}/")


def _note(path: str, cwd: Path, found: Sequence[CodeProblem], lines: Sequence[str]) -> str:
    name = shown_path(path, cwd)
    listed = [problem_line(each, name, lines) for each in found[:MAX_NOTED]]
    more = [f"({len(found) - MAX_NOTED:,} more; ask LSP for the diagnostics.)"] if len(found) > MAX_NOTED else []
    return "\n".join([f"New diagnostics in {name} since the change:", *listed, *more])
