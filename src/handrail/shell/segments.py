"""
Turns a parsed script into segments, in the order of the text, from the inside out.

Each command is analysed with the working folders it may run in, the variables set before it, and the command whose
output it reads. Commands inside substitutions, wrappers and inner shells become segments of their own; `path` names
the wrappers around them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import NamedTuple

from handrail.errors import UnclearError
from handrail.shell.listing import FED, PLACE, gone_through
from handrail.shell.model import (
    FREE_TARGETS,
    LINKS_INSIDE,
    POSITIONALS,
    Analysis,
    Binding,
    CommandVerdict,
    Does,
    Effect,
    Piece,
    PieceKind,
    Reason,
    Redirection,
    Segment,
    Word,
    literal_word,
)
from handrail.shell.patterns import pattern_text
from handrail.shell.scope import ANY_NAME, PLAIN_NAME, Scope, harmless_setting, merge
from handrail.shell.syntax import CommandPipeline, Compound, Script, Simple
from handrail.shell.verdict import ASSIGNMENT, Judgement, judge_command
from handrail.shell.words import NAME

MAX_SEGMENTS = 400
MAX_INNER = 6
STATEFUL = frozenset(("cd", "read"))
DESCRIPTOR = re.compile(r"(?:[0-9]+|-)\Z")  # a digit of another script names a file
SOCKETS = ("/dev/tcp/", "/dev/udp/")

FED_SHELLS = frozenset("sh bash dash rbash ash zsh ksh mksh".split())
READS_AS_BASH = frozenset("bash rbash eval trap alias mapfile readarray jobs".split())
# What other shells read differently: $'a\'' ends elsewhere, `a &>f b` is two commands, `[[ a > b ]]` writes b, and in
# `[^a]` the first character is one like others.
ONLY_BASH = re.compile(r"\$['\"]|&>|\[[\[^]|\|&|[<>]\(|<<<|\{[^}]*(?:,|\.\.)|\bfunction\b")

MOVERS = frozenset(("cd", "pushd", "popd", "eval", "source", "."))
MOVING = re.compile(r"(?:\A|[\s;&|({!])(?:cd|pushd|popd|eval|source|\.)(?=\s|\Z)|[$`]")
DECLARING = frozenset("export declare typeset local readonly".split())
SETTING = frozenset("read printf mapfile readarray getopts let unset".split())  # with names of variables as words

Way = tuple[Scope, Scope]  # the scope after success, and after failure
Inserted = tuple[tuple[str, tuple[Segment, ...]], ...]


class Position(NamedTuple):
    """Where a command stands: the wrappers around it, and what feeds its standard input."""

    path: tuple[str, ...] = ()
    fed_by: Segment | None = None
    arguments: tuple[Word, ...] = ()  # see Effect

    def inside(self, carrier: str) -> "Position":
        return self._replace(path=(*self.path, carrier))

    def with_arguments(self, arguments: tuple[Word, ...]) -> "Position":
        """The place inside a command with these arguments; one that stands for paths of the outer command is those."""
        found = [argument for argument in arguments if str(argument) != PLACE]
        return self._replace(arguments=(*found, *(self.arguments if len(found) < len(arguments) else ())))

    @property
    def listed(self) -> bool:
        """True if names of files at or under what was read come in, and nothing else."""
        return self.fed_by is not None and self.fed_by.lists_paths

    @property
    def names(self) -> tuple[Word, ...]:
        return self.fed_by.whole_names if self.fed_by is not None else ()


class Collected:
    """What the builders of a line and of its inner texts found."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.bindings: list[Binding] = []
        self.functions: set[str] = set()

    def analysis(self, command: str, text: str, *problems: Reason) -> Analysis:
        calls = [segment for segment in self.segments if self.functions and segment.name in self.functions]
        passed = [Binding(POSITIONALS, word, segment) for segment in calls for word in segment.argv[1:]]
        return Analysis(command, text, tuple(self.segments), problems, bindings=(*self.bindings, *passed))


