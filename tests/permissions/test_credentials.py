"""Files with ordinary names that hold a password or a token are asked about like secrets, by every way to read them."""

import json
import subprocess
from pathlib import Path

import pytest

from handrail.cli.main import run
from handrail.files.credentials import holds_credentials
from tests.permissions.world import World

TOKEN = "s3cr3tt0k3nvalue1234567"
ADDRESS = f"https://me:{TOKEN}@example.org/a.git"
HOLD = {
    ".git/config": f'[remote "origin"]\n\turl = {ADDRESS}\n',
    ".git/modules/a/config": f'[remote "origin"]\n\turl = https://{TOKEN}@example.org/a\n',
    f".git/modules/{'a/' * 12}config": f'[remote "origin"]\n\turl = {ADDRESS}\n',
    "bare.git/config": f'[http "https://example.org"]\n\textraheader = AUTHORIZATION: basic {TOKEN}\n',
    ".gitmodules": f'[submodule "a"]\n\turl = {ADDRESS}\n',
    "pip.conf": f"[global]\nindex-url = https://u:{TOKEN}@pypi.example.org/simple\n",
    "uv.toml": f'[[index]]\nurl = "https://u:{TOKEN}@pypi.example.org/simple"\n',
    "auth.json": json.dumps({"github-oauth": {"github.com": "x"}, "token": TOKEN}),
    "nuget.config": f'<add key="ClearTextPassword" value="{TOKEN}" />\n',
    "NuGet.Config": f'<add key="ClearTextPassword" value="{TOKEN}" />\n',
    ".condarc": f"channels:\n  - https://conda.example.org/t/x\ntoken: {TOKEN}\n",
    "gradle.properties": f"repoPassword={TOKEN}\n",
    "settings.xml": f"<servers><server><password>{TOKEN}</password></server></servers>\n",
    "bunfig.toml": f'[install.scopes]\na = {{ token = "{TOKEN}", url = "x" }}\n',
    ".bundle/config": f'BUNDLE_GEMS__EXAMPLE__ORG: "u:p"\nBUNDLE_TOKEN: "{TOKEN}"\n',
    ".cargo/config.toml": f'[registries.x]\ntoken = "{TOKEN}"\n',
    "kubeconfig": f"users:\n- user:\n    token: {TOKEN}\n",
    "prod.tfvars": f'db_password = "{TOKEN}"\n',
    ".curlrc": f"user = me:{TOKEN}\n",
    ".wgetrc": f"http_password={TOKEN}\n",
    "wp-config.php": f"define('DB_PASSWORD', '{TOKEN}');\n",
}
HOLD_NONE = {
    ".git/config": '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@example.org:a/b.git\n',
    ".gitmodules": '[submodule "a"]\n\tpath = a\n\turl = https://example.org/a.git\n',
    "pip.conf": "[global]\nindex-url = https://packages.example/simple\n",
    "gradle.properties": "org.gradle.jvmargs=-Xmx2g\nversion=1.2\n# password=none\n",
    "settings.xml": "<settings><password>${env.PASSWORD}</password></settings>\n",
    ".cargo/config.toml": '[build]\njobs = 4\n[target.x]\nlinker = "clang"\n',
    "prod.tfvars": 'region = "eu"\n',
    "notes.txt": f"token = {TOKEN}\n",
}
NAMED_SECRETS = (
    ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".docker/config.json", ".kube/config", "credentials.json",
    ".aws/credentials", ".gem/credentials", ".cargo/credentials.toml", ".config/gh/hosts.yml", "rclone.conf",
    ".config/composer/auth.toml", ".pg_service.conf", ".mylogin.cnf", ".codex/auth.json", ".oci/config", "a.ppk",
    "service-account.json", "client_secret.json", ".config/sops/age/keys.txt", ".terraform.d/credentials.tfrc.json",
)  # fmt: skip
READING = (
    "cat {}", "head -5 {}", "grep . {}", "sed -n p {}", "cat < {}", "cat ./{}", 'x={}; cat "$x"', "base64 {}",
    "git diff --no-index /dev/null {}", "cp {} /dev/stdout", "awk 1 {}", "cat $(echo {})", "xargs cat <<< {}",
)  # fmt: skip


