"""
What must hold in the repository before a git command is run: programs that its configuration can name.

Each was seen to run from a hostile repository with git 2.39, and to stay away with the switches given here
(tests/shell/test_git_helpers.py). No switches: there are none, so the configuration has to be looked at first.
"""

from handrail.shell.model import Requirement


def settings(*pairs: str) -> tuple[str, ...]:
    """`-c name=value` for each pair: these win over every configuration file."""
    return tuple(word for pair in pairs for word in ("-c", pair))


# For every sub-command

NOT_BARE = Requirement(
    "git-real-repository",
    "the repository is not a bare one planted inside the working tree",
    settings("safe.bareRepository=explicit"),
)
WORK_TREE = Requirement(
    "git-work-tree", "the top of the working tree lies in the workspace, and core.worktree does not move it elsewhere"
)
# A partial clone fetches a missing object when it is read, with core.sshCommand, remote.<name>.uploadpack or ext::.
LAZY_FETCH = Requirement(
    "git-lazy-fetch",
    "the repository is not a partial clone that fetches what is missing",
    settings(
        "protocol.allow=never",
        *(f"protocol.{name}.allow=never" for name in "ext fd file ftp ftps git http https ssh".split()),
    ),
)
NO_PAGER = Requirement("git-pager", "output is not a terminal, or no pager is configured", ("--no-pager",))

# For some

FSMONITOR = Requirement(
    "git-fsmonitor",
    "core.fsmonitor names no program in the repository's configuration",
    settings("core.fsmonitor=false"),
)
# Refreshing the index writes it and runs the hook post-index-change.
LOCKS = Requirement(
    "git-index-refresh",
    "the index is not written to keep it fresh",
    ("--no-optional-locks", *settings("diff.autoRefreshIndex=false")),
)
# git describe --dirty refreshes it even so.
HOOKS = Requirement("git-hooks", "there is no hook post-index-change", settings("core.hooksPath=/dev/null"))
EXTERNAL_DIFF = Requirement(
    "git-external-diff",
    "neither diff.external nor a diff driver with a command is configured",
    ("--no-ext-diff",),
    after_subcommand=True,
)
TEXTCONV = Requirement(
    "git-textconv", "no diff driver with textconv is configured", ("--no-textconv",), after_subcommand=True
)
TEXTCONV_ALWAYS = Requirement("git-textconv-check", "no diff driver with textconv is configured")
FILTERS = Requirement("git-filters", "no clean, smudge or process filter is configured for the repository")
# log.showSignature, or %G in format.pretty, checks signatures in any log.
SIGNATURES = Requirement(
    "git-signatures",
    "no program for checking signatures is configured",
    settings("gpg.program=false", "gpg.openpgp.program=false", "gpg.x509.program=false", "gpg.ssh.program=false"),
)
# log.diffMerges=remerge merges again, with the configured merge drivers, wherever -m asks for merges.
MERGE_DRIVERS = Requirement(
    "git-merge-drivers",
    "log.diffMerges is not remerge, or no merge driver is configured",
    settings("log.diffMerges=separate"),
)
# Either runs git in the submodule, without the switches given here.
SUBMODULES = Requirement(
    "git-submodules",
    "neither diff.submodule nor status.submoduleSummary asks for what changed inside a submodule",
    settings("diff.submodule=short", "status.submoduleSummary=false"),
)
# There git runs without the switches given here, so the configuration has to be looked at.
ENTERED = Requirement("git-entered", "no repository inside that git enters names a program to run")
# From git 2.52 on an alias goes before this deprecated command.
NO_ALIAS = Requirement("git-alias-whatchanged", "no alias.whatchanged is configured")

SHOWN_SETTINGS = Requirement("shown-settings", "no setting that is shown holds a password or token")

IN_LOG = (EXTERNAL_DIFF, TEXTCONV, SIGNATURES, MERGE_DRIVERS, SUBMODULES)
OF_FILES = (FSMONITOR, FILTERS, LOCKS, SUBMODULES, ENTERED)

RELIED_ON = {
    name.lower(): value
    for need in tuple(globals().values())
    if isinstance(need, Requirement)
    for name, _, value in (pair.partition("=") for pair in need.settings)
}
"""Settings that some command relies on. A line may give them no other value."""
