"""The commands that a conversation carries out itself, beside those of its session."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.cli.clipboard import read_clipboard_image
from handrail.cli.extension_commands import extension_commands
from handrail.cli.flags import EFFORTS
from handrail.cli.session_choice import choose_session
from handrail.cli.task_output import read_end
from handrail.conversation.plain import plain_json
from handrail.errors import HandrailError
from handrail.lazy import lazy
from handrail.permissions.modes import MODES
from handrail.processes.own_command import OWN_COMMAND
from handrail.processes.run import run as run_program
from handrail.session.background import running_tasks, unheard_tasks
from handrail.session.state_folder import session_store, undo_folder
from handrail.transcripts.log import read
from handrail.transcripts.rebuild import rebuild
from handrail.transcripts.repair import as_text
from handrail.tui.interactive.chat import Chat, ChatCommand, SentPrompt
from handrail.tui.interactive.dialog import DialogChoice, DialogQuestion

if TYPE_CHECKING:
    from handrail.builtin.read import images
    from handrail.conversation.request import Effort
else:  # it loads a library for images
    images = lazy("handrail.builtin.read.images")

CYCLE = ("default", "acceptEdits", "plan", "bypassPermissions")
KEYS = """Enter sends, Alt+Enter or Ctrl+J starts a new line, Up recalls earlier messages, Ctrl+R searches them.
Esc interrupts, twice goes back to an earlier message; Ctrl+C interrupts, twice exits.
Shift+Tab changes the mode, Ctrl+O shows the transcript, Ctrl+T tasks and agents, Ctrl+G opens your editor.
Ctrl+V adds the image in the clipboard to the message; so does the path of an image file.
@ completes files, / commands; !command runs in your shell, #note goes into a memory file."""
INIT = """Look at this project and write a file AGENTS.md in its top folder for agents that will work here: how to
build, test and lint it, how it is laid out, and which conventions are not obvious. Short, true and specific. If the
file exists, improve it."""
MAX_TEXT = 100_000
SECONDS = 60


async def choose(chat: Chat, title: str, choices: Mapping[str, str], *, searchable: bool = False) -> str:
    """The value that the person chooses of these (value -> label); empty if they leave."""
    options = tuple(DialogChoice(value, label) for value, label in choices.items())
    reply = await chat.front.ask(DialogQuestion(title, options, searchable=searchable, hasty=True))
    return reply.value if reply else ""


async def run_handrail(chat: Chat, *arguments: str) -> None:
    """Show what another command of handrail prints."""
    argv = [*OWN_COMMAND, *arguments]
    env = {**os.environ, "NO_COLOR": "1"}
    ended = await run_program(argv, cwd=str(chat.session.spec.cwd), env=env, timeout=SECONDS, max_bytes=MAX_TEXT)
    text = (ended.stdout + ended.stderr).decode("utf-8", "replace").strip()
    chat.front.say(text or "Nothing is set.", "warning" if ended.code else "plain")


# The conversation


async def show_help(chat: Chat, _words: str) -> None:
    listed: dict[str, Any] = {**chat.session.commands.by_name(), **chat.commands}
    lines = [f"/{name} {each.hint}".rstrip() + f": {each.description}" for name, each in sorted(listed.items())]
    chat.front.say("\n".join([*lines, "", *KEYS.split("\n")]))


async def leave(chat: Chat, _words: str) -> None:
    chat.wants_end = True


async def show_transcript(chat: Chat, _words: str) -> None:
    await chat.front.page(chat.transcript.text)


async def rewind(chat: Chat, _words: str) -> None:
    """Go back to before an earlier message."""
    if chat.session.conversation.running:
        raise HandrailError("A prompt is still being worked on. Interrupt it with Esc, then go back.")
    if not chat.sent:
        chat.front.say("There is no message to go back to.", dim=True)
        return
    by_id = {sent.id: sent for sent in reversed(chat.sent)}
    labels = {each: sent.text.split("\n")[0] for each, sent in by_id.items()}
    chosen = await choose(chat, "Go back to before which message?", labels, searchable=True)
    what = {"both": "What was said and the files", "conversation": "Only what was said", "files": "Only the files"}
    if chosen and (way := await choose(chat, "Bring back what?", what)):
        go_back(chat, by_id[chosen], way)


def go_back(chat: Chat, to: SentPrompt, way: str) -> None:
    """Go back to before a message, and say what came back."""
    restored = chat.go_back(to, conversation=way != "files", files=way != "conversation")
    files = f" Brought back: {', '.join(restored)}." if restored else ""
    chat.front.say(f"Back to before: {to.text.split(chr(10))[0]}{files}", "good")


