"""Sub-commands of git that list branches, tags, remotes, settings and other names."""

from handrail.shell.tables.format import LOOK, NETWORK, READ, REMOVE, STATE, TEXT, Command, Grammar, Unless
from handrail.shell.tables.git.preconditions import ENTERED, FILTERS, FSMONITOR, SHOWN_SETTINGS, SIGNATURES

ATOMS = Grammar("git.ref_format")
LISTS = "-l --list --contains --no-contains --merged --no-merged --points-at"
# Each takes the next word as its value, or HEAD if it is the last: read here as a flag and an operand, which is
# harmless because each of them makes the command a listing.
FILTERS_OF_REFS = "--contains --no-contains --merged --no-merged --points-at"

BRANCH_NEVER = {
    "-d --delete -D -m --move -M -c --copy -C -f --force": "changes branches",
    "-t --track --unset-upstream --no-track": "changes what a branch follows",
    "--create-reflog --edit-description --recurse-submodules": "changes a branch",
}
TAG_NEVER = {
    "-d --delete -f --force -a --annotate -s --sign -e --edit --create-reflog": "changes tags",
    "-v --verify": "runs the configured signature program",
}
CONFIG_READS = "--get --get-all --get-regexp --get-urlmatch -l --list --get-color --get-colorbool"
CONFIG_FLAGS = (
    "--global --system --local --worktree --fixed-value --bool --int --bool-or-int --bool-or-str --path --expiry-date "
    "-z --null --name-only --no-includes --show-origin --show-scope"
)
CONFIG_VALUES = {"-f --file": READ, "--blob -t --type --default": TEXT}
CONFIG_NEVER = {"--includes": "reads the files that a file names"}
CONFIG = Command(
    # With one operand it reads, with two it writes. A name has a dot; new sub-commands (edit) have none.
    flags=f"{CONFIG_FLAGS} {CONFIG_READS}",
    values=CONFIG_VALUES,
    never={
        "--replace-all --add --unset --unset-all --rename-section --remove-section": "changes the configuration",
        "-e --edit": "starts the editor",
        **CONFIG_NEVER,
    },
    operands=(Grammar("git.config_name"), Unless(STATE, CONFIG_READS)),
    rest=TEXT,
    requires=(SHOWN_SETTINGS,),
)

SUBCOMMANDS: dict[str, Command] = {
    "branch": Command(
        flags="-v --verbose -q --quiet -r --remotes -a --all -l --list --show-current -i --ignore-case --no-color "
        "--no-column --no-abbrev",
        values={"--sort --format": ATOMS, "-u --set-upstream-to": STATE},
        optional={f"{FILTERS_OF_REFS} --color --abbrev --column": TEXT},
        never=BRANCH_NEVER,
        operands=(Unless(STATE, LISTS),),
        rest=TEXT,
        requires=(SIGNATURES,),
    ),
    "tag": Command(
        flags="-l --list -i --ignore-case --no-column",
        values={"--sort --format": ATOMS, "-m --message -F --file -u --local-user --cleanup": STATE},
        optional={f"{FILTERS_OF_REFS} -n --color --column": TEXT},
        never=TAG_NEVER,
        operands=(Unless(STATE, f"{LISTS} -n"),),
        rest=TEXT,
        requires=(SIGNATURES,),
    ),
    "for-each-ref": Command(
        flags="-s --shell -p --perl --python --tcl --ignore-case",
        values={"--count": TEXT, "--sort --format": ATOMS},
        optional={f"{FILTERS_OF_REFS} --color": TEXT},
        rest=TEXT,
        requires=(SIGNATURES,),
    ),
    "show-ref": Command(
        flags="--tags --heads --branches --verify --exists --head -d --dereference -q --quiet",
        optional={"-s --hash --abbrev --exclude-existing": TEXT},
        rest=TEXT,
    ),
    "show-branch": Command(
        flags="-a --all -r --remotes --topo-order --date-order --current --no-color --sparse --list --independent "
        "--merge-base --no-name --sha1-name --topics",
        optional={"--color --more -g --reflog": TEXT},
        rest=TEXT,
    ),
    "symbolic-ref": Command(
        flags="-q --quiet --short --recurse --no-recurse",
        values={"-m": STATE},
        never={"-d --delete": "removes a name"},
        operands=(TEXT,),
    ),
    "rev-parse": Command(
        flags="--verify -q --quiet --sq --not --symbolic --symbolic-full-name --all --revs-only --no-revs --flags "
        "--no-flags --local-env-vars --git-dir --git-common-dir --show-toplevel --show-superproject-working-tree "
        "--shared-index-path --absolute-git-dir --is-inside-git-dir --is-inside-work-tree --is-bare-repository "
        "--is-shallow-repository --show-cdup --show-prefix --end-of-options",
        values={"--default --prefix": TEXT, "--git-path --resolve-git-dir": LOOK},
        attached={"--glob --exclude --exclude-hidden --path-format --since --after --until --before": TEXT},
        optional={"--short --abbrev-ref --branches --tags --remotes --show-object-format --disambiguate": TEXT},
        rest=TEXT,
    ),
    "remote": Command(
        subcommands={
            "*": Command(flags="-v --verbose", requires=(SHOWN_SETTINGS,)),
            "get-url": Command(flags="--push --all", operands=(TEXT,), requires=(SHOWN_SETTINGS,)),
            "show": Command(flags="-n", operands=(Unless(NETWORK, "-n"),), rest=TEXT, requires=(SHOWN_SETTINGS,)),
        }
    ),
    "worktree": Command(
        subcommands={
            "list": Command(flags="--porcelain -v --verbose -z", attached={"--expire": TEXT}),
            "remove": Command(effect={STATE: "removes a working tree"}, flags="-f --force", rest=REMOVE),
        }
    ),
    "notes": Command(
        subcommands={
            "*": Command(),
            "list": Command(operands=(TEXT,)),
            "show": Command(operands=(TEXT,)),
            "get-ref": Command(),
        }
    ),
    "config": Command(
        subcommands={
            "*": CONFIG,
            "list": Command(flags=CONFIG_FLAGS, values=CONFIG_VALUES, never=CONFIG_NEVER, requires=(SHOWN_SETTINGS,)),
            "get": Command(
                flags=f"{CONFIG_FLAGS} --all --regexp --show-names --no-show-names",
                values={**CONFIG_VALUES, "--value --url": TEXT},
                never=CONFIG_NEVER,
                operands=(TEXT,),
                requires=(SHOWN_SETTINGS,),
            ),
        }
    ),
    "submodule": Command(
        subcommands={
            "*": Command(flags="--quiet --cached", requires=(FSMONITOR, FILTERS, ENTERED)),
            "status": Command(flags="--quiet --cached --recursive", rest=READ, requires=(FSMONITOR, FILTERS, ENTERED)),
        }
    ),
    "sparse-checkout": Command(subcommands={"list": Command()}),
    "var": Command(flags="-l", operands=(TEXT,), requires=(SHOWN_SETTINGS,)),
    "check-ref-format": Command(
        flags="--normalize --print --branch --allow-onelevel --no-allow-onelevel --refspec-pattern", operands=(TEXT,)
    ),
    "version": Command(flags="--build-options"),
    "help": Command(
        # With a name it starts man, a browser or info.
        flags="-a --all --no-verbose --verbose -g --guides -c --config --no-external-commands --external-commands "
        "--no-aliases --aliases --user-interfaces --developer-interfaces"
    ),
}
