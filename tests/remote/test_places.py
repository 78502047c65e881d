"""Folders and policies: what is listed for a client can be used, and nothing else, whatever a request says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.cli.main import run
from handrail.errors import HandrailError, HttpRefusalError
from handrail.remote.config import ServeConfig, ServedFolder, ServeFile, build_config, read_config
from handrail.remote.places import find_place, real_folder, schedule_folder
from handrail.serve.guard import token_digest
from tests.forked import unmeasured
from tests.remote.serving import config_of

STEPS = ("a", "b", "out", "in", "up", "loop", ".git", ".handrail", "file")
ODD = ("..", ".", "", "~", "\0", "\u212a")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with others in it, beside secret ones that links lead to."""
    top = Path(os.path.realpath(tmp_path_factory.mktemp("tree")))
    for name in ("root/a/b", "root/.git/hooks", "root/.handrail", "root2/b", "secret/b"):
        (top / name).mkdir(parents=True)
    (top / "root" / "out").symlink_to(top / "secret")
    (top / "root" / "up").symlink_to("..")
    (top / "root" / "in").symlink_to("a")
    (top / "root" / "a" / "loop").symlink_to("loop")
    (top / "root" / "a" / "out").symlink_to(top / "root2")
    (top / "root" / "a" / ".git").symlink_to(top / "root" / ".git")
    (top / "root" / "file").touch()
    return top


paths = st.lists(st.sampled_from(STEPS), max_size=3) | st.lists(st.sampled_from(STEPS + ODD), max_size=5)


@given(steps=paths, absolute=st.booleans())
@example(steps=["out"], absolute=False)
@example(steps=["up", "secret"], absolute=False)
@example(steps=["a", "out", "b"], absolute=False)
@example(steps=["a", ".git", "hooks"], absolute=False)
@example(steps=["a", "..", "a"], absolute=False)
def test_a_path_is_used_if_it_is_a_folder_below_and_no_settings_and_else_refused(
    tree: Path, steps: list[str], absolute: bool
) -> None:
    root, path = str(tree / "root"), ("/" if absolute else "") + "/".join(steps)
    real = os.path.realpath(f"{root}/{path}") if "\0" not in path else ""
    is_inside = real == root or real.startswith(f"{root}/")
    is_settings = bool({".git", ".handrail", ".claude"} & set(real.split("/")))
    is_odd = path.startswith(("/", "~")) or ".." in steps
    try:
        found = real_folder(root, path)
    except HttpRefusalError:
        assert not is_inside or is_settings or is_odd or not Path(real).is_dir()
        return

    assert (found, is_inside, is_settings, is_odd) == (real, True, False, False)
    assert Path(found).is_dir()


names = st.sampled_from(["shop", "docs", "ask", "closed", "", "*", "..", "Shop"])


@given(st.sampled_from(["ann", "bob", "eve", "nobody"]), names, names)
def test_a_place_is_one_of_the_clients_own_folders_under_one_of_its_policies(
    tree: Path, client: str, folder: str, policy: str
) -> None:
    value = config_of(tree)
    config = build_config(ServeFile(**value), "test", tree)
    listed = value["clients"].get(client, {"folders": []})["folders"]
    fits = folder in listed and policy in ("", *value["folders"].get(folder, {"policies": []})["policies"])
    try:
        place = find_place(config, client, folder, "", policy)
    except HttpRefusalError:
        assert not fits
        return

    assert fits
    assert place.folder == str(tree / folder)
    assert place.policy_name == (policy or value["folders"][folder]["policies"][0])


def test_a_schedule_starts_under_the_policy_of_the_deepest_folder_that_lists_it() -> None:
    folders = {
        "all": ServedFolder("all", "/srv", ("p",), "p"),
        "shop": ServedFolder("shop", "/srv/shop", ("p",)),
        "api": ServedFolder("api", "/srv/shop/api", ("p",), "p"),
    }
    config = ServeConfig(folders, {}, {})
    found = {
        path: folder.name if (folder := schedule_folder(config, path)) else None
        for path in ("/srv/docs", "/srv", "/srv/shop", "/srv/shop/api/x", "/srv/shop/apis", "/etc", "/srvx")
    }
    assert found == {
        "/srv/docs": "all",
        "/srv": "all",
        "/srv/shop": None,
        "/srv/shop/api/x": "api",
        "/srv/shop/apis": None,
        "/etc": None,
        "/srvx": None,
    }


