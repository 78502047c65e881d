"""
Turns a parsed script into segments, in the order of the text, from the inside out.

Each command is analysed with the working folders it may run in, the variables set before it, and the command whose
output it reads. Commands inside substitutions, wrappers and inner shells become segments of their own; `path` names
the wrappers around them.
"""

from collections.abc import Callable, Container, Iterable
from functools import reduce

from handrail.errors import UnclearError
from handrail.shell.listing import checked_listing, from_listing, gone_through, names_from
from handrail.shell.model import (
    LINKS_INSIDE,
    LISTED_NAMES,
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
from handrail.shell.scope import PLAIN_NAME, ArrayValue, Scope, merge
from handrail.shell.shell_state import Way, after, bound_by, changes, number_variables
from handrail.shell.surroundings import Position, fed_program, portable, redirect, set_for_command
from handrail.shell.syntax import CommandPipeline, Compound, Script, Simple
from handrail.shell.verdict import Judgement, judge_command

MAX_SEGMENTS = 400
MAX_INNER = 6
STATEFUL = frozenset(("cd", "read"))

READS_AS_BASH = frozenset("bash rbash eval trap alias mapfile readarray jobs".split())
Inserted = tuple[tuple[str, tuple[Segment, ...]], ...]


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
        effects, _ = self.redirections(command.redirections, scope, place)
        if command.kind == "for":
            command = command._replace(words=scope.expand_arrays(command.words))
        expanded, inserted = self.words(command.words, scope, place)
        effects += expanded
        if command.kind == "for":
            command = command._replace(words=tuple(names_from(word, inserted) for word in command.words))
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
            scope = scope.forgetting_in_loop(*changes(scripts), numbers=number_variables(scripts))
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
        if len(command.words) == 1 and isinstance(listing := command.words[0].pieces[0].script, Segment):
            name = Piece(PieceKind.PARAMETER, f"${command.name}", quoted=True, script=listing)
            return scope.with_variable(command.name, name)
        if len(command.words) == 1 and {piece.kind for piece in command.words[0].pieces} == {
            PieceKind.LITERAL,
            PieceKind.GLOB,
        }:
            pattern = "".join(piece.pattern for piece in command.words[0].pieces)
            return scope.with_variable(command.name, Piece(PieceKind.GLOB, pattern, quoted=True))
        for word in command.words:
            alternatives = scope.resolve(word).alternatives
            if alternatives is None:
                return scope.with_variable(command.name, PieceKind.PARAMETER)
            values += alternatives
        return scope.with_variable(command.name, tuple(dict.fromkeys(values))) if values else scope

    # simple commands

    def simple(self, command: Simple, scope: Scope, place: Position) -> Way:
        effects, opened = self.redirections(command.redirections, scope, place)
        names: list[str] = []
        sources: Inserted = ()
        for variable, word in command.assigns:
            assigned, inserted = self.words((word,), scope, place, names)
            effects, sources = effects + assigned, sources + inserted
            names.append(variable)
        command = command._replace(words=scope.expand_arrays(command.words))
        expanded, inserted = self.words(command.words, scope, place, names)
        effects += expanded
        self.bind(command.assigns, command, scope, place, sources)
        self.bind([(name, word) for name, words in command.arrays for word in words], command, scope, place)
        place = self.with_input(command.redirections, scope, place)
        segment = Segment(
            tuple(scope.resolve(word) for word in command.words),
            command.start,
            command.end,
            env=command.assigns,
            redirections=command.redirections,
            inserted=inserted + opened,
        )
        if not command.words:
            return self.assignments(command, segment, effects, scope, place)
        name = command.words[0].literal
        effects += [effect for variable, word in command.assigns if (effect := set_for_command(variable, word, name))]
        found = judge_command(segment.argv, place.names)
        found = found._replace(
            effects=tuple(
                effect._replace(word=names_from(effect.word, inserted)) if effect.word else effect
                for effect in found.effects
            )
        )
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
        effects += [
            Effect(Does.STATE, None, f"sets {name}, which may change what programs do")
            for name, _ in (*command.assigns, *command.arrays)
            if not PLAIN_NAME.match(name)
        ]
        for name, word in command.assigns:
            later = later.assigning(name, word)
        for name, words in command.arrays:
            later = later.with_variable(name, ArrayValue(tuple(word.literal or "" for word in words)))
        node = "assignment" if command.assigns or command.arrays else "redirection"
        self.add(segment._replace(node=node), effects, scope, place)
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
        if needs_look_at_names(segment):
            segment = segment._replace(requires=(*segment.requires, LISTED_NAMES))
        self.segments.append(segment)

    # words and redirections

    def words(
        self, words: tuple[Word, ...], scope: Scope, place: Position, assigned: Container[str] = ()
    ) -> tuple[list[Effect], Inserted]:
        """
        What the expansion of words does: substitutions become segments, unknown variables are effects.

        `assigned`: variables that the same command sets, maybe before the words are expanded.
        """
        effects: list[Effect] = []
        inserted: Inserted = ()
        for word in words:
            for piece in word.pieces:
                if isinstance(piece.script, Script):
                    carrier = "<(...)" if piece.kind is PieceKind.PROCESS else "$(...)"
                    before = len(self.segments)
                    self.script(piece.script, scope, Position((*place.path, carrier), arguments=place.arguments))
                    inserted += ((piece.text, tuple(self.segments[before:])),)
                if name := scope.evaluates(piece, assigned):
                    why = f"arithmetic with {name}, which may hold more than a number"
                    effects.append(Effect(Does.UNKNOWN, word, why))
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

    def redirections(
        self, redirections: tuple[Redirection, ...], scope: Scope, place: Position
    ) -> tuple[list[Effect], Inserted]:
        effects: list[Effect] = []
        inserted: Inserted = ()
        for redirection in redirections:
            heredoc = redirection.operator in ("<<", "<<-")
            target = self.bodies[redirection.target.start] if heredoc else redirection.target
            expanded, printed = self.words((target,), scope, place)
            effects, inserted = effects + expanded, inserted + printed
            if not heredoc and redirection.operator != "<<<":
                effects += redirect(redirection.operator, scope.resolve(target))
        return effects, inserted


def needs_look_at_names(segment: Segment) -> bool:
    """Whether it reads files that git lists, or looks at some which are not known to be inside."""
    return any(
        each.word is not None
        and each.does in (Does.READS, Does.LOOKS)
        and checked_listing(segment, each.word) is not None
        and (each.does is Does.READS or not from_listing(segment, each, each.word))
        for each in segment.effects
    )


def working_scope(scope: Scope, found: Judgement) -> Scope:
    """Where the program does its work, after options like `git -C`."""
    for folder in found.moves:
        scope = scope.working_in(folder)
    return scope
