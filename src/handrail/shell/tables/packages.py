"""
Package managers in the forms that only look at what is installed here.

Anything that asks a registry reaches the network; anything that loads the project runs its code. Several managers do
either before they look at their arguments: they are listed with that effect and are never read-only.
"""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import LOOK, NETWORK, PROGRAM, READ, SECRET, STATE, TEXT, Command

PIP_CHECK = Requirement(
    "pip-version-check", "pip does not look for a newer version of itself", ("--disable-pip-version-check",)
)
NPM_CHECK = Requirement(
    "npm-update-check", "npm does not look for a newer version of itself", ("--no-update-notifier",)
)

PIP = "pip 23.2, pip COMMAND --help"
PIP_FLAGS = "-v --verbose -q --quiet --no-color --disable-pip-version-check --isolated --no-input --require-virtualenv"
PIP_LOCAL = "-l --local --user --exclude-editable"
PIP_ENTRY = Command(
    # Not --python, which starts another interpreter, nor config and debug, which show addresses with passwords.
    source=PIP,
    flags=f"{PIP_FLAGS} -V --version",
    only_with="-V --version",
    requires=(PIP_CHECK,),
    subcommands={
        "list": Command(
            source=PIP,
            flags=f"{PIP_FLAGS} {PIP_LOCAL} -e --editable --include-editable --not-required --pre",
            values={"--format --exclude": TEXT, "--path": READ},
            never={"-o --outdated -u --uptodate": "asks the package index"},
        ),
        "show": Command(source=PIP, flags=f"{PIP_FLAGS} -f --files", rest=TEXT),
        "freeze": Command(
            source=PIP,
            flags=f"{PIP_FLAGS} {PIP_LOCAL} --all",
            values={"--exclude": TEXT, "--path -r --requirement": READ},
        ),
        "check": Command(source=PIP, flags=PIP_FLAGS),
        "inspect": Command(source=PIP, flags=f"{PIP_FLAGS} --local --user", values={"--path": READ}),
        "cache": Command(
            source=PIP,
            subcommands={
                "dir": Command(source=PIP),
                "info": Command(source=PIP),
                "list": Command(source=PIP, rest=TEXT),
            },
        ),
    },
)

NPM = "npm 11.19, npm help COMMAND"
APT = "apt 2.6, apt(8), apt-cache(8)"
APT_NEVER = {"-o --option -c --config-file": "can name programs that are run"}
APT_SHOW = Command(source=APT, flags="-a --all-versions -q --quiet --no-all-versions", rest=TEXT)
APT_DEPENDS = Command(
    source=APT,
    flags="-i --important --installed --recurse --no-pre-depends --no-depends --no-recommends --no-suggests "
    "--no-conflicts --no-breaks --no-replaces --no-enhances",
    rest=TEXT,
)
APT_SEARCH = Command(source=APT, flags="-n --names-only -f --full", rest=TEXT)
APT_COMMON = {
    "show": APT_SHOW,
    "search": APT_SEARCH,
    "policy": Command(source=APT, rest=TEXT),
    "depends": APT_DEPENDS,
    "rdepends": APT_DEPENDS,
    "showsrc": APT_SHOW,
}

DPKG_FLAGS = "-s --status -p --print-avail -L --listfiles -l --list -S --search --version --help --no-pager"


def shim(source: str) -> Command:
    """Never read-only, whatever is asked."""
    return Command(
        source=source,
        plain=True,
        rest=TEXT,
        effect={PROGRAM: "may fetch or change its own version, or run what the project names, before anything else"},
    )


