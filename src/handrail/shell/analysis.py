"""Turns the text of a command line into its Analysis. The only entry is `analyse`."""

from functools import lru_cache

from handrail.errors import UnclearError
from handrail.shell.gate import check, join_lines
from handrail.shell.model import Analysis, CommandVerdict, Reason
from handrail.shell.parser import Parser
from handrail.shell.possible_commands import possible_commands
from handrail.shell.scope import Scope
from handrail.shell.second import agree
from handrail.shell.segments import MAX_INNER, Collected, SegmentBuilder
from handrail.shell.surroundings import Position
from handrail.shell.wrapped_commands import wrapped_commands

CACHED = 1024


@lru_cache(maxsize=CACHED)
def analyse(command: str) -> Analysis:
    """What the command line would do, without running it. Answers for every text; never raises."""
    analysis = analysis_of(command)
    if analysis.verdict is CommandVerdict.READ_ONLY:
        return analysis
    try:
        likely, guesses = wrapped_commands(analysis.segments)
        if analysis.verdict is CommandVerdict.NOT_UNDERSTOOD:
            likely = (*likely, *possible_commands(command))
        return analysis._replace(suspects=tuple(dict.fromkeys(likely)), guesses=guesses)
    except Exception as error:  # noqa: BLE001 - what it might run is not known then
        return analysis._replace(problems=(*analysis.problems, internal(error, command)))


def analysis_of(command: str) -> Analysis:
    found = Collected()
    text = command
    try:
        check(command)
        text = join_lines(command)
        read(text, Position(), Scope(), found)
    except UnclearError as refused:
        problem = Reason(CommandVerdict.NOT_UNDERSTOOD, refused.text, refused.start, refused.end, refused.node, "")
        return found.analysis(command, text, problem)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here, the answer is "not understood"
        return found.analysis(command, text, internal(error, text))
    return found.analysis(command, text)


def internal(error: Exception, text: str) -> Reason:
    return Reason(CommandVerdict.NOT_UNDERSTOOD, f"internal error: {error!r}", 0, len(text), "text", "")


def read(text: str, place: Position, scope: Scope, found: Collected) -> None:
    """Adds the segments of one text; called again for the texts of inner shells."""
    parser = Parser(text)
    script = parser.parse()

    def inner(shell: str, where: Position, at: Scope) -> None:
        if len(where.path) > MAX_INNER:
            raise UnclearError(f"shells inside shells, more than {MAX_INNER} deep")
        check(shell)
        # The inner shell sees the folder but not the unexported variables of this one.
        read(join_lines(shell), where, Scope(at.folders), found)

    SegmentBuilder(parser.bodies, found, inner).script(script, scope, place)
    agree(text, parser.name_starts)