class SegmentBuilder:
    """Collects the segments of one parsed text. `inner` analyses the text of an inner shell."""

    def __init__(self, bodies: dict[int, Word], found: Collected, inner: Callable[[str, Position, Scope], None]):
        self.bodies, self.inner, self.found = bodies, inner, found
        self.segments = found.segments

    # scripts

    def script(self, script: Script, scope: Scope, place: Position) -> Way:
        """Runs through the pipelines; `a && b` enters b only where a worked, `a || b` only where it failed."""
        ok = fail = scope
        before = ";"
        for pipeline, operator in script.items:
            if before == "&&":
                done, failed = self.pipeline(pipeline, ok, place)
                ok, fail = done, merge(fail, failed)
            elif before == "||":
                done, failed = self.pipeline(pipeline, fail, place)
                ok, fail = merge(ok, done), failed
            else:
                ok, fail = self.pipeline(pipeline, merge(ok, fail), place)
            if operator == "&":  # ran in a subshell, and the list it ended may have been skipped
                ok = fail = merge(scope, merge(ok, fail))
            before = operator
        return ok, fail

    def pipeline(self, pipeline: CommandPipeline, scope: Scope, place: Position) -> Way:
        if len(pipeline.parts) == 1:
            ok, fail = self.command(pipeline.parts[0], scope, place)
            return (fail, ok) if pipeline.negated else (ok, fail)
        fed_by = place.fed_by
        for part in pipeline.parts:
            before = len(self.segments)
            self.command(part, scope, place._replace(fed_by=fed_by))
            fed_by = self.segments[-1] if isinstance(part, Simple) and len(self.segments) > before else None
        return scope, scope  # every part ran in a subshell

    def command(self, command: Simple | Compound, scope: Scope, place: Position) -> Way:
        if isinstance(command, Simple):
            return self.simple(command, scope, place)
        effects = self.redirections(command.redirections, scope, place)
        expanded, inserted = self.words(command.words, scope, place)
        effects += expanded
        if command.kind == "for":
            self.bind([(command.name, word) for word in command.words], command, scope, place, inserted)
        if command.kind == "for" and not PLAIN_NAME.match(command.name):
            effects.append(Effect(Does.STATE, None, f"sets {command.name}, which may change what programs do"))
        if command.kind == "function":
            self.found.functions.add(command.name)
            effects.append(Effect(Does.UNKNOWN, None, f"defines the function {command.name!r}"))
        if effects:
            segment = Segment((), command.start, command.end, command.kind, redirections=command.redirections)
            self.add(segment, effects, scope, place)
        place = self.with_input(command.redirections, scope, place)
        return self.bodies_of(command, scope, place.inside(command.kind))

    def bodies_of(self, command: Compound, scope: Scope, place: Position) -> Way:
        scripts = command.scripts
        if command.kind == "group":
            return self.script(scripts[0], scope, place)
        if command.kind in ("subshell", "function"):
            self.script(scripts[0], scope, place)
            if command.kind == "function":  # a call changes what the body changes
                scope = scope.forgetting(*changes(scripts))
            return scope, scope
        if command.kind in ("for", "while"):  # a loop's body may run after itself
            scope = scope.forgetting(*changes(scripts))
        if command.kind == "for":
            scope = self.loop_variable(command, scope)
        after = scope
        if command.kind == "while":
            inside, outside = self.script(scripts[0], scope, place)
            after = merge(merge(*self.script(scripts[1], inside, place)), outside)
        elif command.kind == "if":
            after = self.branches(scripts, scope, place)
        else:
            for script in scripts:
                after = merge(after, merge(*self.script(script, scope, place)))
        return after, after

    def branches(self, scripts: tuple[Script, ...], scope: Scope, place: Position) -> Scope:
        afters: list[Scope] = []
        for at in range(0, len(scripts) - 1, 2):
            yes, scope = self.script(scripts[at], scope, place)
            afters.append(merge(*self.script(scripts[at + 1], yes, place)))
        afters.append(merge(*self.script(scripts[-1], scope, place)) if len(scripts) % 2 else scope)
        return reduce(merge, afters)

    def loop_variable(self, command: Compound, scope: Scope) -> Scope:
        if not PLAIN_NAME.match(command.name):
            return scope
        values: list[str] = []
        if len(command.words) == 1 and {piece.kind for piece in command.words[0].pieces} == {
            PieceKind.LITERAL,
            PieceKind.GLOB,
        }:
            pattern = "".join(map(pattern_text, command.words[0].pieces))
            return scope.with_variable(command.name, Piece(PieceKind.GLOB, pattern, quoted=True))
        for word in command.words:
            alternatives = scope.resolve(word).alternatives
            if alternatives is None:
                return scope.with_variable(command.name, PieceKind.PARAMETER)
            values += alternatives
        return scope.with_variable(command.name, tuple(dict.fromkeys(values))) if values else scope

    # simple commands

    def simple(self, command: Simple, scope: Scope, place: Position) -> Way:
        effects = self.redirections(command.redirections, scope, place)
        assigned, sources = self.words(tuple(word for _, word in command.assigns), scope, place)
        expanded, inserted = self.words(command.words, scope, place)
        effects += assigned + expanded
        self.bind(command.assigns, command, scope, place, sources)
        place = self.with_input(command.redirections, scope, place)
        segment = Segment(
            tuple(scope.resolve(word) for word in command.words),
            command.start,
            command.end,
            env=command.assigns,
            redirections=command.redirections,
            inserted=inserted,
        )
        if not command.words:
            return self.assignments(command, segment, effects, scope, place)
        name = command.words[0].literal
        effects += [effect for variable, word in command.assigns if (effect := set_for_command(variable, word, name))]
        found = judge_command(segment.argv, place.names)
        if found.moves and effects:  # what the shell opens, it opens before the program changes the folder
            self.add(segment._replace(argv=(), node="redirection", env=()), effects, scope, place)
            effects = []
        inside = working_scope(scope, found)
        self.add(segment, [*effects, *found.effects], inside, place, found)
        self.bind(bound_by(segment), command, scope, place, inserted)
        self.children(segment, found, inside, place)
        return after(segment, found, scope)

    def bind(
        self,
        pairs: Iterable[tuple[str, Word]],
        at: Simple | Compound,
        scope: Scope,
        place: Position,
        inserted: Inserted = (),
    ) -> None:
        """Notes what variables are set to, with all that is needed to follow the words."""
        for name, word in pairs:
            segment = Segment(
                (),
                at.start,
                at.end,
                "binding",
                path=place.path,
                cwds=scope.folders,
                in_home=scope.in_home,
                fed_by=place.fed_by,
                inserted=inserted,
                arguments=place.arguments,
            )
            self.found.bindings.append(Binding(name, word, segment))

    def assignments(
        self, command: Simple, segment: Segment, effects: list[Effect], scope: Scope, place: Position
    ) -> Way:
        later = scope
        for name, word in command.assigns:
            if not PLAIN_NAME.match(name):
                effects.append(Effect(Does.STATE, word, f"sets {name}, which may change what programs do"))
            values = later.resolve(word).alternatives if word.pieces else ("",)
            later = later.with_variable(name, values or PieceKind.PARAMETER)
        self.add(segment._replace(node="assignment" if command.assigns else "redirection"), effects, scope, place)
        return later, later

    def children(self, segment: Segment, found: Judgement, scope: Scope, place: Position) -> None:
        """The commands this one runs, as segments of their own."""
        carrier = found.entry or segment.name
        if (text := fed_program(segment, place)) is not None:
            self.inner(text, place.inside(carrier)._replace(fed_by=None), scope)
        for effect in found.effects:
            if effect.shell is not None:
                if carrier not in READS_AS_BASH:
                    portable(effect.shell, segment)
                self.inner(effect.shell, place.inside(carrier).with_arguments(effect.arguments), scope)
            if effect.child:
                self.child(
                    effect, segment, scope, place.inside(carrier).with_arguments(effect.arguments or place.arguments)
                )

    def child(self, effect: Effect, parent: Segment, scope: Scope, place: Position) -> None:
        words = effect.child
        if len(place.path) > 3 * MAX_INNER:
            raise UnclearError("wrapped too deep", parent.start, parent.end, "command")
        if words[0].literal in ("-c", "--command") and len(words) > 1 and (text := words[1].literal) is not None:
            portable(text, parent)
            self.inner(text, place, scope)  # flock FILE -c TEXT
        segment = parent._replace(argv=words, start=words[0].start, env=effect.env, redirections=())
        self.found.bindings += [Binding(name, word, segment) for name, word in effect.env]
        found = judge_command(words, place.names)
        effects = [bad for name, word in effect.env if (bad := set_for_command(name, word, words[0].literal))]
        effects += found.effects
        if found.entry in STATEFUL:
            effects.append(Effect(Does.UNKNOWN, words[0], f"{found.entry} inside another command is not followed"))
        inside = working_scope(scope, found)
        self.add(segment, effects, inside, place, found)
        self.children(segment, found, inside, place)

    def add(
        self, segment: Segment, effects: list[Effect], scope: Scope, place: Position, found: Judgement | None = None
    ) -> None:
        if len(self.segments) >= MAX_SEGMENTS:
            raise UnclearError(f"more than {MAX_SEGMENTS} commands", segment.start, segment.end)
        entry = found.entry if found else ""
        reasons = tuple(
            Reason(
                effect.verdict,
                f"{effect.word}: {effect.why}" if effect.word is not None and str(effect.word) else effect.why,
                effect.word.start if effect.word is not None and effect.word.end else segment.start,
                effect.word.end if effect.word is not None and effect.word.end else segment.end,
                segment.node,
                entry,
            )
            for effect in effects
            if effect.verdict is not CommandVerdict.READ_ONLY
        )
        segment = segment._replace(
            effects=tuple(effects),
            reasons=reasons,
            entry=entry,
            path=place.path,
            cwds=scope.folders,
            in_home=scope.in_home,
            fed_by=place.fed_by,
            arguments=place.arguments,
            requires=found.requires if found else (),
            lists_paths=found is not None and (found.lists_paths or (found.passes and place.listed)),
            whole_names=found.whole_names if found else (),
        )
        if any(below.links for _, _, below in gone_through(segment)):
            segment = segment._replace(requires=(*segment.requires, LINKS_INSIDE))
        self.segments.append(segment)

    # words and redirections

    def words(self, words: tuple[Word, ...], scope: Scope, place: Position) -> tuple[list[Effect], Inserted]:
        """What the expansion of words does: substitutions become segments, unknown variables are effects."""
        effects: list[Effect] = []
        inserted: Inserted = ()
        for word in words:
            for piece in word.pieces:
                if isinstance(piece.script, Script):
                    carrier = "<(...)" if piece.kind is PieceKind.PROCESS else "$(...)"
                    before = len(self.segments)
                    self.script(piece.script, scope, Position((*place.path, carrier), arguments=place.arguments))
                    inserted += ((piece.text, tuple(self.segments[before:])),)
            secret = next((piece for piece in word.pieces if scope.secret(piece)), None)
            if secret is not None:
                why = f"the value of {secret.text} is not known and may be secret"
                effects.append(Effect(Does.SECRET, word, why))
        return effects, inserted

    def with_input(self, redirections: tuple[Redirection, ...], scope: Scope, place: Position) -> Position:
        """The place with what a redirection of standard input feeds instead; a text counts as printed by echo."""
        for redirection in redirections:
            if redirection.operator in ("<", "<<", "<<-", "<<<", "<&", "<>"):
                place = place._replace(fed_by=None)
            if redirection.operator in ("<<", "<<-", "<<<"):
                target = redirection.target
                text = target if redirection.operator == "<<<" else self.bodies[target.start]
                words = (literal_word("echo"), scope.resolve(text))
                place = place._replace(fed_by=Segment(words, text.start, text.end, entry="echo", cwds=scope.folders))
        return place

    def redirections(self, redirections: tuple[Redirection, ...], scope: Scope, place: Position) -> list[Effect]:
        effects: list[Effect] = []
        for redirection in redirections:
            heredoc = redirection.operator in ("<<", "<<-")
            target = self.bodies[redirection.target.start] if heredoc else redirection.target
            effects += self.words((target,), scope, place)[0]
            if not heredoc and redirection.operator != "<<<":
                effects += redirect(redirection.operator, scope.resolve(target))
        return effects


