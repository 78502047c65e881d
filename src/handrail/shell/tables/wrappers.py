"""
Programs and builtins that run another command. The inner command is judged by its own entry, at any depth.

The first group adds nothing of its own, so the whole is as harmless as what it runs. The second is looked into for the
sake of deny rules only: it runs the command with other rights, in another place, later, or again and again.
"""

from typing import Any

from handrail.shell.tables.format import (
    COMMAND,
    EVAL,
    FED_COMMAND,
    NAMES,
    NETWORK,
    PROGRAM,
    READ,
    SECRET,
    SHELL,
    STATE,
    TEXT,
    WRITE,
    Command,
    Role,
    Unless,
)

COREUTILS = "GNU coreutils 9.4"
UTIL_LINUX = "util-linux 2.39"

SH = Command(
    # Without -c the program comes from a file or standard input. -l and -i read start-up files.
    source="bash 5.2, bash(1); dash(1)",
    flags="-c -e -u",
    only_with="-c",
    operands=(SHELL,),
    options_first=True,
)
OTHER_SHELL = SH._replace(
    source="zsh(1), ksh(1), fish(1)",
    flags="-c -e -u -f",
    effect={PROGRAM: "another shell, which reads its own start-up files and has its own syntax"},
)


def runs(source: str, why: str, role: Role = STATE, values: str = "", texts: str = "", **more: Any) -> Command:
    """A wrapper that is never read-only; the command behind its options, or the shell text in one, is looked into."""
    fields = {"operands": (COMMAND,), "options_first": True, "alone": {role: "starts a shell"}, **more}
    return Command(source, values={values: TEXT, texts: SHELL}, effect={role: why}, **fields)


HARMLESS: dict[str, Command] = {
    "sh": SH,
    "bash": SH,
    "dash": SH,
    "rbash": SH,
    "timeout": Command(
        source=f"{COREUTILS}, timeout(1)",
        flags="--foreground --preserve-status -v --verbose",
        values={"-k --kill-after -s --signal": TEXT},
        operands=(TEXT, COMMAND),
        options_first=True,
    ),
    "nice": Command(
        source=f"{COREUTILS}, nice(1)",
        values={"-n --adjustment": TEXT},
        number=True,
        operands=(COMMAND,),
        options_first=True,
        alone={TEXT: "prints the niceness"},
    ),
    "stdbuf": Command(
        source=f"{COREUTILS}, stdbuf(1)",
        values={"-i --input -o --output -e --error": TEXT},
        operands=(COMMAND,),
        options_first=True,
    ),
    "ionice": Command(
        source=f"{UTIL_LINUX}, ionice(1)",
        flags="-t --ignore",
        values={"-c --class -n --classdata": TEXT},
        never={"-p --pid -P --pgid -u --uid": "changes running processes"},
        operands=(COMMAND,),
        options_first=True,
        alone={TEXT: "prints the class"},
    ),
    "command": Command(
        source="bash 5.2, command",
        flags="-v -V -p",
        operands=(Unless(COMMAND, "-v -V"),),
        rest=TEXT,
        options_first=True,
    ),
    "builtin": Command(source="bash 5.2, builtin", operands=(COMMAND,), options_first=True),
    "exec": Command(
        # Alone it opens and closes descriptors of this shell. A program may do other things under another name.
        source="bash 5.2, exec",
        flags="-c",
        values={"-a": STATE},
        never={"-l": "runs a program under another name"},
        operands=(COMMAND,),
        options_first=True,
        alone={STATE: "changes where this shell reads and writes"},
    ),
    "env": Command(
        source=f"{COREUTILS}, env(1)",
        flags="-i --ignore-environment -0 --null",
        values={"-u --unset": STATE, "-C --chdir": READ, "-S --split-string": EVAL},
        operands=(COMMAND,),
        options_first=True,
        assigns=True,
        moves="-C --chdir",
        alone={SECRET: "shows all variables of the environment"},
    ),
    "xargs": Command(
        source="GNU findutils 4.9, xargs(1)",
        flags="-0 --null -r --no-run-if-empty -t --verbose -x --exit",
        values={
            "-d --delimiter -E -L -n --max-args -P --max-procs -s --max-chars -I": TEXT,
            "-a --arg-file": NAMES,
        },
        optional={"--max-lines": TEXT},
        never={"-o --open-tty -p --interactive": "reads from the terminal"},
        operands=(FED_COMMAND,),
        replaces="-I",
        replaces_not_with="-L --max-lines -n --max-args",
        reads_nul_names="-0 --null",
        options_first=True,
        alone={NAMES: "makes arguments for echo of whatever comes in"},
    ),
}