def write(world: World, name: str, text: str) -> None:
    path = Path(world.at("/home/dev/proj")) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.proves("X26")
@pytest.mark.parametrize("name", HOLD)
def test_a_file_with_a_password_in_it_is_asked_about(name: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    write(world, name, HOLD[name])

    assert world.says("Read", {"file_path": name}) == "ask"
    assert {line: world.bash(line.format(name)) for line in READING} == dict.fromkeys(READING, "ask")
    assert World(tmp_path, mode="bypassPermissions").bash(f"cat {name}") == "allow"
    assert World(tmp_path, rules={"allow": [f"Read(./{name})"]}).says("Read", {"file_path": name}) == "allow"


@pytest.mark.proves("X26")
def test_a_file_in_two_bytes_a_letter_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "settings.xml"
    file.write_bytes(HOLD["settings.xml"].encode("utf-16"))

    assert holds_credentials(str(file))


@pytest.mark.parametrize("text", ["\n", " \n", "\t", "://", "<token"])
def test_no_content_takes_long_to_look_at(text: str, tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(text * (1_000_000 // len(text)))

    assert not holds_credentials(str(file))


@pytest.mark.parametrize("name", HOLD_NONE)
def test_the_same_files_without_one_are_read_unasked(name: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    write(world, name, HOLD_NONE[name])

    assert world.says("Read", {"file_path": name}) == "allow"
    assert world.bash(f"cat {name}") == "allow"


@pytest.mark.proves("X26")
@pytest.mark.parametrize("name", NAMED_SECRETS)
def test_a_file_that_is_made_for_passwords_is_asked_about_whatever_it_holds(name: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    write(world, name, "x\n")

    assert world.says("Read", {"file_path": name}) == "ask"
    assert world.bash(f"cat {name}") == "ask"


@pytest.mark.proves("X26")
@pytest.mark.needs("git")
def test_no_call_shows_the_token_of_a_remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    subprocess.run(["git", "-C", project, "remote", "add", "origin", ADDRESS], check=True)
    for name in ("pip.conf", "gradle.properties", "kubeconfig"):
        (project / name).write_text(HOLD[name])
    (project / "a.txt").write_text("token\n")
    subprocess.run(["git", "-C", project, "add", "gradle.properties", "a.txt"], check=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    lines = (
        "cat .git/config", "grep -r url .git", "grep -rn token . | head", "grep -r oken", "cat .git/c*", "cat gradle.*",
        "cd .git && cat config", "cat $(git ls-files)", "git ls-files | xargs cat", "find . -type f | xargs cat",
        "find . -name config -exec cat {} +", "git config --list", "git remote -v", "rg -uu oken", "rg oken",
        "for f in *; do cat $f; done", "tail -n +1 *", "diff -r . .git",
    )  # fmt: skip

    def call(tool: str, **given: str) -> str:
        run(["call", "--json", tool, json.dumps(given)])
        return capsys.readouterr().out

    shown = [line for line in lines if TOKEN in call("Bash", command=line)]
    assert shown == []
    for found in (
        call("Read", file_path=".git/config"),
        call("Grep", pattern="oken|http", output_mode="content"),
        call("Grep", pattern="oken|http", path="pip.conf", output_mode="content"),
        call("Grep", pattern="http", path=".git", output_mode="content"),
    ):
        assert TOKEN not in found
    assert "a.txt" in call("Grep", pattern="oken")
    assert "a.txt" in call("Bash", command="grep -r oken .")


def test_what_is_no_file_or_too_large_is_not_taken_for_harmless(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").mkdir()
    (tmp_path / "uv.toml").write_text("#\n" * (1 << 20))

    assert not holds_credentials(str(tmp_path / "pip.conf"))
    assert holds_credentials(str(tmp_path / "uv.toml"))
    assert not holds_credentials(str(tmp_path / "auth.json"))
