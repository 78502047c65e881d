"""Rules that deny a command find it in the words of programs that run what they are given."""

from pathlib import Path

import pytest

from handrail.shell.analysis import analyse
from handrail.shell.model import CommandVerdict
from tests.permissions.world import World

# Each runs rm, now, later or elsewhere.
RUNS = [
    'awk \'BEGIN{system("rm x")}\'', 'awk \'BEGIN { "rm x" | getline }\'', 'awk \'{print | "rm x"}\' f',
    'awk \'BEGIN{cmd="rm x"; system(cmd)}\'', 'gawk \'BEGIN{system("rm" " x")}\'', "sed 's/a/rm x/e' f",
    "sed '1e rm x' f", "sed -n 'e rm x' f", "git -c alias.x='!rm x' x", "git -c alias.x='!f() { rm x; }; f' x",
    "git config alias.x '!rm x'", "git -c core.pager='rm x' log", "git -c core.sshCommand='rm x' fetch",
    "git -c diff.external='rm x' diff", "GIT_SSH_COMMAND='rm x' git fetch", "GIT_EDITOR='rm x' git commit",
    "EDITOR='rm x' git commit", "PAGER='rm x' git log", "git submodule foreach 'rm x'", "git submodule foreach rm x",
    "git bisect run rm x", "git rebase -x 'rm x' HEAD~1", "git rebase --exec 'rm x' HEAD~1",
    "git rebase --exec='rm x' HEAD~1", "git filter-branch --tree-filter 'rm x' HEAD",
    "git filter-branch --index-filter='rm x'", "git difftool -x 'rm x'", "git difftool --extcmd='rm x'",
    "git grep -O'rm x' foo", "git ls-remote --upload-pack='rm x' h", "git clone -u 'rm x' h",
    "git send-email --to-cmd='rm x'", "find . -exec rm x \\;", "find . -ok rm {} \\;", "find . -execdir rm {} +",
    "xargs rm < f", "env rm x", "env -S 'rm x'", "sudo rm x", "sudo -u root sh -c 'rm x'", "nohup rm x",
    "timeout 5 rm x", "watch 'rm x'", "watch -n 1 rm x", "parallel rm ::: a b", "parallel 'rm {}' ::: a b",
    "parallel -j2 'cd x && rm {}' ::: a", "ssh host rm x", "ssh host 'cd a; rm x'", "ssh -o ProxyCommand='rm x' host",
    "docker exec c rm x", "docker exec -it c sh -c 'rm x'", "docker run --rm img rm x",
    "docker run --entrypoint rm img x", "docker compose exec web rm x", "docker compose run web rm x",
    "podman exec c rm x", "kubectl exec pod -- rm x", "kubectl exec pod -- sh -c 'rm x'",
    "kubectl run p --image=i -- rm x", "oc exec pod -- rm x", "nerdctl exec c rm x", "lxc exec c -- rm x",
    "machinectl shell c /bin/rm x", "su -c 'rm x'", "su - root -c 'rm x'", "runuser -u a -- rm x", "script -c 'rm x'",
    "script -qc 'rm x' /dev/null", "flock f -c 'rm x'", "flock f rm x", "tmux new 'rm x'",
    "tmux new-session -d 'rm x'", "tmux send-keys 'rm x' Enter", "tmux split-window 'rm x'", "tmux run-shell 'rm x'",
    "tmux new-window rm x", "screen -dm rm x", "screen -S n -dm sh -c 'rm x'", "screen -X stuff 'rm x'", "strace rm x",
    "strace -f -o o rm x", "ltrace rm x", "gdb --args rm x", "gdb -ex 'shell rm x'", "valgrind rm x", "perf stat rm x",
    "time rm x", "/usr/bin/time rm x", "/usr/bin/time -v rm x", "busybox rm x", "busybox sh -c 'rm x'",
    "busybox ash -c 'rm x'", "toybox rm x", "vim -c '!rm x' f", "vim +'!rm x' f", "ex -c '!rm x' f", "less +'!rm x' f",
    "man -P 'rm x' ls", "man --pager='rm x' ls", "tar --checkpoint-action=exec='rm x' -cf a b",
    "tar --to-command='rm x' -xf a", "tar -I 'rm x' -xf a", "tar --use-compress-program='rm x' -xf a",
    "rsync -e 'rm x' a b", "rsync --rsh='rm x' a b", "rsync --rsync-path='rm x' a h:b", "scp -S 'rm x' a b",
    "zip -TT 'rm x' -T a b", "sort --compress-program='rm x' f", "split --filter='rm x' f", "make SHELL='rm x'",
    "npx rm x", "npm exec -- rm x", "npm exec -c 'rm x'", "npx -c 'rm x'", "yarn exec rm x", "pnpm exec rm x",
    "pnpm dlx rm x", "bundle exec rm x", "poetry run rm x", "pipenv run rm x", "uv run rm x", "uvx rm x",
    "pdm run rm x", "hatch run rm x", "conda run -n e rm x", "mise exec -- rm x", "asdf exec rm x",
    "direnv exec . rm x", "nix-shell --run 'rm x'", "nix run -c rm x", "nix develop -c rm x",
    "nix shell nixpkgs#x -c rm x", "guix shell -- rm x", "cargo watch -x 'rm x'", "cargo watch -s 'rm x'", "entr rm x",
    "ls | entr -s 'rm x'", "nodemon --exec 'rm x'", "nodemon -x 'rm x'", "watchexec rm x", "watchexec -- rm x",
    "watchexec -s SIGTERM 'rm x'", "inotifywait . && rm x", "start-stop-daemon --start --exec /bin/rm -- x",
    "systemd-run rm x", "systemd-run --user --unit=a rm x", "chroot / rm x", "unshare -r rm x", "nsenter -t 1 -a rm x",
    "bwrap --bind / / rm x", "firejail rm x", "proot rm x", "fakeroot rm x", "setsid rm x", "nice rm x",
    "nice -n 5 rm x", "ionice -c3 rm x", "chrt -i 0 rm x", "taskset 1 rm x", "numactl -N 0 rm x",
    "cgexec -g cpu:x rm x", "stdbuf -oL rm x", "unbuffer rm x", "expect -c 'spawn rm x'", "socat - EXEC:'rm x'",
    "nc -e 'rm x' h 1", "ncat -c 'rm x' h 1", "ncat --sh-exec 'rm x' h 1", "trap 'rm x' EXIT", "eval rm x",
    "eval 'rm x'", "bash -c 'rm x'", "source <(echo 'rm x')", "coproc rm x", "select i in a; do rm x; done",
    "f() { rm x; }; f", "alias l='rm x'; l", "complete -C 'rm x' l", "PROMPT_COMMAND='rm x'", 'bind -x \'"a": rm x\'',
    "hash -p /bin/rm ls; ls x", "exec -a ls rm x", "command rm x", "builtin eval 'rm x'", "\\rm x", '"rm" x', 'r""m x',
    "/bin/rm x", "./rm x", "ionice rm x", "choom -n 5 -- rm x", "prlimit --nofile=1 rm x", "setarch x86_64 rm x",
    "arch -x86_64 rm x", "ansible all -a 'rm x'", "ansible all -m shell -a 'rm x'", "vagrant ssh -c 'rm x'",
    "gcloud compute ssh vm --command='rm x'", "heroku run rm x", "fly ssh console -C 'rm x'", "mosh host -- rm x",
    "sshpass -p x ssh h rm x", "autossh h rm x", "pssh -h f 'rm x'", "parallel-ssh -h f rm x", "rlwrap rm x",
    "dbus-launch rm x", "xvfb-run rm x", "faketime x rm x", "eatmydata rm x", "tini -- rm x", "dumb-init rm x",
    "gosu u rm x", "su-exec u rm x", "doas rm x", "pkexec rm x", "sg group -c 'rm x'", "hyperfine 'rm x'",
    "hyperfine --prepare 'rm x' ls", "concurrently 'rm x' ls", "foreman run rm x", "dotenv -- rm x", "dotenv run rm x",
    "env-cmd rm x", "cross-env A=1 rm x", "op run -- rm x", "doppler run -- rm x", "aws-vault exec p -- rm x",
    "chamber exec s -- rm x", "sops exec-env f 'rm x'", "csh -c 'rm x'", "tcsh -c 'rm x'", "fd -x rm", "fd . -x rm {}",
    "fd -X rm", "fzf --preview 'rm x'", "fzf --bind 'enter:execute(rm x)'", "rg --pre 'rm' x", "ip netns exec n rm x",
    "ip vrf exec v rm x", "mysql -e '\\! rm x'", "psql -c '\\! rm x'", "sqlite3 db '.shell rm x'",
    "sqlite3 db '.system rm x'", "time -p rm x", "! rm x", "[[ -n $(rm x) ]]", 'echo "$(rm x)"', "echo `rm x`",
    "cat <(rm x)", "cat > >(rm x)", "case a in a) rm x;; esac", "(rm x)", "{ rm x; }", "if rm x; then :; fi",
    "while rm x; do :; done", "rm x &", "sleep 1 & rm x", "bash <<< 'rm x'", "echo 'rm x' | bash",
]  # fmt: skip
# Each may: what it runs is read from somewhere, or is a text in another language.
MAY_RUN = [
    "crontab - <<< '* * * * * rm x'", "echo '* * * * * rm x' | crontab -", "at now <<< 'rm x'", "echo 'rm x' | at now",
    "batch <<< 'rm x'", 'perl -e \'system("rm x")\'', 'python -c \'import os; os.system("rm x")\'',
    'ruby -e \'system("rm x")\'', "ruby -e '`rm x`'", 'node -e \'require("child_process").execSync("rm x")\'',
    'php -r \'system("rm x");\'', 'lua -e \'os.execute("rm x")\'', "ed f <<< '!rm x'", "cat <<< 'rm x' | sh",
    "bash <(echo 'rm x')", ". <(echo rm x)",
    "printf 'rm x' | xargs -I{} sh -c '{}'", "newgrp g <<< 'rm x'", "npm-run-all 'rm x'", "vault-exec rm x",
    "xonsh -c 'rm x'", "nu -c 'rm x'", "pwsh -c 'rm x'", "elvish -c 'rm x'", "tcpdump -z rm -w f",
]  # fmt: skip
# None does, though some speak of it.
DOES_NOT = [
    'git commit -m "rm x"', "git commit -am 'remove: rm x; curl y'", "git rm f", "git log --grep='rm x' > out",
    "git grep 'rm x' > out", "git tag -m 'rm x' v1", "git push origin main", "docker rm c", "docker run --rm img ls",
    "docker compose rm web", "podman rm c", "npm rm pkg", "npm run rm", "yarn rm x", "brew rm x", 'echo "rm x" > f',
    "sed -i 's/rm x/y/' f", "sed -i 's/a/rm x/' f", 'awk \'{print "rm x"}\' f > out', "python script.py",
    "python -m pytest", "make test", "make rm", 'gh pr create --title "rm x" --body \'curl y | sh\'', "mkdir rm",
    "cp rm x", "touch rm", "ssh host ls", "kubectl get pods", "node build.js", "cargo build", "pip install rm",
    "apt install curl", "jq '.a' f > g", "grep 'rm x' f > g", "rg 'rm x' > g", "tar czf a.tgz b", "rsync -a a b",
    "poetry run pytest", "npx eslint .", "uv run pytest -k 'not rmtest'",
]  # fmt: skip


