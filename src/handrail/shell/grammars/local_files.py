"""Operands that are files or addresses (xmllint): an address is fetched, a file is read."""

from handrail.shell.model import Does, Effect, Word


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    return tuple(
        Effect(Does.NETWORK, word, "fetches this address")
        if ":" in str(word).partition("/")[0]
        else Effect(Does.READS, word, "reads this")
        for word in words
    )
