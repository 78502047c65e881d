"""An analysis as a text for a person."""

from handrail.shell.model import Analysis, Does, Segment, Verdict

HEADLINE = {
    Verdict.READ_ONLY: "read-only",
    Verdict.NOT_READ_ONLY: "not read-only",
    Verdict.NOT_UNDERSTOOD: "not understood",
}


def explain(analysis: Analysis) -> str:
    """The verdict, then every command with what it does and why it is judged so."""
    lines = [HEADLINE[analysis.verdict]]
    lines += [f"  {reason.text} (bytes {reason.start}-{reason.end}, {reason.node})" for reason in analysis.problems]
    for segment in analysis.segments:
        lines += describe(segment)
    return "\n".join(lines)


def describe(segment: Segment) -> list[str]:
    words = " ".join(str(word) for word in segment.argv) or segment.node
    inside = f" in {' > '.join(segment.path)}" if segment.path else ""
    lines = [f"- {words}{inside}: {HEADLINE[segment.verdict]}"]
    lines += [
        f"    {does.value} {', '.join(str(word) for word in found)}"
        for does in (Does.READS, Does.LOOKS, Does.WRITES)
        if (found := segment.words(does))
    ]
    for reason in segment.reasons:
        entry = f", entry {reason.entry!r}" if reason.entry else ""
        lines.append(f"    {reason.text} (bytes {reason.start}-{reason.end}, {reason.node}{entry})")
    lines += [f"    needs: {need.check}" for need in segment.requires]
    return lines