def world(tmp_path: Path) -> World:
    return World(tmp_path, rules={"deny": ["Bash(rm:*)", "Bash(curl:*)"], "allow": ["Bash"]})


@pytest.mark.proves("R3")
def test_a_denied_command_is_found_wherever_it_is_given_to_another(tmp_path: Path) -> None:
    made = world(tmp_path)

    assert [line for line in RUNS if made.bash(line) != "deny"] == []


def test_a_command_that_may_be_a_denied_one_is_asked_about(tmp_path: Path) -> None:
    made = world(tmp_path)

    assert [line for line in MAY_RUN if made.bash(line) != "ask"] == []


def test_a_command_that_only_speaks_of_a_denied_one_is_not_refused(tmp_path: Path) -> None:
    made = world(tmp_path)

    assert [line for line in DOES_NOT if made.bash(line) != "allow"] == []


def test_nothing_of_the_kind_is_read_only() -> None:
    assert [line for line in [*RUNS, *MAY_RUN] if analyse(line).verdict is CommandVerdict.READ_ONLY] == []


@pytest.mark.parametrize(
    "command",
    [
        "git grep -Orm x", "git grep -O rm x", "git difftool -xrm", "git difftool -x rm", "git rebase -x rm HEAD~1",
        "git filter-branch --tree-filter rm HEAD", "git clone -u rm h",
    ],
)  # fmt: skip
def test_a_single_word_that_git_may_run_is_asked_for(command: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.rules = {"deny": ["Bash(rm *)"], "allow": ["Bash(git *)"]}

    assert world.bash(command) == "ask"
    assert world.bash("git push origin rm") == "allow"
