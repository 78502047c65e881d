"""
git: global options and read-only sub-commands (git 2.43, git(1) and the page of each sub-command).

git runs programs that the repository's configuration names even in read-only forms; `requires` says which
switches keep them from running, or what to check in the repository first. git accepts abbreviated long options;
we do not.
"""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import PROGRAM, READ, STATE, TEXT, WRITE, Command, Grammar

FSMONITOR = Requirement(
    "git-fsmonitor", "core.fsmonitor names no program in the repository's configuration", ("-c", "core.fsmonitor=false")
)
EXTERNAL_DIFF = Requirement(
    "git-external-diff",
    "neither diff.external nor a diff driver with a command is configured",
    ("--no-ext-diff",),
    after_subcommand=True,
)
TEXTCONV = Requirement(
    "git-textconv", "no diff driver with textconv is configured", ("--no-textconv",), after_subcommand=True
)
FILTERS = Requirement("git-filters", "no clean, smudge or process filter is configured for the repository")
NOT_BARE = Requirement("git-real-repository", "the repository is not a bare one planted inside the working tree")
NO_PAGER = Requirement("git-pager", "output is not a terminal, or no pager is configured", ("--no-pager",))

PRETTY = Grammar("git_pretty")
DIFF_FLAGS = (
    "-p -u --patch -s --no-patch --raw --patch-with-raw --indent-heuristic --no-indent-heuristic --minimal --patience "
    "--histogram --compact-summary --numstat --shortstat --summary --patch-with-stat -z --name-only --name-status "
    "--no-color --no-color-moved --no-color-moved-ws --no-renames --rename-empty --no-rename-empty --check "
    "--full-index --binary -D --irreversible-delete --pickaxe-all --pickaxe-regex -R -a --text --ignore-cr-at-eol "
    "--ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space --ignore-blank-lines -W --function-context "
    "--exit-code --quiet --no-ext-diff --no-textconv --default-prefix --no-prefix -t --cumulative"
)
DIFF_VALUES = "-S -G --diff-filter"
DIFF_ATTACHED = (
    "--anchored --diff-algorithm --inter-hunk-context --ws-error-highlight --skip-to --rotate-to --src-prefix "
    "--dst-prefix --line-prefix --word-diff-regex --find-object"
)
DIFF_OPTIONAL = (
    "--stat --dirstat --submodule --color --color-moved --color-moved-ws --word-diff --color-words --abbrev -U "
    "--unified -M --find-renames -C --find-copies -B --break-rewrites --relative --ignore-submodules -X"
)
DIFF_NEVER = {"--ext-diff": "runs the configured diff program", "--textconv": "runs the configured conversion program"}

LOG_FLAGS = (
    "--oneline --graph --decorate-refs-exclude-all --no-decorate --source --follow --full-diff --merges --no-merges "
    "--first-parent --all --reverse --date-order --author-date-order --topo-order --boundary --left-right --left-only "
    "--right-only --cherry --cherry-pick --cherry-mark --no-walk --parents --children --abbrev-commit "
    "--no-abbrev-commit --relative-date --full-history --dense --sparse --simplify-merges --ancestry-path -i "
    "--regexp-ignore-case --invert-grep --all-match -E --extended-regexp -F --fixed-strings -P --perl-regexp "
    "--basic-regexp -g --walk-reflogs --no-notes --clear-decorations --mailmap --use-mailmap --no-mailmap -m -c --cc "
    "--no-diff-merges --simplify-by-decoration --log-size --count --do-walk --no-expand-tabs --reflog --remove-empty"
)
LOG_VALUES = "-n --max-count --skip --since --after --until --before --author --committer --grep --grep-reflog --date"
LOG_ATTACHED = (
    "--min-parents --max-parents --encoding --decorate-refs --decorate-refs-exclude --exclude --since-as-filter "
    "--diff-merges --glob"
)
LOG_OPTIONAL = "--decorate --branches --tags --remotes --notes --show-notes --expand-tabs"

COMMANDS: dict[str, Command] = {
    "git": Command(
        source="git(1)",
        flags="--version -v --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs "
        "--icase-pathspecs --no-replace-objects --no-lazy-fetch",
        moves="-C",
        values={"-C": READ, "-c --config-env": PROGRAM, "--git-dir --work-tree --namespace --attr-source": STATE},
        never={"-p --paginate": "starts the configured pager", "--bare": "takes another folder for the repository"},
        optional={"--exec-path": PROGRAM},
        only_with="--version -v",
        requires=(NOT_BARE,),
        subcommands={
            "version": Command(source="git-version(1)", flags="--build-options"),
            "status": Command(
                source="git-status(1)",
                flags="-s --short -b --branch --show-stash --long -v --verbose -z --ahead-behind --no-ahead-behind "
                "--renames --no-renames --no-column",
                optional={
                    "--porcelain -u --untracked-files --ignored --ignore-submodules --column --find-renames": TEXT
                },
                rest=READ,
                default=".",
                requires=(FSMONITOR, FILTERS),
            ),
            "diff": Command(
                source="git-diff(1)",
                flags=f"{DIFF_FLAGS} --cached --staged --merge-base -0 -1 -2 -3 --base --ours --theirs",
                values={DIFF_VALUES: TEXT, "--output": WRITE, "-O": READ},
                attached={DIFF_ATTACHED: TEXT},
                optional={DIFF_OPTIONAL: TEXT},
                never={**DIFF_NEVER, "--no-index": "compares files outside any repository"},
                rest=READ,
                default=".",
                requires=(FSMONITOR, FILTERS, EXTERNAL_DIFF, TEXTCONV, NO_PAGER),
            ),
            "log": Command(
                source="git-log(1)",
                flags=f"{DIFF_FLAGS} {LOG_FLAGS}",
                values={f"{DIFF_VALUES} {LOG_VALUES} -L": TEXT, "--output": WRITE, "-O": READ},
                attached={f"{DIFF_ATTACHED} {LOG_ATTACHED}": TEXT, "--format": PRETTY},
                optional={f"{DIFF_OPTIONAL} {LOG_OPTIONAL}": TEXT, "--pretty": PRETTY},
                never={
                    **DIFF_NEVER,
                    "--show-signature": "runs the configured signature program",
                    "--stdin": "takes revisions from its input",
                },
                number=True,
                rest=READ,
                default=".",
                requires=(EXTERNAL_DIFF, TEXTCONV, NO_PAGER),
            ),
            "ls-files": Command(
                source="git-ls-files(1)",
                flags="-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage --directory "
                "--no-empty-directory -u --unmerged -k --killed --resolve-undo -z --deduplicate --exclude-standard "
                "--error-unmatch --full-name --recurse-submodules --eol --sparse -t -v -f",
                values={"-x --exclude": TEXT, "-X --exclude-from": READ},
                attached={"--with-tree --exclude-per-directory --format": TEXT},
                optional={"--abbrev": TEXT},
                rest=READ,
                default=".",
                lists_paths=True,
                ends_names_with_nul="-z",
                requires=(FSMONITOR, FILTERS),
            ),
        },
    ),
}
