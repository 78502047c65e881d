"""git: which forms are read-only, which are not, and that the option tables agree with the git that is installed."""

import re
import subprocess
from pathlib import Path

import pytest

from handrail.shell import Does, analyse, tables
from handrail.shell.tables.format import STATE, Command
from tests.shell.corpus_report import runs_unasked

READ_ONLY = """
git status
git status --short --branch --ignored=matching -- src
git status -uno --porcelain=v2 -z
git status -vv
git log
git log -5 --oneline --graph --decorate --all
git log -n 3 --stat --format=%H
git log --pretty=format:'%C(auto)%h%d %s %C(blue)<%an>%Creset' --date=short
git log --format='%<(20,trunc)%an %>(10)%ar %x09 %(trailers:key=Signed-off-by,valueonly)'
git log --format= --name-only -1
git log -p -U0 -M90% -C --find-renames=50 -- a.py ':!vendor' ':(exclude)dist' ':(top,icase)*.MD'
git log -S 'x(' --pickaxe-regex -G foo --since '2 weeks ago' --until=yesterday
git log -L 10,20:src/main.py
git log -L:main:src/main.py
git log origin/main..HEAD ^other @{u} HEAD@{1} HEAD^{tree} stash@{0} v1.0~3^2
git log --author=Ann --grep='fix' -i --no-merges --first-parent -- '*.py'
git log --follow -- README.md
git log ...origin/main
git --no-pager log -3
git -P log
git -c color.ui=never -c core.quotePath=false diff --stat
git -c core.pager=cat show
git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c safe.bareRepository=explicit status
git --no-optional-locks status
git --literal-pathspecs ls-files
git show
git show HEAD~2 --stat
git show HEAD:src/main.py
git show :README.md
git show :2:README.md
git show :/fix
git show --format=fuller -s v1
git show-ref --heads
git show-branch -a
git diff
git diff --cached --name-status
git diff HEAD~1 HEAD -- src/main.py
git diff main...feature --stat=80 --diff-filter=ACM --word-diff=color --ignore-space-change
git diff --color-words -w -b --minimal --src-prefix=x/ --dst-prefix y/
git diff --check
git diff-tree --no-commit-id --name-only -r HEAD
git diff-index --cached HEAD
git diff-files -p -- a
git whatchanged -1
git range-diff main~3..main main@{1}
git shortlog -sne --all
git shortlog -s --since=2024-01-01 HEAD
git blame src/main.py
git blame -L 10,20 -w -C -C -M --date=short HEAD~1 -- src/main.py
git blame --ignore-revs-file .git-blame-ignore-revs src/main.py
git annotate a.py
git grep -n 'TODO' -- '*.py'
git grep -e foo --and -e bar HEAD -- src
git grep -5 -i --heading --break foo
git grep 'rm -rf'
git ls-files -o --exclude-standard -z
git ls-files --format='%(path)' src
git ls-tree -r --name-only HEAD src
git ls-tree HEAD:src
git rev-parse --short=8 HEAD
git rev-parse --abbrev-ref --symbolic-full-name @{u}
git rev-parse --show-toplevel
git rev-parse --git-path hooks
git rev-list --count main..HEAD
git rev-list -n 1 --before=2024-01-01 main
git rev-list --objects --all
git name-rev --tags HEAD
git describe --tags --always --dirty
git describe --match 'v*' HEAD
git merge-base main HEAD
git merge-base --is-ancestor a b
git cherry -v main
git for-each-ref --sort=-committerdate --format='%(refname:short) %(committerdate:relative)' refs/heads
git for-each-ref --contains HEAD --count=3
git symbolic-ref --short HEAD
git branch
git branch -vv
git branch -a --sort=-committerdate
git branch --merged
git branch --merged main
git branch --no-merged=main -r
git branch --contains HEAD
git branch --list 'feat/*'
git branch --format='%(refname:short)%(if)%(upstream)%(then) %(upstream:track)%(end)'
git branch --show-current
git tag
git tag -l 'v1.*'
git tag -n3
git tag --sort=-v:refname
git tag --sort=version:refname --points-at HEAD
git tag --contains abc1234
git remote
git remote -v
git remote get-url --all origin
git remote show -n origin
git stash list
git stash show -p stash@{1}
git stash show --stat
git worktree list --porcelain
git notes
git notes list
git notes show HEAD
git config --get user.name
git config user.name
git config --global user.email
git config -l --show-origin
git config --get-regexp 'remote.*url'
git config --get-regexp alias
git config --get-all remote.origin.fetch '.*'
git config --type=bool --default false --get x.y
git config list
git config get user.name
git submodule
git submodule status --recursive
git bisect log
git reflog
git reflog -10
git reflog show HEAD
git reflog main
git reflog HEAD --date=iso
git reflog exists refs/heads/main
git sparse-checkout list
git cat-file -t HEAD
git cat-file -p HEAD:README.md
git cat-file blob abc1234
git cat-file --batch-check --batch-all-objects
git check-ignore -v dist
git check-attr -a README.md
git check-mailmap 'A <a@b.example>'
git check-ref-format --branch main
git count-objects -vH
git fsck --full --no-dangling
git hash-object README.md
git var GIT_AUTHOR_IDENT
git var -l
git version --build-options
git --version
git help -a
git archive --list
git bundle verify a.bundle
git replace -l
git patch-id --stable
""".strip().splitlines()