def fed_program(segment: Segment, place: Position) -> str | None:
    """The text that a shell reads from standard input as its program, where a command prints it (`echo ls | sh`)."""
    source = place.fed_by
    if segment.name not in FED_SHELLS or source is None or source.entry not in ("echo", "printf"):
        return None
    texts = [word.literal for word in source.argv[1:]]
    known = [text for text in texts if text is not None and not text.startswith("-")]
    options = all((word.literal or "").startswith("-") for word in segment.argv[1:])
    return " ".join(known) if options and known and None not in texts else None


def portable(text: str, segment: Segment) -> None:
    """Raises UnclearError for a text that `sh` may read otherwise than bash."""
    if found := ONLY_BASH.search(text):
        raise UnclearError(f"{found.group()!r} for a shell that may not be bash", segment.start, segment.end)


def redirect(operator: str, target: Word) -> list[Effect]:
    """The file a redirection reads or writes."""
    text = target.literal
    if operator in (">&", "<&") and text is not None and DESCRIPTOR.match(text):
        return []
    if text is not None and text.startswith(SOCKETS):
        return [Effect(Does.NETWORK, target, "opens a connection")]
    if not target.single:
        opened = Does.READS if operator == "<" else Does.WRITES
        unknown = Effect(Does.UNKNOWN, target, "the target of the redirection is not one known word")
        return [unknown, Effect(opened, target, "opened by redirection")]
    if operator == "<":
        return [Effect(Does.READS, target, "read by redirection")]
    if text in FREE_TARGETS and operator in (">", ">>", "&>", "&>>", ">|", ">&"):
        return []
    return [Effect(Does.WRITES, target, "written by redirection")]


