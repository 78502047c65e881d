"""Operands of git clean: the folders from which everything that git does not know is removed."""

from handrail.shell.model import Does, Effect, Kind, Piece, Word, literal_word


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    rest = Piece(Kind.FOUND, "/{}", quoted=True, narrowed=True)
    found = [word._replace(pieces=(*word.pieces, rest)) for word in words or (literal_word("."),)]
    return tuple(Effect(Does.WRITES, word, "removes what git does not know", removes=True) for word in found)