NOT_READ_ONLY = r"""
git log --output=x
git log --output x
git log --outpu=x
git log --ext-diff -p
git log -p --textconv
git log --show-signature
git log --format=%G?
git log --format='%h %-GS'
git log --pretty='format:%C(auto)%GK'
git log --pretty=mine
git log --format=%q
git log --alternate-refs
git log --remerge-diff
git log --diff-merges=remerge
git log --stdin
git log --help
git log --forma=%h
git log $x
git log *
git show --textconv HEAD:f
git show ":$x"
git diff --no-index a b
git diff --ext-diff
git diff -O../order
git diff /etc/passwd /etc/hostname
git diff ../a b
git show ':(../x)y'
git show ':(prefix:0)x'
git -p log
git --paginate log
git -c core.pager=less log
git -c core.pager=./x log
git -c core.fsmonitor=./x status
git -c core.fsmonitor=true status
git -c core.hooksPath=. status
git -c diff.external=./x diff
git -c alias.x=!id x
git -c include.path=./x log
git -c log.showSignature=true log
git -c log.diffMerges=remerge log -m -p
git -c protocol.ext.allow=always log
git -c gpg.program=./x log
git -c color.ui log
git -c core.fsmonitor status
git -c COLOR.UI=$x log
git -c core.sshCommand=x log
git -c core.attributesFile=x log
git -c format.pretty=%G? log
git --config-env=core.pager=X log
git --config-env core.pager=X log
git --exec-path=. log
git --exec-path . log
git --git-dir=x log
git --git-dir x log
git --work-tree=/ status
git --bare log
git --namespace=x log
git --attr-source=x diff
git -C ../other status
git -C /tmp/x log
git --help log
git help log
git help -w log
git st
git
git branch foo
git branch -d foo
git branch -dr origin/foo
git branch -rd origin/foo
git branch -vd foo
git branch --delet foo
git branch --list -D foo
git branch --contains HEAD -m x
git branch -u origin/x
git branch --set-upstream-to=x
git branch --set-upstream-to x
git branch --unset-upstream
git branch -f main HEAD~1
git branch --edit-description
git branch --sort=-committerdate x
git branch -v x
git branch --format='%(signature)'
git branch --format='%(signature:key)'
git branch --sort=signature
git branch $x
git tag v1
git tag -d v1
git tag -a v1 -m x
git tag -s v1
git tag -v v1
git tag --verify v1
git tag -m x v1
git tag -f v1
git tag -l -d v1
git tag --format='%(signature:grade)' -l
git for-each-ref --format='%(*signature)'
git for-each-ref --sort=signature
git remote add x y
git remote show origin
git remote update
git remote prune origin
git remote set-url origin x
git remote '*' add
git remote -v update
git ls-remote
git ls-remote origin
git stash
git stash -u
git stash push
git stash pop
git stash drop
git stash clear
git stash create
git stash show --output=x
git worktree add x
git worktree prune
git worktree
git notes add -m x
git notes remove HEAD
git notes prune
git notes merge x
git config user.name x
git config --global user.name x
git config --unset a.b
git config --add a.b c
git config -e
git config --edit
git config edit
git config edit --get
git config --global edit
git config -l edit
git config set a.b c
git config unset a.b
git config --rename-section a.b c.d
git config --file=../x -l
git config -f ~/.netrc -l
git config a.b "$x"
git config a.b --get-colo
git config list x
git submodule update
git config --includes -f a -l
git config list --includes --file=a
git config get --includes a.b
git log -L1,2
git log "-L$(cat f)"
git diff --submodule
git diff --submodule=diff
git log -p --submodule=log
git -c diff.submodule=diff diff
git -c diff.submodule=log show
git -c diff.submodule diff
git -c status.submoduleSummary=true status
git -c status.submodulesummary=5 status
git -c Status.SubmoduleSummary status
git submodule foreach ls
git submodule init
git submodule sync
git submodule --quiet foreach ls
git bisect run ls
git bisect start
git bisect visualize
git bisect
git reflog delete HEAD@{1}
git reflog expire --all
git reflog drop x
git reflog -q expire
git sparse-checkout set x
git sparse-checkout
git symbolic-ref HEAD refs/heads/x
git symbolic-ref -d X
git symbolic-ref -m why HEAD refs/heads/x
git cat-file --filters HEAD:f
git cat-file --textconv HEAD:f
git cat-file --batch --filters
git grep -O foo
git grep -Oless foo
git grep --open-files-in-pager=vi foo
git grep --open-files-in-page foo
git grep --no-index foo /etc
git grep --textconv foo
git grep foo -- ../x
git grep -f /etc/passwd
git grep $x
git blame --contents=/etc/passwd f
git blame --contents /etc/passwd f
git blame --ignore-revs-file=/home/dev/.netrc f
git blame -S /etc/passwd f
git blame --output=x f
git blame --textconv f
git fsck --lost-found
git verify-commit HEAD
git verify-tag v1
git archive HEAD
git archive --format=zip -o x.zip HEAD
git archive --remote=x --list
git bundle create x --all
git bundle unbundle x
git hash-object -w f
git hash-object -wt blob f
git hash-object --stdin -w
git hash-object --stdin-paths
git rev-parse --parseopt
git rev-list --format=%G? HEAD
git rev-list --stdin
git shortlog --output=x HEAD
git shortlog --format=%GK HEAD
git ls-files -X ../x
git ls-files -o --exclude-per-directory=/home/dev/.ssh/id_rsa
git ls-files --exclude-from=/etc/passwd -o
git replace a b
git replace -d a
git replace --edit a
git rerere
git gc
git repack
git update-index --refresh
git checkout main
git switch main
git restore .
git reset
git clean -n
git fetch
git pull
git push
git commit
git add .
git apply x
git am x
git merge x
git rebase x
git cherry-pick x
git init
git clone x
git difftool
git mergetool
git instaweb
git gui
git format-patch HEAD~1
git fast-export --all
git credential fill
git lfs ls-files
git update-ref refs/heads/x HEAD
git read-tree HEAD
git write-tree
git merge-tree a b
git show-index x
git daemon
git for-each-repo --config=x log
git hook run pre-commit
""".strip().splitlines()


