"""
git: global options and read-only sub-commands (git 2.39, git(1) and the page of each sub-command).

git runs programs that the repository's configuration names even in read-only forms; `requires` says which
switches keep them from running, or what to check in the repository first. git accepts abbreviated long options;
we do not. An alias cannot take the place of a built-in sub-command.
"""

from handrail.shell.tables.format import PROGRAM, READ, STATE, Command, Grammar, by_name
from handrail.shell.tables.git import files, history, refs
from handrail.shell.tables.git.preconditions import LAZY_FETCH, NO_PAGER, NOT_BARE, WORK_TREE

SOURCES = {"git 2.39, git(1) and the page of each sub-command": "git"}

COMMANDS: dict[str, Command] = {
    "git": Command(
        # Not --help: with a sub-command it starts man.
        flags="--version -v -P --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs "
        "--icase-pathspecs --no-replace-objects --no-lazy-fetch --no-advice --html-path --man-path --info-path",
        moves="-C",
        values={
            "-C": READ,
            "-c": Grammar("git.setting"),
            "--config-env": PROGRAM,
            "--git-dir --work-tree --namespace --attr-source": STATE,
        },
        never={"-p --paginate": "starts the configured pager", "--bare": "takes another folder for the repository"},
        optional={"--exec-path": PROGRAM},
        only_with="--version -v --html-path --man-path --info-path",
        requires=(NOT_BARE, WORK_TREE, LAZY_FETCH, NO_PAGER),
        subcommands=by_name(history.SUBCOMMANDS | refs.SUBCOMMANDS | files.SUBCOMMANDS),
    )
}
