"""Plugins: what they bring is there under their name, and nothing of one that is not trusted as it is."""

import importlib.util
import json
import py_compile
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail import Agent
from handrail.cli.main import run
from handrail.config.flags import SettingsFlags
from handrail.config.plugin_store import PluginStore
from handrail.conversation.blocks import Text
from handrail.extensions.plugins import Plugin, read_marketplace, read_plugin
from handrail.session.facts import session_facts
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.testing.model import ScriptedModel, say, use
from tests.forked import reference_server
from tests.session.agents_model import user_text

pytestmark = pytest.mark.anyio

LANGUAGE_SERVER = Path(__file__).parents[2] / "lsp" / "scripted_server.py"


@pytest.fixture(name="work", autouse=True)
def fixture_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    for each in (work, tmp_path / "home"):
        each.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    for name in ("HANDRAIL_CONFIG_DIR", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return work


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def make_plugin(root: Path, log: Path, *, manifest: dict[str, Any] | None = None) -> Path:
    """A plugin with one of everything."""
    about = {
        "name": "railkit",
        "version": "1.2.0",
        "description": "Tools for rails",
        "userConfig": {"token": {"title": "Token", "sensitive": True, "required": True}},
        **(manifest or {}),
    }
    write(root / ".claude-plugin/plugin.json", json.dumps(about))
    write(root / "skills/ship/SKILL.md", "---\ndescription: Ships it\n---\nShip from ${CLAUDE_PLUGIN_ROOT}.")
    write(root / "commands/greet.md", "Greet $ARGUMENTS.")
    write(root / "agents/finder.md", "---\nname: finder\ndescription: Finds\nhooks:\n  Stop: []\n---\nFind.")
    write(root / "output-styles/terse.md", "---\nname: Terse\ndescription: d\n---\nBe terse.")
    note = f'echo "$CLAUDE_PLUGIN_ROOT $CLAUDE_PLUGIN_OPTION_TOKEN" >> {log}'
    write(root / "note.sh", note)
    hook = {"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/note.sh"}
    write(root / "hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [{"matcher": "Glob", "hooks": [hook]}]}}))
    write(root / ".mcp.json", json.dumps({"mcpServers": {"tiny": reference_server()}}))
    write(root / ".lsp.json", json.dumps({"py": {"command": "${CLAUDE_PLUGIN_ROOT}/ls"}}))
    return root


def open_agent(tmp_path: Path, model: ScriptedModel, warnings: list[str] | None = None, **more: Any) -> Agent[Any]:
    env = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    env["HANDRAIL_MCP_WAIT_MS"] = "30000"
    work, plugins = more.pop("work", tmp_path / "work"), tuple(more.pop("plugins", ()))
    flags = SettingsFlags(managed_policy=False, settings=json.dumps(more.pop("settings", {})), **more)
    on_warning = (warnings if warnings is not None else []).append
    spec = SessionSpec(work, flags=flags, tools=ToolOptions(plugins=plugins))
    return Agent.from_spec(spec, env, SessionHost(model=model, on_warning=on_warning))


async def facts(agent: Agent[Any]) -> dict[str, Any]:
    with anyio.fail_after(60):
        async with agent:
            await agent.ask("go")
            return session_facts(agent.session)


@pytest.mark.proves("N14")
async def test_all_that_a_plugin_brings_is_there_under_its_name(tmp_path: Path) -> None:
    log = tmp_path / "log"
    root = make_plugin(tmp_path / "railkit", log)
    assert run(["plugins", "add", str(root), "--yes", "--set", "token=hush-hush-4711"]) == 0
    options = next((tmp_path / "state/plugins/options").iterdir())
    assert stat.S_IMODE(options.stat().st_mode) == 0o600

    model = ScriptedModel([
        [use("s", "Skill", skill="railkit:ship"), use("g", "Glob", pattern="*")],
        [say("hush-hush-4711")],
    ])  # fmt: skip
    warnings: list[str] = []
    agent = open_agent(tmp_path, model, warnings, settings={"outputStyle": "railkit:Terse"})
    found = await facts(agent)

    copy = next((tmp_path / "state/plugins/store").iterdir())
    said = user_text(model.requests[1])
    assert f"Ship from {copy}." in said
    assert "Be terse." in said
    assert log.read_text() == f"{copy} hush-hush-4711\n"
    assert found["plugins"] == [{"name": "railkit", "path": str(copy), "source": "railkit@local", "version": "1.2.0"}]
    assert {"railkit:ship", "railkit:greet"} <= set(found["slash_commands"])
    assert "railkit:finder" in found["agents"]
    assert found["skills"] == ["railkit:ship"]
    assert found["mcp_servers"] == [{"name": "plugin:railkit:tiny", "status": "connected", "source": "plugin"}]
    assert "mcp__plugin_railkit_tiny__fail" in {tool.name for tool in agent.session.conversation.tools.listed}
    assert agent.session.skills.plugins is not None
    assert agent.session.skills.plugins.language_servers() == {"plugin:railkit:py": {"command": f"{copy}/ls"}}
    assert agent.session.redactor.text("hush-hush-4711") != "hush-hush-4711"
    assert any("no effect in a plugin: hooks" in each for each in warnings)


@pytest.mark.parametrize("trust", [True, False])
async def test_the_language_servers_of_a_plugin_answer_in_a_trusted_folder(
    tmp_path: Path, work: Path, *, trust: bool
) -> None:
    log = tmp_path / "server.log"
    log.touch()
    entry = {"command": sys.executable, "args": [str(LANGUAGE_SERVER), "plain", str(log)]}
    root = tmp_path / "codekit"
    write(root / ".claude-plugin/plugin.json", json.dumps({"name": "codekit"}))
    write(root / ".lsp.json", json.dumps({"scripted": {**entry, "extensionToLanguage": {".py": "python"}}}))
    write(work / "app.py", "value = 1\n")
    assert run(["plugins", "add", str(root), "--yes"]) == 0

    question = use("q", "LSP", operation="goToDefinition", file_path="app.py", symbol="value")
    model = ScriptedModel([[question], [say("done")]])
    await facts(open_agent(tmp_path, model, trust=trust))

    assert ("1 definition" in user_text(model.requests[1]), log.read_text() != "") == (trust, trust)


async def test_the_name_of_a_project_is_no_command_in_a_hook_of_a_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, log = tmp_path / "a$(touch marker)b", tmp_path / "log"
    project.mkdir()
    monkeypatch.chdir(project)
    root = make_plugin(tmp_path / "railkit", log)
    hook = {"type": "command", "command": f'echo "${{CLAUDE_PROJECT_DIR}}" >> {log}'}
    write(root / "hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [{"matcher": "Glob", "hooks": [hook]}]}}))
    assert run(["plugins", "add", str(root), "--yes", "--set", "token=hush-hush-4711"]) == 0
    await facts(open_agent(tmp_path, ScriptedModel([[use("g", "Glob", pattern="*")], [say("done")]]), work=project))
    assert log.read_text() == f"{project}\n"
    assert not (project / "marker").exists()


@pytest.mark.proves("N14")
async def test_a_plugin_counts_as_it_was_trusted_and_a_change_is_shown_and_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    root = make_plugin(tmp_path / "railkit", log)
    assert run(["plugins", "add", str(root)]) == 2
    told = capsys.readouterr()
    assert "needs a yes, and there is no terminal" in told.err
    assert "hook PreToolUse: " in told.out
    assert run(["plugins", "add", str(tmp_path / "nowhere")]) == 2
    assert "is not a folder. Give that of a plugin" in capsys.readouterr().err
    assert run(["plugins", "add", str(root), "--yes"]) == 0
    write(root / "note.sh", f"echo evil >> {log}")

    call: Callable[[], Any] = lambda: ScriptedModel([[use("g", "Glob", pattern="*")], [say("Done.")]])  # noqa: E731
    await facts(open_agent(tmp_path, call()))
    assert "evil" not in log.read_text()
    assert run(["plugins", "check"]) == 1
    shown = capsys.readouterr().out
    assert "has changed since it was trusted" in shown
    assert f"+echo evil >> {log}" in shown

    copy = next((tmp_path / "state/plugins/store").iterdir())
    (copy / "note.sh").chmod(0o600)
    write(copy / "note.sh", f"echo tampered >> {log}")
    warnings: list[str] = []
    found = await facts(open_agent(tmp_path, call(), warnings))
    assert found["plugins"] == []
    assert "the plugin 'railkit@local' is not what was trusted. See: handrail plugins check." in warnings
    assert "tampered" not in log.read_text()

    assert run(["plugins", "add", str(root), "--yes"]) == 0
    await facts(open_agent(tmp_path, call()))
    assert log.read_text().endswith("evil\n")


async def test_bytecode_in_the_copy_is_not_run_in_place_of_what_was_trusted(tmp_path: Path) -> None:
    log, root = tmp_path / "log", make_plugin(tmp_path / "railkit", tmp_path / "none")
    hook = {"type": "command", "command": f"{sys.executable} ${{CLAUDE_PLUGIN_ROOT}}/hook.py"}
    write(root / "hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))
    write(root / "hook.py", "import helper")
    write(root / "helper.py", f"open({str(log)!r}, 'a').write('trusted ')")
    evil = tmp_path / "evil.py"
    write(evil, f"open({str(log)!r}, 'a').write('evil ')")
    planted = Path(importlib.util.cache_from_source("helper.py"))
    for folder in (root, root / "skills"):
        write(folder / planted, "")  # it is not copied
    assert run(["plugins", "add", str(root), "--yes"]) == 0
    copy = next((tmp_path / "state/plugins/store").iterdir())
    call: Callable[[], Any] = lambda: ScriptedModel([[use("g", "Glob", pattern="*")], [say("Done.")]])  # noqa: E731

    await facts(open_agent(tmp_path, call()))
    assert list(copy.rglob("__pycache__")) == []
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(evil), str(copy / planted), invalidation_mode=unchecked)
    (copy / "skills/__pycache__").symlink_to(tmp_path)
    await facts(open_agent(tmp_path, call()))
    assert log.read_text() == "trusted trusted "
    assert tmp_path.is_dir()

    (copy / "odd").symlink_to(log)
    warnings: list[str] = []
    await facts(open_agent(tmp_path, call(), warnings))
    assert "the plugin 'railkit@local' is not what was trusted. See: handrail plugins check." in warnings
    assert log.read_text() == "trusted trusted "


@pytest.mark.parametrize("trust", [False, True])
async def test_what_a_project_switches_on_does_nothing_before_a_person_added_it(tmp_path: Path, trust: bool) -> None:
    log = tmp_path / "log"
    make_plugin(tmp_path / "work/.claude/plugins/railkit", log)
    write(tmp_path / "work/.claude/settings.json", json.dumps({"enabledPlugins": {"railkit@local": True}}))
    warnings: list[str] = []
    model = ScriptedModel([[use("g", "Glob", pattern="*")], [say("Done.")]])

    found = await facts(open_agent(tmp_path, model, warnings, trust=trust))

    assert (found["plugins"], found["skills"], found["mcp_servers"], log.exists()) == ([], [], [], False)
    assert any("was not added. Add it with" in each for each in warnings) is trust


async def test_a_folder_of_the_flag_counts_for_the_run_and_not_where_nothing_may_widen(tmp_path: Path) -> None:
    log = tmp_path / "log"
    root = make_plugin(tmp_path / "railkit", log)
    env = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    choices: list[tuple[Any, int]] = [("trusted", 1), ("policy", 0)]
    warnings: list[str] = []
    for wideners, rows in choices:
        model = ScriptedModel([[use("g", "Glob", pattern="*")], [say("Done.")]])
        flags = SettingsFlags(managed_policy=False, wideners=wideners)
        spec = SessionSpec(tmp_path / "work", flags=flags, tools=ToolOptions(plugins=(root, tmp_path / "nowhere")))
        host = SessionHost(model=model, on_warning=warnings.append)
        found = await facts(Agent.from_spec(spec, env, host))
        assert [each["source"] for each in found["plugins"]] == ["railkit@inline"] * rows
    assert log.read_text() == f"{root} \n"
    assert sum("nowhere' is not a folder, so it is left out" in each for each in warnings) == 1


def test_marketplaces_in_folders_and_git_repositories_offer_plugins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    market = tmp_path / "market"
    entries = [
        {"name": "railkit", "source": "./plugins/railkit"},
        {"name": "other", "source": "./plugins/other"},
        {"name": "away", "source": {"source": "github", "repo": "x/y"}},
        {"name": "out", "source": "../../out"},
    ]
    write(market / ".claude-plugin/marketplace.json", json.dumps({"name": "shop", "plugins": entries}))
    make_plugin(market / "plugins/railkit", tmp_path / "log")
    write(
        market / "plugins/other/gemini-extension.json",
        json.dumps({"name": "other", "mcpServers": {"m": {"command": "npx", "args": ["-y", "thing"]}}}),
    )
    who = ("-c", "user.name=x", "-c", "user.email=x@y")
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        (*who, "commit", "-q", "-m", "m"),
        ("clone", "-q", "--bare", ".", str(tmp_path / "shop.git")),
    ):
        subprocess.run(["git", *arguments], cwd=market, check=True)

    assert run(["plugins", "add", str(tmp_path / "shop.git")]) == 2
    assert "It has: other, railkit." in capsys.readouterr().err
    assert run(["plugins", "add", "other@shop", "--yes"]) == 0
    assert run(["plugins", "add", "away@shop", "--yes"]) == 2
    assert run(["plugins", "add", "out@shop", "--yes"]) == 2
    assert run(["plugins", "add", str(market), "railkit", "--yes"]) == 0
    assert run(["plugins", "disable", "railkit"]) == 0
    capsys.readouterr()
    assert run(["plugins", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["enabled"], each["intact"]) for each in listed["plugins"]] == [
        ("other@shop", True, True),
        ("railkit@shop", False, True),
    ]
    assert listed["marketplaces"] == {"shop": ["other", "railkit"]}
    assert run(["plugins", "check"]) == 1
    shown = capsys.readouterr().out
    assert "the MCP server 'm' runs 'npx -y thing', whatever version there is: pin one" in shown
    assert "railkit@shop: the option 'token' is not set" in shown
    assert run(["plugins", "remove", "other"]) == 0
    assert run(["plugins", "enable", "other"]) == 2
    assert "other@shop" not in (tmp_path / "home/.handrail/settings.json").read_text()


@pytest.mark.parametrize(
    ("name", "manifest"),
    [
        (".claude-plugin/plugin.json", {"name": "p", "skills": ["./more"], "agents": "./helpers"}),
        (".codex-plugin/plugin.json", {"name": "p", "skills": "./more", "agents": "./helpers"}),
        ("gemini-extension.json", {"name": "p", "skills": "./more", "agents": "./helpers"}),
    ],
)
def test_manifests_of_other_programs_are_read(tmp_path: Path, name: str, manifest: dict[str, Any]) -> None:
    root = tmp_path / "p"
    write(root / name, json.dumps(manifest))
    for folder in ("skills", "more", "agents", "helpers"):
        (root / folder).mkdir()
    found = read_plugin(root)
    assert isinstance(found, Plugin)
    assert sorted(folder.path.name for folder in found.folders) == ["helpers", "more", "skills"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["../..", "/etc", "./skills", "a\0b", "x", "${HOME}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "name",
    "skills",
    "commands",
    "agents",
    "outputStyles",
    "hooks",
    "mcpServers",
    "lspServers",
    "userConfig",
    "plugins",
]


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_no_manifest_breaks_the_reader_or_leads_out_of_its_plugin(tmp_path_factory: Any, value: dict[str, Any]) -> None:
    root = tmp_path_factory.mktemp("plugin")
    write(root / ".claude-plugin/plugin.json", json.dumps(value))
    write(root / "marketplace.json", json.dumps({"name": "m", **value}))
    found, market = read_plugin(root), read_marketplace(root)
    if isinstance(found, Plugin):
        assert all(folder.path.resolve().is_relative_to(root) for folder in found.folders)
    assert market is not None


def test_slips_in_a_manifest_are_named_with_what_to_do(tmp_path: Path) -> None:
    manifest = {"name": "kit", "versoin": "1", "commands": 3, "agents": ["./missing"]}
    write(tmp_path / ".claude-plugin/plugin.json", json.dumps(manifest))
    found = read_plugin(tmp_path)
    assert isinstance(found, Plugin)
    assert found.problems == (
        "commands is 3. Give a path inside of the plugin, or a list of them.",
        "agents: missing is not there",
        "no effect: versoin (did you mean 'version'?)",
    )


async def test_single_files_that_a_manifest_names_count_and_no_others_beside_them(tmp_path: Path) -> None:
    root = tmp_path / "kit"
    named = {"agents": ["./more/one.md"], "commands": "./do/this.md", "skills": ["./all/ship"]}
    write(root / ".claude-plugin/plugin.json", json.dumps({"name": "kit", **named}))
    for name in ("one", "two"):
        write(root / f"more/{name}.md", f"---\nname: {name}\ndescription: d\n---\nDo.")
    for name in ("this", "that"):
        write(root / f"do/{name}.md", "Do it.")
    for name in ("ship", "sink"):
        write(root / f"all/{name}/SKILL.md", "---\ndescription: d\n---\nDo.")

    async with open_agent(tmp_path, ScriptedModel([]), plugins=(root,)) as agent:
        assert {*agent.session.skills.all()} == {"kit:this", "kit:ship"}
        assert [name for name in agent.session.agents.definitions() if ":" in name] == ["kit:one"]


async def test_a_plugin_without_a_manifest_is_called_as_its_folder_was(tmp_path: Path, work: Path) -> None:
    write(tmp_path / "bare-kit/skills/ship/SKILL.md", "---\ndescription: d\n---\nShip.")
    assert run(["plugins", "add", str(tmp_path / "bare-kit"), "--yes"]) == 0

    async with open_agent(tmp_path, ScriptedModel([])) as agent:
        assert [*agent.session.skills.skills] == ["bare-kit:ship"]


def test_a_person_sees_all_that_a_plugin_runs_on_lines_that_it_cannot_imitate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_plugin(tmp_path / "kit", tmp_path / "log", manifest={"description": "Good\n  hooks: none"})
    guard = {"type": "command", "command": "sh", "args": ["-c", "evil one"]}
    write(root / "hooks/hooks.json", json.dumps({"hooks": {"Stop": [{"hooks": [guard]}]}}))
    servers = {
        "far": {"url": "https://a.example", "headersHelper": "evil-two"},
        "near": {"command": "true", "env": {"LD_PRELOAD": "evil-three.so"}},
    }
    write(root / ".mcp.json", json.dumps({"mcpServers": servers}))
    write(root / ".lsp.json", json.dumps({"py": {"command": "evil-four\n  note: harmless"}}))
    write(root / "skills/ship/SKILL.md", "---\nallowed-tools: Bash(evil-five *)\n---\nSee !`evil-six`.")
    write(root / "bin/ls", "evil")

    assert run(["plugins", "add", str(root)]) == 2

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "railkit@local 1.2.0  Good hooks: none"
    assert "  hook Stop: sh -c 'evil one'" in lines
    assert '  MCP server far: https://a.example {"headersHelper": "evil-two"}' in lines
    assert '  MCP server near: true {"env": {"LD_PRELOAD": "evil-three.so"}}' in lines
    assert '  language server py: "evil-four\\n  note: harmless"' in lines
    assert '  skill railkit:ship: {"runs": ["evil-six"], "allowed-tools": ["Bash(evil-five *)"]}' in lines
    assert any(line.startswith("  programs in ") and line.endswith(": ls") for line in lines)


async def test_what_changes_while_a_person_looks_is_not_what_counts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    root = make_plugin(tmp_path / "railkit", log)
    store = PluginStore(tmp_path / "state")
    with store.draft(root) as draft:
        write(root / "note.sh", f"echo evil >> {log}")
        store.install("railkit@local", draft, "")
    assert run(["plugins", "enable", "railkit"]) == 0

    await facts(open_agent(tmp_path, ScriptedModel([[use("g", "Glob", pattern="*")], [say("Done.")]])))

    assert "evil" not in log.read_text()
    assert [path.name[:8] for path in (tmp_path / "state/plugins/store").iterdir()] == ["railkit-"]


def test_a_git_repository_of_a_marketplace_runs_nothing_when_it_is_cloned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    market, canary = tmp_path / "market", tmp_path / "canary"
    entries = [{"name": "kit", "source": "./kit"}, {"name": "link", "source": "./link"}]
    write(market / "marketplace.json", json.dumps({"name": "shop", "plugins": entries}))
    make_plugin(market / "kit", tmp_path / "log", manifest={"name": "kit"})
    write(market / ".gitattributes", "* filter=evil\n")
    write(market / ".gitmodules", f'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch {canary}"\n')
    (market / "link").symlink_to("/etc")
    (market / "kit/skills/out").symlink_to(tmp_path / "home")
    who = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "core.hooksPath=/dev/null")
    for arguments in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "m")):
        subprocess.run(["git", *arguments], cwd=market, check=True)
    for hook in ("post-checkout", "post-upload-pack", "pre-receive"):
        write(market / ".git/hooks" / hook, f"#!/bin/sh\ntouch {canary}\n")
        (market / ".git/hooks" / hook).chmod(0o755)
    for key, value in (
        ("filter.evil.smudge", f"touch {canary}; cat"),
        ("uploadpack.packObjectsHook", f"touch {canary}"),
        ("core.fsmonitor", f"touch {canary}"),
    ):
        subprocess.run(["git", "config", key, value], cwd=market, check=True)

    assert run(["plugins", "add", f"file://{market}", "link", "--yes"]) == 2
    assert "comes from another place" in capsys.readouterr().err
    assert run(["plugins", "add", f"file://{market}", "kit", "--yes"]) == 2
    assert "skills/out is not a regular file" in capsys.readouterr().err
    assert not canary.exists()


