"""Skills through a session: listed, loaded, run under the rules, kept, and nothing of them before trust."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolUse
from handrail.headless.engine import EngineOptions
from handrail.testing.model_server import Reply
from tests.headless.in_process import Line, Peer, peer

pytestmark = pytest.mark.anyio

TRUST = {"flags": SettingsFlags(trust=True)}
DONE = Reply((Text("Done."),))


def skill(folder: Path, name: str, body: str, head: str = "description: Ships it.") -> Path:
    file = folder / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\n{head}\n---\n{body}")
    return file


def load(name: str, **values: str) -> Reply:
    return Reply((ToolUse("t1", "Skill", {"skill": name, **values}),))


def bash(line: str) -> Reply:
    return Reply((ToolUse("t2", "Bash", {"command": line}),))


def tools(p: Peer, number: int) -> list[str]:
    return [tool["name"] for tool in p.server.requests[number].body["tools"]]


def texts(p: Peer, number: int = -1) -> list[str]:
    messages = p.server.requests[number].body["messages"]
    blocks = [block for message in messages for block in message["content"] if isinstance(message["content"], list)]
    return [text for block in blocks for text in _texts(block)]


def _texts(block: Any) -> list[str]:
    if isinstance(block.get("content"), list):
        return [text for inner in block["content"] for text in _texts(inner)]
    return [block.get("text") or block.get("content") or ""]


def said(p: Peer, number: int = -1) -> str:
    return "\n".join(texts(p, number))


def result_of(lines: list[Line]) -> str:
    text: str = lines[-1]["result"]
    return text


@pytest.mark.proves("N14")
async def test_the_model_sees_names_and_descriptions_and_loads_the_text_of_a_skill_by_its_name(tmp_path: Path) -> None:
    skill(
        tmp_path / "work" / ".claude",
        "deploy",
        "Deploy $0 from here.",
        "description: Ships it.\nwhen_to_use: on release",
    )
    skill(
        tmp_path / "work" / ".agents",
        "portable",
        "Secret of the text.",
        "name: portable\ndescription: For all programs.",
    )
    skill(tmp_path / "home/.handrail", "mine", "x", "description: Only for people.\ndisable-model-invocation: true")
    async with peer(tmp_path, [load("deploy", args="staging"), DONE], options=EngineOptions()) as p:
        lines = await p.turn("Go.")

        first, folder = said(p, 0), tmp_path / "work" / ".claude/skills/deploy"
        assert "- deploy: Ships it. - on release\n- portable: For all programs." in first
        assert "mine" not in first
        assert "Secret" not in first
        assert "Deploy" not in first
        assert "Skill" in tools(p, 0)
        assert f"Base directory for this skill: {folder}\n\nDeploy staging from here." in texts(p)
        assert lines[0]["skills"] == ["deploy", "mine", "portable"]
        assert {"deploy", "mine", "portable"} <= set(lines[0]["slash_commands"])


@pytest.mark.proves("N14")
async def test_without_a_skill_for_the_model_there_is_no_skill_tool_and_a_new_one_comes_without_moving_the_prefix(
    tmp_path: Path,
) -> None:
    async with peer(tmp_path, [DONE, DONE, load("late"), DONE], options=EngineOptions()) as p:
        await p.turn("One.")
        skill(tmp_path / "work" / ".claude", "late", "The late text.")
        await p.turn("Two.")
        skill(tmp_path / "work" / ".claude", "late", "Another text.", "description: Changed.")
        await p.turn("Three.")

        assert "Skill" not in tools(p, 0)
        assert tools(p, 1) == tools(p, 2) == [*tools(p, 0), "Skill"]
        assert p.server.requests[1].body["system"] == p.server.requests[0].body["system"]
        assert "- late: Ships it." in said(p, 1)
        assert said(p, 2).count("- late: ") == 2  # what was said stays, and what changed is said behind it
        assert "Another text." in said(p)


@pytest.mark.proves("N14")
async def test_a_person_starts_a_skill_by_its_name_and_is_told_what_only_the_model_may_start(tmp_path: Path) -> None:
    skill(tmp_path / "home/.claude", "greet", "Greet $ARGUMENTS. It is !`echo noon`.", "description: d\nmodel: other")
    skill(tmp_path / "home/.claude", "hidden", "x", "description: d\nuser-invocable: false")
    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        assert result_of(await p.turn("/greet Ada and Bob")) == "Done."
        assert "/greet Ada and Bob" in texts(p)
        assert "Greet Ada and Bob. It is noon." in said(p)
        assert p.server.requests[0].body["model"] == "other"

        assert "is not for people" in result_of(await p.turn("/hidden"))
        assert len(p.server.requests) == 1


@pytest.mark.proves("R9")
async def test_a_hostile_skill_of_a_folder_that_is_not_trusted_runs_allows_and_hooks_nothing(tmp_path: Path) -> None:
    hooks = (
        "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n"
        f"          command: touch {tmp_path}/hooked"
    )
    skill(tmp_path / "work" / ".claude", "evil", "!`touch ran`", "description: d")
    skill(tmp_path / "work" / ".claude", "wide", "Go.", f"description: d\nallowed-tools: Bash\n{hooks}")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/SKILL.md").write_text("---\ndescription: d\n---\nsecret")
    (tmp_path / "work/.claude/skills/link").symlink_to(tmp_path / "outside")
    replies = [load("evil"), load("wide"), bash("mkdir made"), DONE]
    async with peer(tmp_path, replies, options=EngineOptions()) as p:
        await p.turn("Go.")
        assert "nothing was run: this folder is not trusted" in said(p, 1)
        assert "nothing was run" in result_of(await p.turn("/evil"))
        assert "- link" not in said(p)
    assert not any((tmp_path / name).exists() for name in ("work/ran", "work/made", "hooked"))


@pytest.mark.proves("N14")
async def test_what_a_skill_allows_forbids_and_hooks_counts_once_a_person_or_a_rule_agreed(tmp_path: Path) -> None:
    hooks = "hooks:\n  PostToolUse:\n  - matcher: Bash\n    hooks:\n    - type: command\n"
    hooks += f"      command: touch {tmp_path}/hooked"
    skill(tmp_path / "work" / ".claude", "wide", "Go.", f"description: d\nallowed-tools: Bash(mkdir *)\n{hooks}")
    skill(tmp_path / "work" / ".claude", "tight", "Go.", "description: d\ndisallowed-tools: Read")
    (tmp_path / "work/a.txt").write_text("content of a")
    replies = [load("wide"), bash("mkdir one"), DONE]
    async with peer(tmp_path, replies, spec=TRUST, options=EngineOptions()) as p:
        await p.turn("Go.")  # it asks, and no one is there
    assert not (tmp_path / "work/one").exists()

    (tmp_path / "home/.handrail").mkdir(parents=True)
    rules = {"permissions": {"allow": ["Skill(wide)", "Skill(tight)"]}}
    (tmp_path / "home/.handrail/settings.json").write_text(json.dumps(rules))
    read = Reply((ToolUse("t3", "Read", {"file_path": str(tmp_path / "work/a.txt")}),))
    replies = [load("wide"), bash("mkdir one"), DONE, bash("mkdir two"), DONE, load("tight"), read, DONE, read, DONE]
    async with peer(tmp_path, replies, spec=TRUST, options=EngineOptions()) as p:
        await p.turn("Go.")
        assert (tmp_path / "work/one").exists()
        assert (tmp_path / "hooked").exists()
        await p.turn("Again.")
        assert not (tmp_path / "work/two").exists()
        await p.turn("Read.")
        assert "Read" in tools(p, -1)
        assert "content of a" not in said(p)
        await p.turn("Read again.")
        assert "content of a" in said(p)


@pytest.mark.proves("N14")
async def test_a_forked_skill_is_done_by_a_sub_agent_and_its_answer_is_that_of_the_run(tmp_path: Path) -> None:
    skill(tmp_path / "home/.claude", "forky", "Count to $0.", "description: d\ncontext: fork")
    replies = [Reply((Text("Counted."),)), load("forky", args="5"), Reply((Text("Five."),)), DONE]
    async with peer(tmp_path, replies, options=EngineOptions()) as p:
        lines = await p.turn("/forky 3")
        assert result_of(lines) == "Counted."
        assert len(p.server.requests) == 1
        assert "Count to 3." in said(p)

        assert result_of(await p.turn("Fork it.")) == "Done."
        assert "Count to 5." in said(p, 2)
        assert "Count to 5." not in said(p, 3)
        assert "Five." in said(p, 3)


@pytest.mark.proves("N14")
async def test_a_skill_about_certain_files_is_listed_once_such_a_file_was_used(tmp_path: Path) -> None:
    skill(tmp_path / "work" / ".claude", "sql", "x", "description: About tables.\npaths: db/*.sql")
    skill(tmp_path / "work" / ".claude", "other", "x", "description: Always there.")
    (tmp_path / "work/db").mkdir(parents=True)
    (tmp_path / "work/db/a.sql").write_text("select 1")
    read = Reply((ToolUse("t3", "Read", {"file_path": str(tmp_path / "work/db/a.sql")}),))
    async with peer(tmp_path, [read, DONE], options=EngineOptions()) as p:
        await p.turn("Go.")
        assert "About tables" not in said(p, 0)
        assert "Always there" in said(p, 0)
        assert "- sql: About tables." in said(p, 1)


@pytest.mark.proves("N14")
async def test_after_a_summary_memory_loaded_skills_task_list_and_plan_stand_there_byte_for_byte(
    tmp_path: Path,
) -> None:
    body = "Keep é, tabs\tand\n\n  indentation   \nas they are. "
    skill(tmp_path / "work" / ".claude", "exact", body + "$ARGUMENTS")
    skill(tmp_path / "home/.claude", "typed", "Typed by a person: ü.")
    (tmp_path / "work/CLAUDE.md").write_text("Memory of the project:\twith ß.\n")
    task = Reply((ToolUse("t5", "TaskCreate", {"subject": "Paint it", "description": "All of it."}),))
    summary = Reply((Text("They talked."),))
    replies = [load("exact", args="one"), DONE, DONE, task, DONE, DONE, summary, DONE]
    async with peer(tmp_path, replies, options=EngineOptions()) as p:
        await p.turn("Go. " + "long " * 3000)
        await p.turn("/typed")
        await p.turn("More.")
        lines = await p.turn("Enough. " + "long " * 3000)
        plan = tmp_path / "state/runs" / lines[-1]["session_id"] / "plan.md"
        plan.write_text("The plan:\tpaint\n\n  first é, then dry.  \n")
        before = texts(p)
        kept = [text for text in before if text.startswith("Base directory") or "<memory>" in text]
        kept += [text for text in before if "Skills that can be loaded" in text]
        assert len(kept) == 4

        await p.turn("/compact")
        await p.turn("Go on.")
        after = texts(p)
        assert "Go. long" not in said(p)
        for text in kept:
            assert after.count(text) == 1, text
        assert any("1. Paint it (pending)" in text for text in after)
        assert sum(plan.read_text() in text for text in after) == 1


async def test_five_hundred_skills_take_at_most_8_kb_of_context_and_are_parsed_once(tmp_path: Path) -> None:
    for number in range(500):
        skill(
            tmp_path / "home/.claude", f"skill-{number:03}", "x" * 500, "description: " + "Does a thing for you. " * 20
        )
    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        await p.turn("Go.")
        listed = next(text for text in texts(p, 0) if "Skills that can be loaded" in text)
        assert len(listed.encode()) <= 8_192
        assert ("- skill-000" in listed and "more, which are not listed" in listed) or "- skill-499" in listed
    kept = json.loads((tmp_path / "state/skills/heads.json").read_text())
    assert [len(heads) for heads in kept["folders"].values() if heads] == [500]
    assert not (tmp_path / "state/skills/heads.json").stat().st_mode & 0o077
