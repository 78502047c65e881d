"""Options that many sub-commands of git share: of diffs (diff-options), and of walks through history (git-log(1))."""

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

LOG_FLAGS = (
    "--no-decorate --source --follow --full-diff --clear-decorations --mailmap --use-mailmap --no-mailmap "
    "--no-use-mailmap -m -c --cc --no-diff-merges --log-size --combined-all-paths --no-show-signature"
)
LOG_VALUES = "--decorate-refs --decorate-refs-exclude"
LOG_OPTIONAL = "--decorate"
