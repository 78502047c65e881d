"""
Programs of the GNU coreutils that print files, names and text; the manual page of each, `--help` of 9.1.

BSD and macOS have programs of the same names: what they add that writes (`base64 -o`) keeps an entry from
being `harmless_options`.
"""

from handrail.shell.tables.format import LOOK, NAMES, PROGRAM, READ, SECRET, TEXT, WRITE, Command, Grammar, Role

SOURCES = {
    "bash 5.2": "true false : echo printf pwd",
    "Perl Digest::SHA 6.02": "shasum",
    "GNU coreutils 9.1, and macOS 14 for base64": "*",
}

HELP = "--help --version"


def prints(
    flags: str = "",
    values: str = "",
    *,
    attached: str = "",
    optional: str = "",
    number: bool = False,
    rest: Role = READ,
) -> Command:
    """A program that prints what its operands hold; none of its options does more than change how it looks."""
    return Command(
        flags=f"{flags} {HELP}",
        values={values: TEXT},
        attached={attached: TEXT},
        optional={optional: TEXT},
        number=number,
        rest=rest,
        harmless_options=True,
    )


CHECKS = {"-c --check": "reads the files named in its operands"}
# What --check reads is named in a file.
SUM = prints("-b --binary -t --text --tag -z --zero")._replace(never=CHECKS)

BASE64 = Command(
    # BSD: -o writes a file, -i takes one to read, -D decodes.
    flags=f"-d --decode -D -i --ignore-garbage {HELP}",
    values={"-w --wrap": TEXT, "-o --output": WRITE},
    rest=READ,
)

