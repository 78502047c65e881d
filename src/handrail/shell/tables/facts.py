"""Programs that print a fact about time, the user, the machine or a number."""

from handrail.shell.tables.coreutils import HELP, prints
from handrail.shell.tables.format import LOOK, NAMES, READ, STATE, TEXT, Command, Grammar

SOURCES = {
    "hostname 3.23": "hostname",
    "procps-ng 4.0": "w uptime",
    "util-linux 2.38, and BSD for cal": "last cal",
    "BSD": "ncal",
    "lsb-release 12.0": "lsb_release",
    "macOS 14": "sw_vers",
    "GNU libc 2.36": "locale getconf",
    "GNU bc 1.07": "bc",
    "GNU coreutils 9.1": "*",
}

COMMANDS: dict[str, Command] = {
    "date": Command(
        # An operand without `+` sets the clock, as do -s and, on BSD, -f with an operand and -t.
        flags=f"-u --utc --universal -R --rfc-email --debug --resolution {HELP}",
        values={"-d --date": TEXT, "-f --file": READ, "-r --reference": LOOK, "-s --set": STATE},
        attached={"--rfc-3339": TEXT},
        optional={"-I --iso-8601": TEXT},
        operands=(Grammar("system.date_format"),),
    ),
    "hostname": Command(
        # An operand sets the name.
        flags="-a --alias -A --all-fqdns -d --domain -f --fqdn --long -i --ip-address -I --all-ip-addresses -s --short "
        "-y --yp --nis -V --version -h --help",
        never={"-b --boot -F --file": "sets the host name"},
    ),
    "id": prints("-a -Z --context -g --group -G --groups -n --name -r --real -u --user -z --zero -p -P -F", rest=TEXT),
    "groups": prints("", rest=TEXT),
    "whoami logname hostid": Command(flags=HELP),
    "users": Command(flags=HELP, rest=READ),
    "who": Command(
        # `who am i` takes two words that are no files.
        flags="-a --all -b --boot -d --dead -H --heading --ips -l --login -m -p --process -q --count -r --runlevel -s "
        f"--short -t --time -T -w --mesg -u --users --message --writable {HELP}",
        never={"--lookup": "asks the network for host names"},
        rest=READ,
    ),
    "w": Command(
        flags="-h --no-header -u --no-current -s --short -f --from -o --old-style -i --ip-addr --help -V --version",
        operands=(TEXT,),
    ),
    "last": Command(
        flags="-a --hostlast -F --fulltimes -i --ip -R --nohostname -w --fullnames -x --system -h --help -V --version",
        values={"-f --file": READ, "-n --limit -s --since -t --until -p --present --time-format": TEXT},
        never={"-d --dns": "asks the network for host names"},
        number=True,
        rest=TEXT,
    ),
    "uname": Command(
        flags="-a --all -s --kernel-name -n --nodename -r --kernel-release -v --kernel-version -m --machine -p "
        f"--processor -i --hardware-platform -o --operating-system {HELP}"
    ),
    # On macOS an operand is a program to run.
    "arch": Command(flags=HELP),
    "nproc": Command(flags=f"--all {HELP}", values={"--ignore": TEXT}),
    "lsb_release": Command(
        flags="-h --help -v --version -i --id -d --description -r --release -c --codename -a --all -s --short"
    ),
    "sw_vers": Command(flags="--productName --productVersion --buildVersion --productVersionExtra"),
    "uptime": Command(flags="-p --pretty -h --help -s --since -V --version"),
    "tty": Command(flags=f"-s --silent --quiet {HELP}"),
    "locale": Command(
        flags="-a --all-locales -m --charmaps -c --category-name -k --keyword-name -v --verbose -? --help --usage "
        "-V --version",
        rest=TEXT,
    ),
    # -v starts the program of that name in getconf's own folder.
    "getconf": Command(flags="-a", values={"-v": NAMES}, operands=(TEXT, LOOK), options_first=True),
    "cal": Command(
        flags="-1 -3 -y -Y -j -m -s -w --one --three --year --twelve --julian --monday --sunday --iso --reform --week "
        "-b -h -e -o -C -J -M -S -N -p -V --version --help",
        values={"-n --months -A -B -d -H": TEXT},
        rest=TEXT,
    ),
    "ncal": Command(
        flags="-1 -3 -y -j -w -b -h -e -o -C -J -M -S -N -p", values={"-A -B -d -H -m -W -s": TEXT}, rest=TEXT
    ),
    "seq": prints("-w --equal-width", "-f --format -s --separator", number=True, rest=TEXT),
    "yes": prints("", rest=TEXT),
    "factor": Command(flags=f"-h --exponents {HELP}", rest=TEXT),
    "numfmt": prints(
        "--debug --grouping -z --zero-terminated",
        "-d --delimiter --field --format --from --from-unit --invalid --padding --round --suffix --to --to-unit",
        optional="--header",
        rest=TEXT,
    ),
    "expr": Command(plain=True, rest=TEXT),
    "sleep": Command(flags=HELP, rest=TEXT),
    "bc": Command(
        # GNU bc and that of macOS can only compute and print; programs in files are left to be asked for.
        flags="-l --mathlib -q --quiet -s --standard -w --warn -h --help -v --version"
    ),
}
