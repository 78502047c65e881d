"""A question to the person at a terminal: what is asked, how it is drawn, and the answer that was typed."""

import asyncio
import json
import os
import termios
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from handrail.conversation.plain import plain
from handrail.records import record
from handrail.tools.cards import FormField
from handrail.tui.screen import Screen
from handrail.tui.text import wrap

MAX_LINES = 12
"""How many lines of one value are shown at first."""


@record
class PermissionQuestion:
    """
    A call that needs a yes.

    `always` says what "always" would change and where, `agent` what a yes for the sub-agent that asks, or for all
    agents, would allow; empty = it is not offered.
    """

    title: str
    input: Mapping[str, Any]
    reason: str
    risk: str = ""
    always: str = ""
    agent: str = ""
    document: str = ""
    """What the person reads in the place of the input, such as a plan."""


@record
class TypedReply:
    """`yes`, `agent`, `session`, `always` or `no`, and what was typed after a no."""

    choice: str
    words: str = ""


def question_lines(question: PermissionQuestion, width: int, *, whole: bool = False) -> tuple[list[str], bool]:
    """The question as lines that fit, and whether something of the call was left out."""
    lines, is_cut = wrap(plain(f"? {question.title}"), width, "    "), False
    for name, value in {"": question.document}.items() if question.document else question.input.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
        shown = wrap(plain(f"    {name}: {text}" if name else f"    {text}"), width, "      ")
        if len(shown) > MAX_LINES and not whole:
            left_out = len(shown) - MAX_LINES + 1
            shown, is_cut = [*shown[: MAX_LINES - 1], f"      (+{left_out} more lines; v shows them)"], True
        lines += shown
    about = [f"  why: {question.reason}", f"  risk: {question.risk}" if question.risk else ""]
    about.append(f"  for this agent, or for all of this run: {question.agent}" if question.agent else "")
    about.append(f"  always: {question.always}" if question.always else "")
    lines += [line for text in about if text for line in wrap(plain(text), width, "    ")]
    return lines, is_cut


def read_reply(text: str, *, offers_always: bool, offers_agent: bool = False) -> TypedReply | None:
    """The answer in a typed line; None if it is none."""
    word, _, rest = text.strip().partition(" ")
    match word.lower():
        case "y" | "yes" if not rest:
            return TypedReply("yes")
        case "n" | "no":
            return TypedReply("no", rest.strip())
        case "t" | "this" if offers_agent and not rest:
            return TypedReply("agent")
        case "s" | "session" if offers_agent and not rest:
            return TypedReply("session")
        case "a" | "always" if offers_always and not rest:
            return TypedReply("always")
        case _:
            return None


def field_lines(field: FormField, width: int) -> list[str]:
    """One question of a form with its numbered choices, as lines that fit."""
    lines = wrap(plain(f"? {field.question}"), width, "    ")
    for number, choice in enumerate(field.choices, 1):
        about = ": ".join(filter(None, (choice.label, choice.description)))
        lines += wrap(plain(f"  {number}. {about}"), width, "     ")
        if choice.preview:
            lines += [
                line for row in choice.preview.split("\n") for line in wrap(plain(f"     | {row}"), width, "       ")
            ]
    return lines


def read_choice(text: str, field: FormField) -> tuple[str, ...]:
    """The answers in a typed line: the choices by number, or the words themselves. Empty = none."""
    words = text.strip()
    numbers = words.replace(",", " ").split()
    known = {str(number): choice.label for number, choice in enumerate(field.choices, 1)}
    if numbers and all(number in known for number in numbers) and (field.several or len(numbers) == 1):
        return tuple(dict.fromkeys(known[number] for number in numbers))
    return (words,) if words else ()


class Keyboard:
    """The lines that a person types on a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def discard(self) -> None:
        """Forget what was typed before now."""
        termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def line(self) -> str | None:
        """The next line; None if the terminal is gone or its user typed the end of input."""
        loop = asyncio.get_running_loop()
        typed = b""
        while not typed.endswith((b"\n", b"\r")):
            ready = asyncio.Event()
            loop.add_reader(self._descriptor, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_reader(self._descriptor)
            try:
                piece = os.read(self._descriptor, 4096)
            except OSError:
                return None
            if not piece:
                return None
            typed += piece
        return typed.decode("utf-8", "replace")


class Dialog:
    """Asks one question at a time."""

    def __init__(self, screen: Screen, keyboard: Keyboard) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._one_by_one = asyncio.Lock()

    async def ask(self, question: PermissionQuestion) -> TypedReply:
        """The person's answer; no, if the terminal is gone. Cancelling takes the question back."""
        async with self._one_by_one:
            with self._screen.question() as write:
                reply = None
                try:
                    reply = await self._ask(question, write)
                finally:
                    if reply is None:
                        write("\n")
        return reply

    async def fill_in(self, fields: Sequence[FormField]) -> dict[str, tuple[str, ...]] | None:
        """The person's answers by question, those left open without any; None if the terminal is gone."""
        answers: dict[str, tuple[str, ...]] = {}
        async with self._one_by_one:
            with self._screen.question() as write:
                for field in fields:
                    write("\n".join(field_lines(field, self._screen.width)) + "\n")
                    self._keyboard.discard()
                    several = "numbers" if field.several else "a number"
                    write(f"  Type {several}, an answer of your own, or nothing to leave it open: ")
                    text = await self._keyboard.line()
                    if text is None:
                        write("\n")
                        return None
                    answers[field.question] = read_choice(text, field)
        return answers

    async def _ask(self, question: PermissionQuestion, write: Callable[[str], None]) -> TypedReply:
        lines, is_cut = question_lines(question, self._screen.width)
        write("\n".join(lines) + "\n")
        self._keyboard.discard()  # what was typed before the question could be read is no answer to it
        for_agents = ["t = for this agent", "s = for all agents"] if question.agent else []
        always = ["a = always"] if question.always else []
        choices = ["y = yes", "n = no", *for_agents, *always, *(["v = view all"] * is_cut)]
        while True:
            write(f"  Allow it? ({', '.join(choices)}) ")
            text = await self._keyboard.line()
            if text is None:
                write("\n")
                return TypedReply("no")
            if reply := read_reply(text, offers_always=bool(question.always), offers_agent=bool(question.agent)):
                if reply.choice == "always":
                    write("\n".join(wrap(plain(f"  added: {question.always}"), self._screen.width, "    ")) + "\n")
                return reply
            if is_cut and text.strip().lower() == "v":
                write("\n".join(question_lines(question, self._screen.width, whole=True)[0]) + "\n")
            else:
                write("  Type a letter, then Enter; after n you may say why.\n")
