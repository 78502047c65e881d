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
    Access,
    Plan,
    Protected,
    Reach,
    Surroundings,
    covered,
    make_plan,
    parent,
    upwards,
)
from handrail.processes.sandbox.settings import Domain, Filesystem, Network, SandboxSettings

PROTECTED = Protected(project=(".handrail", ".mcp.json"), home=(".bashrc", ".config/systemd"))
AROUND = Surroundings(
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
        ("/", Access.READ),
        ("/usr/bin/env", Access.READ),
        ("/etc/hosts", Access.READ),
        ("/etc/shadow", Access.HIDDEN),
        ("/run/docker.sock", Access.HIDDEN),
        ("/home/eve", Access.HIDDEN),
        ("/root", Access.HIDDEN),
        ("/tmp/x", Access.PRIVATE),
        ("/home/dev", Access.PRIVATE),
        ("/home/dev/.ssh/id_rsa", Access.PRIVATE),
        ("/home/dev/.pyenv/bin/python", Access.READ),
        ("/home/dev/.gitconfig", Access.READ),
        ("/home/dev/proj", Access.WRITE),
        ("/home/dev/proj/src/a.py", Access.WRITE),
        ("/home/dev/proj/.git/index", Access.WRITE),
        ("/home/dev/proj/.git/hooks/pre-commit", Access.READ),
        ("/home/dev/proj/.git/config", Access.READ),
        ("/home/dev/proj/.handrail/settings.json", Access.READ),
        ("/home/dev/proj/.mcp.json", Access.READ),
        ("/home/dev/project2", Access.PRIVATE),
    ],
)
def test_a_project_in_a_home_folder(path: str, access: Access) -> None:
    assert make_plan(ON, AROUND).access(path) is access


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/home/dev/notes", Access.WRITE),
        ("/home/dev/.ssh/id_rsa", Access.HIDDEN),
        ("/home/dev/.aws", Access.HIDDEN),
        ("/home/dev/.bashrc", Access.READ),
        ("/home/dev/.config/app", Access.WRITE),
        ("/home/dev/.config/systemd/user/x.service", Access.READ),
        ("/home/dev/.handrail/settings.json", Access.HIDDEN),
        ("/home/dev/.local/state/handrail/trust", Access.HIDDEN),
        ("/home/eve", Access.HIDDEN),
    ],
)
def test_the_home_folder_as_the_working_folder(path: str, access: Access) -> None:
    plan = make_plan(ON, replace(AROUND, working_dirs=("/home/dev",), git_guarded=()))

    assert plan.access(path) is access


def test_folders_on_the_way_to_what_is_protected_cannot_be_moved() -> None:
    plan = make_plan(ON, AROUND)

    assert "/home/dev/proj/.git" in plan.pinned
    assert ("/home/dev/proj/.git", Access.WRITE) in plan.marks
    assert plan.writable == ("/home/dev/proj",)


def test_a_hidden_name_that_is_a_link_hides_what_it_leads_to() -> None:
    real = {"/home/dev/.ssh": "/srv/keys"}
    plan = make_plan(ON, replace(AROUND, real=lambda path: real.get(path, path)))

    assert plan.access("/srv/keys/id_rsa") is Access.HIDDEN


def test_reading_can_be_opened_again_below_a_hidden_folder_but_not_writing() -> None:
    files = Filesystem(deny_read=("/home/dev/proj/private",), allow_read=("/home/dev/proj/private/readme",))
    plan = make_plan(replace(ON, filesystem=files), AROUND)

    assert plan.access("/home/dev/proj/private/key") is Access.HIDDEN
    assert plan.access("/home/dev/proj/private/readme") is Access.READ


@pytest.mark.parametrize(
    ("network", "reach"),
    [
        (Network(), Reach.OFF),
        (Network(denied=(Domain("a.b"),)), Reach.OFF),
        (Network(allowed=(Domain("a.b"),)), Reach.PROXY),
        (Network(host=True), Reach.HOST),
        (Network(host=True, denied=(Domain("a.b"),)), Reach.OFF),
    ],
)
def test_the_network_is_off_unless_domains_are_allowed(network: Network, reach: Reach) -> None:
    assert make_plan(replace(ON, network=network), AROUND).reach is reach