COMMANDS: dict[str, Command] = {
    # echo prints anything it does not know.
    "true false : echo": Command(plain=True, rest=TEXT),
    # -v sets a variable, and its value may hold a subscript that is evaluated.
    "printf": Command(values={"-v": NAMES}, options_first=True, rest=TEXT),
    "pwd": Command(flags="-L -P"),
    "ls dir vdir": Command(
        flags="-a --all -A --almost-all --author -b --escape -B --ignore-backups -c -C -d --directory -D --dired -f -F "
        "-g -G --no-group --group-directories-first --file-type -h --human-readable --si -H --dereference-command-line "
        "--dereference-command-line-symlink-to-dir -i --inode -k --kibibytes -l -L --dereference -m -n "
        "--numeric-uid-gid -N --literal -o -p -q --hide-control-chars --show-control-chars -Q --quote-name -r "
        "--reverse -R --recursive -s --size -S -t -u -U -v -x -X -Z --context -1 --zero --full-time --help --version",
        values={
            "--block-size --format --hide --indicator-style -I --ignore --quoting-style --sort --time --time-style "
            "-T --tabsize -w --width": TEXT
        },
        optional={"--color --classify --hyperlink": TEXT},
        rest=LOOK,
        default=".",
        harmless_options=True,
        lists_paths=True,
    ),
    "cat": prints(
        "-A --show-all -b --number-nonblank -e -E --show-ends -n --number -s --squeeze-blank -t -T --show-tabs "
        "-u -v --show-nonprinting"
    ),
    "tac": prints("-b --before -r --regex", "-s --separator"),
    "nl": prints(
        "-p --no-renumber",
        "-b --body-numbering -d --section-delimiter -f --footer-numbering -h --header-numbering -i --line-increment "
        "-l --join-blank-lines -n --number-format -s --number-separator -v --starting-line-number -w --number-width",
    ),
    "head": prints(
        "-q --quiet --silent -v --verbose -z --zero-terminated", "-c --bytes -n --lines", number=True
    )._replace(passes_with="-NUM -n --lines"),
    "tail": prints(
        "-f -F -q --quiet --silent -v --verbose -z --zero-terminated --retry",
        "-c --bytes -n --lines --max-unchanged-stats --pid -s --sleep-interval",
        optional="--follow",
        number=True,
    )._replace(passes_with="-NUM -n --lines"),
    "wc": Command(
        flags=f"-c --bytes -m --chars -l --lines -L --max-line-length -w --words {HELP}",
        values={"--files0-from": NAMES},
        attached={"--total": TEXT},
        rest=LOOK,
        harmless_options=True,
    ),
    "sort": Command(
        flags="-b --ignore-leading-blanks -d --dictionary-order -f --ignore-case -g --general-numeric-sort -i "
        "--ignore-nonprinting -M --month-sort -h --human-numeric-sort -n --numeric-sort -R --random-sort -r --reverse "
        f"-V --version-sort -c -C --debug -m --merge -s --stable -u --unique -z --zero-terminated {HELP}",
        values={
            "--sort --batch-size -k --key -S --buffer-size -t --field-separator --parallel": TEXT,
            "--random-source": READ,
            "--files0-from": NAMES,
            "-o --output -T --temporary-directory": WRITE,
            "--compress-program": PROGRAM,
        },
        optional={"--check": TEXT},
        rest=READ,
    ),
    "uniq": Command(
        flags=f"-c --count -d --repeated -D -i --ignore-case -u --unique -z --zero-terminated {HELP}",
        values={"-f --skip-fields -s --skip-chars -w --check-chars": TEXT},
        optional={"--all-repeated --group": TEXT},
        number=True,
        operands=(READ, WRITE),
    ),
    "cut": prints(
        "-n --complement -s --only-delimited -z --zero-terminated",
        "-b --bytes -c --characters -d --delimiter -f --fields --output-delimiter",
    ),
    "tr": Command(
        flags=f"-c -C --complement -d --delete -s --squeeze-repeats -t --truncate-set1 {HELP}",
        operands=(TEXT, TEXT),
        harmless_options=True,
    ),
    "paste": prints("-s --serial -z --zero-terminated", "-d --delimiters"),
    "join": prints(
        "-i --ignore-case -z --zero-terminated --check-order --nocheck-order --header", "-1 -2 -a -e -j -o -t -v"
    ),
    "comm": prints("-1 -2 -3 -z --zero-terminated --check-order --nocheck-order --total", "--output-delimiter"),
    "fold": prints("-b --bytes -s --spaces", "-w --width", number=True),
    "fmt": prints(
        "-c --crown-margin -s --split-only -t --tagged-paragraph -u --uniform-spacing",
        "-p --prefix -w --width -g --goal",
        number=True,
    ),
    "expand": prints("-i --initial", "-t --tabs", number=True),
    "unexpand": prints("-a --all --first-only", "-t --tabs", number=True),
    "pr": prints(
        "-a --across -c --show-control-chars -d --double-space -F -f --form-feed -J --join-lines -m --merge -r "
        "--no-file-warnings -t --omit-header -T --omit-pagination -v --show-nonprinting",
        "--columns -D --date-format -h --header -l --length -N --first-line-number -o --indent --pages -w "
        "--width -W --page-width",
        optional="-e --expand-tabs -i --output-tabs -n --number-lines -s --separator -S --sep-string",
        number=True,
    ),
    "ptx": Command(
        # The second operand is the output with -G, and on other systems always.
        flags=f"-A --auto-reference -O -R --right-side-refs -T -f --ignore-case -r --references {HELP}",
        values={
            "-F --flag-truncation -M --macro-name -S --sentence-regexp -W --word-regexp --format -g --gap-size "
            "-w --width": TEXT,
            "-b --break-file -i --ignore-file -o --only-file": READ,
        },
        never={"-G --traditional": "makes the second operand the output file"},
        operands=(READ, WRITE),
    ),
    "shuf": Command(
        flags=f"-e --echo -r --repeat -z --zero-terminated {HELP}",
        values={"-i --input-range -n --head-count": TEXT, "-o --output": WRITE, "--random-source": READ},
        rest=READ,
    ),
    "tsort": prints(),
    "od": prints(
        "-a -b -c -d -f -i -l -o -s -x -v --output-duplicates --traditional",
        "-A --address-radix -j --skip-bytes -N --read-bytes -t --format -S",
        attached="--endian",
        optional="-w --width --strings",
    ),
    "base64 base32": BASE64,
    "basenc": BASE64._replace(
        flags="--base64 --base64url --base32 --base32hex --base16 --base2msbf --base2lsbf --z85 -d --decode -i "
        f"--ignore-garbage {HELP}"
    ),
    "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum": SUM,
    "b2sum": SUM._replace(values={"-l --length": TEXT}),
    "cksum": SUM._replace(
        flags=f"--tag --untagged --debug -z --zero {HELP}", values={"-a --algorithm -l --length": TEXT}
    ),
    "sum": prints("-r -s --sysv"),
    "shasum": Command(
        flags="-b --binary -t --text -0 --01 -U --UNIVERSAL -h --help -v --version",
        values={"-a --algorithm": TEXT},
        never=CHECKS,
        rest=READ,
    ),
    "stat": prints(
        "-L --dereference -f --file-system -t --terse", "-c --format", attached="--printf --cached", rest=LOOK
    ),
    "du": Command(
        flags="-0 --null -a --all --apparent-size -b --bytes -c --total -D --dereference-args -H -h --human-readable "
        "--inodes -k -L --dereference -l --count-links -m -P --no-dereference -S --separate-dirs --si -s --summarize "
        f"-x --one-file-system {HELP}",
        values={
            "-B --block-size -d --max-depth -t --threshold --time-style --exclude": TEXT,
            "-X --exclude-from": READ,
            "--files0-from": NAMES,
        },
        optional={"--time": TEXT},
        rest=LOOK,
        default=".",
        harmless_options=True,
    ),
    "df": Command(
        flags="-a --all -h --human-readable -H --si -i --inodes -k -l --local --no-sync -P --portability --total -T "
        f"--print-type -v {HELP}",
        values={"-B --block-size -t --type -x --exclude-type": TEXT},
        optional={"--output": TEXT},
        never={"--sync": "writes out what the system holds back"},
        rest=LOOK,
    ),
    "basename": prints("-a --multiple -z --zero", "-s --suffix", rest=TEXT),
    "dirname": prints("-z --zero", rest=TEXT),
    "realpath": Command(
        flags="-e --canonicalize-existing -m --canonicalize-missing -L --logical -P --physical -q --quiet -s --strip "
        f"--no-symlinks -z --zero {HELP}",
        values={"--relative-to --relative-base": LOOK},
        rest=LOOK,
        harmless_options=True,
    ),
    "readlink": prints(
        "-f --canonicalize -e --canonicalize-existing -m --canonicalize-missing -n --no-newline -q --quiet -s "
        "--silent -v --verbose -z --zero",
        rest=LOOK,
    ),
    "printenv": Command(
        flags=f"-0 --null {HELP}",
        rest=Grammar("builtins.variables"),
        alone={SECRET: "shows all variables of the environment"},
    ),
}
