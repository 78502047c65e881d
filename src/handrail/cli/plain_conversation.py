"""`handrail --plain`: a conversation line by line, for screen readers, logs and terminals that draw nothing."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import replace
from typing import TextIO, cast

from handrail.cli.conversation_ask import ConversationHandler
from handrail.cli.conversation_commands import chat_commands
from handrail.cli.conversation_start import ask_session, ask_trust, greet, open_with_key
from handrail.cli.flags import Flags
from handrail.cli.questions import handler_for
from handrail.cli.session_flags import session_spec
from handrail.conversation.plain import plain
from handrail.errors import DemoWantedError, HandrailError
from handrail.loop.events import LoopEvent, RunEnded
from handrail.records import record
from handrail.session.build import open_session
from handrail.session.session import Session
from handrail.session.spec import SessionHost
from handrail.tools.cards import Tone
from handrail.tools.events import CallQueued
from handrail.tui.interactive.chat import Chat
from handrail.tui.interactive.dialog import DialogChoice, DialogQuestion, DialogReply
from handrail.tui.interactive.paint import NONE
from handrail.tui.question import Keyboard
from handrail.tui.run_view import RunView
from handrail.tui.screen import Screen, terminal_columns
from handrail.tui.text import wrap

FAILED = 1
CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129}


async def converse(flags: Flags, prompt: str) -> tuple[int, str]:
    """Converse until the person leaves: the exit code, and the session to go on with, if another one is wanted."""
    screen = Screen(sys.stderr, sys.stdout, {"TERM": "dumb", "COLUMNS": str(terminal_columns(sys.stdout, os.environ))})
    front = PlainFront(screen, Keyboard(0))
    with redirect_stderr(cast("TextIO", screen)):
        for warning in flags.warnings:
            front.say(warning, "warning")
        try:
            chat = await open_chat(flags.chosen, front)
        except DemoWantedError:
            raise
        except HandrailError as error:
            front.say(str(error), "bad")
            return FAILED, ""
        try:
            code = await converse_with(chat, front, prompt)
        finally:
            await chat.session.aclose()
        if chat.session.transcript is not None and chat.session.conversation.messages and not chat.wants_session:
            front.say(f"the session is saved. Continue it with: handrail --resume {chat.session.id}")
    return code, chat.wants_session


async def open_chat(chosen: argparse.Namespace, front: "PlainFront") -> Chat:
    """The conversation that the flags ask for."""

    def mark(_use_id: str, _is_open: bool) -> None:
        """A question is on the screen by itself."""

    def open_for(env: dict[str, str]) -> Session:
        own = ConversationHandler(front, lambda _use: None, mark)
        host = SessionHost(on_warning=front.warn, handler=handler_for(chosen, own), stays=True)
        return open_session(replace(session_spec(chosen), interactive=True), env, host)

    if chosen.answer_at:
        raise HandrailError("--answer-at does not go with --plain. Leave one of them out.")
    await ask_trust(chosen, front)
    await ask_session(chosen, front)
    session = await open_with_key(chosen, front, open_for)
    greet(chosen, session, front.say, interrupt="Ctrl+C")
    return Chat(session, front, chat_commands())


async def converse_with(chat: Chat, front: "PlainFront", prompt: str) -> int:
    """Do one line after another; the exit code."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = asyncio.ensure_future(front.read(prompt))
    ended: list[int] = []
    work: asyncio.Future[None] | None = None

    def interrupt() -> None:
        if not stop_work(chat, work):
            line.cancel()

    def end(code: int) -> None:
        ended.append(code)
        stop_work(chat, work)
        line.cancel()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    for number, code in CODES.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end, code)
    while not chat.wants_end and not ended:
        line = await follow_wakes(chat, front, line)
        try:
            text = await line
        except asyncio.CancelledError:
            break
        if text is None:
            break
        if text.strip():
            work = asyncio.ensure_future(chat.send(text.strip()))
            await finish_work(work, front)
            work = None
        line = asyncio.ensure_future(front.read())
    line.cancel()
    return ended[0] if ended else 0


def stop_work(chat: Chat, work: "asyncio.Future[None] | None") -> bool:
    """Stop the turn, or what else was typed and runs; whether there was something to stop."""
    if chat.session.conversation.running:
        chat.interrupt()
        return True
    return work is not None and work.cancel()


async def finish_work(work: "asyncio.Future[None]", front: "PlainFront") -> None:
    """Wait for what was typed to be done, or stopped."""
    try:
        await work
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        front.say("interrupted", "warning")


async def follow_wakes(
    chat: Chat, front: "PlainFront", line: "asyncio.Future[str | None]"
) -> "asyncio.Future[str | None]":
    """Do what schedules and ends of background work start until a line is there; the line."""
    while not line.done():
        due = asyncio.ensure_future(chat.session.background.next_wake())
        await asyncio.wait((line, due), return_when=asyncio.FIRST_COMPLETED)
        due.cancel()
        await asyncio.wait((due,))
        if not due.cancelled():
            is_read = not line.cancel()  # the keyboard is for the questions of the turn
            await chat.wake(due.result())
            line = line if is_read else asyncio.ensure_future(front.read())
    return line


