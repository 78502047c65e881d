"""
A small world for random programs of calls: leaf files, tools that read and write them, and a record of who overlapped.

A written leaf depends on who wrote it, on what it held and on what the writer had read, and it is dirty while it is
being written. So any order that can be told from the serial one shows in a result or in the final files.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from handrail.conversation.blocks import BrokenToolUse, ToolUse
from handrail.dispatch.gate import CarefulGate, HookAnswer, Rails
from handrail.dispatch.results import ResultStore
from handrail.errors import ToolError
from handrail.tools.access import EXCLUSIVE, SHARED, Access
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.outcome import Cause, Outcome
from handrail.tools.output import ContextChange, Output
from handrail.tools.permission import NO_OPINION, Check, Refuse, Verdict
from handrail.tools.pool import Ingredients, Pool, assemble
from handrail.tools.request import CallRequest
from handrail.tools.schema import Input
from handrail.tools.tool import PromptView, Tool

LEAVES = ("/a/x/1", "/a/x/2", "/a/y", "/b/x", "/b/z", "/clipboard")
PLACES = ("/", "/a", "/a/x", "/a/x/1", "/a/y", "/b", "/b/x", "/clipboard", "x", "./")
TIME_LIMIT = 3
RAISING = [frozenset[str]()] * 6 + [frozenset({question}) for question in ("summary", "access", "is_read_only")]

ENDINGS = ("ok", "tool_error", "crash", "is_error", "self_cancel", "denied", "refused", "exit")


@dataclass(frozen=True)
class Step:
    """One block of an answer, and how the call behaves."""

    key: int
    kind: str = "call"
    tool: str = "Do"
    mode: str = "named"
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    seconds: int = 0
    gap: int = 0
    ending: str = "ok"
    raises: frozenset[str] = frozenset()
    chdir: str = ""
    rewritten: "Step | None" = None

    @property
    def id(self) -> str:
        return f"call-{self.key}"

    @property
    def block(self) -> ToolUse | BrokenToolUse:
        if self.kind == "broken":
            return BrokenToolUse(self.id, self.tool, '{"key": ', "its input was cut off")
        name = "Nobody" if self.kind == "unknown" else self.tool
        return ToolUse(self.id, name, {"key": "?" if self.kind == "invalid" else self.key})

    @property
    def runs(self) -> bool:
        """Whether the tool can be reached at all."""
        return self.kind == "call"

    @property
    def says_read_only(self) -> bool:
        """Lonely ones only read, but want nobody beside them."""
        quiet = self.mode in {"shared", "lonely"} or (self.mode == "named" and not self.writes)
        return self.runs and quiet and "is_read_only" not in self.raises

    def access(self, cwd: Path) -> Access:
        match self.mode:
            case "shared":
                return SHARED
            case "exclusive" | "lonely":
                return EXCLUSIVE
        return Access.of(reads=[at(p, cwd) for p in self.reads], writes=[at(p, cwd) for p in self.writes])

    def leaves(self, cwd: Path) -> tuple[frozenset[str], frozenset[str]]:
        """What it reads and writes, leaf by leaf: the plain meaning of its access."""
        everything = frozenset((*LEAVES, "nothing"))
        if not self.runs or self.mode in {"exclusive", "lonely"} or "access" in self.raises:
            return everything, everything
        if self.mode == "shared":
            return everything, frozenset()
        reads, writes = below(self.reads, cwd), below(self.writes, cwd)
        return (reads, writes) if reads or writes else (frozenset({"nothing"}), writes)


def at(place: str, cwd: Path) -> str:
    return place if place.startswith("/") else str(cwd / place)


def below(places: frozenset[str], cwd: Path) -> frozenset[str]:
    whole = [at(place, cwd) for place in places]
    return frozenset(leaf for leaf in LEAVES for p in whole if leaf == p or leaf.startswith(p.rstrip("/") + "/"))


def overlap(one: Step, other: Step, cwd: Path) -> bool:
    """Whether the order of two calls can be told: the definition, without trees and groups."""
    (reads, writes), (other_reads, other_writes) = one.leaves(cwd), other.leaves(cwd)
    return bool(writes & (other_reads | other_writes) or other_writes & reads)


@dataclass
class World:
    """The leaves, and what went on among the calls."""

    steps: Mapping[int, Step]
    leaves: dict[str, str] = field(default_factory=lambda: dict.fromkeys(LEAVES, "0"))
    active: dict[int, tuple[Step, Path]] = field(default_factory=dict)
    most: int = 0
    told: dict[str, list[str]] = field(default_factory=dict)
    began_at: dict[int, float] = field(default_factory=dict)
    overlaps: list[tuple[str, str]] = field(default_factory=list)

    def begin(self, step: Step, cwd: Path) -> None:
        self.began_at[step.key] = asyncio.get_running_loop().time()
        self.overlaps += [(other.id, step.id) for other, _ in self.active.values() if overlap(step, other, cwd)]
        self.active[step.key] = (step, cwd)
        self.most = max(self.most, len(self.active))

    def end(self, step: Step) -> None:
        del self.active[step.key]

    def look(self, step: Step, cwd: Path) -> str:
        reads = below(step.reads, cwd) if step.mode == "named" else LEAVES
        return ",".join(self.leaves[leaf] for leaf in LEAVES if leaf in reads)

    def written(self, step: Step, cwd: Path) -> list[str]:
        if step.mode == "exclusive":
            return list(LEAVES)
        return sorted(below(step.writes, cwd)) if step.mode == "named" else []


class DoInput(Input):
    key: int


class Do(Tool[DoInput]):
    """Behaves as its step says."""

    input_model = DoInput

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.error_cancels_siblings = name == "Shell"
        self.timeout = TIME_LIMIT if name == "Timed" else None

    def step(self, args: DoInput) -> Step:
        return self.world.steps[args.key]

    def prompt(self, view: PromptView) -> str:
        return "Does something."

    def is_read_only(self, args: DoInput) -> bool:
        self.perhaps_raise(args, "is_read_only")
        return self.step(args).says_read_only

    def access(self, args: DoInput, run: RunContext) -> Access:
        self.perhaps_raise(args, "access")
        return self.step(args).access(run.cwd)

    def summary(self, args: DoInput) -> str:
        self.perhaps_raise(args, "summary")
        return f"{self.name}({args.key})"

    def perhaps_raise(self, args: DoInput, question: str) -> None:
        if question in self.step(args).raises:
            raise RuntimeError(f"{question} does not know")

    async def validate(self, args: DoInput, ctx: ToolContext) -> Refuse | None:
        return Refuse("it makes no sense") if self.step(args).ending == "refused" else None

    async def check_permission(self, args: DoInput, ctx: ToolContext) -> Check:
        return Check(Verdict.DENY, "it is not wanted") if self.step(args).ending == "denied" else NO_OPINION

    async def call(self, args: DoInput, ctx: ToolContext) -> Output:
        step, world = self.step(args), self.world
        world.begin(step, ctx.cwd)
        try:
            self.tell(ctx, "begins")
            seen = world.look(step, ctx.cwd)
            mine = world.written(step, ctx.cwd)
            for leaf in mine:
                world.leaves[leaf] += f" dirty by {step.key}"
            await asyncio.sleep(step.seconds)
            seen += ";" + world.look(step, ctx.cwd)
            for leaf in mine:
                world.leaves[leaf] = str(hash((step.key, world.leaves[leaf], seen)))
            self.tell(ctx, "ends")
            return self.ended(step, seen, ctx.cwd)
        finally:
            world.end(step)

    def tell(self, ctx: ToolContext, news: str) -> None:
        self.world.told.setdefault(ctx.use.id, []).append(news)
        ctx.progress(Progress(news))

    def ended(self, step: Step, seen: str, cwd: Path) -> Output:
        match step.ending:
            case "tool_error":
                raise ToolError("It did not work.")
            case "crash":
                raise ValueError("something odd")
            case "self_cancel":
                raise asyncio.CancelledError
            case "exit":
                raise SystemExit(3)
        change = ContextChange(cwd=Path(step.chdir)) if step.chdir else None
        return Output(text=f"in {cwd}: {hash(seen)}", context_change=change, is_error=step.ending == "is_error")


class Rewriting:
    """Hooks that put another input in place of some."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def before(self, request: CallRequest) -> HookAnswer:
        await asyncio.sleep(1)
        other = self.world.steps[request.args.key].rewritten
        return HookAnswer(updated_input={"key": other.key} if other else None)

    async def after(self, request: CallRequest, output: Output | None, error: str, seconds: float) -> HookAnswer:
        return HookAnswer()