@pytest.mark.parametrize(
    ("settings", "around", "why"),
    [
        (replace(ON, broken=True, problems=("denyRead is 1.",)), AROUND, "denyRead is 1."),
        (ON, replace(AROUND, working_dirs=("/",)), "would protect nothing"),
        (ON, replace(AROUND, working_dirs=("/home/dev/.handrail/x",)), "belongs to handrail"),
    ],
)
def test_no_plan_is_made_that_would_not_protect(settings: SandboxSettings, around: Surroundings, why: str) -> None:
    with pytest.raises(SandboxError, match=why):
        make_plan(settings, around)


# Whatever the settings say, in whatever order

NAMES = st.sampled_from(["a", "b", ".ssh", ".handrail", ".git", "proj", "home"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
SOME = st.lists(PATHS, max_size=4).map(tuple)


@st.composite
def plans(draw: st.DrawFn) -> tuple[SandboxSettings, Surroundings, Plan]:
    files = Filesystem(draw(SOME), draw(SOME), draw(SOME), draw(SOME))
    around = Surroundings(
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
    made: tuple[SandboxSettings, Surroundings, Plan], path: str
) -> None:
    settings, around, plan = made
    files = settings.filesystem
    roots = (*around.working_dirs, *files.allow_write)
    closed = [f"{root}/{name}" for root in roots for name in around.protected.project]
    closed += [*files.deny_write, *around.git_guarded, f"{around.home}/.ssh"]

    access = plan.access(path)

    if access is Access.WRITE:
        assert covered(path, roots)
        assert not covered(path, closed)
        deepest_root = max(len(root) for root in roots if covered(path, [root]))
        assert all(len(denied) < deepest_root for denied in files.deny_read if covered(path, [denied]))
    if path in files.deny_read:
        assert access in (Access.HIDDEN, Access.PRIVATE)
    assert plan.access("/state/x") in (Access.HIDDEN, Access.PRIVATE)


@given(plans(), st.randoms())
def test_the_order_of_the_settings_does_not_matter(
    made: tuple[SandboxSettings, Surroundings, Plan], random: Random
) -> None:
    settings, around, plan = made
    files = settings.filesystem

    def shuffled(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(random.sample(paths, len(paths)))

    mixed = Filesystem(*map(shuffled, (files.allow_write, files.deny_write, files.allow_read, files.deny_read)))
    again = replace(around, working_dirs=shuffled(around.working_dirs), git_guarded=shuffled(around.git_guarded))

    assert make_plan(replace(settings, filesystem=mixed), again) == plan


def enforced(options: list[str], path: str) -> Access:
    """What a path is after these mounts, done one after the other as the kernel does them."""
    state: dict[str, Access] = {}
    at = 0
    while at < len(options):
        match options[at]:
            case "--bind" | "--ro-bind":
                kind, target = options[at], options[at + 2]
                hidden = options[at + 1] == "/dev/null"
                access = Access.WRITE if kind == "--bind" else Access.HIDDEN if hidden else Access.READ
                at += 3
            case "--tmpfs":
                target = options[at + 1]
                closed = options[at - 2] == "--perms"
                access = Access.HIDDEN if closed else Access.PRIVATE
                at += 2
            case _:
                at += 1
                continue
        state = {mounted: value for mounted, value in state.items() if not covered(mounted, [target])}
        state[target] = access
    return next(state[folder] for folder in upwards(path) if folder in state)


@given(plans(), PATHS)
def test_the_mounts_of_bubblewrap_are_the_plan(made: tuple[SandboxSettings, Surroundings, Plan], path: str) -> None:
    _, _, plan = made
    options = arguments(plan, lambda _path: stat.S_IFDIR)

    assert enforced(options, path) is plan.access(path)


@given(plans(), PATHS)
def test_landlock_grants_nothing_beyond_the_plan(made: tuple[SandboxSettings, Surroundings, Plan], path: str) -> None:
    _, _, plan = made
    there = {folder for mark, _ in plan.marks for folder in upwards(mark)} | set(upwards(path))

    def children(folder: str) -> list[str]:
        return [each for each in there if each != "/" and parent(each) == folder]

    given_rights = [(top, rights) for top, rights in landlock_rules(plan, children) if covered(path, [top])]

    reading = any(rights & 0b100 for _, rights in given_rights)
    writing = any(rights & 0b10 for _, rights in given_rights)
    assert not writing or plan.access(path) is Access.WRITE
    assert not reading or plan.access(path) in (Access.READ, Access.WRITE)
    if plan.access(path) in (Access.READ, Access.WRITE) and not children(path):
        assert reading
    if plan.access(path) is Access.WRITE and not children(path):
        assert writing
