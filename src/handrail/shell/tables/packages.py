"""
Package managers in the forms that only look at what is installed here.

Anything that asks a registry reaches the network; anything that loads the project runs its code. Several managers do
either before they look at their arguments: they are listed with that effect and are never read-only.
"""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import (
    LOOK,
    NETWORK,
    PROGRAM,
    READ,
    SECRET,
    STATE,
    TEXT,
    Command,
    Grammar,
    always,
    version,
)

SOURCES = {
    "pip 23.2, pip COMMAND --help": "pip pip3",
    "uv 0.9, uv help COMMAND": "uv",
    "pipx 1": "pipx",
    "npm 11.19, npm help COMMAND": "npm",
    "RubyGems 3, gem help COMMAND (not run here)": "gem",
    "conda 24, conda COMMAND --help (not run here)": "conda",
    "apt 2.6": "apt apt-cache apt-get apt-mark",
    "dpkg 1.21": "dpkg dpkg-query",
    "rpm 4.18": "rpm",
    "pacman 6 (not run here)": "pacman",
    "Homebrew 4 (not run here)": "brew",
    "snap 2.57, snap help COMMAND (not run here)": "snap",
    "the documentation of each": "*",
}

PIP_CHECK = Requirement(
    "pip-version-check", "pip does not look for a newer version of itself", ("--disable-pip-version-check",)
)
NPM_CHECK = Requirement(
    "npm-update-check", "npm does not look for a newer version of itself", ("--no-update-notifier",)
)

PIP_FLAGS = "-v --verbose -q --quiet --no-color --disable-pip-version-check --isolated --no-input --require-virtualenv"
PIP_LOCAL = "-l --local --user --exclude-editable"

PIP = Command(
    # Not --python, which starts another interpreter, nor config and debug, which show addresses with passwords.
    flags=f"{PIP_FLAGS} -V --version",
    only_with="-V --version",
    requires=(PIP_CHECK,),
    subcommands={
        "list": Command(
            flags=f"{PIP_FLAGS} {PIP_LOCAL} -e --editable --include-editable --not-required --pre",
            values={"--format --exclude": TEXT, "--path": READ},
            never={"-o --outdated -u --uptodate": "asks the package index"},
        ),
        "show": Command(flags=f"{PIP_FLAGS} -f --files", rest=TEXT),
        "freeze": Command(
            flags=f"{PIP_FLAGS} {PIP_LOCAL} --all", values={"--exclude": TEXT, "--path -r --requirement": READ}
        ),
        "check": Command(flags=PIP_FLAGS),
        "inspect": Command(flags=f"{PIP_FLAGS} --local --user", values={"--path": READ}),
        "cache": Command(subcommands={"dir": Command(), "info": Command(), "list": Command(rest=TEXT)}),
    },
)

# It writes no log where commands only read (clean_environment.py). Not --prefix and others that name a place.
NPM_ITSELF = Requirement("npm-itself", "npm is npm 7 or newer itself, which runs no code of the project to look at it")
NPM_LOCAL = Command(requires=(NPM_ITSELF,))

APT_NEVER = {"-o --option -c --config-file": "can name programs that are run"}
APT_SHOW = Command(flags="-a --all-versions -q --quiet --no-all-versions", rest=TEXT)
APT_COMMON = {
    "show": APT_SHOW,
    "search": Command(flags="-n --names-only -f --full", rest=TEXT),
    "policy": Command(rest=TEXT),
    "depends rdepends": Command(
        flags="-i --important --installed --recurse --no-pre-depends --no-depends --no-recommends --no-suggests "
        "--no-conflicts --no-breaks --no-replaces --no-enhances",
        rest=TEXT,
    ),
    "showsrc": APT_SHOW,
}

DPKG_FLAGS = "-s --status -p --print-avail -L --listfiles -l --list -S --search --version --help --no-pager"


# What it does before it looks at its words.
SHIM = always(PROGRAM, "may fetch or change its own version, or run what the project names, before anything else")

