"""Skills in folders: which there are, which of two counts, and what a person is told about them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.extensions.commands import CommandFile
from handrail.extensions.places import SKILL_FAMILIES, ConfigFolder, config_folders
from handrail.extensions.skill_list import BUDGET, skill_list
from handrail.extensions.skills import HeadCache, find_skills
from handrail.files.nested_values import nested_value


def skill(folder: Path, name: str, text: str = "---\ndescription: d\n---\nGo.") -> Path:
    file = folder / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.proves("N14")
def test_policy_goes_before_the_user_and_the_user_before_the_project_and_each_shadowing_is_named(
    tmp_path: Path,
) -> None:
    cwd, home, policy = tmp_path / "repo/app", tmp_path / "home", tmp_path / "etc"
    (tmp_path / "repo/.git").mkdir(parents=True)
    for folder in (cwd / ".claude", cwd / ".agents", tmp_path / "repo/.handrail", home / ".claude", policy):
        skill(folder, "all")
    for folder in (cwd / ".agents", tmp_path / "repo/.handrail", home / ".agents"):
        skill(folder, "mine")
    skill(cwd / ".agents", "near")
    skill(tmp_path / "repo/.handrail", "near")
    skill(tmp_path / ".claude", "above")
    skill(home / ".agents", "Odd Name", "---\nname: other\n---\n# Title\n\nFirst paragraph,\nsecond line.\n\nMore.")
    skill(home / ".agents", "empty", "---\nmodel: x\n---\n")
    folders = (
        *config_folders(cwd, {"HOME": str(home)}, families=SKILL_FAMILIES),
        ConfigFolder(policy, "policy", "/etc"),
    )

    found = find_skills(folders, HeadCache(None))

    assert {name: (each.source, each.shown) for name, each in found.by_name.items()} == {
        "all": ("policy", "/etc/skills/all/SKILL.md"),
        "mine": ("user", "~/.agents/skills/mine/SKILL.md"),
        "near": ("project", ".agents/skills/near/SKILL.md"),
        "Odd Name": ("user", "~/.agents/skills/Odd Name/SKILL.md"),
    }
    assert found.by_name["Odd Name"].description == "First paragraph, second line."
    assert sorted(problem.partition(": ")[0] for problem in found.problems if "Rename one" in problem) == [
        "../.handrail/skills/all/SKILL.md",
        "../.handrail/skills/mine/SKILL.md",
        "../.handrail/skills/near/SKILL.md",
        ".agents/skills/all/SKILL.md",
        ".agents/skills/mine/SKILL.md",
        ".claude/skills/all/SKILL.md",
        "~/.claude/skills/all/SKILL.md",
    ]
    own = "~/.agents/skills/"
    assert [problem.removeprefix(own) for problem in found.problems if problem.startswith(own)] == [
        "Odd Name/SKILL.md: 'Odd Name' is an odd name for a skill. Use lower-case letters, digits and hyphens.",
        "Odd Name/SKILL.md: its name is 'other', and its folder's is 'Odd Name', which counts. Give both one name.",
        "Odd Name/SKILL.md: it has no description, so that its first paragraph is shown in its place",
        "empty/SKILL.md: it has no description and no text, and is left out",
    ]


@pytest.mark.parametrize(
    ("head", "description", "allowed"),
    [
        ("description: Does it.", "Does it.", ()),
        ('description: "Quoted: with colon"', "Quoted: with colon", ()),
        ("description: 'It''s fine'", "It's fine", ()),
        ("description: >\n  Two lines\n  become one.", "Two lines become one.", ()),
        ("description: |\n  Two lines\n  stay two.", "Two lines stay two.", ()),
        ("description: für alle\nlicense: MIT\nmetadata:\n  author: me\n  version: '1'", "für alle", ()),
        ("description: d\nallowed-tools: Bash(git:*) Read", "d", ("Bash(git:*)", "Read")),
        pytest.param("description: Use when: it rains", "Use when: it rains", (), id="which skills-ref refuses"),
    ],
)
def test_heads_are_read_as_the_reference_reader_skills_ref_reads_them(
    tmp_path: Path, head: str, description: str, allowed: tuple[str, ...]
) -> None:
    skill(tmp_path, "one", f"---\nname: one\n{head}\n---\nBody.")
    found = find_skills([ConfigFolder(tmp_path, "user", "~")], HeadCache(None))
    one = found.by_name["one"]
    assert (one.name, one.description, one.allowed, found.problems) == ("one", description, allowed, ())


def test_the_cache_gives_what_reading_gives_and_a_changed_file_is_read_again(tmp_path: Path) -> None:
    head = "---\ndescription: d\nallowed-tools: Bash(ls *)\nuser-invocable: no\npaths: [a, b]\n"
    hooks = "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: ls\n---\n"
    for number in range(30):
        skill(tmp_path, f"s{number}", f"{head}{hooks}Do !`ls`")
    folder, cache = ConfigFolder(tmp_path, "user", "~"), tmp_path / "cache.json"
    first = find_skills([folder], HeadCache(cache))
    assert find_skills([folder], HeadCache(cache)) == first

    kept = json.loads(cache.read_text())
    for value in kept["folders"][str(tmp_path / "skills")].values():
        value[4]["description"] = "of the cache"
    cache.write_text(json.dumps(kept))
    skill(tmp_path, "s3", "---\ndescription: changed\n---\nGo.")
    again = find_skills([folder], HeadCache(cache)).by_name
    assert {again["s2"].description, again["s3"].description} == {"of the cache", "changed"}

    own = f'"{tmp_path}/skills"'
    damaged = (
        "{}",
        '{"x": 1}',
        f"{{{own}: 1}}",
        f'{{{own}: {{"s2/SKILL.md": [1]}}}}',
        f'{{{own}: {{"s2/SKILL.md": {{}}}}}}',
    )
    for broken in (
        "",
        "[]",
        "[" * 9_000,
        '{"version": 3}',
        *(f'{{"version": 3, "folders": {each}}}' for each in damaged),
    ):
        cache.write_text(broken)
        assert find_skills([folder], HeadCache(cache)).by_name["s2"] == first.by_name["s2"]


@given(st.lists(st.tuples(st.text(min_size=1, max_size=80), st.text(max_size=3_000)), max_size=60))
def test_the_list_of_skills_is_never_longer_than_its_budget(skills: list[tuple[str, str]]) -> None:
    files = [CommandFile(name, about or "d", "", "", is_for_model=True) for name, about in skills]
    text = skill_list(files)
    assert len(text.encode("utf-8", "surrogatepass")) <= BUDGET
    assert bool(text) == bool(skills)


VALUES = st.recursive(
    st.integers(-99, 99) | st.booleans() | st.text("abc xyz/.-", min_size=1).map(str.strip).filter(bool),
    lambda inner: (
        st.dictionaries(st.text("abcXYZ", min_size=1), inner, min_size=1, max_size=3)
        | st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=12,
)


def dump(value: object, margin: str) -> str:
    """The value as people write it."""
    match value:
        case dict():
            return "".join(
                f"{margin}{name}:\n{dump(each, margin + '  ')}"
                if isinstance(each, dict | list)
                else f"{margin}{name}: {json.dumps(each)}\n"
                for name, each in value.items()
            )
        case list():
            return "".join(
                f"{margin}- {dump(each, margin + '  ').removeprefix(margin + '  ')}"
                if isinstance(each, dict)
                else f"{margin}- {json.dumps(each)}\n"
                for each in value
            )
        case _:
            return f"{margin}{json.dumps(value)}\n"


@given(st.dictionaries(st.text("abcXYZ", min_size=1), VALUES, min_size=1, max_size=3))
def test_a_nested_value_is_read_as_it_was_written(value: dict[str, object]) -> None:
    text = f"---\nname: x\nhooks:\n{dump(value, '  ')}model: y\n---\nBody"
    assert nested_value(text, "hooks") == (value, "")


@given(st.text("ab:- \n\t{}[]\"'|>#", max_size=200))
def test_no_text_breaks_the_reader_of_nested_values(text: str) -> None:
    value, problem = nested_value(f"---\nhooks:{text}\n---\n", "hooks")
    assert not (value is not None and problem)
