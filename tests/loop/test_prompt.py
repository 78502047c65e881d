"""The system prompt: named parts, stable bytes, nothing of the surroundings; and what opens a conversation."""

from dataclasses import replace
from pathlib import Path

import pytest

from handrail.conversation.blocks import Text
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.conversation.request import History, Request
from handrail.loop.memory import MemoryFile
from handrail.loop.prompt import (
    EnvironmentFacts,
    GitFacts,
    context_attachment,
    facts_text,
    memory_attachment,
    system_parts,
    system_prompt,
)
from handrail.providers import anthropic, openai_chat, openai_responses
from handrail.providers.api import Api
from handrail.providers.quirks import quirks_of

FACTS = EnvironmentFacts(
    Path("/home/me/project"), "Linux 6 x86_64", "2026-11-15", "some-model", GitFacts("main", "", ())
)
APIS = [anthropic.API, openai_chat.API, openai_responses.API]


def names(**options: object) -> list[str]:
    return [part.name for part in system_parts(**options)]  # type: ignore[arg-type]  # options by name


def test_the_parts_have_names_and_an_order() -> None:
    assert names() == ["role", "work", "tools", "care", "answers"]
    assert names(interactive=False) == ["role", "work", "tools", "care", "answers", "alone"]
    assert names(addition="More.") == ["role", "work", "tools", "care", "answers", "addition"]
    assert names(replacement="Mine.", addition="More.", interactive=False) == ["replacement", "addition"]
    assert names(replacement=" ", addition="\n") == names()


def test_a_replacement_is_the_whole_prompt_and_an_addition_comes_last() -> None:
    assert system_prompt(system_parts(replacement="Mine.", addition="More.")) == ("Mine.", "More.")
    ours = system_prompt(system_parts())
    assert system_prompt(system_parts(addition="More.")) == (*ours, "More.")


def test_our_own_words_are_short_and_name_no_model_or_vendor() -> None:
    [text] = system_prompt(system_parts(interactive=False))

    assert len(text) < 2_500
    assert not [word for word in ("Claude", "GPT", "Anthropic", "OpenAI", "Gemini") if word.lower() in text.lower()]


@pytest.mark.proves("R5")
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_another_day_folder_branch_or_turn_leaves_the_bytes_before_the_messages_alone(api: Api) -> None:
    writer = api.writer(quirks_of(api.name, "https://api.anthropic.com", "some-model"))
    other = replace(FACTS, cwd=Path("/elsewhere"), date="2031-01-01", git=None)
    bodies = []
    for facts in (FACTS, other):
        history = History([context_attachment(facts), UserMessage((Text("Go."),))])
        request = Request("some-model", history, system_prompt(system_parts(addition="Be kind.")))
        bodies.append(writer.body(request, stream=True))
        history.append(AssistantMessage((Text("Gone."),)))
        history.append(UserMessage((Text("And back."),)))
        bodies.append(writer.body(request, stream=True))

    ends = [body.index(b"/home/me/project" if b"/home/me/project" in body else b"/elsewhere") for body in bodies]

    assert len({body[:end] for body, end in zip(bodies, ends, strict=True)}) == 1
    assert bodies[0][: ends[0]].count(b"Be kind.") == 1


def test_what_opens_a_conversation_is_memory_then_facts_in_one_block() -> None:
    memory = MemoryFile(Path("/home/me/project/AGENTS.md"), "Use tabs.", "project", Path("/home/me/project"))

    message = context_attachment(FACTS, [memory])

    assert message.kind == "context"
    [block] = message.content
    assert isinstance(block, Text)
    assert block.text.index("Use tabs.") < block.text.index("<environment>")
    assert block.text.endswith(facts_text(FACTS))
    assert memory_attachment([memory]) is not None
    assert memory_attachment([]) is None


@pytest.mark.parametrize(
    ("git", "line"),
    [
        pytest.param(None, "Git: not a repository", id="none"),
        pytest.param(
            GitFacts("main", "origin/main [behind 2]", ()),
            "Git: branch main (origin/main [behind 2]); nothing changed",
            id="clean",
        ),
        pytest.param(
            GitFacts("", note="git status took too long"),
            "Git: no branch; changes not known: git status took too long",
            id="not known",
        ),
        pytest.param(
            GitFacts("b", "", (" M a",)), "Git: branch b; changed paths when the run began (1):\n   M a", id="changed"
        ),
    ],
)
def test_facts_say_what_is_known_of_git(git: GitFacts | None, line: str) -> None:
    assert facts_text(replace(FACTS, git=git)) == (
        "<environment>\nWorking folder: /home/me/project\nPlatform: Linux 6 x86_64\nDate: 2026-11-15\n"
        f"Model: some-model\n{line}\n</environment>"
    )
