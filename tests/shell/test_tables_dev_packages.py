"""Package managers and developer tools: what is installed and which version, never what runs or fetches."""

import pytest

from handrail.shell import Does, analyse, tables
from handrail.shell.tables.format import Command, OptionIndex
from tests.shell.corpus_report import runs_unasked

READ_ONLY = """
python3 -m pip list
npm ls
npm ls --depth=0
npm ls -g --json
npm ls --depth 0
npm list react
npm root -g
npm prefix
npm run
pip list
pip list --format=json
pip list -e --exclude pip
pip show requests
pip show -f requests flask
pip freeze
pip freeze --all
pip check
pip --version
pip3 list
pip3 -V
pip cache dir
uv --version
npm --version
npm -v
npm pkg get scripts
gem list
gem list --local rails
gem --version
conda list
conda env list
conda info
apt list --installed
apt show bash
apt search ripgrep
apt-cache policy bash
apt-cache depends bash
apt-cache search ripgrep
apt --version
apt-mark showmanual
dpkg -l
dpkg -l 'lib*'
dpkg -L bash
dpkg -S bin/ls
dpkg -s bash
dpkg --get-selections
dpkg --print-architecture
dpkg --compare-versions 1.0 lt 2.0
dpkg-query -W -f='${Package}' bash
rpm -qa
rpm -qi bash
rpm -ql bash
pacman -Q
pacman -Qi bash
brew list --versions
brew --version
snap list
clang-format --version
gpg --version
pre-commit --version
aws --version
""".strip().splitlines()

NOT_READ_ONLY = """
npm ls ../evil
npm ls --prefix x
npm ls --depth=x
npm run build
npm run-script x
npm root x
python3 -m pip install x
python -m pip list
npm ls --cache=x
pip
pip install x
pip install -e .
pip uninstall x
pip download x
pip wheel .
pip list -o
pip list --outdated
pip list --outdate
pip list -eo
pip list --uptodate
pip index versions x
pip search x
pip config list
pip config debug
pip debug
pip cache purge
pip cache remove x
pip --python ./evil list
pip --python=./evil list
pip list --python ./evil
pip list --log x
pip list --index-url=http://evil.example
pip list -i http://evil.example
pip freeze -r /etc/passwd
pip list --path=/etc
pip hash x
pip show "$x"
uv pip list
uv run x
uv sync
uv add x
uv version --bump minor
uv tree
npm
npm explain react
npm install
npm i x
npm ci
npm test
npm run build
npm start
npm exec x
npm publish
npm view x
npm info x
npm outdated
npm audit
npm audit fix
npm search x
npm config list
npm config get //r/:_authToken
npm config set x y
npm pkg set a=b
npm version patch
npm link
npm rebuild
npm cache clean
npm --prefix ../evil ls
npm ls --prefix ../evil
npm ls --script-shell=./x
npm ls --depth --prefix=../evil
npm ls --depth x
npm --version test
npm -v test
npm token list
npm whoami
npm root --prefix=x
npx x
npx tsc --version
yarn
yarn --version
yarn list
pnpm ls
pnpm --version
bun install
bun run x
bun x
cargo --version
cargo tree
cargo run
cargo metadata
rustc --version
rustup show
go version
go env
go list ./...
mvn -v
mvn dependency:tree
gradle --version
gradle tasks
sbt --version
bundle list
bundle --version
composer show
composer --version
poetry show
poetry --version
pipenv graph
gem install x
gem list -r
gem list --remote
gem search x
gem fetch x
conda install x
conda search x
conda run x
conda create -n x
conda list --prefix=/etc
apt install x
apt update
apt list -o Dir::Bin::x=y
apt -o APT::Update::Pre-Invoke::=id list
apt-cache -c evil policy
apt-get install x
apt-get update
apt changelog x
apt-mark hold x
dpkg -i x.deb
dpkg -r x
dpkg -P x
dpkg
dpkg -l --admindir=./x
dpkg --pre-invoke=id -l
dpkg --set-selections
dpkg -li x.deb
dpkg-query --admindir=./x -l
rpm -i x.rpm
rpm -U x.rpm
rpm -e x
rpm -qa --pipe sh
rpm -E '%(id)'
rpm --eval '%(id)'
rpm -q --qf '%(id)' bash
rpm -qp x.rpm --define 'x y'
pacman -S x
pacman -Syu
pacman -R x
pacman -Qi --config ./x bash
brew install x
brew update
brew upgrade
brew info x
brew search x
snap install x
snap refresh
nix-shell -p x
python3
python3 -v
python3 script.py
python3 -c 'x'
python3 -m http.server
python3 --version script.py
python3 -Vc 'x'
python3 -V -c x
node --version script.js
node -r ./x.js --version
node -p 1
node --require ./x.js --version
node -pv x
perl -v -e x
perl -ve x
ruby -v script.rb
ruby -rx -v
php -v script.php
php -r 'x'
lua -v script.lua
java -jar x.jar -version
java -version -jar x.jar
java -javaagent:x.jar -version
java Main.java
java @args -version
gcc -v x.c
gcc --version x.c
gcc -wrapper ./x --version
make
make -n
make --version -f x
make -v x
cmake --version -P x
sqlite3 app.db 'select 1'
psql -c 'select 1'
curl https://evil.example
curl --version https://evil.example
curl --version -o x
wget --version -O x
ssh -V host
ssh -oProxyCommand=id -V
openssl enc -in x
openssl version -engine x
ruff check .
ruff check --fix .
black --check .
mypy .
eslint .
eslint --version -c evil.js
prettier --write .
tsc -p .
tsc --version --plugins x
pytest --version
vim --version -c '!id'
vim -c '!id' --version
gdb --version -ex 'shell id'
aws s3 ls
ansible all -m ping
ansible --version
rsync a b
gpg --decrypt x
""".strip().splitlines()


@pytest.mark.parametrize("line", READ_ONLY)
def test_looking_at_what_is_installed_runs_unasked(line: str) -> None:
    assert runs_unasked(line), analyse(line).reasons


@pytest.mark.parametrize("line", NOT_READ_ONLY)
def test_anything_that_runs_fetches_or_changes_is_asked_for(line: str) -> None:
    assert not runs_unasked(line)


@pytest.mark.parametrize("line", ["npm view x", "npm outdated", "npm audit"])
def test_asking_a_registry_is_reported_as_network(line: str) -> None:
    assert analyse(line).segments[0].does(Does.NETWORK)


def entries(name: str, entry: Command) -> list[tuple[str, Command]]:
    found = [(name, entry)]
    for inner, command in entry.subcommands.items():
        found += entries(f"{name} {inner}", command)
    return found


def test_entries_at_every_depth_are_well_formed() -> None:
    """No option is listed twice, and whatever `only_with` names is an option."""
    for program in tables.family_of():
        outer = tables.lookup(program)
        assert outer is not None
        for name, entry in entries(program, outer):
            assert set(entry.only_with.split()) <= set(OptionIndex(entry).by_name), name
