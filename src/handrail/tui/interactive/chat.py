"""
A conversation with a session, whatever draws it: prompts, commands, notes, and going back.

    fix the tests       a prompt
    /help               a command of the terminal, or one of the session
    !git status         runs in your shell, under no rules but your own; the model sees what it printed
    #use tabs           goes into a memory file
"""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, UserMessage
from handrail.errors import HandrailError
from handrail.hooks.texts import reminder
from handrail.loop.events import Compacted, ConversationReset, LoopEvent
from handrail.records import record
from handrail.session.session import Session
from handrail.session.slash_commands import MCP, match_command
from handrail.tools.cards import Tone
from handrail.tools.wording import did_you_mean
from handrail.transcripts.writer import new_id
from handrail.tui.interactive.dialog import DialogQuestion, DialogReply
from handrail.tui.interactive.image_paths import mention_images
from handrail.tui.interactive.input_line import PastedImages
from handrail.tui.interactive.own_command import LineStream, run_own_command
from handrail.tui.interactive.transcript import TranscriptText

MAX_OUTPUT, MAX_LABEL = 30_000, 500
FRAME = re.compile(r"(?m)^</?[a-z-]+(?: [^>\n]*)?>$\n?")
"""A line that only marks for the model where a text begins or ends."""


class Front(Protocol):
    """What draws a conversation and asks its person."""

    def on_event(self, event: LoopEvent) -> None: ...

    def say(self, text: str, tone: Tone = "plain", *, dim: bool = False) -> None: ...

    def prompt(self, text: str) -> None:
        """Show what the person sent."""
        ...

    async def ask(self, question: DialogQuestion) -> DialogReply | None: ...

    async def page(self, text: str) -> None:
        """Show a long text."""
        ...

    def insert(self, text: str) -> None:
        """Put a text into the message that is being written."""
        ...

    def wait_for(self, what: str) -> None:
        """Show what is waited for; empty = nothing any more."""
        ...


@record
class ChatCommand:
    """A command that the terminal carries out itself."""

    description: str
    act: "Callable[[Chat, str], Awaitable[None]]"
    hint: str = ""


@record
class SentPrompt:
    """A prompt of this conversation, and where it stands in the history."""

    id: str
    text: str
    """Its beginning."""
    before: int
    """How many messages there were before it."""


@dataclass
class Chat:
    """One session, and what its person does with it."""

    session: Session
    front: Front
    commands: Mapping[str, ChatCommand]
    sent: list[SentPrompt] = field(default_factory=list)
    transcript: TranscriptText = field(default_factory=lambda: TranscriptText(lambda: time.strftime("%H:%M:%S")))
    images: PastedImages = field(default_factory=PastedImages)
    wants_end: bool = False
    wants_session: str = ""
    """The session to go on with, instead of this one."""

    async def send(self, text: str) -> None:
        """Do what was typed, to its end. What goes wrong is said, and the conversation goes on."""
        try:
            await self._send(text)
        except HandrailError as error:
            self.front.say(str(error), "bad")

    async def _send(self, text: str) -> None:
        called = match_command(UserMessage((Text(text),)))
        if text.startswith("!") and text[1:].strip():
            self.front.prompt(text)
            await self._run_own(text[1:].strip())
        elif text.startswith("#") and text[1:].strip() and "note" in self.commands:
            self.front.prompt(text)
            await self.commands["note"].act(self, text[1:].strip())
        elif called is not None and called["name"] in self.commands:
            self.front.prompt(text)
            await self.commands[called["name"]].act(self, (called["words"] or "").strip())
        elif called is not None and (problem := self._unknown_command(called["name"])):
            self.front.prompt(text)
            self.front.say(problem, "bad")
        else:
            if called is None and len(text) <= MAX_OUTPUT:  # longer ones were pasted
                text = mention_images(text, self.session.conversation.state.context.cwd)
            self.front.prompt(text)
            await self.work(text)

    def _unknown_command(self, name: str) -> str:
        """What to say of a command that there is not; empty if there is one, or it may be a path such as /tmp."""
        session = self.session
        if name.startswith(MCP) or name in session.skills.all() or Path(f"/{name}").exists():
            return ""
        known = {*self.commands, *session.commands.by_name()}
        if name in known:
            return ""
        hint = did_you_mean(f"/{name}", [f"/{each}" for each in sorted(known)])
        return f"There is no command /{name}.{hint} /help lists them. Nothing was sent."

    async def wake(self, message: UserMessage) -> None:
        """Let the agent work on a prompt that no person typed, for example of a schedule."""
        text = "\n".join(block.text for block in message.content if isinstance(block, Text))
        self.front.say(FRAME.sub("", text).strip(), dim=True)
        try:
            await self.work(text, literal=True)
        except HandrailError as error:
            self.front.say(str(error), "bad")

    async def work(self, text: str, *, literal: bool = False) -> None:
        """Let the agent work on a prompt; `literal`: no commands are found in it."""
        sent = SentPrompt(new_id(), text[:MAX_LABEL], len(self.session.conversation.messages))
        self.sent.append(sent)
        message = self._message(text)
        async with aclosing(self.session.drive(message, literal=literal, prompt_id=sent.id)) as events:
            async for event in events:
                if isinstance(event, Compacted | ConversationReset):
                    self.sent.clear()  # where they stood is not known any more
                self.transcript.on_event(event)
                self.front.on_event(event)

    async def _run_own(self, command: str) -> None:
        folder = str(self.session.conversation.state.context.cwd)
        shown = LineStream(MAX_OUTPUT, lambda lines: self.front.say(lines, dim=True))
        self.front.wait_for(f"{command} runs in your shell")
        try:
            code = await run_own_command(command, folder, os.environ, shown)
        except OSError as error:
            raise HandrailError(f"Your shell cannot be started: {error}. Set SHELL to one that is there.") from error
        except asyncio.CancelledError:
            self._note_own(command, shown.text, "It was stopped by the user.")
            raise
        finally:
            self.front.wait_for("")
        end = f"exit code {code}" if code else ""
        if end or not shown.text:
            self.front.say(end or "(no output)", "warning" if end else "plain", dim=True)
        self._note_own(command, shown.text, end)

    def _note_own(self, command: str, *printed: str) -> None:
        """Tell the model what the person ran, with its next request."""
        output = "\n".join(filter(None, printed))
        note = f"The user ran `{command}` in their own shell. It printed:\n{output}"
        self.session.conversation.state.mailbox.note(Attachment("command", (Text(reminder(note)),)))

    def interrupt(self) -> None:
        """Stop what the agent does now."""
        self.session.conversation.interrupt()

    def queue(self, text: str) -> None:
        """Add a message to the running turn; calls that give way to one stop now."""
        self.session.conversation.send(self._message(text), interrupt=True)

    def _message(self, text: str) -> UserMessage:
        return UserMessage((Text(text), *self.images.named_in(text)))

    def go_back(self, to: SentPrompt, *, conversation: bool, files: bool) -> list[str]:
        """Go back to before a prompt: what was said, the files, or both. The files that were brought back."""
        restored = self.session.rewind(to.id)["restored"] if files else []
        if conversation:
            messages = self.session.conversation.messages[: to.before]
            self.session.conversation.state.replace_history(messages)
            self.sent = self.sent[: self.sent.index(to)]
        return [str(each) for each in restored]