DIGEST = "0" * 64
CHANGES: list[Any] = [
    pytest.param({"folders": {}}, "folders", id="no folders"),
    pytest.param({"folders": {"shop": {"path": "/nowhere", "policies": ["ask"]}}}, "is not a folder", id="no such one"),
    pytest.param({"folders": {"shop": {"path": "/", "policies": ["ask"]}}}, "the root of the whole", id="everything"),
    pytest.param({"folders": {"a/b": {"path": ".", "policies": ["ask"]}}}, "not a name", id="a name with a slash"),
    pytest.param({"folders": {"shop": {"path": ".", "policies": ["asks"]}}}, "Did you mean 'ask'", id="a policy"),
    pytest.param({"folders": {"shop": {"path": ".", "policies": []}}}, "policies", id="no policy"),
    pytest.param(
        {"folders": {"shop": {"path": ".", "policies": ["ask"], "schedules": "closed"}}}, "schedules names", id="clock"
    ),
    pytest.param({"policies": {"ask": {"permissionMode": "bypassPermissions"}}}, "permissionMode", id="bypass"),
    pytest.param({"policies": {"ask": {"allow": ["Bash("]}}}, "allow holds", id="a broken rule"),
    pytest.param({"policies": {"ask": {"alow": []}}}, "alow", id="a misspelt key"),
    pytest.param({"policies": {"ask": {"maxTurns": 0}}}, "maxTurns", id="a limit of nothing"),
    pytest.param({"clients": {"ann": {"token": "secret", "folders": []}}}, "token", id="a token in the file"),
    pytest.param({"clients": {"ann": {"tokenSha256": "x", "folders": []}}}, "serve --new-token", id="no digest"),
    pytest.param({"clients": {}}, "it should have at least 1 item", id="no clients"),
    pytest.param({"polices": {}}, "Did you mean 'policies'", id="a misspelt section"),
    pytest.param(
        {"policies": {"ask": {"settings": {"sandbx": {"enabled": True}}}}}, "Did you mean 'sandbox'", id="a setting"
    ),
    pytest.param(
        {"policies": {"ask": {"settings": {"sandbox": {"enabled": "yes"}}}}}, "sandbox.enabled is 'yes'", id="its value"
    ),
    pytest.param({"policies": {"ask": {"settings": {"fence": 1}}}}, "fence has no effect here", id="an unknown one"),
    pytest.param({"clients": {"ann": {"tokenSha256": DIGEST, "folders": ["x"]}}}, "folders names 'x'", id="its folder"),
    pytest.param(
        {"clients": {name: {"tokenSha256": DIGEST, "folders": ["*"]} for name in ("ann", "bob")}},
        "has the token of 'ann'",
        id="one token for two",
    ),
]


@pytest.mark.parametrize(("changes", "problem"), CHANGES)
def test_a_file_that_is_not_understood_starts_nothing(
    tmp_path: Path, changes: dict[str, Any], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "serve.json"
    file.write_text(json.dumps(config_of(tmp_path) | changes))
    assert run(["serve", "--config", str(file), "--check"]) == 2
    said = capsys.readouterr().err
    assert problem in said
    assert str(file) in said


def test_what_stands_in_the_place_of_a_digest_is_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "serve.json"
    clients = {"ann": {"tokenSha256": "the-token-itself", "folders": ["shop"]}}
    file.write_text(json.dumps(config_of(tmp_path) | {"clients": clients}))
    assert run(["serve", "--config", str(file), "--check"]) == 2
    assert "the-token-itself" not in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["tools"], ["serve", "--help"], ["schedule", "list"]], ids=" ".join)
def test_commands_do_not_pay_for_the_server_that_they_do_not_start(tmp_path: Path, arguments: list[str]) -> None:
    code = (
        "import sys\nfrom handrail.cli.main import run\n"
        f"try: run({arguments!r})\nexcept SystemExit: pass\n"
        "found = [name for name in sys.modules if name.startswith(('handrail.remote', 'starlette', 'uvicorn'))]\n"
        "print('\\nloaded:', found)"
    )
    env = {**unmeasured(), "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "loaded: []"


def test_a_file_that_others_can_change_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "serve.json"
    file.write_text(json.dumps(config_of(tmp_path)))
    file.chmod(0o664)
    with pytest.raises(HandrailError, match="chmod go-w"):
        read_config(file)


def test_the_operator_sees_what_a_file_allows_and_gets_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "serve.json"
    file.write_text(json.dumps(config_of(tmp_path)))
    assert run(["serve", "--config", str(file), "--check"]) == 0
    said = capsys.readouterr().out
    assert "ann may start runs in shop, and may answer questions" in said
    assert "ask is mode default; denies Bash(rm *); clients are asked" in said
    assert run(["serve", "--config", str(file), "--check", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["clients"][0] == {"name": "ann", "folders": ["shop"], "answers": True}
    assert {each["name"]: each["deny"] for each in about["policies"]}["ask"] == ["Bash(rm *)"]
    assert run(["serve", "--new-token", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert token_digest(made["token"]) == made["tokenSha256"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["serve"], "no folder is listed"),
        (["serve", "--folder", "shop"], "Write a name of its own and a path"),
        (["serve", "--folder", "shop=/nowhere"], "is not a folder"),
        (["serve", "--folder", "shop=.", "--dangerously-skip-permissions"], "cannot skip permissions"),
        (["serve", "--folder", "shop=.", "--disallowedTools", "Bash("], "--disallowedTools"),
    ],
)
def test_flags_that_make_no_sense_start_nothing(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert problem in capsys.readouterr().err