COMMANDS: dict[str, Command] = {
    "pip pip3": PIP,
    # Almost every command starts the interpreter of the project to ask for its version.
    "uv": version(
        "-V --version",
        {"cache": Command(subcommands={"dir": Command()}), "tool": Command(subcommands={"dir": Command()})},
    ),
    "pipx": version("--version"),
    "npm": version(
        "-v --version",
        {
            "ls list la ll": NPM_LOCAL._replace(
                flags="-a --all -l --long -p --parseable --json -g --global --link --package-lock-only",
                values={"--depth": Grammar("services.whole_number")},
                rest=Grammar("services.package_name"),
            ),
            "root prefix": NPM_LOCAL._replace(flags="-g --global"),
            "run run-script": NPM_LOCAL._replace(flags="--json"),
            "pkg": Command(subcommands={"get": NPM_LOCAL._replace(rest=Grammar("services.package_name"))}),
            "explain why query": always(STATE, "writes a log, and removes older ones"),
            "view info show v outdated search audit ping whoami": always(NETWORK, "asks the registry"),
            "config": always(SECRET, "may show passwords of registries"),
        },
    )._replace(requires=(NPM_CHECK,)),
    "gem": version(
        "-v --version",
        {
            "list": Command(
                flags="-l --local -i --installed -a --all -d --details --versions --no-versions -q --quiet",
                never={"-r --remote -b --both -u --update-sources": "asks the gem server"},
                rest=TEXT,
            ),
            "contents": Command(flags="--all -l --lib-only", rest=TEXT),
            "which": Command(flags="-a --all -g --gems-first", rest=TEXT),
        },
    ),
    "conda": version(
        "-V --version",
        {
            "list": Command(
                flags="--json -c --canonical -f --full-name --explicit --md5 -e --export -r --revisions --no-pip",
                values={"-n --name": TEXT, "-p --prefix": READ},
                rest=TEXT,
            ),
            "info": Command(flags="-e --envs --base --json -a --all", rest=TEXT),
            "env": Command(subcommands={"list": Command(flags="--json")}),
        },
    ),
    "apt": version(
        "-v --version",
        {
            **APT_COMMON,
            "list": Command(
                flags="--installed --upgradable --upgradeable -a --all-versions --manual-installed -v --verbose",
                rest=TEXT,
            ),
        },
    )._replace(never=APT_NEVER),
    "apt-cache": version(
        "-v --version",
        {
            **APT_COMMON,
            "showpkg": Command(rest=TEXT),
            "stats": Command(),
            "unmet": Command(rest=TEXT),
            "pkgnames": Command(operands=(TEXT,)),
            "madison": Command(rest=TEXT),
        },
    )._replace(never=APT_NEVER),
    "apt-get": version("-v --version")._replace(never=APT_NEVER),
    "apt-mark": Command(subcommands=dict.fromkeys("showauto showmanual showhold".split(), Command(rest=TEXT))),
    "dpkg": Command(
        flags=f"{DPKG_FLAGS} -V --verify -C --audit --get-selections --print-architecture "
        "--print-foreign-architectures --compare-versions",
        only_with="-s --status -p --print-avail -L --listfiles -l --list -S --search --version --help -V --verify -C "
        "--audit --get-selections --print-architecture --print-foreign-architectures --compare-versions",
        rest=TEXT,
    ),
    "dpkg-query": Command(
        flags=f"{DPKG_FLAGS} -W --show --control-list --load-avail", values={"-f --showformat": TEXT}, rest=TEXT
    ),
    "rpm": Command(
        # Without -q the same letters install; --qf and -E expand macros, which can run programs.
        flags="-q --query -a --all -i --info -l --list -c --configfiles -d --docfiles --provides --requires -R "
        "--changelog --last -f --file --version",
        only_with="-q --query --version",
        rest=LOOK,
    ),
    "pacman": Command(
        flags="-Q --query -i --info -l --list -s --search -o --owns -e --explicit -m --foreign -n --native -d --deps "
        "-t --unrequired -q --quiet -k --check -V --version",
        only_with="-Q --query -V --version",
        rest=TEXT,
    ),
    "brew": version(
        "-v --version",
        {
            "list ls": Command(
                flags="--versions --formula --formulae --cask --casks --full-name -1 -l -r -t --pinned --multiple",
                rest=TEXT,
            ),
            "leaves": Command(flags="-r --installed-on-request -p --installed-as-dependency"),
        },
    ),
    "snap": version("--version", {"list": Command(flags="--all", rest=TEXT), "version": Command()}),
    # rustup and go choose and fetch toolchains, package.json names the version of its manager.
    "cargo rustc rustup rustdoc go gofmt yarn pnpm corepack npx pnpx bunx": SHIM,
    # .mvn, gradle.properties and .sbtopts name code for the start.
    "mvn gradle sbt": SHIM,
    # A Gemfile is a program, plugins of composer are loaded, and the others start the environment's interpreter.
    "bundle bundler composer poetry pdm hatch pipenv": SHIM,
}
