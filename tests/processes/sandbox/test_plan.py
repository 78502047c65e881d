"""What is writable, readable and hidden: decided purely, whatever the order of the settings."""

import stat
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import SandboxError
from handrail.processes.sandbox.bubblewrap import arguments
from handrail.processes.sandbox.landlock import rules as landlock_rules
from handrail.processes.sandbox.plan import (
    NetworkReach,
    PathAccess,
    Plan,
    PlanInputs,
    Protected,
    is_covered,
    make_plan,
    parent,
    upwards,
)
from handrail.processes.sandbox.settings import Domain, Filesystem, Network, SandboxSettings

PROTECTED = Protected(project=(".handrail", ".mcp.json"), home=(".bashrc", ".config/systemd"))
AROUND = PlanInputs(
    home="/home/dev",
    working_dirs=("/home/dev/proj",),
    tmp="/home/dev/.local/state/handrail/runs/1/tmp",
    protected=PROTECTED,
    own=("/home/dev/.local/state/handrail", "/home/dev/.handrail"),
    git_guarded=("/home/dev/proj/.git/hooks", "/home/dev/proj/.git/config"),
)
ON = SandboxSettings(enabled=True)


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/", PathAccess.READ),
        ("/usr/bin/env", PathAccess.READ),
        ("/etc/hosts", PathAccess.READ),
        ("/etc/shadow", PathAccess.HIDDEN),
        ("/run/docker.sock", PathAccess.HIDDEN),
        ("/home/eve", PathAccess.HIDDEN),
        ("/root", PathAccess.HIDDEN),
        ("/tmp/x", PathAccess.PRIVATE),
        ("/home/dev", PathAccess.PRIVATE),
        ("/home/dev/.ssh/id_rsa", PathAccess.PRIVATE),
        ("/home/dev/.pyenv/bin/python", PathAccess.READ),
        ("/home/dev/.gitconfig", PathAccess.READ),
        ("/home/dev/proj", PathAccess.WRITE),
        ("/home/dev/proj/src/a.py", PathAccess.WRITE),
        ("/home/dev/proj/.git/index", PathAccess.WRITE),
        ("/home/dev/proj/.git/hooks/pre-commit", PathAccess.READ),
        ("/home/dev/proj/.git/config", PathAccess.READ),
        ("/home/dev/proj/.handrail/settings.json", PathAccess.READ),
        ("/home/dev/proj/.mcp.json", PathAccess.READ),
        ("/home/dev/project2", PathAccess.PRIVATE),
    ],
)
def test_a_project_in_a_home_folder(path: str, access: PathAccess) -> None:
    assert make_plan(ON, AROUND).access(path) is access


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/home/dev/notes", PathAccess.WRITE),
        ("/home/dev/.ssh/id_rsa", PathAccess.HIDDEN),
        ("/home/dev/.aws", PathAccess.HIDDEN),
        ("/home/dev/.bashrc", PathAccess.READ),
        ("/home/dev/.config/app", PathAccess.WRITE),
        ("/home/dev/.config/systemd/user/x.service", PathAccess.READ),
        ("/home/dev/.handrail/settings.json", PathAccess.HIDDEN),
        ("/home/dev/.local/state/handrail/trust", PathAccess.HIDDEN),
        ("/home/eve", PathAccess.HIDDEN),
    ],
)
def test_the_home_folder_as_the_working_folder(path: str, access: PathAccess) -> None:
    plan = make_plan(ON, replace(AROUND, working_dirs=("/home/dev",), git_guarded=()))

    assert plan.access(path) is access


def test_folders_on_the_way_to_what_is_protected_cannot_be_moved() -> None:
    plan = make_plan(ON, AROUND)

    assert "/home/dev/proj/.git" in plan.pinned
    assert ("/home/dev/proj/.git", PathAccess.WRITE) in plan.marks
    assert plan.writable == ("/home/dev/proj",)


def test_a_hidden_name_that_is_a_link_hides_what_it_leads_to() -> None:
    real = {"/home/dev/.ssh": "/srv/keys"}
    plan = make_plan(ON, replace(AROUND, real=lambda path: real.get(path, path)))

    assert plan.access("/srv/keys/id_rsa") is PathAccess.HIDDEN


def test_reading_can_be_opened_again_below_a_hidden_folder_but_not_writing() -> None:
    files = Filesystem(deny_read=("/home/dev/proj/private",), allow_read=("/home/dev/proj/private/readme",))
    plan = make_plan(replace(ON, filesystem=files), AROUND)

    assert plan.access("/home/dev/proj/private/key") is PathAccess.HIDDEN
    assert plan.access("/home/dev/proj/private/readme") is PathAccess.READ


@pytest.mark.parametrize(
    ("network", "reach"),
    [
        (Network(), NetworkReach.OFF),
        (Network(denied=(Domain("a.b"),)), NetworkReach.OFF),
        (Network(allowed=(Domain("a.b"),)), NetworkReach.PROXY),
        (Network(host=True), NetworkReach.HOST),
        (Network(host=True, denied=(Domain("a.b"),)), NetworkReach.OFF),
    ],
)
def test_the_network_is_off_unless_domains_are_allowed(network: Network, reach: NetworkReach) -> None:
    assert make_plan(replace(ON, network=network), AROUND).reach is reach