@pytest.mark.parametrize("line", READ_ONLY)
def test_read_only_forms_run_unasked(line: str) -> None:
    assert runs_unasked(line), analyse(line).reasons


@pytest.mark.parametrize("line", NOT_READ_ONLY)
def test_other_forms_do_not(line: str) -> None:
    assert not runs_unasked(line)


@pytest.mark.parametrize(
    "line",
    ["git -C /home/dev/proj status", "cd /home/dev/proj && git log", "git -C . branch", "git -C /home/dev/proj tag -l"],
)
def test_the_repository_of_the_workspace_is_known_by_its_folder(line: str) -> None:
    assert runs_unasked(line)


@pytest.mark.parametrize(
    "line",
    [
        "git -C vendor/x status", "git -C ./evil log", "cd vendor/x && git status", "cd src; git branch",
        "git -C /tmp/x branch", "git -C ../x tag -l", "git -C .. config -l", "cd /tmp && git remote -v",
        "cd ~ && git log",
        "(cd sub && git rev-parse HEAD)", "git -C src -C x version", 'cd "$(pwd)/x" && git branch',
    ],
)  # fmt: skip
def test_a_repository_in_another_folder_is_asked_for(line: str) -> None:
    """It may be another one than the workspace's, with helpers of its own."""
    assert not runs_unasked(line)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("git show HEAD:.env", ".env"),
        ("git show :.env", ".env"),
        ("git show :1:.env", ".env"),
        ("git diff -- ':(top).env'", ".env"),
        ("git log -p :/.env", ".env"),
        ("git cat-file -p HEAD:.env", ".env"),
        ("git blame .env", ".env"),
        ("git grep x -- .env", ".env"),
    ],
)
def test_a_file_of_a_commit_is_named_as_read(line: str, read: str) -> None:
    assert read in [str(word) for word in analyse(line).segments[0].reads]


