"""The parser of commands: its errors say which words and flags there are."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.tools import wording
else:
    wording = lazy("handrail.tools.wording")


class CommandParser(argparse.ArgumentParser):
    """An argparse parser that names the missing word, the likely flag, and the command that refused it."""

    _words: Sequence[str] = ()
    _intermixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; what is left over is an error of this command, and not of those above it."""
        if self._intermixed:
            return super().parse_known_args(args, namespace)
        self._words = [*(sys.argv[1:] if args is None else args)]
        found, extra = super().parse_known_args(args, namespace)
        if extra and not self._sub_commands():  # argparse gives up optional words at the first flag
            self._intermixed = True
            try:
                found, extra = self.parse_known_intermixed_args(self._words, namespace)
            finally:
                self._intermixed = False
        if extra:
            self.error(f"unexpected word {extra[0]!r}")
        return found, extra

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        choices = self._sub_commands()
        if choices and message.startswith("the following arguments are required"):
            message = f"say which: {', '.join(choices)}"
        elif choices and "invalid choice: " in message and (word := self._unknown_word(choices)):
            hint = wording.did_you_mean(word, choices) or f" There are {', '.join(choices)}."
            message = f"there is no command {word!r}.{hint}"
        elif not choices and (slip := self._unknown_flag()):
            known = [option for option in self._option_string_actions if option.startswith("--")]
            message = f"{slip} is not a flag of {self.prog}.{wording.did_you_mean(slip, known)}"
        elif message.startswith("the following arguments are required") and self._takes_all_words():
            message = f"{message}. A flag with several values took the words behind it: put it last, or end it with --."
        super().error(message)

    def _sub_commands(self) -> list[str]:
        nested = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return [name for action in nested for name in action.choices]

    def _unknown_word(self, choices: Sequence[str]) -> str:
        words = (word for word in self._words if not word.startswith("-"))
        return next((word for word in words if word not in choices), "")

    def _takes_all_words(self) -> bool:
        """Whether a flag that was given takes all words behind it."""
        given = (self._option_string_actions.get(word) for word in self._words)
        return any(action is not None and action.nargs in ("+", "*") for action in given)

    def _unknown_flag(self) -> str:
        flags = (word.partition("=")[0] for word in self._words if word.startswith("--") and word != "--")
        known = tuple(self._option_string_actions)
        return next((flag for flag in flags if not any(option.startswith(flag) for option in known)), "")