class PlainFront:
    """Draws nothing twice: every line stays, and questions are answered with a number and Enter."""

    theme = NONE

    def __init__(self, screen: Screen, keyboard: Keyboard) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._view: RunView | None = None
        self._inserted = ""
        self._loop = asyncio.get_running_loop()
        self._one_by_one = asyncio.Lock()

    async def read(self, given: str = "") -> str | None:
        """The next line that is typed; None at the end of the input."""
        inserted, self._inserted = self._inserted, ""
        self._screen.write(f"> {plain(given)}\n" if given else f"> {inserted}")
        self._screen.flush()
        line = given or await self._keyboard.line()
        return line if line is None else inserted + line

    def insert(self, text: str) -> None:
        """Begin the next message with a text."""
        self._inserted += text

    def on_event(self, event: LoopEvent) -> None:
        """Draw an event."""
        if self._view is None:
            self._view = RunView(self._screen)
        if isinstance(event, CallQueued):
            self._screen.line(f"- {plain(event.card.line)} ...")
        self._view.on_event(event)
        if isinstance(event, RunEnded):
            if event.is_error:
                self.say(event.report, "bad")
            self._view.close()
            self._view = None

    def say(self, text: str, tone: Tone = "plain", *, dim: bool = False) -> None:
        """Write a note."""
        for line in plain(text).split("\n"):
            for row in wrap(line, self._screen.width, "  "):
                self._screen.line(row, tone, dim=dim)

    def warn(self, text: str) -> None:
        """Write a warning, which may come from the thread of a tool."""
        self._loop.call_soon_threadsafe(self.say, text, "warning")

    def prompt(self, text: str) -> None:
        """What was typed is on the screen already."""

    def wait_for(self, what: str) -> None:
        """Nothing is drawn that changes."""

    async def page(self, text: str) -> None:
        """Write a long text."""
        self.say(text)

    async def ask(self, question: DialogQuestion) -> DialogReply | None:
        """The person's answer: a number, and a text where the choice wants one; an empty line leaves the question."""
        async with self._one_by_one:
            with self._screen.question() as write:
                try:
                    return await self._ask(question, lambda line: write(f"{line}\n"))
                finally:
                    write("\n")

    async def _ask(self, question: DialogQuestion, write: Callable[[str], None]) -> DialogReply | None:
        width = self._screen.width
        for line in (question.title, *question.body(width, 10_000)):
            write(plain(line))
        for number, choice in enumerate(question.choices, 1):
            about = f": {choice.detail}" if choice.detail else ""
            for row in wrap(plain(f"  {number}. {choice.label}{about}"), width, "     "):
                write(row)
        self._keyboard.discard()  # what was typed before the question could be read is no answer to it
        write(plain(ways_to_answer(question)))
        while True:
            typed = await self._keyboard.line()
            if typed is None or not typed.strip():
                return None
            if (chosen := read_choices(typed, question)) is not None:
                return await self._take(chosen, write)
            letters = "".join(f", or {choice.word[0]}" for choice in question.choices if choice.word)
            write(f"Type a number from 1 to {len(question.choices)}{letters}.")

    async def _take(self, chosen: "PlainChoice", write: Callable[[str], None]) -> DialogReply | None:
        choice = chosen.choice
        if chosen.text:
            return DialogReply(choice.value, chosen.text)
        if choice.edit is None or (choice.edits_on_tab and not chosen.edits):
            return DialogReply(choice.value, choice.edit or "", chosen.marked)
        if choice.edit:
            write(plain(f"It is: {choice.edit}"))
        write("Type the text, then Enter.")
        typed = await self._keyboard.line()
        return None if typed is None else DialogReply(choice.value, typed.strip() or choice.edit, chosen.marked)


@record
class PlainChoice:
    """What a typed line chooses: the choice that answers, the marked ones, and whether its text is edited first."""

    choice: DialogChoice
    marked: tuple[str, ...] = ()
    edits: bool = False
    text: str = ""
    """Its text, if it stands in the same line."""


def ways_to_answer(question: DialogQuestion) -> str:
    """How the question is answered."""
    several = any(choice.toggles for choice in question.choices)
    ways = ["Type the numbers of all that fit, then Enter" if several else "Type a number, then Enter"]
    ways += [f"{choice.word[0]} is {at}" for at, choice in enumerate(question.choices, 1) if choice.word]
    ways += [f"{at}e edits {at}" for at, choice in enumerate(question.choices, 1) if choice.edits_on_tab]
    return "; ".join([*ways, "an empty line leaves the question."])


def read_choices(typed: str, question: DialogQuestion) -> PlainChoice | None:
    """What a typed line chooses; None = nothing that there is. Marked choices alone end with the last one, `Done`."""
    if (answer := _read_word(typed, question)) is not None:
        return answer
    words = typed.replace(",", " ").split()
    edits = len(words) == 1 and words[0].endswith("e")
    numbers = [word.removesuffix("e") for word in words] if edits else words
    if not all(number in map(str, range(1, len(question.choices) + 1)) for number in numbers):
        return None
    chosen = [question.choices[int(number) - 1] for number in numbers]
    marked = tuple(choice.value for choice in chosen if choice.toggles)
    ends = [choice for choice in chosen if not choice.toggles] or ([question.choices[-1]] if marked else [])
    return PlainChoice(ends[0], marked, edits) if len(ends) == 1 else None


def _read_word(typed: str, question: DialogQuestion) -> PlainChoice | None:
    """What `y`, `yes`, `n` or `no` chooses; words after a no go to the choice that takes words."""
    word, *rest = typed.split(maxsplit=1)
    choice = next((each for each in question.choices if each.word and word.lower() in (each.word, each.word[0])), None)
    if choice is None or not rest:
        return PlainChoice(choice) if choice else None
    takes_words = next((each for each in question.choices if each.takes_words), None)
    return PlainChoice(takes_words, text=rest[0].strip()) if takes_words and choice.word == "no" else None
