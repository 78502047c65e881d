"""Programs that compare files (GNU diffutils 3.8)."""

from handrail.shell.tables.format import NAMES, PROGRAM, READ, STATE, TEXT, WRITE, Command

SOURCES = {"GNU diffutils 3.8": "diff cmp diff3 sdiff", "colordiff 1.0.21": "colordiff", "GNU patch 2.7": "patch"}


COMMANDS: dict[str, Command] = {
    # The configuration file of colordiff may name another diff; -u, -c, ... are handed on to it.
    "diff colordiff": Command(
        flags="--normal -q --brief -s --report-identical-files -c -u -e --ed -n --rcs -y --side-by-side --left-column "
        "--suppress-common-lines -p --show-c-function -t --expand-tabs -T --initial-tab --suppress-blank-empty -r "
        "--recursive --no-dereference -N --new-file -P --unidirectional-new-file --ignore-file-name-case "
        "--no-ignore-file-name-case -i --ignore-case -E --ignore-tab-expansion -Z --ignore-trailing-space -b "
        "--ignore-space-change -w --ignore-all-space -B --ignore-blank-lines -a --text --strip-trailing-cr -d "
        "--minimal -H --speed-large-files --help -v --version",
        values={
            "-C -U -W --width -F --show-function-line --label -L --tabsize -x --exclude -S --starting-file -I "
            "--ignore-matching-lines -D --ifdef --line-format --old-line-format --new-line-format "
            "--unchanged-line-format --old-group-format --new-group-format --unchanged-group-format "
            "--changed-group-format --horizon-lines --palette": TEXT,
            "-X --exclude-from --from-file --to-file": READ,
        },
        optional={"--color --context --unified": TEXT},
        never={"-l --paginate": "starts pr"},
        number=True,
        rest=READ,
        recurses="*",  # two folders are compared file by file, without -r those at the top
        follows="*",
    ),
    "cmp": Command(
        flags="-b --print-bytes -l --verbose -s --quiet --silent --help -v --version",
        values={"-i --ignore-initial -n --bytes": TEXT},
        operands=(READ, READ, TEXT, TEXT),
        harmless_options=True,
    ),
    "diff3": Command(
        flags="-A --show-all -e --ed -E --show-overlap -3 --easy-only -x --overlap-only -X -i -m --merge -a --text "
        "--strip-trailing-cr -T --initial-tab --help -v --version",
        values={"-L --label": TEXT, "--diff-program": PROGRAM},
        operands=(READ, READ, READ),
    ),
    "sdiff": Command(
        flags="-i --ignore-case -E --ignore-tab-expansion -Z --ignore-trailing-space -b --ignore-space-change -W "
        "--ignore-all-space -B --ignore-blank-lines --strip-trailing-cr -a --text -l --left-column -s "
        "--suppress-common-lines -t --expand-tabs -d --minimal -H --speed-large-files --help -v --version",
        values={
            "-I --ignore-matching-lines -w --width --tabsize": TEXT,
            "-o --output": WRITE,
            "--diff-program": PROGRAM,
        },
        operands=(READ, READ),
    ),
    "patch": Command(
        effect={NAMES: "changes the files a patch names", STATE: "an ed script in a patch is run"},
        plain=True,
        rest=TEXT,
    ),
}