def set_for_command(name: str, word: Word, command: str | None) -> Effect | None:
    """`NAME=value command`: only names and values that cannot load, run or redirect anything."""
    if (name == "IFS" and command == "read") or harmless_setting(name, word):  # IFS: how this one line is cut
        return None
    return Effect(Does.STATE, word, f"runs the command with {name} set, which may change what it does")


def working_scope(scope: Scope, found: Judgement) -> Scope:
    """Where the program does its work, after options like `git -C`."""
    for folder in found.moves:
        scope = scope.working_in(folder)
    return scope


def bound_by(segment: Segment) -> Iterator[tuple[str, Word]]:
    """What a builtin puts into variables, with the names of these."""
    name, words = segment.name, segment.argv[1:]
    if name == "set":
        yield from ((POSITIONALS, word) for word in words)
    elif name in DECLARING:
        for word in words:
            if found := ASSIGNMENT.match(word.leading):
                yield found.group(1), word.cut(found.end())
    elif name == "printf" and len(words) > 2 and words[0].literal == "-v":
        yield from ((str(words[1]), word) for word in words[2:])
    elif name in ("read", "mapfile", "readarray"):
        anything = Word((Piece(PieceKind.INPUT, FED),))
        yield from ((word.literal, anything) for word in words if word.literal and NAME.fullmatch(word.literal))


