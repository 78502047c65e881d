"""Programs that look for text and for files."""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import NAMES, PROGRAM, READ, TEXT, Command, Unless

SOURCES = {
    "gzip 1.12": "zgrep zegrep zfgrep",
    "GNU grep 3.11": "grep egrep fgrep rgrep",
    "GNU findutils 4.9": "find",
    "ripgrep 15.2 (and 13.0), rg --help": "rg",
    "fd 8.6, fd --help": "fd fdfind",
    "the silver searcher 2.2, ag --help": "ag",
    "ack 3.6, ack --help": "ack",
}

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
RG_CONFIG = Requirement(
    "rg-config", "RIPGREP_CONFIG_PATH is not set, or names a file of the user without --pre", ("--no-config",)
)
ACK_CONFIG = Requirement("ack-config", "no .ackrc or ACK_PAGER names a pager or an --output", ("--noenv",))


COMMANDS: dict[str, Command] = {
    "zgrep zegrep zfgrep": Command(
        flags="-c --count -E -F -h -H -i --ignore-case -l --files-with-matches -n --line-number -o -q -s -v "
        "--invert-match -w -x --help -V --version",
        values={"-e --regexp -A -B -C -m": TEXT},
        operands=(Unless(TEXT, "-e --regexp"),),
        rest=READ,
    ),
    "grep egrep fgrep": GREP,
    "rgrep": GREP._replace(recurses="*"),
    "find": Command(
        plain=True,
        expression="files.find",
        lists_paths=True,
        not_paths_with="-printf -ls -exec -execdir -ok -okdir -L -follow",
        ends_names_with_nul="-print0",
    ),
    "rg": Command(
        flags="-s --case-sensitive --crlf --no-crlf -F --fixed-strings --no-fixed-strings -i --ignore-case -v "
        "--invert-match --no-invert-match -x --line-regexp --mmap --no-mmap -U --multiline --no-multiline "
        "--multiline-dotall --no-multiline-dotall --no-unicode --unicode --null-data -P --pcre2 --no-pcre2 -S "
        "--smart-case --stop-on-nonmatch -a --text --no-text -w --word-regexp --auto-hybrid-regex "
        "--no-auto-hybrid-regex --no-pcre2-unicode --pcre2-unicode --binary --no-binary -L --follow --no-follow "
        "--glob-case-insensitive --no-glob-case-insensitive -. --hidden --no-hidden --ignore-file-case-insensitive "
        "--no-ignore-file-case-insensitive --no-ignore --ignore --no-ignore-dot --ignore-dot --no-ignore-exclude "
        "--ignore-exclude --no-ignore-files --ignore-files --no-ignore-global --ignore-global --no-ignore-parent "
        "--ignore-parent --no-ignore-vcs --ignore-vcs --no-require-git --require-git --one-file-system "
        "--no-one-file-system -u --unrestricted --block-buffered --no-block-buffered -b --byte-offset --no-byte-offset "
        "--column --no-column --heading --no-heading -h --help --include-zero --no-include-zero --line-buffered "
        "--no-line-buffered -n --line-number -N --no-line-number --max-columns-preview --no-max-columns-preview -0 "
        "--null -o --only-matching --passthru --passthrough -p --pretty -q --quiet --trim --no-trim --vimgrep -H "
        "--with-filename -I --no-filename --sort-files --no-sort-files -c --count --count-matches -l "
        "--files-with-matches --files-without-match --json --no-json --debug --trace --no-ignore-messages "
        "--ignore-messages --no-messages --messages --stats --no-stats --files --no-config --pcre2-version --type-list "
        "-V --version --no-context-separator --no-encoding --no-pre --no-search-zip",
        values={
            "-e --regexp -A --after-context -B --before-context -C --context -E --encoding -g --glob --iglob -m "
            "--max-count -d --max-depth --maxdepth --max-filesize -j --threads -t --type -T --type-not --type-add "
            "--type-clear --color --colors --context-separator --field-context-separator --field-match-separator -M "
            "--max-columns --path-separator -r --replace --sort --sortr --dfa-size-limit --regex-size-limit --pre-glob "
            "--generate": TEXT,
            "-f --file --ignore-file": READ,
            "--pre --hostname-bin": PROGRAM,
        },
        attached={"--engine": TEXT},  # rg 13 lets an option follow it
        never={
            "-z --search-zip": "starts unpackers",
            "--hyperlink-format": "may start the program for the host's name",
        },
        recurses="*",
        follows="-L --follow",
        # What begins with a dot is read with -g too, and where an ignore file of the project says so.
        operands=(Unless(TEXT, "-e --regexp -f --file --files --type-list"),),
        rest=READ,
        default=".",
        requires=(RG_CONFIG,),
    ),
    "fd fdfind": Command(
        flags="-H --hidden --no-hidden -I --no-ignore --no-ignore-vcs --no-ignore-parent --no-require-git "
        "--no-global-ignore-file -u --unrestricted -s --case-sensitive -i --ignore-case -g --glob --regex -F "
        "--fixed-strings -a --absolute-path -p --full-path -0 --print0 --prune -1 -q --quiet --show-errors "
        "--strip-cwd-prefix --one-file-system -h --help -V --version -x --exec -X --exec-batch",
        values={
            "--and -d --max-depth --min-depth --exact-depth -E --exclude -t --type -e --extension -S --size "
            "--changed-within --changed-before --newer --older -o --owner -c --color -j --threads --max-results "
            "--path-separator": TEXT,
            "--ignore-file --search-path --base-directory": READ,
        },
        runs_rest="-x --exec -X --exec-batch",
        never={"-l --list-details": "starts ls", "-L --follow": "lists what links lead to, which may be anywhere"},
        operands=(TEXT,),
        rest=READ,
        default=".",
        lists_paths=True,
        ends_names_with_nul="-0 --print0",
    ),
    "ag": Command(
        # Values of -A, -B and -C may be left out there: only the attached form is sure.
        flags="--ackmate --break --nobreak -c --count --color --nocolor --column --filename --nofilename -H --heading "
        "--noheading --group --nogroup -l --files-with-matches -L --files-without-matches --print-all-files --numbers "
        "--nonumbers -o --only-matching --print-long-lines --passthrough --silent --stats --stats-only --vimgrep -0 "
        "--null --print0 -a --all-types -D --debug -F --fixed-strings --hidden -i --ignore-case -f --follow "
        "--one-device -Q --literal -s --case-sensitive -S --smart-case --search-binary -t --all-text -u --unrestricted "
        "-U --skip-vcs-ignores -v --invert-match -w --word-regexp --nopager --version --help --list-file-types --py "
        "--python --js --ts --go --rust --java --ruby --cpp --cc --html --css --json --yaml --markdown --shell",
        values={"--depth -G --file-search-regex --ignore --ignore-dir -m --max-count -W --width": TEXT},
        attached={"-A --after -B --before -C --context": TEXT},
        never={
            "--pager": "starts a program",
            "-p --path-to-ignore": "reads another list",
            "-z --search-zip": "unpacks",
        },
        recurses="*",
        follows="-f --follow",
        hidden_with="--hidden -u --unrestricted",
        operands=(TEXT,),
        rest=READ,
        default=".",
    ),
    "ack": Command(
        # Not --output, which is evaluated, and not -x or --files-from, which read lists of files.
        flags="-f -l --files-with-matches -L --files-without-matches -c --count -i --ignore-case -S --smart-case "
        "--nosmart-case -I --no-ignore-case -v --invert-match -w --word-regexp -Q --literal -o --passthru -1 -H "
        "--with-filename -h --no-filename --column --nocolumn --print0 -s --nopager --heading --noheading --break "
        "--nobreak --group --nogroup -P --underline --nounderline --color --nocolor --colour --nocolour --flush "
        "--sort-files --show-types -r -R --recurse -n --no-recurse -k --known-types --help-types --version --noenv "
        "--python --js --perl --ruby --html --css --json --yaml --markdown --shell --cpp --cc --java --go --rust",
        values={"-A -B -m -t -T": TEXT, "--ackrc --files-from": NAMES},
        attached={
            "--match --range-start --range-end --after-context --before-context --max-count --type --ignore-dir "
            "--ignore-directory --noignore-dir -C --context -p --proximate --color-filename --color-match "
            "--color-colno --color-lineno": TEXT
        },
        never={"--pager": "starts a program", "--output": "is evaluated", "-x": "reads files named in its input"},
        recurses="*",
        operands=(Unless(TEXT, "-f --match"),),
        rest=READ,
        default=".",
        requires=(ACK_CONFIG,),
    ),
}
