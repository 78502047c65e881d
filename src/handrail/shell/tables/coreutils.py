"""
Programs of the GNU coreutils that print files, names and text; the manual page of each, `--help` of 9.1.

BSD and macOS have programs of the same names: what they add that writes (`base64 -o`) keeps an entry from
being `harmless_options`.
"""

from handrail.shell.tables.format import LOOK, NAMES, PROGRAM, READ, SECRET, TEXT, WRITE, Command, Grammar

COREUTILS = "GNU coreutils 9.1"
HELP = "--help --version"

LS = Command(
    source=f"{COREUTILS}, ls(1)",
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
)

SUM_FLAGS = f"-b --binary -t --text --tag -z --zero {HELP}"
CHECKS = {"-c --check": "reads the files named in its operands"}
SUM = Command(
    # What --check reads is named in a file.
    source=f"{COREUTILS}, md5sum(1), sha1sum(1), sha2 utilities",
    flags=SUM_FLAGS,
    never=CHECKS,
    rest=READ,
    harmless_options=True,
)
SUMS = "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum".split()

BASE64 = Command(
    # BSD: -o writes a file, -i takes one to read, -D decodes.
    source=f"{COREUTILS}, base64(1); macOS 14, base64(1)",
    flags=f"-d --decode -D -i --ignore-garbage {HELP}",
    values={"-w --wrap": TEXT, "-o --output": WRITE},
    rest=READ,
)

