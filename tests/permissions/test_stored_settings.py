"""Commands that store in protected files what none of their words names, and git that is given a program to run."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.permissions.git_calls import PLAIN_COMMANDS, PROGRAM_NAMES, PROGRAM_WORDS, RUNNERS
from handrail.permissions.git_keys import is_harmless
from tests.permissions.world import World

RISKY = (
    "core.hooksPath", "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass",
    "core.gitProxy", "core.worktree", "core.alternateRefsCommand", "alias.x", "filter.a.clean", "filter.a.smudge",
    "filter.a.process", "diff.a.textconv", "diff.a.command", "diff.external", "merge.a.driver", "credential.helper",
    "credential.https://a.b.helper", "sequence.editor", "include.path", "includeIf.gitdir:/x.path",
    "init.templateDir", "gpg.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "pager.log", "difftool.a.cmd",
    "mergetool.a.path", "remote.a.uploadpack", "remote.a.receivepack", "remote.a.vcs", "submodule.a.update",
    "tar.a.command", "trailer.a.command", "uploadpack.packObjectsHook", "gc.recentObjectsHook",
    "interactive.diffFilter", "man.a.cmd", "browser.a.cmd", "web.browser", "sendemail.smtpServer",
    "rebase.instructionFormat", "maintenance.repo", "http.saveCookies", "http.https://a.b.cookieFile",
    "format.outputDirectory", "format.suffix", "core.protectNTFS", "diff.algorithm=.command",
    "protocol.ext.allow", "safe.directory", "lfs.extension.a.clean", "lfs.customtransfer.a.path", "hook.a.command",
    "new.key",
)  # fmt: skip
PLAIN = (
    "user.name", "user.email", "pull.rebase", "push.default", "init.defaultBranch", "core.autocrlf", "core.ignoreCase",
    "merge.conflictStyle", "diff.algorithm", "remote.origin.url", "branch.main.remote", "color.ui", "commit.gpgSign",
    "diff.tool", "merge.guitool", "rebase.autoSquash", "maintenance.gc.enabled", "http.https://a.b.proxy",
    "branch.a.gh-merge-base", "filter.lfs.required",
    "http.proxy", "rerere.enabled", "fetch.prune", "submodule.recurse", "gc.auto", "url.git@a.b:.insteadOf",
)  # fmt: skip
# All of them change core.hooksPath, or may.
CHANGES = (
    "git config core.hooksPath x", "git config --local core.hooksPath x", "git config --global core.hooksPath x",
    "git config --system core.hooksPath x", "git config --worktree core.hooksPath x",
    "git config --add core.hooksPath x", "git config --replace-all core.hooksPath x",
    "git config --file other core.hooksPath x", "git config --unset core.hooksPath",
    "git config -f other core.hooksPath x", "git config -fother core.hooksPath x",
    "git config --file=other core.hooksPath x",
    "git config -f \"$(git rev-parse --git-dir)/config\" core.hooksPath x", "git config --edit", "git config -e",
    "git config edit", "git config set core.hooksPath x", "git config set --global core.hooksPath x",
    "git config unset core.hooksPath", "git config --rename-section color core",
    "git config rename-section color core", "git config --remove-section core",
    "git config --replace core.hooksPath x", "git config --glob core.hooksPath x", "git config CORE.HOOKSPATH x",
    "git config 'core'.\"hooksPath\" x", "git config -- core.hooksPath x", "git config --type path core.hooksPath x",
    "git config --default --get core.hooksPath x", "git -C src config core.hooksPath x",
    "git -c a.b=c --no-pager config core.hooksPath x", "git-config core.hooksPath x",
    "/usr/bin/git config core.hooksPath x", "/usr/lib/git-core/git-config core.hooksPath x",
    "git -c alias.c='config core.hooksPath x' c", "git --git-dir=.git config core.hooksPath x", "git config $KEY x",
    "git config $KEY", "git config \"$KEY\" x", "git config $(echo core.hooksPath) x",
    "k=core.hooksPath; git config $k x", "for k in user.name core.hooksPath; do git config \"$k\" x; done",
    "xargs git config < list", "xargs git config core.hooksPath < list",
    "find src -exec git config core.hooksPath {} +", "sh -c 'git config core.hooksPath x'",
    "env git config core.hooksPath x", "sudo git config core.hooksPath x", "timeout 5 git config core.hooksPath x",
    "uv run git config core.hooksPath x", "true && git config core.hooksPath x",
    "HOME=/tmp git config --global core.hooksPath x", "eval git config core.hooksPath x",
    "git clone -c core.hooksPath=x a b", "git clone --config core.hooksPath=x a b",
    "git clone --config=core.hooksPath=x a b", "git clone --conf core.hooksPath=x a b",
    "git clone -qc core.hooksPath=x a b", "git clone -ccore.hooksPath=x a b", "git clone --template=x a b",
    "git clone --template x a b", "git init --template=x", "git init --templ x .",
)  # fmt: skip
OTHER_PROGRAMS = (
    "handrail trust", "handrail trust -y", "handrail trust /tmp", "python -m handrail trust -y",
    "uvx handrail trust -y", "handrail config set permissions.defaultMode bypassPermissions",
    "handrail mcp add x -- y", "handrail plugins add x", "handrail mcp add-json x '{}'", "handrail schedule add x",
    "claude mcp add x -- y", "claude plugin install x", "npm config set script-shell x",
    "npm config --location=project set script-shell x", "npm set script-shell x", "pnpm config set x y",
    "yarn config set yarnPath x", "pip config set global.index-url x", "direnv allow", "mise trust",
    "pre-commit install", "npx husky init", "lefthook install",
    "npx husky@9 init", "husky", "pip3.12 config set global.index-url x", "handrail mcp --a x add y",
    "mise use node@20",
    "handrail mcp add x -- y --help", "claude mcp add x -- npx -p y z", "npm config set script-shell x --show",
    "npm conf set script-shell x",
    "handrail config --a 1 --b 2 --c 3 --d 4 --e 5 --f 6 --g 7 set x y", "claude plugin install x",
    "kubectl config set-credentials u --exec-command=x", "aws configure set credential_process x",
    "yarn set version ./x.js", "systemctl --user enable ./x.service",
)  # fmt: skip
ORDINARY = (
    "git config user.name x", "git config --global user.email a@b.c", "git config set pull.rebase true",
    "git config --list", "git config --get core.hooksPath", "git config core.hooksPath",
    "git config get core.hooksPath", "git config list", "git config --get-regexp alias",
    "git config user.name \"$NAME\"", "git config --add remote.a.fetch +refs/*:refs/*", "git config core.pager cat",
    "git config core.editor true", "git config core.fsmonitor false", "git config credential.helper ''",
    "git config credential.helper store", "git config merge.tool meld", "git config core.hooksPath /dev/null",
    "git config --unset user.name", "for k in user.name user.email; do git config \"$k\" x; done",
    "git clone -c http.proxy=x a b", "git clone --depth 1 -b c.x a b", "git clone a b", "git init",
    "git init --template= x", "git commit -m 'git config core.hooksPath x'", "git add git config core.hooksPath",
    "git -c core.pager=x log", "handrail trust --show", "handrail config get permissions", "handrail mcp list",
    "npm config get registry", "npm install", "pip install x", "pre-commit run", "direnv status",
    "echo handrail trust", "npm run set", "npm install set", "pip install handrail trust", "touch husky init",
    "mkdir -p npm set", "git add husky", "git switch -c handrail trust", "handrail -p trust", "gemini -p hooks",
    "git clone -bdocs/update x", "git clone --single-branch -bcommit.alias x", "git lfs pull", "claude plugin list",
    "git clone https://a.b/c.git", "npm test -- config set", "yarn add husky", "git maintenance run",
    "for f in a b; do git config -f $f user.name x; done",
    "git push origin fix-config", "git fetch origin init", "git clone https://a.b/.github.git gh",
    "handrail trust --list",
    "git clone https://a.b/.dotfiles.git",
)  # fmt: skip
# git runs the program x, which stands in the line.
GIVEN = (
    "git -c core.pager=x log", "git -c alias.a='!x' a", "git -c core.sshCommand=x fetch",
    "git -c core.editor=x commit", "git --no-pager -c core.hooksPath=x commit", "git --config-env=core.pager=X log",
    "git --config-env core.pager=X log", "git -c include.path=x status", "git --exec-path=x status",
    "git -c \"$X\" log", "git -c user.name=a -c alias.a=!x a", "git rebase -x x main", "git rebase --exec x main",
    "git rebase --exec=x main", "git rebase --exe x main", "git rebase -ix x main", "git bisect run x",
    "git submodule foreach x", "git submodule --quiet foreach x", "git difftool -x x", "git difftool --extcmd=x",
    "git grep -Ox a", "git grep --open-files-in-pager=x a", "git clone -u x a b", "git fetch --upload-pack x a",
    "git pull --upload-pack=x", "git push --receive-pack=x a", "git push --exec=x a",
    "git archive --remote=a --exec=x HEAD", "git filter-branch --tree-filter x",
    # words that are not literal may be such an option, or the sub-command
    "echo '-x x main' | xargs git rebase",
    "for o in -x; do git rebase $o x main; done", "o=-x; git rebase $o x main", "git rebase --ex* main",
    "git rebase -? x main", "for o in foreach; do git submodule $o x; done",
    "while read o; do git rebase $o; done < list",
    "for c in log rebase; do git $c -x x; done",
    # the shortest spellings that git takes
    "git ls-remote --u=x .", "git clone --u=x a b", "git push --e=x origin y", "git clone -qu x a b",
    # values that hold code, or a path to a program
    "git -c rebase.instructionFormat='%s%nexec x' rebase main", "git -c pager.fetch='x;a=cat' fetch",
    "git -c credential.helper='!x #.helper=' fetch", "git -c diff.tool=../x difftool",
    "git --config-env=core.pager=cat push", "git --config-env core.pager=cat push",
    "git --config-env=diff.algorithm=.command=V fetch", "git x/y", "git ./x", "git cherry-pick --strategy=x/y a",
    "git rebase -s x/y main", "git difftool -t ../x", "git mergetool --tool=../x",
    # what runs its words, its input or another machine's
    "git remote-ext a x", "git merge-index x -a", "git submodule--helper foreach x", "git daemon --access-hook=x",
    "git send-email -smtp-server=x a", "git svn fetch --authors-prog=x", "git --shallow-file a rebase -x x main",
    "git --unknown rebase main",
    # behind a -- that is the value of an option, git reads on
    "git rebase -X -- -x x main", "git grep -e -- -Ox", "git clone -o -- -u x a b", "git push -o -- --receive-pack=x a",
    "git cherry-pick -X -- --strategy=x/y a", "git fetch --refmap -- --upload-pack=x a",
    # git may correct the name of the sub-command
    "git reabse -x x main", "git -c help.autocorrect=-1 status", "git gerp -Ox a",
    "git bisect view gitdir/x", "git bisect visualize x", "git --git-dir=x commit -m a", "git --git-dir x fetch",
)  # fmt: skip
# What git is to do is not known: it may store a setting as well.
FED = (
    "echo '-c core.pager=x log' | xargs git", "xargs git < list", "while read c; do git $c; done < list",
    "for o in '-c core.pager=x'; do git $o push; done",
    # what is taken for the value of an option may be several words
    "for o in '. -c core.pager=x'; do git -C $o push; done", "o='a rebase -x x main'; git --namespace $o fetch",
    "for o in '. config core.hooksPath x'; do git --work-tree $o a; done",
)  # fmt: skip
NOT_GIVEN = (
    "git commit -m x", "git push origin HEAD", "git rebase main", "git rebase --continue", "git bisect start",
    "git submodule update --init", "git fetch -u origin", "git -c core.editor=true rebase --continue",
    "git push -u a b", "git -c user.name=x -c user.email=y commit -m a", "git -c commit.gpgSign=false commit -m a",
    "git checkout -b x", "git -C src commit -m x", "ls | xargs git add", "git add *", "git rebase -Xours main",
    "git clone -bfix/u a b", "git rebase -s ours main", "git cherry-pick -s a/b", "git mergetool -t meld",
    "for b in a b; do git push origin $b; done", "git -c user.name='a b' --no-pager commit -m a",
    "git -c core.pager= fetch", "git -C . fetch", "git --version", "git co x", "git lfs pull",
    "git bisect view", "git bisect visualize --stat", "git -c help.autocorrect=0 fetch",
    "for d in a b; do git --namespace $d fetch; done", "git add -- *", "git checkout -- a", "git grep x -- a",
)  # fmt: skip


def world(folder: Path, *allow: str, mode: str = "default") -> World:
    return World(folder, mode=mode, rules={"allow": allow})


@pytest.mark.parametrize("rule", ["Bash", "Bash(*)", "Bash(git *)", "Bash(git config *)"])
@pytest.mark.parametrize("key", RISKY)
def test_no_wide_rule_covers_a_setting_that_makes_git_run_a_program(tmp_path: Path, rule: str, key: str) -> None:
    decision = world(tmp_path, rule).decide("Bash", {"command": f"git config {key} x"})

    assert (decision.verdict.value, decision.reason) == (
        "ask",
        f"'.git/config' is protected ({key} may make git run a program)",
    )


@pytest.mark.parametrize("key", PLAIN)
@pytest.mark.parametrize("rule", ["Bash", "Bash(git *)", "Bash(git config *)"])
def test_other_settings_are_covered(tmp_path: Path, rule: str, key: str) -> None:
    assert world(tmp_path, rule).bash(f"git config {key} x") == "allow"


@pytest.mark.parametrize("line", [*CHANGES, *OTHER_PROGRAMS, *FED])
@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
def test_every_spelling_is_asked_about_under_a_rule_for_all_commands(tmp_path: Path, line: str, mode: str) -> None:
    assert world(tmp_path, "Bash", mode=mode).bash(line) == "ask"


@pytest.mark.parametrize("line", ORDINARY)
def test_reading_and_ordinary_commands_are_covered(tmp_path: Path, line: str) -> None:
    assert world(tmp_path, "Bash").bash(line) == "allow"


def test_a_rule_for_the_very_command_or_line_covers_it(tmp_path: Path) -> None:
    command, line = "git config core.hooksPath hooks", "git config core.hooksPath hooks && npm test"

    assert world(tmp_path, f"Bash({command})").bash(command) == "allow"
    assert world(tmp_path, f"Bash({line})").bash(line) == "allow"
    assert world(tmp_path, f"Bash({command})", "Bash").bash("git config core.hooksPath other") == "ask"
    assert world(tmp_path, mode="bypassPermissions").bash(command) == "allow"
    assert world(tmp_path, "Bash", mode="dontAsk").bash(command) == "deny"


def test_a_deny_rule_for_the_file_denies_it(tmp_path: Path) -> None:
    guarded = World(tmp_path, mode="bypassPermissions", rules={"deny": ["Edit(.git/**)"]})

    assert guarded.bash("git config core.hooksPath x") == "deny"
    assert guarded.bash("git config user.name x") == "allow"


@pytest.mark.parametrize("line", [*GIVEN, *FED])
def test_no_rule_with_a_wildcard_covers_a_program_that_git_is_given(tmp_path: Path, line: str) -> None:
    name, command = line.split()[:2]

    assert world(tmp_path, "Bash(git *)", f"Bash({name} {command} *)").bash(line) == "ask"


@pytest.mark.parametrize("line", GIVEN)
def test_a_rule_for_all_commands_covers_a_program_that_git_is_given(tmp_path: Path, line: str) -> None:
    assert world(tmp_path, "Bash").bash(line) == "allow"


def test_a_rule_for_the_very_call_of_git_covers_a_program_that_it_is_given(tmp_path: Path) -> None:
    assert world(tmp_path, "Bash(git rebase -x 'make test' main)").bash("git rebase -x 'make test' main") == "allow"


@pytest.mark.parametrize("line", NOT_GIVEN)
def test_calls_of_git_that_name_no_program_are_covered(tmp_path: Path, line: str) -> None:
    assert world(tmp_path, "Bash(git *)").bash(line) == "allow"


def test_every_command_that_git_has_is_known_to_run_no_word_or_is_looked_at() -> None:
    listed = subprocess.run(["git", "--list-cmds=main,nohelpers"], capture_output=True, text=True, check=True)
    plain = set(PLAIN_COMMANDS) | set(PROGRAM_WORDS) | set(PROGRAM_NAMES)

    assert set(listed.stdout.split()) - plain - RUNNERS == set()


@pytest.mark.skipif(shutil.which("git") is None, reason="git says which settings it knows")
def test_no_setting_whose_name_says_that_it_is_a_program_is_harmless() -> None:
    listed = subprocess.run(["git", "help", "-c"], capture_output=True, text=True, check=True).stdout.split()
    programs = re.compile(
        r"(?!advice|color|column|http|remote\..*proxy).+\.(?:\w*(?:cmd|command|program|hook|editor|pager|helper|askpass)"
        r"|\w*(?:proxy|tunnel|browser|httpd)|clean|smudge|driver|process|textconv|external|viewer|vcs|hookspath|uploadpack"
        r"|receivepack|update|templatedir)\Z"
    )

    found = [key for key in listed if programs.match(key.lower())]

    assert len(found) > 30
    assert [key for key in found if is_harmless(key, "x")] == []


@given(
    key=st.sampled_from([*RISKY, *PLAIN]),
    options=st.lists(
        st.sampled_from(["--global", "--add", "--bool", "--replace-all", "-f other", "--type=path", "-z"])
    ),
    upper=st.booleans(),
    verb=st.sampled_from(["", "set "]),
    behind=st.booleans(),
)
def test_options_case_and_form_do_not_change_what_a_setting_is(
    key: str, options: list[str], upper: bool, verb: str, behind: bool
) -> None:
    name = key.upper() if upper else key
    words = " ".join(options)
    line = f"git config {verb}{name} x {words}" if behind else f"git config {words} {verb}{name} x"

    with tempfile.TemporaryDirectory() as folder:
        assert world(Path(folder), "Bash").bash(line) == ("ask" if key in RISKY else "allow")
