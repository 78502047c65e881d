"""Sub-commands of git that show commits and what they changed."""

from handrail.shell.tables.format import NETWORK, READ, STATE, TEXT, WRITE, Command, Grammar, Unless
from handrail.shell.tables.git import preconditions as needs

# Options that many sub-commands share: of diffs (diff-options), and of walks through history (git-log(1)).
DIFF_FLAGS = (
    "-p -u --patch -s --no-patch --raw --patch-with-raw --indent-heuristic --no-indent-heuristic --minimal --patience "
    "--histogram --compact-summary --numstat --shortstat --summary --patch-with-stat -z --name-only --name-status "
    "--no-color --no-color-moved --no-color-moved-ws --no-renames --rename-empty --no-rename-empty --check "
    "--full-index --binary -D --irreversible-delete --pickaxe-all --pickaxe-regex -R -a --text --ignore-cr-at-eol "
    "--ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space --ignore-blank-lines -W --function-context "
    "--exit-code --quiet --no-ext-diff --no-textconv --no-prefix -t --cumulative --find-copies-harder "
    "--no-relative --ita-invisible-in-index --ita-visible-in-index"
)
DIFF_VALUES = (
    "-S -G -I --ignore-matching-lines -l --diff-filter --anchored --diff-algorithm --inter-hunk-context "
    "--ws-error-highlight --skip-to --rotate-to --src-prefix --dst-prefix --line-prefix --word-diff-regex "
    "--find-object --color-moved-ws --stat-width --stat-name-width --stat-graph-width --stat-count "
    "--output-indicator-new --output-indicator-old --output-indicator-context"
)
DIFF_OPTIONAL = (
    "--stat --dirstat --dirstat-by-file --color --color-moved --word-diff --color-words --abbrev -U "
    "--unified -M --find-renames -C --find-copies -B --break-rewrites --relative --ignore-submodules -X"
)
DIFF_NEVER = {
    "--ext-diff": "runs the configured diff program",
    "--textconv": "runs the configured conversion program",
    "--submodule": "runs git in the submodule, with the programs its configuration names",
}

# The walk itself: git rev-list has these too.
WALK_FLAGS = (
    "--merges --no-merges --first-parent --exclude-first-parent-only --all --reverse --date-order --author-date-order "
    "--topo-order --boundary --left-right --left-only --right-only --cherry --cherry-pick --cherry-mark --do-walk "
    "--parents --children --abbrev-commit --no-abbrev-commit --relative-date --full-history --dense "
    "--sparse --simplify-merges --simplify-by-decoration --show-pulls --remove-empty -i --regexp-ignore-case "
    "--invert-grep --all-match -E --extended-regexp -F --fixed-strings -P --perl-regexp --basic-regexp -g "
    "--walk-reflogs --reflog --oneline --graph --no-notes --no-expand-tabs --no-min-parents --no-max-parents --not "
    "--merge --bisect --ignore-missing --single-worktree --standard-notes --no-standard-notes"
)
WALK_VALUES = (
    "-n --max-count --skip --since --after --until --before --author --committer --grep --grep-reflog --date "
    "--encoding --glob --exclude --since-as-filter"
)
WALK_ATTACHED = "--min-parents --max-parents --exclude-hidden --max-age --min-age"
WALK_OPTIONAL = (
    "--branches --tags --remotes --notes --show-notes --expand-tabs --no-walk --ancestry-path --show-linear-break"
)
WALK_NEVER = {
    "--show-signature": "runs the configured signature program",
    "--stdin": "takes revisions from its input",
    "--alternate-refs": "runs the configured core.alternateRefsCommand",
    "--remerge-diff": "merges again, with the configured merge drivers",
}

PRETTY = Grammar("git.pretty")
DIFF_OUTPUT = {DIFF_VALUES: TEXT, "--output": WRITE, "-O": READ}

LOG = Command(
    flags=f"{DIFF_FLAGS} {WALK_FLAGS} --no-decorate --source --follow --full-diff --clear-decorations --mailmap "
    "--use-mailmap --no-mailmap --no-use-mailmap -m -c --cc --no-diff-merges --log-size --combined-all-paths "
    "--no-show-signature",
    values={**DIFF_OUTPUT, f"{WALK_VALUES} --decorate-refs --decorate-refs-exclude": TEXT, "-L": Grammar("git.lines")},
    attached={WALK_ATTACHED: TEXT, "--format": PRETTY},
    optional={f"{DIFF_OPTIONAL} {WALK_OPTIONAL} --decorate": TEXT, "--pretty": PRETTY},
    never={**DIFF_NEVER, **WALK_NEVER},
    number=True,
    expression="git.pathspec",
    requires=needs.IN_LOG,
)
DIFF = Command(
    flags=f"{DIFF_FLAGS} --cached --staged --merge-base -0 -1 -2 -3 --base --ours --theirs -c --cc",
    values=DIFF_OUTPUT,
    optional={DIFF_OPTIONAL: TEXT},
    never={**DIFF_NEVER, "--no-index": "compares files outside any repository"},
    expression="git.pathspec",
    requires=(*needs.OF_FILES, needs.EXTERNAL_DIFF, needs.TEXTCONV),
)
BLAME = Command(
    flags="--incremental -b --root --show-stats --progress --no-progress --score-debug -f --show-name -n "
    "--show-number -p --porcelain --line-porcelain -c -t -l -s -e --show-email -w --color-lines --color-by-age "
    "--minimal --first-parent --no-textconv",
    values={"--ignore-rev -L --date --encoding --since": TEXT, "--ignore-revs-file -S --contents": READ},
    attached={"--reverse": TEXT},
    optional={"-C -M --abbrev": TEXT},
    never={**DIFF_NEVER, "--output": "writes a file"},
    expression="git.pathspec",
    requires=(needs.FSMONITOR, needs.FILTERS, needs.TEXTCONV),
)
# A word after `git reflog` that is no sub-command is a ref; new sub-commands come with new versions.
REFLOG = Grammar("git.reflog")

