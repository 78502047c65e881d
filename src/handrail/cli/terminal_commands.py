"""The commands and settings that only a drawn terminal has: themes, keys, the clipboard, the status line."""

import base64
import json
import os
import shutil
from typing import Any

from handrail.cli.conversation_commands import choose
from handrail.cli.task_panel import task_command
from handrail.conversation.blocks import Text
from handrail.conversation.messages import AssistantMessage
from handrail.conversation.plain import plain
from handrail.errors import HandrailError
from handrail.processes.run import run as run_program
from handrail.session.session import Session
from handrail.tui.interactive.chat import Chat, ChatCommand
from handrail.tui.interactive.input_line import read_history
from handrail.tui.interactive.paint import COLOUR, THEMES, theme_for
from handrail.tui.interactive.terminal import Terminal

STATUS_SECONDS, MAX_STATUS = 0.3, 4_096
MAX_COPIED = 100_000


def terminal_commands(terminal: Terminal) -> dict[str, ChatCommand]:
    """The commands that need the terminal itself."""

    async def set_theme(chat: Chat, words: str) -> None:
        name = words or await choose(chat, "Which colours?", {name: name for name in THEMES})
        if name and name not in THEMES:
            raise HandrailError(f"There is no theme {name!r}. Use one of {', '.join(THEMES)}.")
        if name:
            terminal.theme = theme_for(name)
            chat.front.say(f"The theme is {name}. To keep it: handrail config set theme {name}", dim=True)

    async def toggle_vi(chat: Chat, _words: str) -> None:
        terminal.app.set_editing_mode(vi=not terminal.app.has_vi_keys)
        chat.front.say(
            "Editing is like vi now." if terminal.app.has_vi_keys else "Editing is like Emacs now.", dim=True
        )

    async def copy(chat: Chat, _words: str) -> None:
        text = last_answer(chat.session)
        if not text:
            raise HandrailError("There is no answer to copy yet.")
        terminal.write_sequence(f"\x1b]52;c;{base64.b64encode(text[:MAX_COPIED].encode()).decode()}\x07")
        chat.front.say("The last answer is in the clipboard, if the terminal allows that.", dim=True)

    async def search_history(chat: Chat, _words: str) -> None:
        sent = list(dict.fromkeys(reversed(read_history(terminal.options.history()))))
        if not sent:
            chat.front.say("Nothing was sent yet.", dim=True)
            return
        labels = {str(at): " ".join(text.split()) for at, text in enumerate(sent)}
        if chosen := await choose(chat, "Search earlier messages", labels, searchable=True):
            terminal.app.buffer.reset()
            terminal.app.buffer.insert_text(sent[int(chosen)])

    return {
        "copy": ChatCommand("Copy the last answer", copy),
        "history-search": ChatCommand("Search earlier messages", search_history),
        "tasks": task_command(terminal),
        "theme": ChatCommand("Choose the colours of the terminal", set_theme, "[name]"),
        "transcript": transcript_command(terminal),
        "vim": ChatCommand("Switch between vi and Emacs keys", toggle_vi),
    }


def transcript_command(terminal: Terminal) -> ChatCommand:
    """The command that shows the transcript, and below it all of the question that is asked now."""

    async def show(chat: Chat, _words: str) -> None:
        await chat.front.page("\n\n".join(filter(None, (chat.transcript.text, open_question(terminal)))))

    return ChatCommand("Show every input, output, decision and time", show)


def open_question(terminal: Terminal) -> str:
    """The whole question on the screen, of which a small terminal shows only a part; empty if there is none."""
    current = terminal.app.questions.current
    if current is None:
        return ""
    lines = current.question.body(shutil.get_terminal_size().columns - 2, 10_000)
    return "\n".join((f"--- asked now: {plain(current.question.title)}", *(COLOUR.sub("", line) for line in lines)))


def last_answer(session: Session) -> str:
    """The text of the newest answer."""
    for message in reversed(session.conversation.messages):
        if isinstance(message, AssistantMessage):
            texts = [block.text for block in message.content if isinstance(block, Text)]
            if texts:
                return "\n\n".join(texts)
    return ""


def desktop_notice(text: str) -> str:
    """The sequence that shows a line on the desktop; nothing in the text can end it or begin another."""
    return f"\x1b]9;{' '.join(plain(text).split())}\x07"


def apply_settings(terminal: Terminal, session: Session) -> None:
    """Let the settings of the terminal count: theme, editing, notifications, status line."""
    settings = session.settings.loaded.settings
    terminal.theme = theme_for(str(settings.get("theme") or ""))
    terminal.app.set_editing_mode(vi=settings.get("editorMode") == "vim")
    match settings.get("notifications"):
        case "off":
            terminal.notify = lambda _text: None
        case "desktop":
            terminal.notify = lambda text: terminal.write_sequence(desktop_notice(text))
        case _:
            pass
    line = settings.get("statusLine")
    if isinstance(line, dict) and line.get("command"):
        command = str(line["command"])
        terminal.status = lambda: status_line(command, session)


async def status_line(command: str, session: Session) -> str:
    """What the user's command prints about the session; empty if it fails or takes too long."""
    cwd = str(session.spec.cwd)
    ended = await run_program(
        ["/bin/sh", "-c", command],
        cwd=cwd,
        env=os.environ,
        stdin=json.dumps(status_facts(session)).encode(),
        timeout=STATUS_SECONDS,
        max_bytes=MAX_STATUS,
    )
    return ended.stdout.decode("utf-8", "replace").split("\n")[0] if ended.code == 0 else ""


def status_facts(session: Session) -> dict[str, Any]:
    """What a status line may tell."""
    model = session.conversation.config.model_name
    folder = str(session.spec.cwd)
    return {
        "session_id": session.id,
        "transcript_path": str(session.transcript.path) if session.transcript else "",
        "cwd": folder,
        "workspace": {"current_dir": folder, "project_dir": folder},
        "model": {"id": model, "display_name": model},
        "permission_mode": session.mode,
        "context": session.usage.window(),
    }