COMMANDS: dict[str, Command] = {
    "true": Command(source="bash 5.2, true", plain=True, rest=TEXT),
    "false": Command(source="bash 5.2, false", plain=True, rest=TEXT),
    ":": Command(source="bash 5.2, :", plain=True, rest=TEXT),
    "echo": Command(source="bash 5.2, echo: anything it does not know is printed", plain=True, rest=TEXT),
    # -v sets a variable, and its value may hold a subscript that is evaluated.
    "printf": Command(source="bash 5.2, printf", values={"-v": NAMES}, options_first=True, rest=TEXT),
    "pwd": Command(source="bash 5.2, pwd", flags="-L -P"),
    "ls": LS,
    "dir": LS,
    "vdir": LS,
    "cat": Command(
        source=f"{COREUTILS}, cat(1)",
        flags="-A --show-all -b --number-nonblank -e -E --show-ends -n --number -s --squeeze-blank -t -T --show-tabs "
        f"-u -v --show-nonprinting {HELP}",
        rest=READ,
        harmless_options=True,
    ),
    "tac": Command(
        source=f"{COREUTILS}, tac(1)",
        flags=f"-b --before -r --regex {HELP}",
        values={"-s --separator": TEXT},
        rest=READ,
        harmless_options=True,
    ),
    "nl": Command(
        source=f"{COREUTILS}, nl(1)",
        flags=f"-p --no-renumber {HELP}",
        values={
            "-b --body-numbering -d --section-delimiter -f --footer-numbering -h --header-numbering -i "
            "--line-increment -l --join-blank-lines -n --number-format -s --number-separator -v "
            "--starting-line-number -w --number-width": TEXT
        },
        rest=READ,
        harmless_options=True,
    ),
    "head": Command(
        source=f"{COREUTILS}, head(1)",
        flags=f"-q --quiet --silent -v --verbose -z --zero-terminated {HELP}",
        values={"-c --bytes -n --lines": TEXT},
        number=True,
        rest=READ,
        harmless_options=True,
        passes_with="-NUM -n --lines",
    ),
    "tail": Command(
        source=f"{COREUTILS}, tail(1)",
        flags=f"-f -F -q --quiet --silent -v --verbose -z --zero-terminated --retry {HELP}",
        values={"-c --bytes -n --lines --max-unchanged-stats --pid -s --sleep-interval": TEXT},
        optional={"--follow": TEXT},
        number=True,
        rest=READ,
        harmless_options=True,
        passes_with="-NUM -n --lines",
    ),
    "wc": Command(
        source=f"{COREUTILS}, wc(1)",
        flags=f"-c --bytes -m --chars -l --lines -L --max-line-length -w --words {HELP}",
        values={"--files0-from": NAMES},
        attached={"--total": TEXT},
        rest=LOOK,
        harmless_options=True,
    ),
    "sort": Command(
        source=f"{COREUTILS}, sort(1)",
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
        source=f"{COREUTILS}, uniq(1)",
        flags=f"-c --count -d --repeated -D -i --ignore-case -u --unique -z --zero-terminated {HELP}",
        values={"-f --skip-fields -s --skip-chars -w --check-chars": TEXT},
        optional={"--all-repeated --group": TEXT},
        number=True,
        operands=(READ, WRITE),
    ),
    "cut": Command(
        source=f"{COREUTILS}, cut(1)",
        flags=f"-n --complement -s --only-delimited -z --zero-terminated {HELP}",
        values={"-b --bytes -c --characters -d --delimiter -f --fields --output-delimiter": TEXT},
        rest=READ,
        harmless_options=True,
    ),
    "tr": Command(
        source=f"{COREUTILS}, tr(1)",
        flags=f"-c -C --complement -d --delete -s --squeeze-repeats -t --truncate-set1 {HELP}",
        operands=(TEXT, TEXT),
        harmless_options=True,
    ),
    "paste": Command(
        source=f"{COREUTILS}, paste(1)",
        flags=f"-s --serial -z --zero-terminated {HELP}",
        values={"-d --delimiters": TEXT},
        rest=READ,
        harmless_options=True,
    ),
    "join": Command(
        source=f"{COREUTILS}, join(1)",
        flags=f"-i --ignore-case -z --zero-terminated --check-order --nocheck-order --header {HELP}",
        values={"-1 -2 -a -e -j -o -t -v": TEXT},
        rest=READ,
        harmless_options=True,
    ),
    "comm": Command(
        source=f"{COREUTILS}, comm(1)",
        flags=f"-1 -2 -3 -z --zero-terminated --check-order --nocheck-order --total {HELP}",
        values={"--output-delimiter": TEXT},
        rest=READ,
        harmless_options=True,
    ),
    "fold": Command(
        source=f"{COREUTILS}, fold(1)",
        flags=f"-b --bytes -s --spaces {HELP}",
        values={"-w --width": TEXT},
        number=True,
        rest=READ,
        harmless_options=True,
    ),
    "fmt": Command(
        source=f"{COREUTILS}, fmt(1)",
        flags=f"-c --crown-margin -s --split-only -t --tagged-paragraph -u --uniform-spacing {HELP}",
        values={"-p --prefix -w --width -g --goal": TEXT},
        number=True,
        rest=READ,
        harmless_options=True,
    ),
    "expand": Command(
        source=f"{COREUTILS}, expand(1)",
        flags=f"-i --initial {HELP}",
        values={"-t --tabs": TEXT},
        number=True,
        rest=READ,
        harmless_options=True,
    ),
    "unexpand": Command(
        source=f"{COREUTILS}, unexpand(1)",
        flags=f"-a --all --first-only {HELP}",
        values={"-t --tabs": TEXT},
        number=True,
        rest=READ,
        harmless_options=True,
    ),
    "pr": Command(
        source=f"{COREUTILS}, pr(1)",
        flags="-a --across -c --show-control-chars -d --double-space -F -f --form-feed -J --join-lines -m --merge -r "
        f"--no-file-warnings -t --omit-header -T --omit-pagination -v --show-nonprinting {HELP}",
        values={
            "--columns -D --date-format -h --header -l --length -N --first-line-number -o --indent --pages -w "
            "--width -W --page-width": TEXT
        },
        optional={
            "-e --expand-tabs -i --output-tabs -n --number-lines -s --separator -S --sep-string": TEXT,
        },
        number=True,
        rest=READ,
        harmless_options=True,
    ),
    "ptx": Command(
        # The second operand is the output with -G, and on other systems always.
        source=f"{COREUTILS}, ptx(1)",
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
        source=f"{COREUTILS}, shuf(1)",
        flags=f"-e --echo -r --repeat -z --zero-terminated {HELP}",
        values={"-i --input-range -n --head-count": TEXT, "-o --output": WRITE, "--random-source": READ},
        rest=READ,
    ),
    "tsort": Command(source=f"{COREUTILS}, tsort(1)", flags=HELP, rest=READ, harmless_options=True),
    "od": Command(
        source=f"{COREUTILS}, od(1)",
        flags=f"-a -b -c -d -f -i -l -o -s -x -v --output-duplicates --traditional {HELP}",
        values={"-A --address-radix -j --skip-bytes -N --read-bytes -t --format -S": TEXT},
        attached={"--endian": TEXT},
        optional={"-w --width --strings": TEXT},
        rest=READ,
        harmless_options=True,
    ),
    "base64": BASE64,
    "base32": BASE64,
    "basenc": BASE64._replace(
        source=f"{COREUTILS}, basenc(1)",
        flags="--base64 --base64url --base32 --base32hex --base16 --base2msbf --base2lsbf --z85 -d --decode -i "
        f"--ignore-garbage {HELP}",
    ),
    **dict.fromkeys(SUMS, SUM),
    "b2sum": SUM._replace(source=f"{COREUTILS}, b2sum(1)", values={"-l --length": TEXT}),
    "cksum": SUM._replace(
        source=f"{COREUTILS}, cksum(1)",
        flags=f"--tag --untagged --debug -z --zero {HELP}",
        values={"-a --algorithm -l --length": TEXT},
    ),
    "sum": Command(source=f"{COREUTILS}, sum(1)", flags=f"-r -s --sysv {HELP}", rest=READ, harmless_options=True),
    "shasum": Command(
        source="Perl Digest::SHA 6.02, shasum(1)",
        flags="-b --binary -t --text -0 --01 -U --UNIVERSAL -h --help -v --version",
        values={"-a --algorithm": TEXT},
        never=CHECKS,
        rest=READ,
    ),
    "stat": Command(
        source=f"{COREUTILS}, stat(1)",
        flags=f"-L --dereference -f --file-system -t --terse {HELP}",
        values={"-c --format": TEXT},
        attached={"--printf --cached": TEXT},
        rest=LOOK,
        harmless_options=True,
    ),
    "du": Command(
        source=f"{COREUTILS}, du(1)",
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
        source=f"{COREUTILS}, df(1)",
        flags="-a --all -h --human-readable -H --si -i --inodes -k -l --local --no-sync -P --portability --total -T "
        f"--print-type -v {HELP}",
        values={"-B --block-size -t --type -x --exclude-type": TEXT},
        optional={"--output": TEXT},
        never={"--sync": "writes out what the system holds back"},
        rest=LOOK,
    ),
    "basename": Command(
        source=f"{COREUTILS}, basename(1)",
        flags=f"-a --multiple -z --zero {HELP}",
        values={"-s --suffix": TEXT},
        rest=TEXT,
        harmless_options=True,
    ),
    "dirname": Command(source=f"{COREUTILS}, dirname(1)", flags=f"-z --zero {HELP}", rest=TEXT, harmless_options=True),
    "realpath": Command(
        source=f"{COREUTILS}, realpath(1)",
        flags="-e --canonicalize-existing -m --canonicalize-missing -L --logical -P --physical -q --quiet -s --strip "
        f"--no-symlinks -z --zero {HELP}",
        values={"--relative-to --relative-base": LOOK},
        rest=LOOK,
        harmless_options=True,
    ),
    "readlink": Command(
        source=f"{COREUTILS}, readlink(1)",
        flags="-f --canonicalize -e --canonicalize-existing -m --canonicalize-missing -n --no-newline -q --quiet -s "
        f"--silent -v --verbose -z --zero {HELP}",
        rest=LOOK,
        harmless_options=True,
    ),
    "printenv": Command(
        source=f"{COREUTILS}, printenv(1)",
        flags=f"-0 --null {HELP}",
        rest=Grammar("builtins.variables"),
        alone={SECRET: "shows all variables of the environment"},
    ),
}