def test_a_pathspec_that_is_left_out_is_not_read() -> None:
    assert [str(word) for word in analyse("git diff -- ':!.env' ':^a' ':(exclude)b' c").segments[0].reads] == ["c"]


def test_a_remote_is_reported_as_network() -> None:
    assert analyse("git ls-remote origin").segments[0].does(Does.NETWORK)


def test_every_sub_command_says_what_the_repository_must_not_do() -> None:
    for name, entry in SUBCOMMANDS.items():
        if entry.subcommands or entry.only_with or entry.effect:
            continue
        names = {need.name for need in analyse(f"git {name}").requires}
        assert names >= {"git-real-repository", "git-work-tree", "git-lazy-fetch", "git-pager"}, name


# The tables against the real git


def entries() -> dict[str, Command]:
    git = tables.lookup("git")
    assert git is not None
    return dict(git.subcommands)


SUBCOMMANDS = entries()
# These do not complain about options they do not know, or look at one option only, or need a newer git.
NOT_CHECKED = {"rev-parse", "check-ref-format", "version", "var", "ls-remote", "verify-pack", "diff-files", "bisect"}
NOT_CHECKED |= {"show", "whatchanged", "reflog", "annotate"}  # the same options as log and blame
NEWER = {"config list", "config get", "stash list"}
# Takes the next word, or HEAD when there is none.
LAST_OR_NEXT = {"--contains", "--no-contains", "--merged", "--no-merged", "--points-at"}
OPERANDS = {"diff-index": "HEAD", "diff-tree": "HEAD", "range-diff": "HEAD HEAD HEAD", "blame": "a", "annotate": "a"}
OPERANDS |= {"symbolic-ref": "HEAD", "ls-tree": "HEAD", "config": "--get user.name", "rev-list": "HEAD"}
UNKNOWN = "--no-such-option"
ABOUT_UNKNOWN = re.compile(
    "(unrecognized argument|unknown option|invalid option|unknown argument)[^\n]*no-such-option|^usage:", re.MULTILINE
)
CONFLICT = re.compile("cannot be used together|makes no sense without|without MERGE_HEAD|requires exactly one pathspec")
ABOUT_OPTION = "(unknown|unrecognized|invalid) (option|argument|switch)"


def leaves() -> list[tuple[str, Command]]:
    found: list[tuple[str, Command]] = []
    for name, entry in SUBCOMMANDS.items():
        if name in NOT_CHECKED:
            continue
        for inner, command in entry.subcommands.items() or [("", entry)]:
            found.append((f"{name} {'' if inner == '*' else inner}".strip(), command))
    return [(name, entry) for name, entry in found if name not in NEWER]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scratch")
    run(folder, "init", "-q")
    (folder / "a").write_text("a\n")
    run(folder, "add", "a")
    run(folder, "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "one")
    (folder / "a").write_text("b\n")
    run(folder, "-c", "user.name=a", "-c", "user.email=a@b.example", "stash")
    return folder


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PAGER": "cat",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return done.stderr.decode()


@pytest.mark.needs("git")
@pytest.mark.parametrize(("name", "entry"), leaves(), ids=[name for name, _ in leaves()])
def test_options_take_as_many_words_as_the_table_says(scratch: Path, name: str, entry: Command) -> None:
    """A flag leaves the unknown option behind it for git to complain about; an option with a value swallows it."""
    wrong: list[str] = []
    for option in tables.options_of(entry).by_name.values():
        refused = option.never or option.attached or option.use is STATE
        if refused or option.name in LAST_OR_NEXT or (name, option.name) == ("blame", "-L"):
            continue
        said = run(scratch, *name.split(), option.name, UNKNOWN, *OPERANDS.get(name, "").split())
        if re.search(rf"{ABOUT_OPTION}[^\n]*{re.escape(option.name.lstrip('-'))}", said):
            continue  # of a newer git than this one
        if CONFLICT.search(said):
            continue  # known, but not alone
        swallowed = not ABOUT_UNKNOWN.search(said)
        if swallowed != (option.use is not None and not option.optional):
            wrong.append(f"{option.name}: {said[:100]!r}")
    assert wrong == []
