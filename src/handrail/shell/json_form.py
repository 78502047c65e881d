"""An analysis as plain data, for programs that read it."""

from typing import Any

from handrail.shell.model import Analysis, PieceKind, Reason, Segment, Word


def analysis_json(analysis: Analysis) -> dict[str, Any]:
    """The verdict, every command with what it does, and what else the line might run."""
    return {
        "command": analysis.command,
        "verdict": analysis.verdict.name,
        "problems": [reason_json(reason) for reason in analysis.problems],
        "segments": [segment_json(segment) for segment in analysis.segments],
        "suspects": [list(words) for words in analysis.suspects],
        "guesses": [list(words) for words in analysis.guesses],
    }


def segment_json(segment: Segment) -> dict[str, Any]:
    """One command with what it does and why it is judged so."""
    return {
        "argv": [word_json(word) for word in segment.argv],
        "range": [segment.start, segment.end],
        "node": segment.node,
        "entry": segment.entry,
        "path": list(segment.path),
        "env": {name: word_json(word) for name, word in segment.env},
        "cwds": list(segment.cwds),
        "redirections": [
            {"fd": r.fd, "operator": r.operator, "target": word_json(r.target)} for r in segment.redirections
        ],
        "effects": [
            {"does": e.does.value, "word": word_json(e.word) if e.word else None, "why": e.why} for e in segment.effects
        ],
        "requires": [{"name": r.name, "check": r.check, "switches": list(r.switches)} for r in segment.requires],
        "verdict": segment.verdict.name,
        "reasons": [reason_json(reason) for reason in segment.reasons],
    }


def word_json(word: Word) -> dict[str, Any]:
    literal = word.literal
    if literal is not None:
        return {"text": literal, "range": [word.start, word.end]}
    unknown = sorted({piece.kind.value for piece in word.pieces if piece.kind is not PieceKind.LITERAL})
    return {"text": str(word), "unknown": unknown, "range": [word.start, word.end]}


def reason_json(reason: Reason) -> dict[str, Any]:
    return {
        "verdict": reason.verdict.name,
        "text": reason.text,
        "range": [reason.start, reason.end],
        "node": reason.node,
        "entry": reason.entry,
    }
