"""Describes an analysis in text for the user."""

from handrail.lazy import lazy_pattern
from handrail.shell.model import Analysis, CommandVerdict, Does, Segment, Word

HEADLINE = {
    CommandVerdict.READ_ONLY: "read-only",
    CommandVerdict.NOT_READ_ONLY: "not read-only",
    CommandVerdict.NOT_UNDERSTOOD: "not understood",
}
PLAIN = lazy_pattern(r"[\w./:=@%+,{}*?\[\]$~^#<>()-]+\Z")


def explain(analysis: Analysis) -> str:
    """The verdict, then every command with what it does and why it is judged so."""
    lines = [HEADLINE[analysis.verdict]]
    lines += [f"  {reason.text} (bytes {reason.start}-{reason.end}, {reason.node})" for reason in analysis.problems]
    for segment in analysis.segments:
        lines += describe(segment)
    return "\n".join(lines)


def describe(segment: Segment) -> list[str]:
    words = " ".join(format_word(word) for word in segment.argv) or f"({segment.node})"
    carried = f", inside {' > '.join(segment.path)}" if segment.path else ""
    moved = "" if segment.cwds == (".",) else f", in {' or '.join(folder or 'any folder' for folder in segment.cwds)}"
    lines = [f"- {words}{carried}{moved}: {HEADLINE[segment.verdict]}"]
    lines += [
        f"    {does.value} {', '.join(dict.fromkeys(format_word(word) for word in found))}"
        for does in (Does.READS, Does.LOOKS, Does.WRITES)
        if (found := segment.words(does))
    ]
    for reason in segment.reasons:
        entry = f", entry {reason.entry!r}" if reason.entry else ""
        lines.append(f"    {reason.text} (bytes {reason.start}-{reason.end}, {reason.node}{entry})")
    lines += [f"    needs: {check}" for check in dict.fromkeys(need.check for need in segment.requires)]
    return lines


def format_word(word: Word) -> str:
    """The word on one line, in quotes where it would be taken for something else."""
    text = str(word)
    return text if PLAIN.match(text) else repr(text)