def make(steps: tuple[Step, ...]) -> tuple[World, Pool]:
    everyone = {step.key: step for step in steps}
    everyone |= {step.rewritten.key: step.rewritten for step in steps if step.rewritten}
    world = World(everyone)
    return world, assemble(Ingredients(custom=tuple(Do(world, name) for name in ("Do", "Shell", "Timed", "Narrow"))))


TRUSTING = Rails(CarefulGate(trusting=True))
NO_STORE = ResultStore(Path("/nowhere"))


def start() -> RunContext:
    return RunContext(Path("/a"))


def line(outcome: Outcome) -> tuple[str, str, str, str]:
    """An outcome as it stands in history; which of several failures is blamed may depend on time, so it is left out."""
    text = "" if outcome.cause is Cause.SIBLING_ERROR else outcome.result.text
    return outcome.use.id, outcome.status.value, outcome.cause.value, text


def honest(step: Step) -> Step:
    """
    Two things keep the order of effects well defined when a shell call fails and takes later changing calls along.

    A shell call reads or touches everything, and a call that does not say it only reads does write something.
    """
    if step.tool == "Shell" and step.mode == "named":
        step = replace(step, mode="shared" if not step.writes else "exclusive")
    quiet = step.mode in {"shared", "lonely"} or (step.mode == "named" and not step.writes)
    return replace(step, raises=step.raises - {"is_read_only"}) if quiet else step


SOME_PLACES = st.frozensets(st.sampled_from(PLACES), max_size=2)


@cache
def steps(key: int, *, rewriting: bool = False) -> st.SearchStrategy[Step]:
    return st.builds(
        Step,
        st.just(key),
        kind=st.sampled_from(["call"] * 8 + ["unknown", "broken", "invalid"]),
        tool=st.sampled_from(["Do", "Do", "Shell", "Timed", "Narrow"]),
        mode=st.sampled_from(["named"] * 4 + ["shared", "exclusive", "lonely"]),
        reads=SOME_PLACES,
        writes=SOME_PLACES,
        seconds=st.integers(0, 5),
        gap=st.integers(0, 2),
        ending=st.sampled_from(("ok",) * 6 + ENDINGS),
        raises=st.sampled_from(RAISING),
        chdir=st.sampled_from(["", "", "/a", "/b"]),
        rewritten=st.none() | steps(1000 + key) if rewriting else st.none(),
    ).map(honest)


def programs(*, rewriting: bool = False, most: int = 9) -> st.SearchStrategy[tuple[Step, ...]]:
    sizes = [st.tuples(*(steps(key, rewriting=rewriting) for key in range(size))) for size in range(1, most + 1)]
    return st.one_of(sizes)