LOOKED_INTO: dict[str, Command] = {
    "ash": OTHER_SHELL,
    "zsh": OTHER_SHELL,
    "ksh": OTHER_SHELL,
    "mksh": OTHER_SHELL,
    "fish": OTHER_SHELL,
    "eval": Command(
        source="bash 5.2, eval", plain=True, rest=EVAL, effect={NAMES: "eval may change anything in this shell"}
    ),
    "trap": Command(
        source="bash 5.2, trap", operands=(SHELL,), rest=TEXT, effect={STATE: "runs a text later"}, options_first=True
    ),
    "mapfile": Command(
        source="bash 5.2, mapfile",
        flags="-t",
        values={"-d -n -O -s -u -c": TEXT, "-C": EVAL},
        rest=TEXT,
        effect={NAMES: "sets an array"},
    ),
    "jobs": Command(
        source="bash 5.2, jobs",
        flags="-l -n -p -r -s",
        values={"-x": EVAL},
        rest=TEXT,
    ),
    "nohup": runs(f"{COREUTILS}, nohup(1)", "may write nohup.out, and the command outlives its shell"),
    "sudo": runs(
        "sudo 1.9, sudo(8)",
        "runs a command as another user",
        values="-C --close-from -D --chdir -g --group -h --host -p --prompt -R --chroot -r --role -t --type -T "
        "--command-timeout -U --other-user -u --user",
        flags="-A --askpass -b --background -B --bell -E --preserve-env -H --set-home -i --login -k -K -l --list -n "
        "--non-interactive -P --preserve-groups -S --stdin -s --shell -v --validate -e --edit",
        assigns=True,
    ),
    "doas": runs("OpenBSD doas(1)", "runs a command as another user", values="-a -C -u", flags="-L -n -s"),
    "pkexec": runs(
        "polkit, pkexec(1)", "runs a command as another user", values="--user", flags="--disable-internal-agent"
    ),
    "su": Command(
        source=f"{UTIL_LINUX}, su(1)",
        flags="-f --fast -l --login -m -p --preserve-environment -P --pty",
        values={
            "-c --command --session-command": SHELL,
            "-s --shell": PROGRAM,
            "-g --group -G --supp-group -u -w": TEXT,
        },
        rest=TEXT,
        effect={STATE: "becomes another user"},
    ),
    "runuser": runs(
        f"{UTIL_LINUX}, runuser(1)",
        "runs a command as another user",
        values="-u --user -g --group -G --supp-group -s --shell -w",
        flags="-f --fast -l --login -m -p --preserve-environment",
        texts="-c --command --session-command",
    ),
    "setpriv": runs(f"{UTIL_LINUX}, setpriv(1)", "runs a command with other rights", values="--reuid --regid --groups"),
    "chroot": runs(
        f"{COREUTILS}, chroot(8)",
        "runs a command in another root folder",
        values="--groups --userspec",
        flags="--skip-chdir",
        operands=(READ, COMMAND),
    ),
    "unshare": runs(
        f"{UTIL_LINUX}, unshare(1)",
        "runs a command in new namespaces",
        flags="-f --fork -r --map-root-user -U -m -n -p -u -i -C -T",
        values="-S -G -R -w",
    ),
    "nsenter": runs(
        f"{UTIL_LINUX}, nsenter(1)",
        "runs a command in other namespaces",
        values="-t --target -S -G",
        flags="-a --all -m -u -i -n -p -U -C -F",
    ),
    "setsid": runs(f"{UTIL_LINUX}, setsid(1)", "the command outlives its shell", flags="-c --ctty -f --fork -w --wait"),
    "chrt": runs(
        f"{UTIL_LINUX}, chrt(1)",
        "changes how a command is scheduled",
        flags="-b --batch -d --deadline -f --fifo -i --idle -o --other -r --rr -R -v --verbose",
        values="-T -P -D",
        operands=(TEXT, COMMAND),
    ),
    "taskset": runs(
        f"{UTIL_LINUX}, taskset(1)", "pins a command to processors", flags="-c -a", operands=(TEXT, COMMAND)
    ),
    "prlimit": runs(f"{UTIL_LINUX}, prlimit(1)", "changes limits", values="-p --pid -o --output"),
    "setarch": runs(f"{UTIL_LINUX}, setarch(8)", "changes how a command is run", operands=(TEXT, COMMAND), flags="-R"),
    "linux32": runs(f"{UTIL_LINUX}, setarch(8)", "changes how a command is run", flags="-R"),
    "linux64": runs(f"{UTIL_LINUX}, setarch(8)", "changes how a command is run", flags="-R"),
    "flock": runs(
        f"{UTIL_LINUX}, flock(1)",
        "holds a lock while a command runs",
        flags="-e -x --exclusive -s --shared -n --nb --nonblock -u --unlock -F --no-fork -o --close --verbose",
        operands=(WRITE, COMMAND),
        values="-w --wait --timeout -E --conflict-exit-code",
        texts="-c --command",
    ),
    "watch": Command(
        source="procps 4.0, watch(1): joins its operands and hands them to sh",
        flags="-b --beep -c --color -d --differences -e --errexit -g --chgexit -p --precise -t --no-title -x --exec",
        values={"-n --interval -q --equexit": TEXT},
        rest=EVAL,
        options_first=True,
        effect={PROGRAM: "runs a command again and again"},
    ),
    "script": Command(
        source=f"{UTIL_LINUX}, script(1)",
        flags="-a --append -e --return -f --flush -q --quiet",
        values={"-c --command": SHELL, "-I -O -B -T -t -m -E -o": WRITE},
        rest=WRITE,
        effect={PROGRAM: "starts a shell and records it"},
    ),
    "unbuffer": runs("expect, unbuffer(1)", "runs a command on a terminal of its own", PROGRAM, flags="-p"),
    "strace": runs("strace(1)", "traces a program", PROGRAM, flags="-f -c -q -v", values="-e -o -p -s -u -E"),
    "ltrace": runs("ltrace(1)", "traces a program", PROGRAM, flags="-f -c -S", values="-e -o -p -s -u"),
    "perf": Command(
        source="perf(1)",
        subcommands={
            name: runs(f"perf-{name}(1)", "measures a program and may write a file", PROGRAM, values="-e -o -p -F")
            for name in ("stat", "record", "trace")
        },
    ),
    "parallel": runs(
        "GNU parallel(1)",
        "runs commands made of its input",
        PROGRAM,
        values="-j --jobs -I -a --arg-file -n --max-args -N -L --delay --timeout --joblog --colsep",
        flags="-k --keep-order -0 --null -X -m -q --quote -r --no-run-if-empty -v --bar --eta --dry-run --will-cite",
        expression="builtins.parallel",
    ),
    "entr": runs("entr(1)", "runs a command when files change", PROGRAM, flags="-a -c -d -n -p -r -s"),
    "busybox": runs("busybox(1)", "runs one of its own programs", PROGRAM),
    "toybox": runs("toybox(1)", "runs one of its own programs", PROGRAM),
    "systemd-run": runs(
        "systemd-run(1)",
        "the command outlives its shell",
        values="-u --unit -p --property --uid --gid -E --setenv",
        flags="--user --scope --wait -t --pty -P --pipe -q --quiet -G --collect",
    ),
    "ssh": Command(
        source="OpenSSH 9, ssh(1)",
        flags="-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y",
        values={"-B -b -c -D -E -e -I -J -L -l -m -O -P -p -R -S -W -w -Q": TEXT, "-F -i": READ, "-o": PROGRAM},
        operands=(NETWORK,),
        rest=EVAL,
        options_first=True,
        effect={NETWORK: "runs a command on another machine"},
    ),
    **{
        name: runs(f"{name}(1)", why, PROGRAM)
        for name, why in {
            "fakeroot": "runs a command that believes to be root",
            "firejail": "runs a command in a sandbox",
            "caffeinate": "runs a command and keeps the machine awake",
            "catchsegv": "runs a command with a library loaded into it",
            "dbus-run-session": "runs a command with a message bus of its own",
            "xvfb-run": "runs a command with a display of its own",
            "torsocks": "runs a command over the network of Tor",
            "torify": "runs a command over the network of Tor",
            "proxychains": "runs a command over a proxy",
            "rlwrap": "runs a command with a line editor",
            "noglob": "runs a command without matching file names (zsh)",
            "nocorrect": "runs a command without correcting it (zsh)",
        }.items()
    },
}

COMMANDS: dict[str, Command] = HARMLESS | LOOKED_INTO | {"readarray": LOOKED_INTO["mapfile"]}