def after(segment: Segment, found: Judgement, scope: Scope) -> Way:
    """What builtins that change the folder or variables leave behind; other commands change nothing known here."""
    if segment.name in ("pushd", "popd"):
        return scope._replace(folders=(None,)), scope
    if runs_here(segment, found):
        return (scope.forgetting({ANY_NAME}, moves=True),) * 2
    if segment.name in DECLARING | SETTING:
        texts = {word.leading for word in segment.argv[1:]}
        given = {match.group(1) for text in texts if (match := ASSIGNMENT.match(text))}
        given |= texts if segment.name in SETTING else set()
        for name in given & scope.variables.keys():
            scope = scope.with_variable(name, PieceKind.PARAMETER)
    if found.entry == "cd":
        target = next((effect.word for effect in found.effects if effect.does is Does.LOOKS), None)
        return scope.entering(target), scope
    if found.entry == "read":
        later = scope
        for word in segment.argv[1:]:
            if (text := word.literal) and PLAIN_NAME.match(text):
                later = later.with_variable(text, PieceKind.INPUT)
        return later, later  # a last line without its newline is read too, and counts as a failure
    return scope, scope


def runs_here(segment: Segment, found: Judgement) -> bool:
    """Whether it runs in this shell what may change the folder and the variables."""
    if segment.name in ("eval", "source", "."):
        return True
    if segment.name in ("trap", "alias"):
        return any(MOVING.search(effect.shell) for effect in found.effects if effect.shell is not None)
    return segment.name in ("command", "builtin") and any(
        effect.child and (effect.child[0].literal is None or effect.child[0].literal in MOVERS)
        for effect in found.effects
    )


def changes(scripts: tuple[Script, ...]) -> tuple[set[str], bool]:
    """The variables that scripts may set, and whether they may change the working folder; `$x` may be cd or read."""
    names, moves = set[str](), False
    for script in scripts:
        for pipeline, _ in script.items:
            for part in pipeline.parts:
                if isinstance(part, Compound):
                    inner, moved = changes(part.scripts)
                    names |= inner | {part.name}
                    moves = moves or moved
                    continue
                names |= {name for name, _ in part.assigns}
                first = part.words[0].literal if part.words else ""
                if first is None or first == "read":
                    names |= {ANY_NAME if word.literal is None else word.literal for word in part.words}
                if first in ("command", "builtin") and len(part.words) > 1:
                    first = next(
                        (text for word in part.words[1:] if not (text := word.literal or "").startswith("-")), ""
                    )
                names |= {ANY_NAME} if first in ("eval", "source", ".") else set()
                moves = moves or first is None or first in MOVERS
    return names, moves
