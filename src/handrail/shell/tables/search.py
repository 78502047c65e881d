"""Programs that look for text and for files."""

from handrail.shell.tables.format import READ, TEXT, Command, Unless

SOURCES = {"gzip 1.12": "zgrep zegrep zfgrep", "GNU grep 3.11": "grep egrep fgrep", "GNU findutils 4.9": "find"}

GREP = Command(
    flags="-E --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp -i --ignore-case "
    "--no-ignore-case -y -v --invert-match -w --word-regexp -x --line-regexp -c --count -L --files-without-match -l "
    "--files-with-matches -o --only-matching -q --quiet --silent -s --no-messages -b --byte-offset -H --with-filename "
    "-h --no-filename -n --line-number -T --initial-tab -Z --null -a --text -I -r --recursive -R "
    "--dereference-recursive --line-buffered -U --binary -z --null-data --no-group-separator --help -V --version",
    values={
        "-e --regexp -m --max-count --label -A --after-context -B --before-context -C --binary-files "
        "-D --devices -d --directories --exclude --exclude-dir --include --group-separator": TEXT,
        "-f --file --exclude-from": READ,
    },
    # On BSD a bare --context takes no value.
    attached={"--context": TEXT},
    optional={"--color --colour": TEXT},
    number=True,
    operands=(Unless(TEXT, "-e --regexp -f --file"),),
    rest=READ,
    default=".",
    harmless_options=True,
    recurses="-r --recursive -R --dereference-recursive -d --directories",
    follows="-R --dereference-recursive",
    passes_with="-E --extended-regexp -F --fixed-strings -P --perl-regexp -i --ignore-case -v --invert-match -w "
    "--word-regexp -x --line-regexp -e --regexp -m --max-count",
)

# Shell scripts around gzip and grep.
ZGREP = Command(
    flags="-c --count -E -F -h -H -i --ignore-case -l --files-with-matches -n --line-number -o -q -s -v --invert-match "
    "-w -x --help -V --version",
    values={"-e --regexp -A -B -C -m": TEXT},
    operands=(Unless(TEXT, "-e --regexp"),),
    rest=READ,
)

COMMANDS: dict[str, Command] = {
    **dict.fromkeys("zgrep zegrep zfgrep".split(), ZGREP),
    **dict.fromkeys("grep egrep fgrep".split(), GREP),
    "find": Command(
        plain=True,
        expression="files.find",
        lists_paths=True,
        not_paths_with="-printf -ls -exec -execdir -ok -okdir -L -follow",
        ends_names_with_nul="-print0",
    ),
}
