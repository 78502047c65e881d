"""Broken and hostile files: each gets a clear word with file, line and key, and none counts for more than it should."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail.config.document import MAX_BYTES, SettingsDocument, read_document
from handrail.config.keys import KEYS, find
from handrail.config.places import SettingsFile

MODES = "'default', 'acceptEdits', 'plan', 'auto', 'dontAsk', 'bypassPermissions', 'manual'"

MEANT = "settings.json:1: {} is not known. Did you mean {}?"


def read(path: Path) -> SettingsDocument:
    found = read_document(SettingsFile("user", path, "settings.json", str(path.parent), "handrail"))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("data", "line", "says"),
    [
        pytest.param(b"", 1, "the file is empty", id="an empty file"),
        pytest.param(b'{\n "a": 1,\n}', 3, "a comma before }", id="a trailing comma"),
        pytest.param(b'{\n// no\n"a": 1}', 2, "comments are not allowed", id="a comment"),
        pytest.param(b'{"a": {"b": NaN}}', 1, "(in a.b)", id="NaN with its key"),
        pytest.param(b'{"a": Infinity}', 1, "a value is expected here", id="Infinity"),
        pytest.param(b'{"a": -Infinity}', 1, "a value is expected here", id="minus Infinity"),
        pytest.param(b'{"a": 1e999}', 1, "too large", id="an endless number"),
        pytest.param(b'{"a": 1,\n"a": 2}', 2, "the key 'a' appears here a second time", id="a key twice"),
        pytest.param(
            b'{"p": {"deny": [], "deny": []}}', 1, "'deny' appears here a second time", id="an inner key twice"
        ),
        pytest.param(b"[]", 1, "it must hold an object", id="a list"),
        pytest.param(b'"x"', 1, "it must hold an object", id="a text"),
        pytest.param(b"null", 1, "it must hold an object", id="null"),
        pytest.param(b'{"a": "\xff"}', 0, "not UTF-8 text (invalid start byte at byte 7, line 1)", id="Latin-1"),
        pytest.param('{"a": 1}'.encode("utf-16"), 0, "not UTF-8", id="UTF-16"),
        pytest.param(b'{"a": "\x00"}', 1, "not closed on its line", id="a NUL"),
        pytest.param(b'{"a":' * 5000 + b"1" + b"}" * 5000, 1, "nested deeper than 64", id="five thousand levels"),
        pytest.param(b"[" * 2_000_000, 1, "nested deeper than 64", id="two million brackets"),
        pytest.param(b" " * (MAX_BYTES + 1), 0, "larger than 4,000,000 bytes", id="a huge file"),
        pytest.param(b"<<<<<<< HEAD\n{}\n=======\n", 1, "not '<<<<<<< HEAD'", id="a merge conflict"),
    ],
)
def test_a_broken_file_is_said_to_be_broken_with_its_line(tmp_path: Path, data: bytes, line: int, says: str) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(data)

    document = read(path)

    assert document.values == {}
    assert document.doubtful
    [problem] = document.problems
    assert problem.line == line
    assert says in str(problem)
    assert str(problem).startswith("settings.json:")


def test_things_that_are_no_files_are_said_to_be_none(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    nowhere, loop = tmp_path / "nowhere", tmp_path / "loop"
    nowhere.symlink_to("missing")
    loop.symlink_to("loop")

    said = [str(read(path).broken) for path in (folder, pipe, nowhere, loop, Path(os.devnull))]

    assert said == [
        "settings.json: this is a folder, and a settings file is expected here. Move it away.",
        "settings.json: this is not a regular file, and a settings file is expected here. Move it away.",
        "settings.json: this is a link to nothing. Repair or remove it.",
        "settings.json: it cannot be read: a loop of links. Look at the file, its owner and its mode.",
        "settings.json: this is not a regular file, and a settings file is expected here. Move it away.",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    path.chmod(0)

    assert "cannot be read: Permission denied" in str(read(path).broken)


def test_a_file_that_is_not_there_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    for path in (tmp_path / "none.json", tmp_path / "file" / "settings.json"):
        assert read_document(SettingsFile("user", path, "", "", "handrail")) is None


def test_a_byte_order_mark_and_a_link_to_a_file_are_fine(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_bytes(b'\xef\xbb\xbf{"model": "m"}')
    (tmp_path / "settings.json").symlink_to("real.json")

    assert read(tmp_path / "settings.json").values == {"model": "m"}


@pytest.mark.parametrize(
    ("text", "kept", "said"),
    [
        pytest.param(
            '{\n"model": 5,\n"language": "de"}',
            {"language": "de"},
            ["settings.json:2: model is 5 and must be text in quotes."],
            id="a number for a text loses that key alone",
        ),
        pytest.param(
            '{"model": "", "fallbackModel": [" ", "b"], "language": ""}',
            {"fallbackModel": ["b"], "language": ""},
            [
                "settings.json:1: model is '' and must be a name; write one, or leave the key out.",
                "settings.json:1: fallbackModel[0] is ' ' and must be a name; write one, or leave the key out.",
            ],
            id="a name without a letter",
        ),
        pytest.param(
            '{"permissions": {"allow": ["Read",\n7,\nnull, "Glob"]}}',
            {"permissions": {"allow": ["Read", "Glob"]}},
            [
                "settings.json:2: permissions.allow[1] is 7 and must be text in quotes.",
                "settings.json:3: permissions.allow[2] is null and must be text in quotes.",
            ],
            id="one bad item does not lose the others",
        ),
        pytest.param(
            '{"permissions": {"defaultMode": "yolo"}}',
            {"permissions": {}},
            [f"settings.json:1: permissions.defaultMode is 'yolo' and must be one of {MODES}."],
            id="a mode that does not exist",
        ),
        pytest.param(
            '{"cleanupPeriodDays": true}',
            {},
            ["settings.json:1: cleanupPeriodDays is true and must be a whole number."],
            id="true is not a number",
        ),
        pytest.param(
            '{"cleanupPeriodDays": -1}',
            {},
            ["settings.json:1: cleanupPeriodDays is -1 and must be at least 0."],
            id="a number below its minimum",
        ),
        pytest.param(
            '{"env": {"A": "1", "B": 2}}',
            {"env": {"A": "1"}},
            ["settings.json:1: env.B is not a text and must be text in quotes."],
            id="a variable that is a number",
        ),
        pytest.param(
            '{"env": {"A": "x\\u0000y", "B": "\\ud800"}}',
            {"env": {}},
            [
                "settings.json:1: env.A holds a NUL character.",
                "settings.json:1: env.B holds half of a pair of characters (a lone surrogate).",
            ],
            id="texts that no program can be given",
        ),
        pytest.param(
            '{"toolSearch": true}',
            {},
            ["settings.json:1: toolSearch is true and must be an object."],
            id="a flag for a section",
        ),
        pytest.param(
            '{"permisions": {"deny": ["Bash"]}, "Model": "x"}',
            {"permisions": {"deny": ["Bash"]}, "Model": "x"},
            [
                "settings.json:1: permisions is not known. Did you mean 'permissions'?",
                "settings.json:1: Model is not known. Did you mean 'model'?",
            ],
            id="near misses are kept and hinted at",
        ),
        pytest.param(
            '{"defaultMode": "plan", "percent": 3, "permissions": {"denyRead": ["x"]}}',
            {"defaultMode": "plan", "percent": 3, "permissions": {"denyRead": ["x"]}},
            [
                "settings.json:1: defaultMode is not known. Did you mean 'permissions.defaultMode'?",
                "settings.json:1: permissions.denyRead is not known. Did you mean 'sandbox.filesystem.denyRead'?",
            ],
            id="a key at the wrong level is hinted at",
        ),
        pytest.param(
            '{"sandbox.enabled": true, "sandbox": {"network.host": 1, "filesystem.denyRead": []}}',
            {"sandbox.enabled": True, "sandbox": {"network.host": 1, "filesystem.denyRead": []}},
            [
                MEANT.format("sandbox.enabled", '{"sandbox": {"enabled": ...}}'),
                MEANT.format("sandbox.filesystem.denyRead", '{"sandbox": {"filesystem": {"denyRead": ...}}}'),
            ],
            id="a key with a dot is hinted at as the objects that it means",
        ),
        pytest.param(
            '{"somethingElseEntirely": [1, {"x": 2}]}',
            {"somethingElseEntirely": [1, {"x": 2}]},
            [],
            id="unknown keys are kept without a word",
        ),
        pytest.param(
            '{"hooks": {"Stop": "whatever"}}',
            {"hooks": {"Stop": "whatever"}},
            [],
            id="hooks are handed on as they are: a broken guard must not vanish",
        ),
        pytest.param(
            '{"permissions": {"deny": "Bash"}}',
            {"permissions": {"deny": ["Bash"]}},
            ["settings.json:1: permissions.deny is 'Bash' and must be a list; it is read as a list of one."],
            id="a single deny rule still denies",
        ),
    ],
)
def test_a_wrong_value_is_named_and_the_rest_of_the_file_stands(
    tmp_path: Path, text: str, kept: dict[str, Any], said: list[str]
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)

    document = read(path)

    assert (document.values, [str(problem) for problem in document.problems]) == (kept, said)
    assert not document.doubtful


@pytest.mark.parametrize(
    "values",
    [
        {"permissions": []},
        {"permissions": "x"},
        {"permissions": None},
        {"permissions": {"deny": 5}},
        {"permissions": {"deny": {"Bash": True}}},
        {"permissions": {"deny": ["Bash", None]}},
        {"permissions": {"ask": [7]}},
        {"permissions": {"disableBypassPermissionsMode": True}},
        {"permissions": {"disableAutoMode": "yes"}},
        {"sandbox": True},
        {"sandbox": {"enabled": "yes"}},
        {"sandbox": {"network": ["evil.example"]}},
        {"sandbox": {"filesystem": {"denyRead": [{"path": "~/.ssh"}]}}},
        {"sandbox": {"enabled": True, "allowUnsandboxedCommands": "no"}},
        {"sandbox": {"autoAllowBashIfSandboxed": "false"}},
        {"permissions": {"defaultMode": "Plan"}},
        {"permissions": {"defaultMode": "plan mode"}},
        {"permissions": {"defaultMode": "don't ask"}},
        {"allowedMcpServers": "db"},
        {"allowedMcpServers": [{"serverName": "db"}, {"serverCommand": "uvx db"}]},
        {"allowedHttpHookUrls": "https://hooks.example/*"},
        {"httpHookAllowedEnvVars": "TOKEN"},
        {"availableModels": ["m", 5]},
        {"redact": {"card": "[0-9]+"}},
        {"disableSkillShellExecution": "yes"},
        {"deniedMcpServers": {"db": True}},
        {"disabledMcpjsonServers": [None]},
    ],
    ids=str,
)
def test_a_mistake_in_what_forbids_leaves_doubt(tmp_path: Path, values: Any) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(values))

    assert read(path).doubtful


@pytest.mark.parametrize(
    "values",
    [
        {"permissions": {"allow": 5}},
        {"permissions": {"defaultMode": "x"}},
        {"permissions": {"defaultMode": "acceptedits"}},
        {"permissions": {"defaultMode": "bypass"}},
        {"permissions": {"defaultMode": "Default"}},
        {"permissions": {"defaultMode": True}},
        {"permissions": {"additionalDirectories": "/"}},
        {"sandbox": {"excludedCommands": "docker"}},
        {"enableAllProjectMcpServers": "no"},
        {"strictHooks": "yes"},
        {"sandbox": {"network": {"allowedDomains": 1}}},
    ],
    ids=str,
)
def test_a_mistake_in_what_allows_leaves_none(tmp_path: Path, values: Any) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(values))

    assert not read(path).doubtful


def test_every_key_is_found_by_its_path() -> None:
    assert len({key.name for key in KEYS}) == len(KEYS)
    assert [find(key.path) for key in KEYS] == list(KEYS)
    assert find(("env", "X")) == find(("env",))
    assert find(("permissions",)) is None
    assert find(("nothing", "here")) is None
