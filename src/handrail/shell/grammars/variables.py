"""Names of environment variables, as printenv takes them: only those that never hold a secret."""

from handrail.shell.model import Does, Effect, literal_word
from handrail.shell.scope import SHOWN


def read(text: str) -> tuple[Effect, ...]:
    return () if text in SHOWN else (Effect(Does.SECRET, literal_word(text), "its value may be a secret"),)