def test_a_plugin_in_a_folder_is_checked_with_all_its_files_before_anyone_adds_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_plugin(tmp_path / "kit", tmp_path / "log", manifest={"userConfig": {}})
    (root / "agents/finder.md").unlink()
    assert run(["plugins", "check", str(root)]) == 0
    assert capsys.readouterr().out == "1 plugin, 0 problems\n"

    write(root / "agents/nameless.md", "---\ndescription: d\n---\nFind.")
    write(root / "commands/greet.md", "---\neffort: huge\n---\nGreet.")
    write(root / "skills/Odd Name/SKILL.md", "---\ndescription: d\n---\nDo.")
    write(root / "hooks/hooks.json", json.dumps({"hooks": {"PreTolUse": []}}))
    write(root / ".mcp.json", json.dumps({"mcpServers": {"m": {"command": ["a"]}}}))
    assert run(["plugins", "check", str(root), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["problems"]
    for part in ("an agent needs a name", "effort is 'huge'", "odd name for a skill", "PreTolUse", "server 'm'"):
        assert any(part in each for each in found), part
    assert run(["plugins", "check", str(tmp_path / "nowhere")]) == 1
    (tmp_path / "empty").mkdir()
    assert run(["plugins", "check", str(tmp_path / "empty")]) == 1
    assert "empty brings nothing: there are no skills" in capsys.readouterr().out
    assert not (tmp_path / "state/plugins").exists()


async def test_plugins_that_are_switched_during_a_session_count_from_the_next_turn_and_the_prefix_stays(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    root = make_plugin(tmp_path / "railkit", log, manifest={"userConfig": {}})
    glob = use("g", "Glob", pattern="*")
    model = ScriptedModel([[say("one")], [glob], [say("two")], [glob], [say("three")], [glob], [say("four")]])
    agent = open_agent(tmp_path, model, work=tmp_path / "work")
    seen: list[dict[str, Any]] = []
    with anyio.fail_after(60):
        async with agent:
            await agent.ask("none yet")
            seen.append(session_facts(agent.session))
            for words in (["add", str(root), "--yes"], ["disable", "railkit"], ["enable", "railkit"]):
                assert run(["plugins", *words]) == 0
                await agent.ask(words[0])
                assert agent.session.plugin_switch is not None
                await agent.session.plugin_switch.aclose()
                await agent.session.connect(patient=True)
                seen.append(session_facts(agent.session))

    row = {"name": "plugin:railkit:tiny", "status": "connected", "source": "plugin"}
    for found, is_on in zip(seen, (False, True, False, True), strict=True):
        assert ("railkit:finder" in found["agents"], "railkit:greet" in found["slash_commands"]) == (is_on, is_on)
        assert [each["name"] for each in found["plugins"]] == (["railkit"] if is_on else [])
        assert found["skills"] == (["railkit:ship"] if is_on else [])
        assert found["mcp_servers"] == ([row] if is_on else [])
    assert len(log.read_text().splitlines()) == 2  # its hook ran while it was on
    requests: list[Any] = model.requests
    first, last = requests[0], requests[-1]
    assert last.system == first.system
    assert [tool.name for tool in last.tools[: len(first.tools)]] == [tool.name for tool in first.tools]
    told = [block.text for each in last.history.messages for block in each.content if isinstance(block, Text)]
    lists = [text for text in told if text.startswith("Kinds of sub-agents")]
    assert ["- railkit:finder: Finds" in text for text in lists] == [False, True, False, True]


async def test_a_secret_that_is_set_during_a_session_keeps_its_plugin_out_of_it(tmp_path: Path) -> None:
    log, warnings = tmp_path / "log", list[str]()
    root = make_plugin(tmp_path / "railkit", log)
    model = ScriptedModel([[say("one")], [use("g", "Glob", pattern="*")], [say("two")]])
    agent = open_agent(tmp_path, model, warnings)
    with anyio.fail_after(60):
        async with agent:
            await agent.ask("none yet")
            assert run(["plugins", "add", str(root), "--yes", "--set", "token=hush-hush-4711"]) == 0
            await agent.ask("now")
            assert session_facts(agent.session)["plugins"] == []
    assert any("has a secret that was set after this session began" in each for each in warnings)
    assert not log.exists()


async def test_programs_of_a_plugin_are_found_by_approved_commands_behind_all_others(tmp_path: Path) -> None:
    root = make_plugin(tmp_path / "railkit", tmp_path / "log", manifest={"userConfig": {}})
    for name in ("railmake", "ls", "mkdir"):
        write(root / "bin" / name, f"#!/bin/sh\necho {name} of the plugin >> {tmp_path}/ran\n")
        (root / "bin" / name).chmod(0o755)
    assert run(["plugins", "add", str(root), "--yes"]) == 0
    calls = [use(str(n), "Bash", command=line) for n, line in enumerate(("railmake", "ls", "mkdir made"))]
    model = ScriptedModel([calls, [say("Done.")]])
    await facts(open_agent(tmp_path, model, allowed=("Bash",)))
    assert (tmp_path / "ran").read_text() == "railmake of the plugin\n"
    assert (tmp_path / "work/made").is_dir()


@pytest.mark.parametrize("by", ["plugin", "user", "untrusted project", "trusted project", "nothing of that name"])
async def test_an_agent_of_the_settings_or_of_a_plugin_leads(tmp_path: Path, work: Path, by: str) -> None:
    warnings = list[str]()
    root = make_plugin(tmp_path / "railkit", tmp_path / "log", manifest={"userConfig": {}})
    if by == "plugin":
        write(root / "settings.json", json.dumps({"agent": "finder", "model": "dear"}))
    assert run(["plugins", "add", str(root), "--yes"]) == 0
    settings: dict[str, Any] = {}
    if by in ("user", "nothing of that name"):
        settings = {"agent": "railkit:finder" if by == "user" else "nope"}
    elif "project" in by:
        write(work / ".handrail/settings.json", json.dumps({"agent": "railkit:finder"}))
    model = ScriptedModel([[say("Ok.")]])
    await facts(open_agent(tmp_path, model, warnings, settings=settings, trust=by == "trusted project"))
    leads = by not in ("untrusted project", "nothing of that name")
    [request] = list[Any](model.requests)
    assert ("Find." in "".join(request.system)) == leads
    assert any("settings.json: no effect: model" in each for each in warnings) == (by == "plugin")
    assert any("there is no agent 'nope'" in each for each in warnings) == (by == "nothing of that name")


def test_marketplaces_of_the_settings_offer_plugins(
    tmp_path: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_plugin(tmp_path / "shop/railkit", tmp_path / "log")
    listed = {"name": "shop", "plugins": [{"name": "railkit", "source": "./railkit"}]}
    write(tmp_path / "shop/.claude-plugin/marketplace.json", json.dumps(listed))
    shop = {"source": {"source": "directory", "path": str(tmp_path / "shop")}}
    write(tmp_path / "home/.handrail/settings.json", json.dumps({"extraKnownMarketplaces": {"shop": shop}}))
    write(work / ".handrail/settings.json", json.dumps({"extraKnownMarketplaces": {"other": shop}}))

    assert run(["plugins", "list"]) == 0
    assert "marketplace shop: railkit" in capsys.readouterr().out
    assert run(["plugins", "add", "railkit@shop", "--yes"]) == 0
    said = capsys.readouterr()
    assert "railkit@shop is trusted as it is now, and on." in said.out
    assert "needs its option 'token'" in said.err
    assert run(["plugins", "add", "railkit@other", "--yes"]) != 0  # the folder is not trusted
    assert "there is no marketplace 'other'" in capsys.readouterr().err


def test_a_plugin_that_is_removed_is_named_in_no_settings_of_ours(tmp_path: Path, work: Path) -> None:
    root = make_plugin(tmp_path / "railkit", tmp_path / "log")
    assert run(["plugins", "add", str(root), "--yes"]) == 0
    for scope in ("project", "local"):
        assert run(["plugins", "enable", "railkit", "--scope", scope]) == 0
    assert run(["plugins", "remove", "railkit"]) == 0
    files = [tmp_path / "home/.handrail/settings.json", *(work / ".handrail").glob("settings*.json")]
    assert [json.loads(file.read_text()) for file in files] == [{"enabledPlugins": {}}] * 3
