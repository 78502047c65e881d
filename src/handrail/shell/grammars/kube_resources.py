"""Operands of `kubectl get` and `describe`: kinds and names. Kinds of secrets are an effect."""

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Word

SECRETS = ("secret", "token", "credential", "certificatesigning")


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    effects: list[Effect] = []
    for at, word in enumerate(words):
        text = word.literal
        if text is None:
            raise UnclearError(f"{word} is not literal", word.start, word.end, "kubectl")
        kinds = [part.partition("/")[0].lower() for part in text.split(",") if at == 0 or "/" in part]
        if any(name in kind for kind in kinds for name in SECRETS):
            effects.append(Effect(Does.SECRET, word, "shows secrets of the cluster"))
    return tuple(effects)