SUBCOMMANDS: dict[str, Command] = {
    "log show": LOG,
    "whatchanged": LOG._replace(requires=(*needs.IN_LOG, needs.NO_ALIAS)),
    "diff": DIFF._replace(lists_paths=True),
    "diff-tree": DIFF._replace(
        flags=f"{DIFF_FLAGS} -r --root -m -v --no-commit-id -c --cc --combined-all-paths --always --merge-base "
        "--no-diff-merges --no-notes",
        attached={"--format": PRETTY},
        optional={DIFF_OPTIONAL: TEXT, "--pretty": PRETTY},
        never={**DIFF_NEVER, "--stdin": "takes trees from its input", "--remerge-diff": "runs merge drivers"},
        requires=(needs.FSMONITOR, *needs.IN_LOG),
    ),
    "diff-index": DIFF._replace(
        flags=f"{DIFF_FLAGS} --cached --merge-base -m",
        never=DIFF_NEVER,
        requires=(*needs.OF_FILES, needs.EXTERNAL_DIFF, needs.TEXTCONV),
    ),
    "diff-files": DIFF._replace(
        flags=f"{DIFF_FLAGS} -0 -1 -2 -3 --base --ours --theirs -q -c --cc",
        never=DIFF_NEVER,
        requires=(*needs.OF_FILES, needs.EXTERNAL_DIFF, needs.TEXTCONV),
    ),
    "range-diff": DIFF._replace(
        # It runs git log by itself, and does not hand --no-textconv on.
        flags=f"{DIFF_FLAGS} --no-dual-color --dual-color --left-only --right-only --no-notes",
        values={**DIFF_OUTPUT, "--creation-factor": TEXT},
        optional={DIFF_OPTIONAL: TEXT, "--notes": TEXT},
        never=DIFF_NEVER,
        requires=(needs.TEXTCONV_ALWAYS, needs.SIGNATURES, needs.SUBMODULES),
    ),
    "rev-list": Command(
        flags=f"{WALK_FLAGS} --count --quiet --use-bitmap-index --bisect-vars --bisect-all --objects "
        "--in-commit-order --objects-edge --objects-edge-aggressive --indexed-objects --unpacked --object-names "
        "--no-object-names --no-filter --filter-provided-objects --filter-print-omitted --exclude-promisor-objects "
        "--header --commit-header --no-commit-header --timestamp",
        values={WALK_VALUES: TEXT},
        attached={f"{WALK_ATTACHED} --filter --missing --progress": TEXT, "--format": PRETTY},
        optional={f"{WALK_OPTIONAL} --disk-usage --abbrev": TEXT, "--pretty": PRETTY},
        never=WALK_NEVER,
        number=True,
        expression="git.pathspec",
        requires=(needs.SIGNATURES,),
    ),
    "shortlog": Command(
        flags="-c --committer -n --numbered -s --summary -e --email --all --merges --no-merges --first-parent",
        values={"--group": TEXT},
        attached={"--since --after --until --before --author --grep": TEXT, "--format": PRETTY},
        optional={"-w --branches --tags --remotes": TEXT},
        never={"--output": "writes a file", **WALK_NEVER},
        expression="git.pathspec",
        requires=(needs.SIGNATURES,),
    ),
    "reflog": Command(
        subcommands={
            "show": LOG,
            "exists": Command(operands=(TEXT,)),
            "list": Command(),
            "*": LOG._replace(expression="", operands=(REFLOG,), rest=READ),
        }
    ),
    "stash": Command(
        subcommands={
            "list": LOG,
            "show": DIFF._replace(
                flags=f"{DIFF_FLAGS} --include-untracked --only-untracked",
                requires=(needs.EXTERNAL_DIFF, needs.TEXTCONV, needs.SUBMODULES),
            ),
        }
    ),
    "blame annotate": BLAME,
    "cherry": Command(flags="-v --verbose", optional={"--abbrev": TEXT}, operands=(TEXT, TEXT, TEXT)),
    "merge-base": Command(flags="-a --all --octopus --independent --is-ancestor --fork-point", rest=TEXT),
    "describe": Command(
        flags="--contains --debug --all --tags --long --first-parent --exact-match --always",
        values={"--candidates --match --exclude": TEXT},
        optional={"--abbrev --dirty --broken": TEXT},
        rest=TEXT,
        requires=(needs.FSMONITOR, needs.FILTERS, needs.HOOKS, needs.ENTERED),
    ),
    "name-rev": Command(
        flags="--name-only --tags --all --undefined --no-undefined --always --stdin --annotate-stdin",
        values={"--refs --exclude": TEXT},
        rest=TEXT,
    ),
    "bisect": Command(
        subcommands={"log": Command(), "terms": Command(flags="--term-good --term-old --term-bad --term-new")}
    ),
    "patch-id": Command(flags="--stable --unstable --verbatim"),
    "ls-remote": Command(
        operands=(NETWORK,),
        rest=TEXT,
        effect={NETWORK: "asks a remote, with the configured transport and credential programs"},
    ),
    "replace": Command(
        flags="-l --list", attached={"--format": TEXT}, operands=(Unless(STATE, "-l --list"),), rest=TEXT
    ),
}