COMMANDS: dict[str, Command] = {
    "pip": PIP_ENTRY,
    "pip3": PIP_ENTRY,
    "uv": Command(
        # Almost every command starts the interpreter of the project to ask for its version.
        source="uv 0.9, uv help",
        flags="-V --version",
        only_with="-V --version",
        subcommands={
            "cache": Command(source="uv help cache", subcommands={"dir": Command(source="uv help cache dir")}),
            "tool": Command(source="uv help tool", subcommands={"dir": Command(source="uv help tool dir")}),
        },
    ),
    "pipx": Command(source="pipx 1", flags="--version", only_with="--version"),
    "npm": Command(
        source=NPM,
        flags="-v --version",
        only_with="-v --version",
        requires=(NPM_CHECK,),
        subcommands={
            **dict.fromkeys(
                "ls list la ll root prefix explain why query pkg".split(),
                Command(source=NPM, plain=True, rest=TEXT, effect={STATE: "writes a log, and removes older ones"}),
            ),
            **dict.fromkeys(
                "view info show v outdated search audit ping whoami".split(),
                Command(source=NPM, plain=True, rest=TEXT, effect={NETWORK: "asks the registry"}),
            ),
            "config": Command(source=NPM, plain=True, rest=TEXT, effect={SECRET: "may show passwords of registries"}),
        },
    ),
    "gem": Command(
        source="RubyGems 3, gem help COMMAND (not run here)",
        flags="-v --version",
        only_with="-v --version",
        subcommands={
            "list": Command(
                source="gem help list",
                flags="-l --local -i --installed -a --all -d --details --versions --no-versions -q --quiet",
                never={"-r --remote -b --both -u --update-sources": "asks the gem server"},
                rest=TEXT,
            ),
            "contents": Command(source="gem help contents", flags="--all -l --lib-only", rest=TEXT),
            "which": Command(source="gem help which", flags="-a --all -g --gems-first", rest=TEXT),
        },
    ),
    "conda": Command(
        source="conda 24, conda COMMAND --help (not run here)",
        flags="-V --version",
        only_with="-V --version",
        subcommands={
            "list": Command(
                source="conda list --help",
                flags="--json -c --canonical -f --full-name --explicit --md5 -e --export -r --revisions --no-pip",
                values={"-n --name": TEXT, "-p --prefix": READ},
                rest=TEXT,
            ),
            "info": Command(source="conda info --help", flags="-e --envs --base --json -a --all", rest=TEXT),
            "env": Command(
                source="conda env --help", subcommands={"list": Command(source="conda env list --help", flags="--json")}
            ),
        },
    ),
    "apt": Command(
        source=APT,
        flags="-v --version",
        only_with="-v --version",
        never=APT_NEVER,
        subcommands={
            **APT_COMMON,
            "list": Command(
                source=APT,
                flags="--installed --upgradable --upgradeable -a --all-versions --manual-installed -v --verbose",
                rest=TEXT,
            ),
        },
    ),
    "apt-cache": Command(
        source=APT,
        flags="-v --version",
        only_with="-v --version",
        never=APT_NEVER,
        subcommands={
            **APT_COMMON,
            "showpkg": Command(source=APT, rest=TEXT),
            "stats": Command(source=APT),
            "unmet": Command(source=APT, rest=TEXT),
            "pkgnames": Command(source=APT, operands=(TEXT,)),
            "madison": Command(source=APT, rest=TEXT),
        },
    ),
    "apt-get": Command(source=APT, flags="-v --version", only_with="-v --version", never=APT_NEVER),
    "apt-mark": Command(
        source="apt-mark(8)",
        subcommands=dict.fromkeys("showauto showmanual showhold".split(), Command(source="apt-mark(8)", rest=TEXT)),
    ),
    "dpkg": Command(
        source="dpkg 1.21, dpkg(1)",
        flags=f"{DPKG_FLAGS} -V --verify -C --audit --get-selections --print-architecture "
        "--print-foreign-architectures --compare-versions",
        only_with="-s --status -p --print-avail -L --listfiles -l --list -S --search --version --help -V --verify -C "
        "--audit --get-selections --print-architecture --print-foreign-architectures --compare-versions",
        rest=TEXT,
    ),
    "dpkg-query": Command(
        source="dpkg 1.21, dpkg-query(1)",
        flags=f"{DPKG_FLAGS} -W --show --control-list --load-avail",
        values={"-f --showformat": TEXT},
        rest=TEXT,
    ),
    "rpm": Command(
        # Without -q the same letters install; --qf and -E expand macros, which can run programs.
        source="rpm 4.18, rpm(8)",
        flags="-q --query -a --all -i --info -l --list -c --configfiles -d --docfiles --provides --requires -R "
        "--changelog --last -f --file --version",
        only_with="-q --query --version",
        rest=LOOK,
    ),
    "pacman": Command(
        source="pacman 6, pacman(8) (not run here)",
        flags="-Q --query -i --info -l --list -s --search -o --owns -e --explicit -m --foreign -n --native -d --deps "
        "-t --unrequired -q --quiet -k --check -V --version",
        only_with="-Q --query -V --version",
        rest=TEXT,
    ),
    "brew": Command(
        source="Homebrew 4, brew(1) (not run here)",
        flags="-v --version",
        only_with="-v --version",
        subcommands={
            **dict.fromkeys(
                ("list", "ls"),
                Command(
                    source="brew(1)",
                    flags="--versions --formula --formulae --cask --casks --full-name -1 -l -r -t --pinned --multiple",
                    rest=TEXT,
                ),
            ),
            "leaves": Command(source="brew(1)", flags="-r --installed-on-request -p --installed-as-dependency"),
        },
    ),
    "snap": Command(
        source="snap 2.57, snap help (not run here)",
        flags="--version",
        only_with="--version",
        subcommands={
            "list": Command(source="snap help list", flags="--all", rest=TEXT),
            "version": Command(source="snap help"),
        },
    ),
    # A compiler or manager behind a proxy, or one that reads programs from the project.
    **dict.fromkeys(
        "cargo rustc rustup rustdoc go gofmt".split(), shim("rustup, go: toolchains are chosen and fetched")
    ),
    **dict.fromkeys("yarn pnpm corepack npx pnpx bunx".split(), shim("package.json names the version of the manager")),
    **dict.fromkeys("mvn gradle sbt".split(), shim(".mvn, gradle.properties and .sbtopts name code for the start")),
    **dict.fromkeys("bundle bundler composer".split(), shim("Gemfile is a program; plugins of composer are loaded")),
    **dict.fromkeys("poetry pdm hatch pipenv".split(), shim("the environment's interpreter is started")),
}
