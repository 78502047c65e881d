"""Sub-commands of git that show commits and what they changed."""

from handrail.shell.tables.format import NETWORK, READ, STATE, TEXT, WRITE, Command, Grammar, Unless
from handrail.shell.tables.git.options import (
    DIFF_FLAGS,
    DIFF_NEVER,
    DIFF_OPTIONAL,
    DIFF_VALUES,
    LOG_FLAGS,
    LOG_OPTIONAL,
    LOG_VALUES,
    WALK_ATTACHED,
    WALK_FLAGS,
    WALK_NEVER,
    WALK_OPTIONAL,
    WALK_VALUES,
)
from handrail.shell.tables.git.preconditions import (
    EXTERNAL_DIFF,
    FILTERS,
    FSMONITOR,
    HOOKS,
    IN_LOG,
    NO_ALIAS,
    OF_FILES,
    SIGNATURES,
    SUBMODULES,
    TEXTCONV,
    TEXTCONV_ALWAYS,
)

PRETTY = Grammar("git.pretty")
DIFF_OUTPUT = {DIFF_VALUES: TEXT, "--output": WRITE, "-O": READ}

LOG = Command(
    flags=f"{DIFF_FLAGS} {WALK_FLAGS} {LOG_FLAGS}",
    values={**DIFF_OUTPUT, WALK_VALUES: TEXT, LOG_VALUES: TEXT, "-L": Grammar("git.lines")},
    attached={WALK_ATTACHED: TEXT, "--format": PRETTY},
    optional={f"{DIFF_OPTIONAL} {WALK_OPTIONAL} {LOG_OPTIONAL}": TEXT, "--pretty": PRETTY},
    never={**DIFF_NEVER, **WALK_NEVER},
    number=True,
    expression="git.pathspec",
    requires=IN_LOG,
)
DIFF = Command(
    flags=f"{DIFF_FLAGS} --cached --staged --merge-base -0 -1 -2 -3 --base --ours --theirs -c --cc",
    values=DIFF_OUTPUT,
    optional={DIFF_OPTIONAL: TEXT},
    never={**DIFF_NEVER, "--no-index": "compares files outside any repository"},
    expression="git.pathspec",
    requires=(*OF_FILES, EXTERNAL_DIFF, TEXTCONV),
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
    requires=(FSMONITOR, FILTERS, TEXTCONV),
)
# A word after `git reflog` that is no sub-command is a ref; new sub-commands come with new versions.
REFLOG = Grammar("git.reflog")

SUBCOMMANDS: dict[str, Command] = {
    "log": LOG,
    "show": LOG._replace(),
    "whatchanged": LOG._replace(requires=(*IN_LOG, NO_ALIAS)),
    "diff": DIFF,
    "diff-tree": Command(
        flags=f"{DIFF_FLAGS} -r --root -m -v --no-commit-id -c --cc --combined-all-paths --always --merge-base "
        "--no-diff-merges --no-notes",
        values=DIFF_OUTPUT,
        attached={"--format": PRETTY},
        optional={DIFF_OPTIONAL: TEXT, "--pretty": PRETTY},
        never={**DIFF_NEVER, "--stdin": "takes trees from its input", "--remerge-diff": "runs merge drivers"},
        expression="git.pathspec",
        requires=(FSMONITOR, *IN_LOG),
    ),
    "diff-index": Command(
        flags=f"{DIFF_FLAGS} --cached --merge-base -m",
        values=DIFF_OUTPUT,
        optional={DIFF_OPTIONAL: TEXT},
        never=DIFF_NEVER,
        expression="git.pathspec",
        requires=(FSMONITOR, FILTERS, EXTERNAL_DIFF, TEXTCONV, SUBMODULES),
    ),
    "diff-files": Command(
        flags=f"{DIFF_FLAGS} -0 -1 -2 -3 --base --ours --theirs -q -c --cc",
        values=DIFF_OUTPUT,
        optional={DIFF_OPTIONAL: TEXT},
        never=DIFF_NEVER,
        expression="git.pathspec",
        requires=(FSMONITOR, FILTERS, EXTERNAL_DIFF, TEXTCONV, SUBMODULES),
    ),
    "range-diff": Command(
        # It runs git log by itself, and does not hand --no-textconv on.
        flags=f"{DIFF_FLAGS} --no-dual-color --dual-color --left-only --right-only --no-notes",
        values={**DIFF_OUTPUT, "--creation-factor": TEXT},
        optional={DIFF_OPTIONAL: TEXT, "--notes": TEXT},
        never=DIFF_NEVER,
        expression="git.pathspec",
        requires=(TEXTCONV_ALWAYS, SIGNATURES, SUBMODULES),
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
        requires=(SIGNATURES,),
    ),
    "shortlog": Command(
        flags="-c --committer -n --numbered -s --summary -e --email --all --merges --no-merges --first-parent",
        values={"--group": TEXT},
        attached={"--since --after --until --before --author --grep": TEXT, "--format": PRETTY},
        optional={"-w --branches --tags --remotes": TEXT},
        never={"--output": "writes a file", **WALK_NEVER},
        expression="git.pathspec",
        requires=(SIGNATURES,),
    ),
    "reflog": Command(
        subcommands={
            "show": LOG._replace(),
            "exists": Command(operands=(TEXT,)),
            "list": Command(),
            "*": LOG._replace(expression="", operands=(REFLOG,), rest=READ),
        }
    ),
    "stash": Command(
        subcommands={
            "list": LOG._replace(),
            "show": DIFF._replace(
                flags=f"{DIFF_FLAGS} --include-untracked --only-untracked",
                requires=(EXTERNAL_DIFF, TEXTCONV, SUBMODULES),
            ),
        }
    ),
    "blame": BLAME,
    "annotate": BLAME._replace(),
    "cherry": Command(flags="-v --verbose", optional={"--abbrev": TEXT}, operands=(TEXT, TEXT, TEXT)),
    "merge-base": Command(flags="-a --all --octopus --independent --is-ancestor --fork-point", rest=TEXT),
    "describe": Command(
        flags="--contains --debug --all --tags --long --first-parent --exact-match --always",
        values={"--candidates --match --exclude": TEXT},
        optional={"--abbrev --dirty --broken": TEXT},
        rest=TEXT,
        requires=(FSMONITOR, FILTERS, HOOKS),
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
