"""Names of variables, as `read` takes them: plain lower-case names, since a subscript is evaluated by the shell."""

from handrail.errors import UnclearError
from handrail.shell.model import Effect, Word
from handrail.shell.scope import PLAIN_NAME


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if not words:
        raise UnclearError("read without a name sets REPLY", node="command")
    for word in words:
        if not PLAIN_NAME.match(word.literal or ""):
            raise UnclearError(f"{word} is not a plain name", word.start, word.end, "word")
    return ()
