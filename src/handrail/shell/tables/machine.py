"""Programs that show the machine, its network, its logs and its services; most of them can also change these."""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import NAMES, NETWORK, READ, STATE, TEXT, WRITE, Command, Unless, always

SOURCES = {
    "iproute2 6.1": "ip ss",
    "net-tools 2.10 and macOS": "ifconfig netstat",
    "util-linux 2.38": "lscpu lsblk findmnt dmesg",
    "usbutils 014": "lsusb",
    "pciutils 3.9": "lspci",
    "kmod 30": "lsmod",
    "systemd 252": "journalctl systemctl",
    "procps-ng 4.0": "sysctl",
    "ncurses 6.4": "tput",
    "GNU libc 2.36": "getent",
    "the manual page": "crontab",
}

PAGER = Requirement("pager", "output is not a terminal, or no pager is configured", ("--no-pager",))

# Where the messages come from, and where the daemon runs: all else changes something or leaves this machine.
UNIT_FLAGS = (
    "--user --system -a --all --no-pager --no-legend -l --full --plain -q --quiet --failed --recursive "
    "--no-ask-password"
)
UNIT_VALUES = {"-t --type --state -n --lines -o --output --timestamp": TEXT}
UNIT_NEVER = {
    "-H --host": "connects to another machine",
    "-M --machine": "enters a container",
    "--root --image": "takes another file system",
    "--now --force -f --runtime --wait": "changes a unit",
}
UNITS = Command(
    flags=f"{UNIT_FLAGS} -r --reverse --after --before --with-dependencies --show-types",
    values=UNIT_VALUES,
    never=UNIT_NEVER,
    rest=TEXT,
    requires=(PAGER,),
)
UNIT_LISTS = (
    "status list-units list-unit-files list-timers list-sockets list-paths list-jobs list-dependencies list-automounts "
    "is-active is-enabled is-failed is-system-running get-default"
)

