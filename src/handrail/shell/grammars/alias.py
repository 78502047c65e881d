"""Definitions of `alias` (bash 5.2): NAME=TEXT. The text is looked into, its use is not followed."""

from handrail.shell.model import Does, Effect, Word


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    effects = [Effect(Does.STATE, None, "changes what a command name means")]
    for word in words:
        name, equals, text = (word.literal or "").partition("=")
        if equals:
            effects.append(Effect(Does.RUNS, word, f"{name} runs this text", shell=text))
        elif word.literal is None:
            effects.append(Effect(Does.UNKNOWN, word, "the text of the alias is not known"))
    return tuple(effects)