async def resume(chat: Chat, words: str) -> None:
    """Go on with another session of this folder."""
    cwd = chat.session.settings.places.cwd
    if words:
        chosen: str | None = session_store(os.environ).find(words, cwd).stem
    else:
        chosen = await choose_session(chat.front, cwd, but=chat.session.id)
    if chosen is None:
        chat.front.say("This folder has no other session.", dim=True)
    chat.wants_session = chosen or ""
    chat.wants_end = bool(chat.wants_session)


async def export(chat: Chat, words: str) -> None:
    """Write the conversation to a file."""
    transcript = chat.session.transcript
    if transcript is None:
        raise HandrailError("This session is not kept, so there is nothing to export.")
    file = chat.session.spec.cwd / (words or f"handrail-{chat.session.id[:8]}.txt")
    await asyncio.to_thread(write_export, transcript.path, file)
    chat.front.say(f"The conversation is in {file}.", "good")


def write_export(transcript: Path, file: Path) -> None:
    """Write a transcript as text into a new file."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(as_text(rebuild(read(transcript))))
    except OSError as error:
        raise HandrailError(f"{str(file)!r} cannot be written: {error.strerror}. Name another file.") from error


async def write_agents_file(chat: Chat, _words: str) -> None:
    await chat.work(INIT)


# What governs it


async def set_mode(chat: Chat, words: str) -> None:
    mode = words or await choose(chat, "Which mode?", {name: name for name in MODES})
    if mode:
        chat.front.say(f"The mode is {chat.session.set_mode(mode)}.", dim=True)


async def next_mode(chat: Chat, _words: str) -> None:
    """Change to the next mode that can be entered."""
    present = chat.session.mode
    start = CYCLE.index(present) + 1 if present in CYCLE else 0
    for mode in (*CYCLE[start:], *CYCLE[:start]):
        try:
            chat.session.set_mode(mode)
        except HandrailError:
            continue
        return


async def set_effort(chat: Chat, words: str) -> None:
    level = words or await choose(chat, "How hard should the model think?", {name: name for name in EFFORTS})
    if level and level not in EFFORTS:
        raise HandrailError(f"There is no effort {level!r}. Use one of {', '.join(EFFORTS)}.")
    if level:
        effort: Effort = level  # type: ignore[assignment]  # one of EFFORTS
        config = chat.session.conversation.config
        chat.session.conversation.config = replace(config, options=replace(config.options, effort=effort))
        chat.front.say(f"The effort is {level}.", dim=True)


async def show_permissions(chat: Chat, _words: str) -> None:
    policy = chat.session.settings.policy()
    lines = [f"mode {policy.mode}; folders: {', '.join(policy.working_dirs)}"]
    for rule in policy.rules:
        source = rule.source
        place = f"{source.file}{f':{source.line}' if source.line else ''}" if source.file else source.name
        lines.append(f"{rule.behaviour.value:<5} {rule.text}  ({place})")
    chat.front.say("\n".join(lines if policy.rules else [*lines, "There are no rules."]))


async def show_servers(chat: Chat, _words: str) -> None:
    if chat.session.servers is None:
        chat.front.say("There are no MCP servers.")
        return
    await chat.session.connect()
    status = chat.session.servers.status()
    chat.front.say("\n".join(f"{each['name']}: {each['status']} {each.get('error') or ''}".rstrip() for each in status))


async def show_hooks(chat: Chat, _words: str) -> None:
    found = chat.session.settings.loaded.settings.get("hooks") or {}
    lines = [
        f"{event} {group.get('matcher') or '*'}: {hook.get('command') or hook.get('url') or plain_json(hook)}"
        for event, groups in found.items()
        for group in groups
        for hook in group["hooks"]
    ]
    chat.front.say("\n".join(lines) or "There are no hooks.")


async def undo(chat: Chat, _words: str) -> None:
    if not (undo_folder(os.environ) / chat.session.id).is_dir():
        chat.front.say("No file was changed in this session.", dim=True)
        return
    await run_handrail(chat, "undo", chat.session.id)


async def show_config(chat: Chat, words: str) -> None:
    await run_handrail(chat, "config", *(("get", words) if words else ("list",)), "--show-source")


async def check(chat: Chat, _words: str) -> None:
    await run_handrail(chat, "doctor")


async def paste_image(chat: Chat, _words: str) -> None:
    """Put the image in the clipboard into the message."""
    data = await read_clipboard_image()
    picture = await asyncio.to_thread(images.fit_image, data, "the image in the clipboard")
    chat.front.insert(f"{chat.images.add(picture.block)} ")


# Memory and tasks


def memory_files(chat: Chat) -> dict[str, Path]:
    """The memory files that notes may go to, by whose they are."""
    cwd = chat.session.spec.cwd
    own = Path(os.environ.get("HANDRAIL_CONFIG_DIR") or Path.home() / ".handrail").expanduser()
    return {"project": cwd / "AGENTS.md", "local": cwd / "CLAUDE.local.md", "user": own / "AGENTS.md"}


async def add_note(chat: Chat, words: str) -> None:
    """Write a note into the memory file that the person chooses."""
    files = memory_files(chat)
    kind = await choose(chat, "Remember it where?", {name: f"{name}: {file}" for name, file in files.items()})
    if not kind or not words:
        return
    file = files[kind]
    await asyncio.to_thread(append_note, file, words)
    chat.front.say(f"Written to {file}.", "good")


def append_note(file: Path, note: str) -> None:
    """Add a line to a memory file, which is made if it does not exist."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_text("utf-8") if file.exists() else ""
        gap = "" if not before or before.endswith("\n") else "\n"
        with file.open("a", encoding="utf-8") as out:
            out.write(f"{gap}- {' '.join(note.split())}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise HandrailError(f"{file} cannot be changed: {error}. Look at its mode and encoding.") from error


async def show_memory(chat: Chat, _words: str) -> None:
    used = chat.session.context_usage()["memoryFiles"]
    lines = [f"{each['path']} (about {each['tokens']:,} tokens)" for each in used]
    chat.front.say("\n".join(lines) or "No memory file is in use. #note writes one.")


async def show_tasks(chat: Chat, _words: str) -> None:
    """List what runs in the background; one can be looked at or stopped."""
    tasks = {str(task["id"]): task for task in running_tasks(chat.session.services)}
    if not tasks:
        chat.front.say("Nothing runs in the background.", dim=True)
        return
    labels = {name: f"{name}: {task['description']}" for name, task in tasks.items()}
    chosen = await choose(chat, "Show what runs in the background", labels)
    if not chosen:
        return
    way = await choose(chat, labels[chosen], {"output": "Show its output", "stop": "Stop it"})
    if way == "stop":
        await chat.session.background.stop_task(chosen)
        chat.front.say(f"{chosen} was stopped.", "good")
    elif way == "output":
        files = {task.id: task.output for task in unheard_tasks(chat.session.services)}
        await chat.front.page(await asyncio.to_thread(read_end, files.get(chosen, ""), MAX_TEXT))


def chat_commands() -> dict[str, ChatCommand]:
    """The commands that every front has."""
    return {
        **extension_commands(),
        "config": ChatCommand("Show the settings in effect, and where they come from", show_config, "[key]"),
        "doctor": ChatCommand("Check what is installed, what protects you and what is wrong", check),
        "effort": ChatCommand("Set how hard the model thinks", set_effort, "[level]"),
        "exit": ChatCommand("Exit", leave),
        "export": ChatCommand("Write the conversation to a file", export, "[file]"),
        "help": ChatCommand("List the commands and keys", show_help),
        "hooks": ChatCommand("Show the hooks in the settings", show_hooks),
        "init": ChatCommand("Have the agent write an AGENTS.md for this project", write_agents_file),
        "mcp": ChatCommand("Show the MCP servers and their status", show_servers),
        "memory": ChatCommand("Show the memory files in use", show_memory),
        "mode": ChatCommand("Show or change what runs without a question", set_mode, "[mode]"),
        "next-mode": ChatCommand("Switch to the next mode", next_mode),
        "note": ChatCommand("Add a note to a memory file", add_note, "text"),
        "paste-image": ChatCommand("Add the image in the clipboard to the message", paste_image),
        "permissions": ChatCommand("Show the rules in effect, and where they come from", show_permissions),
        "quit": ChatCommand("Exit", leave),
        "resume": ChatCommand("Continue another session of this folder", resume, "[session]"),
        "rewind": ChatCommand("Go back to an earlier message, with or without the files", rewind),
        "tasks": ChatCommand("Show what runs in the background", show_tasks),
        "transcript": ChatCommand("Show every input, output, decision and time", show_transcript),
        "undo": ChatCommand("Undo the last change to a file", undo),
    }
