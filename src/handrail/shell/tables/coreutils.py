"""Small programs that print files, names and text (GNU coreutils 9.4; the manual pages of each)."""

from handrail.shell.tables.format import LOOK, NAMES, READ, TEXT, Command

COREUTILS = "GNU coreutils 9.4"

COMMANDS: dict[str, Command] = {
    "true": Command(source="bash 5.2, true", plain=True, rest=TEXT),
    "false": Command(source="bash 5.2, false", plain=True, rest=TEXT),
    ":": Command(source="bash 5.2, :", plain=True, rest=TEXT),
    "echo": Command(source="bash 5.2, echo: anything it does not know is printed", plain=True, rest=TEXT),
    # -v sets a variable, and its value may hold a subscript that is evaluated.
    "printf": Command(source="bash 5.2, printf", values={"-v": NAMES}, options_first=True, rest=TEXT),
    "pwd": Command(source="bash 5.2, pwd", flags="-L -P"),
    "cat": Command(
        source=f"{COREUTILS}, cat(1)",
        flags="-A --show-all -b --number-nonblank -e -E --show-ends -n --number -s --squeeze-blank -t -T --show-tabs "
        "-u -v --show-nonprinting --help --version",
        rest=READ,
        harmless_options=True,
    ),
    "head": Command(
        source=f"{COREUTILS}, head(1)",
        flags="-q --quiet --silent -v --verbose -z --zero-terminated --help --version",
        values={"-c --bytes -n --lines": TEXT},
        number=True,
        rest=READ,
        harmless_options=True,
        passes_with="-NUM -n --lines",
    ),
    "tail": Command(
        source=f"{COREUTILS}, tail(1)",
        flags="-f -F -q --quiet --silent -v --verbose -z --zero-terminated --retry --help --version",
        values={"-c --bytes -n --lines --max-unchanged-stats --pid -s --sleep-interval": TEXT},
        optional={"--follow": TEXT},
        number=True,
        rest=READ,
        harmless_options=True,
        passes_with="-NUM -n --lines",
    ),
    "wc": Command(
        source=f"{COREUTILS}, wc(1)",
        flags="-c --bytes -m --chars -l --lines -L --max-line-length -w --words --help --version",
        values={"--files0-from": NAMES, "--total": TEXT},
        rest=LOOK,
        harmless_options=True,
    ),
    "ls": Command(
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
    ),
}
