"""Programs that tell a fact about time, the user, the machine or a number; they read no file that is named to them."""

from handrail.shell.tables.coreutils import COREUTILS, HELP
from handrail.shell.tables.format import LOOK, NAMES, READ, STATE, TEXT, Command, Grammar

COMMANDS: dict[str, Command] = {
    "date": Command(
        # An operand without `+` sets the clock, as do -s and, on BSD, -f with an operand and -t.
        source=f"{COREUTILS}, date(1)",
        flags=f"-u --utc --universal -R --rfc-email --debug --resolution {HELP}",
        values={"-d --date": TEXT, "-f --file": READ, "-r --reference": LOOK, "-s --set": STATE},
        attached={"--rfc-3339": TEXT},
        optional={"-I --iso-8601": TEXT},
        operands=(Grammar("system.date_format"),),
    ),
    "hostname": Command(
        # An operand sets the name.
        source="hostname 3.23, hostname(1)",
        flags="-a --alias -A --all-fqdns -d --domain -f --fqdn --long -i --ip-address -I --all-ip-addresses -s --short "
        "-y --yp --nis -V --version -h --help",
        never={"-b --boot -F --file": "sets the host name"},
    ),
    "id": Command(
        source=f"{COREUTILS}, id(1)",
        flags=f"-a -Z --context -g --group -G --groups -n --name -r --real -u --user -z --zero -p -P -F {HELP}",
        rest=TEXT,
        harmless_options=True,
    ),
    "groups": Command(source=f"{COREUTILS}, groups(1)", flags=HELP, rest=TEXT, harmless_options=True),
    "whoami": Command(source=f"{COREUTILS}, whoami(1)", flags=HELP),
    "logname": Command(source=f"{COREUTILS}, logname(1)", flags=HELP),
    "users": Command(source=f"{COREUTILS}, users(1)", flags=HELP, rest=READ),
    "who": Command(
        # `who am i` takes two words that are no files.
        source=f"{COREUTILS}, who(1)",
        flags="-a --all -b --boot -d --dead -H --heading --ips -l --login -m -p --process -q --count -r --runlevel -s "
        f"--short -t --time -T -w --mesg -u --users --message --writable {HELP}",
        never={"--lookup": "asks the network for host names"},
        rest=READ,
    ),
    "w": Command(
        source="procps-ng 4.0, w(1)",
        flags="-h --no-header -u --no-current -s --short -f --from -o --old-style -i --ip-addr --help -V --version",
        operands=(TEXT,),
    ),
    "last": Command(
        source="util-linux 2.38, last(1)",
        flags="-a --hostlast -F --fulltimes -i --ip -R --nohostname -w --fullnames -x --system -h --help -V --version",
        values={"-f --file": READ, "-n --limit -s --since -t --until -p --present --time-format": TEXT},
        never={"-d --dns": "asks the network for host names"},
        number=True,
        rest=TEXT,
    ),
    "uname": Command(
        source=f"{COREUTILS}, uname(1)",
        flags="-a --all -s --kernel-name -n --nodename -r --kernel-release -v --kernel-version -m --machine -p "
        f"--processor -i --hardware-platform -o --operating-system {HELP}",
    ),
    "arch": Command(source=f"{COREUTILS}, arch(1); on macOS an operand is a program to run", flags=HELP),
    "nproc": Command(source=f"{COREUTILS}, nproc(1)", flags=f"--all {HELP}", values={"--ignore": TEXT}),
    "hostid": Command(source=f"{COREUTILS}, hostid(1)", flags=HELP),
    "lsb_release": Command(
        source="lsb-release 12.0, lsb_release(1)",
        flags="-h --help -v --version -i --id -d --description -r --release -c --codename -a --all -s --short",
    ),
    "sw_vers": Command(
        source="macOS 14, sw_vers(1)", flags="--productName --productVersion --buildVersion --productVersionExtra"
    ),
    "uptime": Command(source="procps-ng 4.0, uptime(1)", flags="-p --pretty -h --help -s --since -V --version"),
    "tty": Command(source=f"{COREUTILS}, tty(1)", flags=f"-s --silent --quiet {HELP}"),
    "locale": Command(
        source="GNU libc 2.36, locale(1)",
        flags="-a --all-locales -m --charmaps -c --category-name -k --keyword-name -v --verbose -? --help --usage "
        "-V --version",
        rest=TEXT,
    ),
    # -v starts the program of that name in getconf's own folder.
    "getconf": Command(
        source="GNU libc 2.36, getconf(1)", flags="-a", values={"-v": NAMES}, operands=(TEXT, LOOK), options_first=True
    ),
    "cal": Command(
        source="util-linux 2.38, cal(1); BSD ncal(1)",
        flags="-1 -3 -y -Y -j -m -s -w --one --three --year --twelve --julian --monday --sunday --iso --reform --week "
        "-b -h -e -o -C -J -M -S -N -p -V --version --help",
        values={"-n --months -A -B -d -H": TEXT},
        rest=TEXT,
    ),
    "ncal": Command(
        source="BSD ncal(1)",
        flags="-1 -3 -y -j -w -b -h -e -o -C -J -M -S -N -p",
        values={"-A -B -d -H -m -W -s": TEXT},
        rest=TEXT,
    ),
    "seq": Command(
        source=f"{COREUTILS}, seq(1)",
        flags=f"-w --equal-width {HELP}",
        values={"-f --format -s --separator": TEXT},
        number=True,
        rest=TEXT,
        harmless_options=True,
    ),
    "yes": Command(source=f"{COREUTILS}, yes(1)", flags=HELP, rest=TEXT, harmless_options=True),
    "factor": Command(source=f"{COREUTILS}, factor(1)", flags=f"-h --exponents {HELP}", rest=TEXT),
    "numfmt": Command(
        source=f"{COREUTILS}, numfmt(1)",
        flags=f"--debug --grouping -z --zero-terminated {HELP}",
        values={
            "-d --delimiter --field --format --from --from-unit --invalid --padding --round --suffix --to "
            "--to-unit": TEXT
        },
        optional={"--header": TEXT},
        rest=TEXT,
        harmless_options=True,
    ),
    "expr": Command(source=f"{COREUTILS}, expr(1)", plain=True, rest=TEXT),
    "sleep": Command(source=f"{COREUTILS}, sleep(1)", flags=HELP, rest=TEXT),
    "bc": Command(
        # GNU bc and that of macOS can only compute and print; programs in files are left to be asked for.
        source="GNU bc 1.07, bc(1)",
        flags="-l --mathlib -q --quiet -s --standard -w --warn -h --help -v --version",
    ),
}
