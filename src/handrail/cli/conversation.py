"""`handrail` on a terminal: a conversation, drawn from the first moment while the session opens behind it."""

import argparse
import asyncio
import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from handrail.cli.flags import Flags, read_flags
from handrail.conversation.plain import plain
from handrail.errors import DemoWantedError, FlagError, HandrailError
from handrail.lazy import lazy
from handrail.tui.interactive.frames import RESTORE, FrameOutput
from handrail.tui.interactive.key_bindings import read_keys
from handrail.tui.interactive.keyboard import TerminalKeyboard
from handrail.tui.interactive.terminal import Terminal, TerminalOptions, folder_title

if TYPE_CHECKING:
    from handrail.cli import conversation_session, demo, plain_conversation, project_files
    from handrail.session import state_folder
    from handrail.session.session import Session
    from handrail.tui.interactive.chat import Chat
else:  # what the first frame does not need
    conversation_session = lazy("handrail.cli.conversation_session")
    demo = lazy("handrail.cli.demo")
    plain_conversation = lazy("handrail.cli.plain_conversation")
    project_files = lazy("handrail.cli.project_files")
    state_folder = lazy("handrail.session.state_folder")

FAILED, USAGE = 1, 2
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def run(arguments: Sequence[str]) -> int:
    """The exit code of a conversation: 0 = the person left, 1 = it could not begin or failed, 2 = bad flags."""
    try:
        flags = read_flags(arguments)
    except FlagError as error:
        sys.stderr.write(f"{error.usage}handrail: error: {plain(str(error))}\n")
        return USAGE
    prompt = first_prompt(flags.chosen)
    is_plain = flags.chosen.plain or os.environ.get("TERM", "dumb") == "dumb"
    while True:
        try:
            work = plain_conversation.converse(flags, prompt) if is_plain else converse(flags, prompt)
            code, other = asyncio.run(work)
        except DemoWantedError:
            return demo.run(argparse.Namespace(width=0))
        if not other:
            return code
        flags.chosen.resume, flags.chosen.newest, prompt = other, False, ""


async def converse(flags: Flags, prompt: str) -> tuple[int, str]:
    """Converse until the person leaves: the exit code, and the session to go on with, if another one is wanted."""
    conversation = TerminalConversation(flags, prompt)
    return await conversation.run(), conversation.next_session


def first_prompt(chosen: argparse.Namespace) -> str:
    """The prompt of the command line, if there is one."""
    text = " ".join(filter(None, chosen.words))
    return os.fsencode(text).decode("utf-8", "replace")


class TerminalConversation:
    """A terminal, and the session behind it."""

    def __init__(self, flags: Flags, prompt: str) -> None:
        self._flags = flags
        self._prompt = prompt
        self._session: Session | None = None
        self._chat: Chat | None = None
        self._signal: int | None = None
        self._begun = False
        self.next_session = ""

    async def run(self) -> int:
        """Converse; the exit code."""
        output = FrameOutput.from_pty(sys.stdout, term=os.environ.get("TERM"))
        assert isinstance(output, FrameOutput)
        folder = config_folder()
        keys, problems = read_keys(folder / "keybindings.json")
        options = TerminalOptions(history_file, list_files, keys, folder_title())
        terminal = Terminal(output, TerminalKeyboard(sys.stdin), options)
        for text in (*self._flags.warnings, *problems):
            terminal.say(text, "warning")
        atexit.register(restore, output)
        self._handle_signals(terminal)
        error: BaseException | None = None
        with redirect_stderr(cast("TextIO", Notes(terminal, asyncio.get_running_loop()))):
            try:
                await terminal.run(self._open, self._prompt)
            except DemoWantedError:
                raise
            except HandrailError as failure:
                error = failure
            except BaseException:
                atexit.register(self._say_farewell, None)  # below the traceback
                raise
            finally:
                restore(output)
                atexit.unregister(restore)
                if self._session is not None:
                    await self._session.aclose()
        if not output.terminal.is_gone:
            self._say_farewell(error)
        if self._chat is not None:
            self.next_session = self._chat.wants_session
        return self._signal or (FAILED if error is not None else 0)

    async def _open(self, terminal: Terminal) -> "Chat":
        # imported in a thread, because the person may type already
        open_chat = await asyncio.to_thread(lambda: conversation_session.open_chat)
        self._chat = await open_chat(self._flags.chosen, terminal)
        self._session = self._chat.session
        gc.freeze()  # what is loaded now stays: to look through it again and again would hold up keys
        return self._chat

    def _handle_signals(self, terminal: Terminal) -> None:
        loop = asyncio.get_running_loop()

        def hear(number: signal.Signals) -> None:
            if self._signal is not None:
                restore(terminal.app.application.output)
                os._exit(CODES[number])
            self._signal = CODES[number]
            terminal.turns.end()

        loop.add_signal_handler(signal.SIGTSTP, terminal.app.suspend)
        loop.add_signal_handler(signal.SIGCONT, terminal.app.come_back)
        for number in CODES:
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, hear, number)

    def _say_farewell(self, error: BaseException | None) -> None:
        if error is not None:
            sys.stderr.write(f"handrail: {plain(str(error))}\n")
        session = self._session
        if session is not None and session.transcript is not None and session.conversation.messages:
            sys.stderr.write(f"handrail: the session is saved. Continue it with:\n  handrail --resume {session.id}\n")


class Notes:
    """Stands in for standard error: what is written there would run into the drawing, so it becomes a note."""

    encoding = "utf-8"

    def __init__(self, terminal: Terminal, loop: asyncio.AbstractEventLoop) -> None:
        self._terminal = terminal
        self._loop = loop
        self._line = ""

    def write(self, text: str) -> int:
        """Take text; each whole line is shown. Threads may write too."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.strip() and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._terminal.say, line.removeprefix("handrail: "), "warning")
        return len(text)

    def flush(self) -> None:
        """Nothing is buffered."""

    def isatty(self) -> bool:
        """Whether it is a terminal: it is not, so that nothing is drawn on it."""
        return False


def restore(output: Any) -> None:
    """Leave the terminal as other programs expect it; one that takes nothing any more is not waited for."""
    output.write_raw(RESTORE)
    if not output.drain():
        output.terminal.give_up()


def config_folder() -> Path:
    """The user's folder for settings."""
    return Path(os.environ.get("HANDRAIL_CONFIG_DIR") or Path.home() / ".handrail").expanduser()


def history_file() -> Path | None:
    """Where prompts are kept for the next session; None if there is no safe place for them."""
    try:
        return state_folder.state_folder(os.environ) / "prompts.jsonl"
    except HandrailError:
        return None


async def list_files() -> Sequence[str]:
    """The files of the working folder, without those that git ignores."""
    find_files = await asyncio.to_thread(lambda: project_files.project_files)
    return await find_files()
