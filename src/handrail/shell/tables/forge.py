"""
Clients of code forges: gh and glab in the forms that only ask.

They send requests with the user's token to the forge that the repository names; that is a requirement, not an effect.
`gh api` chooses its method by its fields, and `--web` starts a browser.
"""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import NOTHING, TEXT, Command, Grammar, Use, version
from handrail.shell.tables.git.preconditions import IN_LOG, LAZY_FETCH, NO_PAGER, NOT_BARE, OF_FILES, WORK_TREE

SOURCES = {"gh 2.23, gh COMMAND --help": "gh", "glab 1, documentation (not run here)": "glab"}

FORGE = Requirement("forge", "asking the forge of the repository, with the user's token, is acceptable")
# gh asks git for the remotes and the branch.
FORGE_OF_GIT = (FORGE, NOT_BARE, WORK_TREE, LAZY_FETCH, NO_PAGER, *OF_FILES, *IN_LOG)
TARGET = Grammar("services.forge_target")
WEB = {"-w --web": "starts a browser"}


def gh(flags: str = "", values: str = "", rest: Use | None = None) -> Command:
    """A command with a repository and, as most have, output as JSON."""
    given: dict[str, Use] = {"-R --repo": TARGET, "--json -t --template": TEXT, "-q --jq": Grammar("json_queries.jq")}
    return Command(
        flags=flags, values={**given, **({values: TEXT} if values else {})}, never=WEB, rest=rest, requires=FORGE_OF_GIT
    )


LISTS = "-a --assignee -A --author -l --label -L --limit -S --search -s --state --app"


def group(**subcommands: Command) -> Command:
    return Command(subcommands={name.replace("_", "-"): entry for name, entry in subcommands.items()})


def glab(flags: str = "", values: str = "", rest: Use | None = None) -> Command:
    given: dict[str, Use] = {"-R --repo": TARGET, **({values: TEXT} if values else {})}
    return Command(flags=flags, values=given, never=WEB, rest=rest, requires=(FORGE,))


COMMANDS: dict[str, Command] = {
    "gh": version(
        "--version",
        {
            "version": Command(),
            "status": gh("", "-e --exclude -o --org"),
            "pr": group(
                list=gh("-d --draft", f"{LISTS} -B --base -H --head"),
                ls=gh("-d --draft", f"{LISTS} -B --base -H --head"),
                view=gh("-c --comments", rest=TARGET),
                diff=gh("--name-only --patch", "--color", rest=TARGET),
                checks=gh("--required --watch --fail-fast", "-i --interval", rest=TARGET),
                status=gh("-c --conflict-status"),
            ),
            "issue": group(
                list=gh("", f"{LISTS} --mention -m --milestone"),
                ls=gh("", f"{LISTS} --mention -m --milestone"),
                view=gh("-c --comments", rest=TARGET),
                status=gh(),
            ),
            "repo": group(
                list=gh(
                    "--archived --fork --no-archived --source",
                    "-l --language -L --limit --topic --visibility",
                    rest=TARGET,
                ),
                view=gh("", "-b --branch", rest=TARGET),
            ),
            "run": group(
                list=gh(
                    "-a --all", "-b --branch -c --commit -e --event -L --limit -s --status -u --user -w --workflow"
                )._replace(never=NOTHING),
                view=gh("--exit-status --log --log-failed -v --verbose", "-a --attempt -j --job", rest=TARGET),
            ),
            "release": group(
                list=gh("--exclude-drafts --exclude-pre-releases", "-L --limit -O --order"), view=gh(rest=TARGET)
            ),
            "workflow": group(list=gh("-a --all", "-L --limit"), view=gh("-y --yaml", "-r --ref", rest=TARGET)),
            "label": group(list=gh("", "-L --limit --order -S --search --sort")),
            "gist": group(
                list=gh("--public --secret", "-L --limit"), view=gh("--files -r --raw", "-f --filename", rest=TARGET)
            ),
            "secret": group(list=gh("-u --user", "-a --app -e --env -o --org")),  # names, never values
            "cache": group(list=gh("", "-k --key -L --limit -O --order -r --ref -S --sort")),
            "ruleset": group(list=gh("-p --parents", "-L --limit -o --org"), view=gh(rest=TARGET)),
            "alias": group(list=Command()),
            "extension": group(list=Command()),
            "auth": group(
                status=Command(flags="-a --active", never={"-t --show-token": "shows the token"}, requires=(FORGE,))
            ),
        },
    ),
    "glab": version(
        "-v --version",
        {
            "mr": group(
                list=glab(
                    "-A --all -c --closed -M --merged -d --draft", "-a --assignee --author -l --label -P --per-page"
                ),
                view=glab("-c --comments", rest=TARGET),
                diff=glab("--raw", "--color", rest=TARGET),
            ),
            "issue": group(
                list=glab("-A --all -c --closed", "-a --assignee --author -l --label -P --per-page"),
                view=glab("-c --comments", rest=TARGET),
            ),
            "release": group(list=glab("", "-P --per-page"), view=glab(rest=TARGET)),
        },
    ),
}
