"""Rules about commands, and the `if` of hooks, see the commands in texts that programs run."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.cli.main import run
from handrail.conversation.blocks import ToolUse
from handrail.hooks.condition import holds
from handrail.permissions.rules import Behaviour, Rule, RuleSource, parse_rule
from handrail.shell import CommandVerdict, analyse, tables
from handrail.shell.named_programs import RUN_NOTHING_FAMILIES, RUNS_NOTHING
from handrail.tools.context import RunContext
from handrail.tools.request import CallRequest
from tests.permissions.world import CORPUS, World, tool_called

# Each runs rm, or may.
RUNS = [
    "echo 'rm x' > s; sh s", "echo 'rm x' > s; chmod +x s; ./s", "echo rm x >> d/s; source d/s",
    "tee s <<< 'rm x'; sh s",
    "echo 'rm x' | tee s; bash ./s", "printf '#!/bin/sh\\nrm x\\n' > s && sh s", "printf 'r%s x' m > s; sh s",
    "printf '\\162m x' > s; sh s", "echo -e '\\x72m x' > s; sh s", "echo '$(echo rm) x' > s; sh s",
    "echo 'import os; os.system(\"rm x\")' > s.py; python3 s.py", "echo 'x: ; rm x' > Makefile; make",
    "echo 'x: ; rm x' > m; make -f m", "echo 'rm x' > s; bash < s", "printf '#!/bin/rm\\n' > s; ./s",
    "cat > s <<'E'\nrm x\nE\nsh s", "bash -O extglob -c 'rm x'", "bash -euxo pipefail -c 'rm x'", "bash -lxc 'rm x'",
    'declare "a[\\$(rm x)]=1"', "PS4='$(rm x)' bash -xc :", "PS4='$(rm x)'; set -x; echo a", "ENV='$(rm x)' sh -i",
    'ln -s /bin/rm z; ./z x', "make -f - <<< 'a: ; rm x'", "printf 'a:\\n\\trm x' | make -f -",
    "make -f /dev/stdin <<< 'a: ; rm x'", "make --eval='a: ; rm x'", "make -f <(echo 'a:;rm x')",
    'python3 <<< \'import os; os.system("rm x")\'', 'python3 - <<< \'import subprocess; subprocess.run(["rm","x"])\'',
    'python3 -c \'import subprocess; subprocess.run(["rm", "x"])\'',
    'python3 -c \'import subprocess as s; s.call(("rm","-rf","x"))\'',
    'python3 -c \'import os; os.execvp("rm", ["rm","x"])\'', 'python3 -c "import os; os.system(\'r\'+\'m x\')"',
    'python3 -c "exec(__import__(\'base64\').b64decode(\'cm0geA==\'))"',
    'echo \'import os; os.system("rm x")\' | python3', 'cat f | python3', 'python3 < f', 'curl -s u | python3 -',
    'perl <<< \'system("rm","x")\'', "perl -e 'system qw(rm x)'", 'perl -e \'exec "rm", "x"\'',
    "ruby -e 'system(*%w[rm x])'", 'ruby -e \'system("rm","x")\'',
    'node -e \'require("child_process").spawnSync("rm",["x"])\'',
    'node <<< \'require("child_process").spawnSync("rm",["x"])\'', "env -S'rm x'", "env --split-string='rm x'",
    "env -vS 'rm x'", "env -iS 'rm x'", "env -S 'FOO=1 rm x'", "busybox env -S 'rm x'", "bash <<< 'rm x'",
    'bash <<EOF\nrm x\nEOF', "sh -s <<< 'rm x'", "bash -s a <<< 'rm x'", "bash /dev/stdin <<< 'rm x'",
    "bash /proc/self/fd/0 <<< 'rm x'", "source /dev/stdin <<< 'rm x'", ". /dev/fd/0 <<< 'rm x'", 'cat f | bash',
    'bash < f', '{ echo rm x; } | bash', '{ echo rm x; } | python3', "echo 'rm x' | tee /dev/null | sh",
    "echo 'rm x' | docker exec -i c sh", 'docker exec -i c sh < f', "ssh h <<< 'rm x'", 'ssh h < f',
    'ssh h bash -s < f', "echo 'rm x' | ssh h", "su <<< 'rm x'", "sudo -s <<< 'rm x'", "sudo -i <<< 'rm x'",
    "sudo bash <<< 'rm x'", "parallel <<< 'rm x'", "echo 'rm x' | parallel", 'cat f | parallel',
    "xargs -I{} sh -c '{}' <<< 'rm x'", 'xargs -I{} bash -c {} < f', 'echo rm x | xargs env',
    "echo 'rm x' | xargs -L1 nice", 'awk -f - <<< \'BEGIN{system("rm x")}\'', "sed -f - <<< '1e rm x'",
    "sqlite3 db <<< '.shell rm x'", 'sqlite3 db < f', "psql <<< '\\! rm x'", 'psql < f', 'mysql < f',
    "gdb <<< 'shell rm x'", "vim -es <<< '!rm x'", "ex f <<< '!rm x'", 'ed f < g', "expect <<< 'spawn rm x'",
    "expect -f - <<< 'spawn rm x'", "tclsh <<< 'exec rm x'", 'lua - <<< \'os.execute("rm x")\'',
    'php <<< \'<?php system("rm x");\'', 'php < f', "m4 <<< 'syscmd(`rm x)'", 'at now < f', 'batch < f', 'crontab f',
    'crontab < f', 'at now -f f', "foo <<< 'rm x'", 'kubectl exec -i p -- sh < f', "script -c 'rm x' f",
    "nsenter -t 1 <<< 'rm x'", "chroot d <<< 'rm x'", "unshare <<< 'rm x'", "nix-shell <<< 'rm x'", "fish <<< 'rm x'",
    "fish -c 'rm x'", "zsh <<< 'rm x'", "csh <<< 'rm x'", "pwsh -c 'rm x'",
    'deno eval \'new Deno.Command("rm",{args:["x"]})\'', 'bun -e \'Bun.spawn(["rm","x"])\'', "julia -e 'run(`rm x`)'",
    'R -e \'system("rm x")\'', 'Rscript -e \'system2("rm","x")\'', 'groovy -e \'"rm x".execute()\'',
    'elixir -e \'System.cmd("rm",["x"])\'', 'guile -c \'(system "rm x")\'', 'racket -e \'(system "rm x")\'',
    'ghc -e \'System.Process.system "rm x"\'', 'osascript -e \'do shell script "rm x"\'',
    'emacs --batch --eval \'(shell-command "rm x")\'', 'awk \'BEGIN{system("rm x")}\'',
    'awk \'BEGIN{c="r" "m x"; system(c)}\'', "git -c alias.z='!rm x' z", "git config core.pager 'rm x'; git log",
    "mapfile -C 'rm x' -c 1 a < f", "trap 'rm x' DEBUG", "test -v 'a[$(rm x)]'", "[[ -v 'a[$(rm x)]' ]]",
    "[ -v 'a[$(rm x)]' ]", "printf -v 'a[$(rm x)]' 1", "read 'a[$(rm x)]' <<< 1", "unset 'a[$(rm x)]'",
    "let 'a[$(rm x)]=1'", "export 'a[$(rm x)]=1'", "typeset -i 'b=a[$(rm x)]'", "x='a[$(rm x)]'; declare -i y=x",
    "x='a[$(rm x)]'; test $x -eq 1", "[[ 'a[$(rm x)]' -eq 1 ]]", "declare -n r='a[$(rm x)]'; echo $r", "x='rm x'; $x",
    'x=\'rm x\'; eval "$x"', 'x=rm; $x y', '$(echo rm) x', '`echo rm` x', '"$(printf rm)" x', 'set -- rm x; "$@"',
    'a=(rm x); "${a[@]}"', '/bin/r? x', "r''m x", 'hash -p /bin/rm q; q x', 'cp /bin/rm z; ./z x', 'alias q=rm',
    'exec rm x', 'coproc rm x', 'git bisect run rm x', 'watch rm x', 'entr rm x', 'find . -exec rm {} +',
    "GIT_SSH='rm x' git fetch", "LESSOPEN='|rm x' less f", "MANPAGER='rm x' man ls", "tar --to-command='rm x' -xf a",
    'ENV=f sh -i', 'PYTHONSTARTUP=f python3', "echo 'rm x' | sed 1e", 'awk "$(echo x)"', 'sed -n "$x" f',
    'python3 -c \'import asyncio; asyncio.run(asyncio.create_subprocess_exec("r"+"m","x"))\'',
    'python3 -c \'import webbrowser; webbrowser.get("r"+"m %s").open("x")\'',
    "GIT_CONFIG_PARAMETERS=\"'alias.x=!rm x'\" git x",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm x' git x",
    'vim -es -c \'exe "!r"."m x"\' -c q',
    "env BASH_FUNC_ls%%='() { rm x; }' bash -c ls", "env 'BASH_FUNC_ls%%=() { $(echo rm) x; }' bash -c ls",
    'ln -s "$(command -v rm)" z; ./z x', 'cp /usr/bin/r? z && ./z x', 'cat /usr/bin/rm > z; chmod +x z; ./z x',
    'command -p $(echo rm) x', '/lib64/ld-linux-x86-64.so.2 /usr/bin/r? x', "run-parts --regex '^rm$' /usr/bin -a x",
    'ssh-agent $(echo rm) x', "ssh-agent sh -c '$(echo rm) x'", "compgen -C '$(echo rm) x;:' z",
    'x=$(cat <<< \'a[$(rm x)]=1\'); declare "$x"', 'x=$(echo \'a[$($(echo rm) x)]=1\'); declare "$x"',
    r'declare a[\$\(rm\ x\)]=1', "declare a['$(rm x)']=1", "d='$'; declare \"a[$d(rm x)]=1\"", 'cmake -E env rm x',
    'cmake -E env $(echo rm) x', "ninja -f <(printf 'rule x\\n command = rm x\\nbuild y: x\\n')",
    "tar -cf /dev/null --checkpoint-action=exec=\"'rm' x\" .", 'read -r i <<< \'a[$(rm x)]=1\'; declare "$i"',
    "dc -e '!rm x'", "dc <<< '!rm x'", "dc -e '!$(echo rm) x'", "scp -S rm a h:b", "scp -S /bin/r? a h:b",
    "sftp -Srm h",
    "install -s --strip-program=rm a b", "install -s --strip-program $x a b", "gcc -wrapper rm,x -c x.c",
    "git daemon --access-hook='rm x'", "git instaweb --httpd='rm x'",
    'awk \'BEGIN{getline x < "a.txt"; system("r" x)}\'', 'awk \'@include "x"; {print}\' f',
    "npm --script-shell=rm run x", "npm --script-shell=rm run x > out",
    "npm_config_script_shell=rm npm run x", "wget --use-askpass=/bin/rm h",
    "FCEDIT=rm fc",
    "strace -o '|rm x' ls", "cpio --rsh-command=rm -o", "TAR_OPTIONS='--checkpoint-action=exec=rm' tar cf x y",
    "exec -a ls $(echo rm) x", "nice -n $N make", "x='a[$(rm x)]'; f() { echo $((x)); }; f",
    "nano -s rm f", "nano -srm f", "nano --speller rm f", "nano -s $x f", "snap run --shell x -c 'rm x'",
    "snap run --shell x -c '$(echo rm) x'", "foo $x y", "foo '$x y'", "foo -x \"$x\"", "foo 'sudo $x'",
    "/usr/bin/foo $x", "IFS=,; x=rm,y; $x", "IFS=-; f() { $1; }; f rm-x",
    "PERL5DB='BEGIN{system(\"rm x\")}' perl -d -e1",
    "mail -S sendmail=rm a", "gpg --photo-viewer rm -k", "wget --use-askpass rm h", "tar -I rm -cf a b",
    "tar -Irm -cf a b", "tar --use-compress-program rm -cf a b", "tar -I $x -cf a b", "man -H rm ls",
    "pip install --python rm x", "virtualenv -p rm x", "virtualenv -p $x y", "cmake -D CMAKE_C_COMPILER=rm .",
    "cargo --config build.rustc-wrapper=rm build", "cargo --config 'build.rustc-wrapper=\"rm\"' build",
    "go build -toolexec rm ./...", "go vet -vettool rm", "go test -exec rm ./...", "go test -exec $x ./...",
    "npm config set script-shell rm", "npm set editor rm", "git config core.editor rm",
    "git config --global core.pager rm",
    "openssl engine rm", "curl -K rm x", "nmap --script rm h", "aria2c --on-download-complete rm u",
    "socat - EXEC:rm", "less -o rm f",
]  # fmt: skip
# None of them runs rm.
OTHERS = [
    "python3 a.py", "python3 -m pytest -q", "python3 -c 'print(1)'", "python3 a.py < data.txt", "php artisan migrate",
    "node server.js", "node -e 'console.log(1)'", "echo x | sudo tee /etc/f", "cat a | ssh h 'cat > b'", "make all",
    "ls | parallel gzip {}", "docker exec -i c cat < f", "env A=1 foo", "cp /bin/ls z", "bash build.sh", "bash -c 'ls'",
    "python3 <<< 'print(1)'", "export A=1", "git commit -m 'remove the rm call'", "foo < f",
    "cat f | foo",
    "psql -c 'select 1'", "perl -ne 'print' f", "ruby -v", "unset A",
    "declare -i n=1", "PS4='+ ${BASH_SOURCE}:${LINENO}: ' bash -x b.sh", "uv run pytest \"$f\"", "docker exec $c ls",
    "docker run --rm -v \"$PWD:/app\" -w /app node:20 npm test", "npx eslint $(git diff --name-only)",
    "tar czf \"$n.tgz\" d",
    "kubectl exec -it $POD -- ls", "git commit -m 'Use `x` and $(y)'", "make -C \"$dir\" all", "git clone \"$url\" d",
    "psql -c \"select count(*) from t where a = $1\"", "ssh h 'for i in *.log; do gzip $i; done'",
    "x='it is `a`'; git commit -m \"$x\"", "find . -name '*.py' | xargs grep foo", "EDITOR='code --wait' git commit",
    "sudo -u \"$USER\" ls", "nice -n \"$N\" make", "sed -n \"${a},${b}p\" f", "awk \"{print \\$$n}\" f",
    "cp $src dst", "cp /usr/bin/ls z", "ln -s \"$PWD/a\" b", "echo a > /usr/local/bin/b",
    "cmake -S . -B build", "ninja -C b",
    "dc -e '1 2 + p'", "scp a h:b", "install -m 755 a b", "gcc -c x.c -o x.o", "awk '{print $1}' f > g",
    "A=b npm run x", "CC=gcc make", "foo --mode=fast", "NODE_ENV=test npm run build -- --x=y",
    "git rebase --exec 'make test' main", "tmux new -d -s x 'npm start'", "npm run build -- --base=$B",
    "rsync -avz -e 'ssh -p 22' a h:b", "git push -u origin \"$(git branch --show-current)\"",
    "pytest -q \"$f\"", "./build.sh $x", "scripts/run \"$a\"", "terraform plan -var x=$x", "npm install rm",
    "pip install rm",
    "gh pr create --title 'rm is gone' --body 'no rm'", "apt-get install rm", "brew install rm", "docker compose up rm",
    "systemctl restart rm", "curl -d 'rm x' h", "make rm", "python3 manage.py rm", "mkdir rm", "touch rm",
    "tar xf rm.tar",
    "echo 'see rm x' > README.md; git add README.md", "printf '#!/bin/sh\\necho hi\\n' > s; chmod +x s; ./s",
    "echo 'pytest -q' > t.sh; sh t.sh", "echo 'rm x' > notes.txt; ls", "bash -lc 'npm test'",
    "bash -euo pipefail -c 'make all'",
    "foo --verbose a.txt", "curl -sS -H 'Accept: x' \"$u\"", "tar -xzf a.tgz -C \"$d\"",
]  # fmt: skip
# Names that are not known before they run, and texts and words of programs in which such a command runs.
UNKNOWN_NAMES = ("$(echo rm) x", "`echo rm` x", "$z x", "/bin/r? x", "r{m,} x", "cat f | sh", "eval $z", "sudo $z x")
IN_TEXTS = """
sqlite3 db '.shell @'; sqlite3 db <<< '.shell @'; psql -c '\\! @'; psql <<< '\\! @'; mysql -e '\\! @'; gdb -ex 'shell @'
gdb <<< 'shell @'; vim -c '!@'; vim -es <<< '!@'; ex f <<< '!@'; ed f <<< '!@'; ssh h '@'; ssh h <<< '@'; lftp -c '!@'
git rebase -x '@' HEAD; git bisect run sh -c '@'; git submodule foreach '@'; git config core.pager '@'; lftp <<< '!@'
GIT_SSH_COMMAND='@' git fetch; LESSOPEN='|@' less f; PAGER='@' man ls; rsync -e '@' a b:c; zip -TT '@' a b
docker exec c sh -c '@'; npx -c '@'; uv run sh -c '@'; tmux new '@'; screen -dm sh -c '@'; parallel '@' ::: a
parallel <<< '@'; hyperfine '@'; concurrently '@'; nix-shell --run '@'; expect -c 'spawn @'; expect <<< 'spawn @'
m4 <<< 'syscmd(@)'; sudo -s <<< '@'; su <<< '@'; su -c '@'; complete -C '@' x; bind -x '"a": @'; fzf --preview '@'
kubectl exec p -- sh -c '@'; socat - EXEC:'@'; nc -e '@' h 1; ansible all -a '@'; vagrant ssh -c '@'; sg g -c '@'
gcloud compute ssh h --command='@'; ssh -o ProxyCommand='@' h; ssh -oProxyCommand='@' h; scp -S '@' a b:; man -P '@' ls
sftp -S '@' h; less '+!@' f; npm exec -c '@'; npm config set script-shell '@'; cargo watch -s '@'; nodemon --exec '@'
watchexec '@'; git difftool -x '@'; git -c core.sshCommand='@' fetch; git clone --upload-pack='@' a b; pssh -H h '@'
git clone 'ext::@'; git grep -O'@' x; git filter-branch --tree-filter '@'; git config alias.z '!@'; autossh h '@'
sshpass -p x ssh h '@'; script -c '@' f; flock f -c '@'; crontab <<< '* * * * * @'; batch <<< '@'; wait -p 'a[$(@)]' -n
getopts a 'a[$(@)]'; emacs --batch --eval '(shell-command "@")'; perl -e 'system("@")'; ruby -e 'system("@")'
"""
AS_COMMANDS = """
docker exec c @; docker run --rm -it img @; docker run --gpus all img @; kubectl exec p -- @; npx @; uv run @
tmux new @; uv run --with a @; machinectl shell h @; ip netns exec n @; direnv exec . @; mise exec -- @; op run -- @
mosh h -- @; bwrap --ro-bind / / @; dotenv @; poetry run @; bundle exec @; npm exec -- @; conda run -n e @
aws-vault exec p -- @
"""


def frames(text: str) -> list[str]:
    return [frame.strip() for row in text.strip().splitlines() for frame in row.split("; ")]


def ruled(folder: Path, kind: str = "deny", mode: str = "bypassPermissions") -> World:
    return World(folder, mode=mode, rules={kind: ["Bash(rm *)"], "allow": ["Bash"]})


def hook_runs(command: str, folder: Path, text: str = "Bash(rm *)") -> bool:
    rule = parse_rule(text, Behaviour.ASK, RuleSource("hook"))
    assert isinstance(rule, Rule)
    use = ToolUse("1", "Bash", {"command": command})
    request = CallRequest.hypothetical(use, tool_called("Bash"), RunContext(folder))
    return holds(rule, request, str(folder), str(folder))


@pytest.mark.proves("X18")
@pytest.mark.parametrize("command", RUNS)
def test_rules_and_hooks_see_the_command_in_a_text(command: str, tmp_path: Path) -> None:
    assert ruled(tmp_path).bash(command) in ("deny", "ask")
    assert ruled(tmp_path, "ask", "default").bash(command) == "ask"
    assert hook_runs(command, tmp_path)


@pytest.mark.parametrize("command", OTHERS)
def test_texts_without_the_command_pass(command: str, tmp_path: Path) -> None:
    assert ruled(tmp_path).bash(command) == "allow"
    assert not hook_runs(command, tmp_path)


@pytest.mark.proves("X18")
@pytest.mark.parametrize("frame", [*frames(IN_TEXTS), *frames(AS_COMMANDS)])
def test_a_name_that_is_not_known_in_a_text_that_runs_may_be_any_command(frame: str, tmp_path: Path) -> None:
    world = ruled(tmp_path)
    for called in UNKNOWN_NAMES:
        line = frame.replace("@", called)

        assert world.bash(line) in ("deny", "ask"), line
        assert hook_runs(line, tmp_path), line


@pytest.mark.proves("X18")
def test_no_known_way_to_run_a_denied_command_is_allowed(tmp_path: Path) -> None:
    """The lines of the corpus run `touch`, or may, and were run for real where their programs are installed."""
    world = World(tmp_path, mode="bypassPermissions", rules={"deny": ["Bash(touch *)"], "allow": ["Bash"]})
    tried = (CORPUS / "hidden_commands.txt").read_text(encoding="utf-8").splitlines()

    assert [line for line in tried if world.bash(line) == "allow"] == []


NOT_LISTED = sorted(
    name
    for name, family in tables.family_of().items()
    if family not in RUN_NOTHING_FAMILIES | {"git", "streams"} and name not in {*RUNS_NOTHING, "rsync"}
)
FORMS = ("-q rm", "--quite-new rm", "--quite-new=rm", "-qrm", "a -q rm b", "-q a=rm", "-q k=a=rm b")


@pytest.mark.proves("X18")
@given(st.sampled_from(NOT_LISTED), st.sampled_from(FORMS), st.sampled_from(("", "sudo ", "env A=1 ", "timeout 9 ")))
def test_an_option_that_no_table_lists_may_name_a_program(
    tmp_path_factory: pytest.TempPathFactory, name: str, form: str, before: str
) -> None:
    line = f"{before}{name} {form}"
    if analyse(f"{name} {form}").verdict is not CommandVerdict.READ_ONLY:
        assert ruled(tmp_path_factory.getbasetemp()).bash(line) in ("deny", "ask"), line


FEEDS = (
    "{program} <<< {text}", "echo {text} | {program}", "printf %s {text} | {program}", "cat f | {program}",
    "{program} < f", "{{ echo {text}; }} | {program}", "{program} - <<'E'\n{text}\nE", "curl -s u | {program}",
    "echo {text} | tee log | {program}", "{program} /dev/stdin <<< {text}", "{program} <(echo {text})",
)  # fmt: skip
PROGRAMS = (
    "sh", "bash", "zsh", "fish", "csh", "python3", "python3.11", "perl", "ruby", "node", "php", "lua", "tclsh", "R",
    "Rscript", "julia", "guile", "deno run", "sudo bash", "env python3", "nice perl", "timeout 5 sh", "/bin/bash",
)  # fmt: skip
TEXTS = ("'rm x'", "'system(\"rm x\")'", '\'run(["rm", "x"])\'', '\'exec("rm", "x")\'')


@pytest.mark.proves("X18")
@given(feed=st.sampled_from(FEEDS), program=st.sampled_from(PROGRAMS), text=st.sampled_from(TEXTS))
def test_no_way_to_feed_an_interpreter_passes_a_rule(
    feed: str, program: str, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    line = feed.format(program=program, text=text)

    assert ruled(folder).bash(line) in ("deny", "ask")
    assert hook_runs(line, folder)


@pytest.mark.proves("X18")
def test_no_text_leaves_a_marker_through_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash"], "deny": ["Bash(touch *)"]}}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("IS_SANDBOX", "1")
    lines = (
        'python3 <<< \'import subprocess; subprocess.run(["touch", "ran"])\'',
        "make -f - <<< 'a: ; touch ran'",
        "PS4='$(touch ran)'; set -x; echo a",
        "declare 'a[$($(echo touch) ran)]=1'",
        "PS4='$(/bin/touc? ran)'; set -x; echo a",
        "make -f - <<< 'a: ; `echo touch` ran'",
        "awk -f - <<< 'BEGIN{system(\"$(echo touch) ran\")}'",
        "read -r i <<< 'a[$(touch ran)]=1'; declare \"$i\"",
        "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=\"'touch' ran\" .",
        "declare 'a[$(touch ran)]=1'",
        "ln -s /bin/touch z; ./z ran",
        "env -vS 'touch ran'",
    )

    for line in lines:
        for flags in ([], ["--dangerously-skip-permissions"]):
            run(["call", "--json", "--settings", "settings.json", *flags, "Bash", json.dumps({"command": line})])

            assert json.loads(capsys.readouterr().out)["status"] == "denied", line
            assert not (tmp_path / "ran").exists()


# What a shell runs is decided by a real one, in which `zap` leaves a marker.
SPELLED = ("zap x", "'zap' x", "z''ap x", "\\zap x", "echo zap", "true")
MADE = (
    "$(echo zap) x", "`echo zap` x", "$z x", "bin/z?p x", "bin/z[a]p x", "bin/{{z,}}ap x", "zap$(true) x",
    "z${{y}}ap x", "echo zap | sh", "echo zap | xargs env", "eval $z", "nice $z x", "A=1 $z x",
)  # fmt: skip
OF_THE_SHELL = (
    "{}", "z=zap; {}", "bash -c {q}", "bash <<< {q}", "echo {q} | sh", "eval {q}", "env -S {q}", "trap {q} EXIT",
    "cat <<< {q}", "echo {q}", "f() {{ {}; }}; f", "xargs -I_ sh -c _ <<< {q}", "source /dev/stdin <<< {q}",
    "printf '%s' {q} | bash -s", "find . -name a.txt -exec {} \\;",
)  # fmt: skip
OF_OTHERS = (
    "declare 'a[$({})]=1'", "make -f - <<< $'a:\\n\\t'{q}", "make -f /dev/null --eval=$'a:\\n\\t'{q} a",
    "perl -e 'system @ARGV' {}", "PS4='$({})'; set -x; true", "env PS4='$({})' bash -xc true",
    "sed -f - a.txt <<< '1e {}'",
    "awk -f - <<< 'BEGIN{{system(\"{}\")}}'", "awk 'BEGIN{{\"{}\" | getline}}'", "sed '1e {}' a.txt",
    "git -c alias.q='!{}' q", "git -c core.fsmonitor={q} status", "declare -i 'b=a[$({})]'", "readonly 'a[$({})]=1'",
    "printf -v 'a[$({})]' 1", "read 'a[$({})]' <<< 1", "unset a; a=1; unset 'a[$({})]'",
    "while read -r i; do declare \"$i\"; done <<< 'a[$({})]=1'",
    "echo 'a[$({})]=1' | {{ read -r i; declare \"$i\"; }}", "y=('a[$({})]=1'); declare \"${{y[0]}}\"",
    "printf -v y %s 'a[$({})]=1'; declare \"$y\"",
    "let 'a[$({})]=1'", "test -v 'a[$({})]'",
    "[ -v 'a[$({})]' ]", "[[ -v 'a[$({})]' ]]", "[[ 'a[$({})]' -eq 1 ]]", "y='a[$({})]'; echo $((y))",
    "y='a[$({})]'; declare -i b=y", "y='$({})'; echo \"${{y@P}}\"", "declare -n r='a[$({})]'; echo $r",
    "f() {{ declare \"$1\"; }}; f 'a[$({})]=1'", "for i in 'a[$({})]=1'; do declare \"$i\"; done",
    "set -- 'a[$({})]=1'; declare \"$1\"", "read -r i <<< 'a[$({})]=1'; declare \"$i\"",
    "mapfile -C {q} -c 1 a < a.txt", "env -S 'sh -c \"{}\"'", "find a.txt -exec sh -c {q} \\;", "timeout 9 sh -c {q}",
    "tar -cf t.tar a.txt; tar --to-command={q} -xf t.tar",
    "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec={q} bin",
)  # fmt: skip
CALLED = (*SPELLED, *(text.format() for text in MADE))
PAIRS = [(called, frame) for frame in (*OF_THE_SHELL, *OF_OTHERS) for called in CALLED]


@pytest.mark.proves("X18")
@given(st.sampled_from(PAIRS), st.sampled_from(("", "z=zap; ", "export z=zap; ")))
def test_no_line_that_runs_the_command_in_a_real_shell_passes_a_rule_or_a_hook(
    tmp_path_factory: pytest.TempPathFactory, pair: tuple[str, str], before: str
) -> None:
    called, frame = pair
    folder = tmp_path_factory.getbasetemp() / "texts"
    world = World(folder, mode="bypassPermissions", rules={"deny": ["Bash(zap *)"]})
    project = Path(world.at("/home/dev/proj"))
    if not (project / "bin").is_dir():
        (project / "bin").mkdir()
        (project / "bin" / "zap").write_text("#!/bin/sh\ntouch ran\n")
        (project / "bin" / "zap").chmod(0o755)
        (project / "a.txt").write_text("a\n")
    line = before + frame.format(called, q=shlex.quote(called))
    env = {"PATH": f"{project}/bin:/usr/bin:/bin"}
    subprocess.run(["bash", "-c", line], cwd=project, env=env, input=b"", capture_output=True, check=False, timeout=60)

    if (project / "ran").exists():
        (project / "ran").unlink()
        assert world.bash(line) in ("deny", "ask")
        assert hook_runs(line, project, "Bash(zap *)")


@pytest.mark.proves("X18")
@pytest.mark.parametrize(
    "line",
    ["$(echo rm) x", "bash <<< 'rm x'", "env -S 'rm x'", "printf 'a:\\n\\trm x' | make -f -", "x=rm; $x x",
     "python3 -c 'import subprocess; subprocess.run([\"rm\", \"x\"])'", "declare 'a[$(rm x)]=1'",
     "ln -s /bin/rm z; ./z x"],
)  # fmt: skip
def test_a_hook_about_a_command_is_asked_however_a_call_runs_it(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "command", "command": "echo keep it >&2; exit 2", "if": "Bash(rm *)"}
    settings = {"permissions": {"allow": ["Bash"]}, "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "x").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("IS_SANDBOX", "1")

    for flags in ([], ["--dangerously-skip-permissions"]):
        run(["call", "--json", "--settings", "settings.json", *flags, "Bash", json.dumps({"command": line})])

        assert "keep it" in capsys.readouterr().out
        assert (tmp_path / "x").exists()
