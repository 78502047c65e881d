"""Programs that show processes, memory and open files; those that signal processes are listed as such."""

from handrail.shell.tables.format import READ, STATE, TEXT, Command, always

SOURCES = {
    "procps-ng 4.0, and macOS for ps": "ps top pgrep free vmstat",
    "sysvinit-utils 3.06": "pidof",
    "psmisc 23.6": "pstree",
    "lsof 4.95": "lsof",
    "sysstat 12.6": "iostat",
    "the manual page of each": "kill pkill killall",
}

COMMANDS: dict[str, Command] = {
    "ps": Command(plain=True, expression="system.ps"),
    "top": Command(
        # Only as a batch: the interactive top takes commands that end processes and run others.
        flags="-b --batch-mode -c --cmdline-toggle -H --threads-show -i --idle-toggle -S --accum-time-toggle -s "
        "--secure-mode -1 --single-cpu-toggle -h --help -V --version",
        values={
            "-d --delay -E --scale-summary-mem -e --scale-task-mem -n --iterations -o --sort-override -p --pid -U "
            "--filter-any-user -u --filter-only-euser": TEXT
        },
        only_with="-b --batch-mode -h --help -V --version",
    ),
    "pgrep": Command(
        flags="-l --list-name -a --list-full -v --inverse -w --lightweight -c --count -f --full -i --ignore-case -n "
        "--newest -o --oldest -x --exact -L --logpidfile -A --ignore-ancestors -h --help -V --version",
        values={
            "-d --delimiter -g --pgroup -G --group -O --older -P --parent -s --session -t --terminal -u --euid -U "
            "--uid -r --runstates --cgroup --ns --nslist": TEXT,
            "-F --pidfile": READ,
        },
        operands=(TEXT,),
    ),
    "pidof": Command(flags="-s -c -q -x -z -n", rest=TEXT),
    "pstree": Command(
        flags="-a --arguments -A --ascii -c --compact-not -g --show-pgids -G --vt100 -h --highlight-all -l --long -n "
        "--numeric-sort -p --show-pids -s --show-parents -S --ns-changes -t --thread-names -T --hide-threads -u "
        "--uid-changes -U --unicode -V --version -Z --security-context",
        values={"-H --highlight-pid -N --ns-sort -C --color": TEXT},
        operands=(TEXT,),
    ),
    "lsof": Command(plain=True, expression="system.lsof"),
    "free": Command(
        flags="-b --bytes --kilo --mega --giga --tera --peta -k --kibi -m --mebi -g --gibi --tebi --pebi -h --human "
        "--si -l --lohi -t --total -v --committed -w --wide --help -V --version",
        values={"-s --seconds -c --count": TEXT},
    ),
    "vmstat": Command(
        flags="-a --active -f --forks -m --slabs -n --one-header -s --stats -d --disk -D --disk-sum -w --wide -t "
        "--timestamp -y --no-first -h --help -V --version",
        values={"-p --partition -S --unit": TEXT},
        operands=(TEXT, TEXT),
    ),
    "iostat": Command(
        flags="-c -d -h -k -m -N -s -t -V -x -y -z --compact --human --pretty", attached={"--dec": TEXT}, rest=TEXT
    ),
    "kill pkill killall": always(STATE, "ends processes"),
}
