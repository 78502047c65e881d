"""
Programs and builtins that run another command. The inner command is judged by its own entry, at any depth.

The first group adds nothing of its own, so the whole is as harmless as what it runs. The second is looked into for the
sake of deny rules only: it runs the command with other rights, in another place, later, or again and again.
"""

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

SOURCES = {
    "bash 5.2 and dash": "sh bash dash rbash",
    "bash 5.2": "command builtin exec eval trap mapfile readarray jobs",
    "GNU coreutils 9.4": "timeout nice stdbuf env nohup chroot",
    "GNU findutils 4.9": "xargs",
    "util-linux 2.39": "ionice su runuser setpriv unshare nsenter setsid chrt taskset prlimit setarch linux32 linux64 "
    "flock script",
    "sudo 1.9": "sudo",
    "OpenBSD doas": "doas",
    "procps 4.0": "watch",
    "OpenSSH 9": "ssh",
    "the manual page of each": "*",
}


CLEARS = "takes away the environment that keeps programs from running others"

SH = Command(
    # Without -c the program comes from a file or standard input. -l and -i read start-up files.
    flags="-c -e -u",
    values={"-o -O": STATE},
    never={"-a -b -f -h -i -k -l -m -n -p -r -t -v -x -B -C -E -H -P -T --login": "changes how the shell works"},
    only_with="-c",
    operands=(SHELL,),
    options_first=True,
)
OTHER_SHELL = SH._replace(
    flags="-c -e -u -f",
    never={"-i -l -x": "changes how the shell works"},
    effect={PROGRAM: "another shell, which reads its own start-up files and has its own syntax"},
)


def runs(
    why: str,
    role: Role = STATE,
    *,
    flags: str = "",
    values: str = "",
    texts: str = "",
    operands: tuple[Role, ...] = (COMMAND,),
) -> Command:
    """A wrapper that is never read-only; the command behind its options, or the shell text in one, is looked into."""
    return Command(
        flags=flags,
        values={values: TEXT, texts: SHELL},
        operands=operands,
        options_first=True,
        effect={role: why},
        alone={role: "starts a shell"},
    )


WRAPPER = Command(operands=(COMMAND,), options_first=True)

HARMLESS: dict[str, Command] = {
    "sh bash dash rbash": SH,
    "timeout": Command(
        flags="--foreground --preserve-status -v --verbose",
        values={"-k --kill-after -s --signal": TEXT},
        operands=(TEXT, COMMAND),
        options_first=True,
    ),
    "nice": WRAPPER._replace(values={"-n --adjustment": TEXT}, number=True, alone={TEXT: "prints the niceness"}),
    "stdbuf": WRAPPER._replace(values={"-i --input -o --output -e --error": TEXT}),
    "ionice": WRAPPER._replace(
        flags="-t --ignore",
        values={"-c --class -n --classdata": TEXT},
        never={"-p --pid -P --pgid -u --uid": "changes running processes"},
        alone={TEXT: "prints the class"},
    ),
    "command": Command(flags="-v -V -p", operands=(Unless(COMMAND, "-v -V"),), rest=TEXT, options_first=True),
    "builtin": WRAPPER,
    "exec": WRAPPER._replace(
        # Alone it opens and closes descriptors of this shell. A program may do other things under another name.
        values={"-a": STATE},
        never={"-l": "runs a program under another name", "-c": CLEARS},
        alone={STATE: "changes where this shell reads and writes"},
    ),
    "env": WRAPPER._replace(
        flags="-0 --null",
        never={"-i --ignore-environment": CLEARS},
        values={"-u --unset": STATE, "-C --chdir": READ, "-S --split-string": EVAL},
        assigns=True,
        moves="-C --chdir",
        alone={SECRET: "shows all variables of the environment"},
    ),
    "xargs": Command(
        flags="-0 --null -r --no-run-if-empty -t --verbose -x --exit",
        values={"-d --delimiter -E -L -n --max-args -P --max-procs -s --max-chars -I": TEXT, "-a --arg-file": NAMES},
        optional={"--max-lines": TEXT},
        never={"-o --open-tty -p --interactive": "reads from the terminal"},
        operands=(FED_COMMAND,),
        replaces="-I",
        replaces_not_with="-L --max-lines -n --max-args",
        reads_nul_names="-0 --null",
        cuts_names="-d --delimiter",
        options_first=True,
        alone={NAMES: "makes arguments for echo of whatever comes in"},
    ),
}

