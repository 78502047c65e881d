"""
Options of `set` (bash 5.2, The Set Builtin): those that change when a script stops or what it prints about itself.

Not among them: -a exports variables, -k and -B change what words mean, -- and operands set the parameters, no words
at all shows every variable.
"""

from handrail.errors import UnclearError
from handrail.shell.model import Effect, Word

LETTERS = frozenset("euxvo")
NAMES = frozenset("errexit nounset xtrace verbose pipefail".split())


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if not words:
        raise UnclearError("set without options shows all variables")
    left = [word.literal or "" for word in words]
    while left:
        option = left.pop(0)
        if option[:1] not in ("-", "+") or not option[1:] or not set(option[1:]) <= LETTERS or option.count("o") > 1:
            raise UnclearError(f"set {option!r} is not read", node="command")
        if "o" in option and (not left or left.pop(0) not in NAMES):
            raise UnclearError("an option of set that is not listed", node="command")
    return ()