@pytest.mark.parametrize(
    ("settings", "around", "why"),
    [
        (replace(ON, broken=True, problems=("denyRead is 1.",)), AROUND, "denyRead is 1."),
        (ON, replace(AROUND, working_dirs=("/",)), "would protect nothing"),
        (ON, replace(AROUND, working_dirs=("/home/dev/.handrail/x",)), "belongs to handrail"),
    ],
)
def test_no_plan_is_made_that_would_not_protect(settings: SandboxSettings, around: PlanInputs, why: str) -> None:
    with pytest.raises(SandboxError, match=why):
        make_plan(settings, around)


# Whatever the settings say, in whatever order

NAMES = st.sampled_from(["a", "b", ".ssh", ".handrail", ".git", "proj", "home"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
SOME = st.lists(PATHS, max_size=4).map(tuple)


@st.composite
def plans(draw: st.DrawFn) -> tuple[SandboxSettings, PlanInputs, Plan]:
    files = Filesystem(draw(SOME), draw(SOME), draw(SOME), draw(SOME))
    around = PlanInputs(
        home=draw(PATHS),
        working_dirs=draw(st.lists(PATHS, min_size=1, max_size=3).map(tuple)),
        tmp="/state/tmp",
        protected=Protected((".handrail", "a/b"), (".ssh",)),
        own=("/state",),
        git_guarded=draw(SOME),
    )
    settings = replace(ON, filesystem=files)
    return settings, around, make_plan(settings, around)


@given(plans(), PATHS)
def test_nothing_makes_a_protected_or_hidden_path_writable(
    made: tuple[SandboxSettings, PlanInputs, Plan], path: str
) -> None:
    settings, around, plan = made
    files = settings.filesystem
    roots = (*around.working_dirs, *files.allow_write)
    closed = [f"{root}/{name}" for root in roots for name in around.protected.project]
    closed += [*files.deny_write, *around.git_guarded, f"{around.home}/.ssh"]

    access = plan.access(path)

    if access is PathAccess.WRITE:
        assert is_covered(path, roots)
        assert not is_covered(path, closed)
        deepest_root = max(len(root) for root in roots if is_covered(path, [root]))
        assert all(len(denied) < deepest_root for denied in files.deny_read if is_covered(path, [denied]))
    if path in files.deny_read:
        assert access in (PathAccess.HIDDEN, PathAccess.PRIVATE)
    assert plan.access("/state/x") in (PathAccess.HIDDEN, PathAccess.PRIVATE)


@given(plans(), st.randoms())
def test_the_order_of_the_settings_does_not_matter(
    made: tuple[SandboxSettings, PlanInputs, Plan], random: Random
) -> None:
    settings, around, plan = made
    files = settings.filesystem

    def shuffled(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(random.sample(paths, len(paths)))

    mixed = Filesystem(*map(shuffled, (files.allow_write, files.deny_write, files.allow_read, files.deny_read)))
    again = replace(around, working_dirs=shuffled(around.working_dirs), git_guarded=shuffled(around.git_guarded))

    assert make_plan(replace(settings, filesystem=mixed), again) == plan


def enforced(options: list[str], path: str) -> PathAccess:
    """What a path is after these mounts, done one after the other as the kernel does them."""
    state: dict[str, PathAccess] = {}
    at = 0
    while at < len(options):
        match options[at]:
            case "--bind" | "--ro-bind":
                kind, target = options[at], options[at + 2]
                hidden = options[at + 1] == "/dev/null"
                access = PathAccess.WRITE if kind == "--bind" else PathAccess.HIDDEN if hidden else PathAccess.READ
                at += 3
            case "--tmpfs":
                target = options[at + 1]
                closed = options[at - 2] == "--perms"
                access = PathAccess.HIDDEN if closed else PathAccess.PRIVATE
                at += 2
            case _:
                at += 1
                continue
        state = {mounted: value for mounted, value in state.items() if not is_covered(mounted, [target])}
        state[target] = access
    return next(state[folder] for folder in upwards(path) if folder in state)


@given(plans(), PATHS)
def test_the_mounts_of_bubblewrap_are_the_plan(made: tuple[SandboxSettings, PlanInputs, Plan], path: str) -> None:
    _, _, plan = made
    options = arguments(plan, lambda _path: stat.S_IFDIR)

    assert enforced(options, path) is plan.access(path)


@given(plans(), PATHS)
def test_landlock_grants_nothing_beyond_the_plan(made: tuple[SandboxSettings, PlanInputs, Plan], path: str) -> None:
    _, _, plan = made
    there = {folder for mark, _ in plan.marks for folder in upwards(mark)} | set(upwards(path))

    def children(folder: str) -> list[str]:
        return [each for each in there if each != "/" and parent(each) == folder]

    given_rights = [(top, rights) for top, rights in landlock_rules(plan, children) if is_covered(path, [top])]

    reading = any(rights & 0b100 for _, rights in given_rights)
    writing = any(rights & 0b10 for _, rights in given_rights)
    assert not writing or plan.access(path) is PathAccess.WRITE
    assert not reading or plan.access(path) in (PathAccess.READ, PathAccess.WRITE)
    if plan.access(path) in (PathAccess.READ, PathAccess.WRITE) and not children(path):
        assert reading
    if plan.access(path) is PathAccess.WRITE and not children(path):
        assert writing
