"""Sub-commands of git that show files of the working tree, the index and the object store."""

from handrail.shell.tables.format import LOOK, READ, REMOVE, STATE, TEXT, Command, Unless
from handrail.shell.tables.git.preconditions import ENTERED, FILTERS, FSMONITOR, OF_FILES, TEXTCONV_ALWAYS

SUBCOMMANDS: dict[str, Command] = {
    "status": Command(
        # -v -v shows a diff, with the configured conversion programs.
        flags="-s --short -b --branch --show-stash --no-show-stash --long -v --verbose -z --null --ahead-behind "
        "--no-ahead-behind --renames --no-renames --no-column --no-branch",
        optional={"--porcelain -u --untracked-files --ignored --ignore-submodules --column -M --find-renames": TEXT},
        expression="git.pathspec",
        requires=(*OF_FILES, TEXTCONV_ALWAYS),
    ),
    "ls-files": Command(
        flags="-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage --directory "
        "--no-empty-directory --empty-directory -u --unmerged -k --killed --resolve-undo -z --deduplicate "
        "--exclude-standard --error-unmatch --full-name --recurse-submodules --eol --sparse -t -v -f --debug",
        values={"-x --exclude --with-tree --format": TEXT, "-X --exclude-from --exclude-per-directory": READ},
        optional={"--abbrev": TEXT},
        rest=READ,
        default=".",
        lists_paths=True,
        ends_names_with_nul="-z",
        requires=(FSMONITOR, FILTERS, ENTERED),
    ),
    "ls-tree": Command(
        flags="-d -r -t -z -l --long --name-only --name-status --object-only --full-name --full-tree",
        values={"--format": TEXT},
        optional={"--abbrev": TEXT},
        expression="git.pathspec",
    ),
    "grep": Command(
        flags="--cached --untracked --exclude-standard --no-exclude-standard --recurse-submodules -v --invert-match -i "
        "--ignore-case -w --word-regexp -a --text -I --no-textconv -r --recursive --no-recursive -E --extended-regexp "
        "-G --basic-regexp -F --fixed-strings -P --perl-regexp -n --line-number --column -h -H --full-name -l "
        "--files-with-matches --name-only -L --files-without-match -z --null -o --only-matching -c --count --no-color "
        "--break --heading -p --show-function -W --function-context --and --or --not -q --quiet --all-match",
        values={
            "--max-depth -C --context -B --before-context -A --after-context --threads -e -m --max-count": TEXT,
            "-f": READ,
        },
        optional={"--color": TEXT},
        never={
            "-O --open-files-in-pager": "starts the pager",
            "--no-index": "searches files outside any repository",
            "--textconv": "runs the configured conversion program",
            "--ext-grep": "runs another grep",
        },
        number=True,
        operands=(Unless(TEXT, "-e -f"),),
        rest=READ,
        default=".",
        recurses="--untracked --no-exclude-standard",
        requires=(FSMONITOR, ENTERED),
    ),
    "cat-file": Command(
        flags="-e -p -t -s --allow-unknown-type --use-mailmap --mailmap --no-mailmap --no-use-mailmap "
        "--batch-all-objects --buffer --no-buffer --follow-symlinks --unordered -z",
        optional={"--batch --batch-check --batch-command": TEXT},
        never={"--textconv": "runs the configured conversion program", "--filters": "runs the configured filter"},
        expression="git.pathspec",
    ),
    "check-ignore": Command(
        flags="-q --quiet -v --verbose --stdin -z -n --non-matching --no-index", rest=LOOK, requires=(FSMONITOR,)
    ),
    "check-attr": Command(flags="-a --all --cached --stdin -z", rest=LOOK, requires=(FSMONITOR,)),
    "check-mailmap": Command(flags="--stdin", rest=TEXT),
    "count-objects": Command(flags="-v --verbose -H --human-readable"),
    "fsck": Command(
        flags="-v --verbose --unreachable --dangling --no-dangling --tags --root --cache --reflogs --no-reflogs "
        "--full --no-full --connectivity-only --strict --progress --no-progress --name-objects --no-name-objects",
        never={"--lost-found": "writes lost objects into the repository"},
        rest=TEXT,
        requires=(FSMONITOR,),
    ),
    "hash-object": Command(
        flags="--stdin --no-filters --literally",
        values={"-t --path": TEXT},
        never={"-w": "writes the object", "--stdin-paths": "reads files named in its input"},
        rest=READ,
        requires=(FILTERS,),
    ),
    "verify-pack": Command(flags="-v --verbose -s --stat-only", rest=READ),
    "archive": Command(
        # Anything else runs smudge filters and configured packers.
        flags="-l --list",
        only_with="-l --list",
    ),
    "bundle": Command(
        subcommands={
            "verify": Command(flags="-q --quiet", operands=(READ,)),
            "list-heads": Command(operands=(READ,), rest=TEXT),
        }
    ),
    "rm": Command(
        effect={STATE: "removes files and changes the index"},
        flags="-f --force -n --dry-run -r --cached --ignore-unmatch --sparse -q --quiet",
        values={"--pathspec-from-file": READ},
        rest=REMOVE,
        keeps="--cached -n --dry-run",
    ),
    "mv": Command(
        effect={STATE: "moves files and changes the index"},
        flags="-f --force -k -n --dry-run -v --verbose --sparse",
        expression="files.copy",
        moves_files="*",
    ),
    "clean": Command(
        effect={STATE: "removes what is not under version control"},
        flags="-d -f --force -i --interactive -n --dry-run -q --quiet -x -X",
        values={"-e --exclude": TEXT},
        expression="git.clean",
        keeps="-n --dry-run",
    ),
    "stripspace": Command(flags="-s --strip-comments -c --comment-lines"),
}