LOOKED_INTO: dict[str, Command] = {
    "ash zsh ksh mksh fish": OTHER_SHELL,
    "eval": Command(plain=True, rest=EVAL, effect={NAMES: "eval may change anything in this shell"}),
    "trap": Command(operands=(SHELL,), rest=TEXT, effect={STATE: "runs a text later"}, options_first=True),
    "mapfile readarray": Command(
        flags="-t", values={"-d -n -O -s -u -c": TEXT, "-C": EVAL}, rest=TEXT, effect={NAMES: "sets an array"}
    ),
    "jobs": Command(flags="-l -n -p -r -s", values={"-x": EVAL}, rest=TEXT),
    "nohup": runs("may write nohup.out, and the command outlives its shell"),
    "sudo": runs(
        "runs a command as another user",
        values="-C --close-from -D --chdir -g --group -h --host -p --prompt -R --chroot -r --role -t --type -T "
        "--command-timeout -U --other-user -u --user",
        flags="-A --askpass -b --background -B --bell -E --preserve-env -H --set-home -i --login -k -K -l --list -n "
        "--non-interactive -P --preserve-groups -S --stdin -s --shell -v --validate -e --edit",
    )._replace(assigns=True),
    "doas": runs("runs a command as another user", values="-a -C -u", flags="-L -n -s"),
    "pkexec": runs("runs a command as another user", values="--user", flags="--disable-internal-agent"),
    "su": Command(
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
        "runs a command as another user",
        values="-u --user -g --group -G --supp-group -s --shell -w",
        flags="-f --fast -l --login -m -p --preserve-environment",
        texts="-c --command --session-command",
    ),
    "setpriv": runs("runs a command with other rights", values="--reuid --regid --groups"),
    "chroot": runs(
        "runs a command in another root folder",
        values="--groups --userspec",
        flags="--skip-chdir",
        operands=(READ, COMMAND),
    ),
    "unshare": runs(
        "runs a command in new namespaces",
        flags="-f --fork -r --map-root-user -U -m -n -p -u -i -C -T",
        values="-S -G -R -w",
    ),
    "nsenter": runs(
        "runs a command in other namespaces", values="-t --target -S -G", flags="-a --all -m -u -i -n -p -U -C -F"
    ),
    "setsid": runs("the command outlives its shell", flags="-c --ctty -f --fork -w --wait"),
    "chrt": runs(
        "changes how a command is scheduled",
        flags="-b --batch -d --deadline -f --fifo -i --idle -o --other -r --rr -R -v --verbose",
        values="-T -P -D",
        operands=(TEXT, COMMAND),
    ),
    "taskset": runs("pins a command to processors", flags="-c -a", operands=(TEXT, COMMAND)),
    "prlimit": runs("changes limits", values="-p --pid -o --output"),
    "setarch": runs("changes how a command is run", operands=(TEXT, COMMAND), flags="-R"),
    "linux32 linux64": runs("changes how a command is run", flags="-R"),
    "flock": runs(
        "holds a lock while a command runs",
        flags="-e -x --exclusive -s --shared -n --nb --nonblock -u --unlock -F --no-fork -o --close --verbose",
        operands=(WRITE, COMMAND),
        values="-w --wait --timeout -E --conflict-exit-code",
        texts="-c --command",
    ),
    "watch": Command(
        # It joins its operands and hands them to sh.
        flags="-b --beep -c --color -d --differences -e --errexit -g --chgexit -p --precise -t --no-title -x --exec",
        values={"-n --interval -q --equexit": TEXT},
        rest=EVAL,
        options_first=True,
        effect={PROGRAM: "runs a command again and again"},
    ),
    "script": Command(
        flags="-a --append -e --return -f --flush -q --quiet",
        values={"-c --command": SHELL, "-I -O -B -T -t -m -E -o": WRITE},
        rest=WRITE,
        effect={PROGRAM: "starts a shell and records it"},
    ),
    "unbuffer": runs("runs a command on a terminal of its own", PROGRAM, flags="-p"),
    "strace": runs("traces a program", PROGRAM, flags="-f -c -q -v", values="-e -o -p -s -u -E"),
    "ltrace": runs("traces a program", PROGRAM, flags="-f -c -S", values="-e -o -p -s -u"),
    "perf": Command(
        subcommands={
            name: runs("measures a program and may write a file", PROGRAM, values="-e -o -p -F")
            for name in ("stat", "record", "trace")
        }
    ),
    "parallel": runs(
        "runs commands made of its input",
        PROGRAM,
        values="-j --jobs -I -a --arg-file -n --max-args -N -L --delay --timeout --joblog --colsep",
        flags="-k --keep-order -0 --null -X -m -q --quote -r --no-run-if-empty -v --bar --eta --dry-run --will-cite",
    )._replace(expression="builtins.parallel"),
    "entr": runs("runs a command when files change", PROGRAM, flags="-a -c -d -n -p -r -s"),
    "busybox toybox": runs("runs one of its own programs", PROGRAM),
    "systemd-run": runs(
        "the command outlives its shell",
        values="-u --unit -p --property --uid --gid -E --setenv",
        flags="--user --scope --wait -t --pty -P --pipe -q --quiet -G --collect",
    ),
    "ssh": Command(
        flags="-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y",
        values={"-B -b -c -D -E -e -I -J -L -l -m -O -P -p -R -S -W -w -Q": TEXT, "-F -i": READ, "-o": PROGRAM},
        operands=(NETWORK,),
        rest=EVAL,
        options_first=True,
        effect={NETWORK: "runs a command on another machine"},
    ),
    "fakeroot": runs("runs a command that believes to be root", PROGRAM),
    "firejail": runs("runs a command in a sandbox", PROGRAM),
    "caffeinate": runs("runs a command and keeps the machine awake", PROGRAM),
    "catchsegv": runs("runs a command with a library loaded into it", PROGRAM),
    "dbus-run-session": runs("runs a command with a message bus of its own", PROGRAM),
    "xvfb-run": runs("runs a command with a display of its own", PROGRAM),
    "torsocks torify": runs("runs a command over the network of Tor", PROGRAM),
    "proxychains": runs("runs a command over a proxy", PROGRAM),
    "rlwrap": runs("runs a command with a line editor", PROGRAM),
    "noglob": runs("runs a command without matching file names (zsh)", PROGRAM),
    "nocorrect": runs("runs a command without correcting it (zsh)", PROGRAM),
}

COMMANDS: dict[str, Command] = HARMLESS | LOOKED_INTO