COMMANDS: dict[str, Command] = {
    "ip": Command(plain=True, expression="system.ip"),
    # One interface may be shown; a second word changes it. On BSD a word behind -a changes all of them.
    "ifconfig": Command(flags="-a -s -l", operands=(Unless(TEXT, "-a -s -l"),)),
    "ss": Command(
        flags="-h --help -V --version -n --numeric -a --all -l --listening -o --options -e --extended -m --memory -p "
        "--processes -T --threads -i --info --tipcinfo -s --summary --tos --cgroup -b --bpf -Z --context -z --contexts "
        "-4 --ipv4 -6 --ipv6 -0 --packet -t --tcp -M --mptcp -S --sctp -u --udp -d --dccp -w --raw -x --unix --tipc "
        "--vsock --xdp -H --no-header -O --oneline --inet-sockopt",
        values={"-f --family -A --query --socket": TEXT, "-D --diag": WRITE, "-F --filter": NAMES, "-N --net": STATE},
        never={"-K --kill": "closes connections", "-r --resolve": "asks the network for host names"},
        expression="system.ss_filter",
    ),
    "netstat": Command(
        # On macOS -p takes the name of a protocol, -I of an interface.
        flags="-r --route -i --interfaces -g --groups -s --statistics -M --masquerade -v --verbose -W --wide -n "
        "--numeric --numeric-hosts --numeric-ports --numeric-users -N --symbolic -e --extend -p --programs -o --timers "
        "-c --continuous -l --listening -a --all -F --fib -C --cache -Z --context -t --tcp -u --udp -w --raw -x --unix "
        "-4 -6 --inet --inet6 -V --version -h --help",
        values={"-I -f": TEXT},
        rest=TEXT,
    ),
    "lscpu": Command(
        flags="-a --all -b --online -B --bytes -c --offline -J --json -x --hex -y --physical --output-all -h --help -V "
        "--version",
        values={"-s --sysroot": READ},
        optional={"-C --caches -e --extended -p --parse": TEXT},
    ),
    "lsblk": Command(
        flags="-A --noempty -D --discard -J --json -M --merge -O --output-all -P --pairs -S --scsi -a --all -b --bytes "
        "-d --nodeps -f --fs -i --ascii -l --list -m --perms -n --noheadings -p --paths -r --raw -s --inverse -t "
        "--topology -y --shell -z --zoned -h --help -V --version",
        values={"-E --dedup -I --include -e --exclude -o --output -w --width -x --sort": TEXT, "--sysroot": READ},
        optional={"-T --tree": TEXT},
        rest=TEXT,
    ),
    "lsusb": Command(flags="-v --verbose -t --tree -V --version -h --help", values={"-s -d": TEXT, "-D": READ}),
    "lspci": Command(
        flags="-m -t -v -k -x -b -D -P -n",
        values={"-s -d": TEXT, "-i -p -F": READ},
        never={"-q -Q": "asks the network for names", "-M -H -A -O -G": "reaches for the hardware itself"},
    ),
    "findmnt": Command(
        flags="-m --mtab -k --kernel -A --all -a --ascii -b --bytes -D --df -f --first-only -i --invert -J --json -l "
        "--list -n --noheadings --output-all -P --pairs --pseudo -R --submounts -r --raw --real --tree -U --uniq -u "
        "--notruncate -h --help -V --version",
        values={"-d --direction -O --options -o --output -S --source -t --types": TEXT},
        rest=TEXT,
    ),
    "lsmod": Command(),
    "dmesg": Command(
        # -H starts a pager on a terminal.
        flags="-J --json -k --kernel -P --nopager -p --force-prefix -r --raw --noescape -S --syslog -u --userspace -w "
        "--follow -W --follow-new -x --decode -d --show-delta -e --reltime -T --ctime -t --notime -h --help -V "
        "--version",
        values={"-f --facility -l --level -s --buffer-size --time-format --since --until": TEXT, "-F --file": READ},
        optional={"-L --color": TEXT},
        never={
            "-C --clear -c --read-clear": "clears the kernel's messages",
            "-D --console-off -E --console-on -n --console-level": "changes what the console shows",
            "-H --human": "starts a pager on a terminal",
        },
    ),
    "journalctl": Command(
        flags="--system --user -m --merge -k --dmesg -r --reverse --show-cursor --utc -x --catalog --no-hostname "
        "--no-full -l --full -a --all -f --follow --no-tail -q --quiet --no-pager -e --pager-end -h --help --version "
        "-N --fields --list-boots --disk-usage --header --list-catalog",
        values={
            "-S --since -U --until -c --cursor --after-cursor -u --unit --user-unit -t --identifier -p --priority "
            "--facility -g --grep -o --output --output-fields -F --field": TEXT,
            "-D --directory --file": READ,
            "--cursor-file": WRITE,
            "-M --machine --root --image --namespace": STATE,
            "--vacuum-size --vacuum-files --vacuum-time": STATE,
        },
        # The value of -n and -b may be the next word; as an operand it is a number or a match, both text.
        optional={"--case-sensitive -n --lines -b --boot": TEXT},
        never={
            "--rotate --sync --flush --relinquish-var --smart-relinquish-var --setup-keys --update-catalog": (
                "changes the journal"
            )
        },
        number=True,
        rest=TEXT,
        requires=(PAGER,),
    ),
    "systemctl": Command(
        # cat, show and show-environment may show passwords that units hold.
        flags=f"{UNIT_FLAGS} --version -h --help",
        values=UNIT_VALUES,
        never=UNIT_NEVER,
        only_with="--version -h --help",
        subcommands=dict.fromkeys(UNIT_LISTS.split(), UNITS),
    ),
    "sysctl": always(STATE, "may set the kernel"),
    "crontab": always(STATE, "shows or changes what runs by the clock"),
    "tput": always(STATE, "sends commands to the terminal"),
    "getent": Command(effect={NETWORK: "may ask the network", NAMES: "shows accounts"}, plain=True, rest=TEXT),
}
