"""
What well-known programs are for, in a few words, so that a question says more than that a table does not list them.

Only texts for people come from here: no decision depends on them.
"""

from collections.abc import Sequence

NETWORK = "reaches the network"
PACKAGES = "fetches packages, which may run code of theirs"
SCRIPT = "runs a script of the project"
TESTS = "runs the tests of the project"
BUILD = "runs what the build files of the project say"
PROGRAM = "runs a program"
FETCHED = "fetches a package and runs it"
SYSTEM = "changes the packages of this machine"
SERVICE = "controls services of this machine"
CLOUD = "calls a service in the cloud"
CLUSTER = "changes a cluster"
DATABASE = "runs statements on a database"
CHECKS = "runs checks that the project configures, and may rewrite files"
COMPILES = "compiles and writes files"
CONTAINER = "changes containers or images, or runs a program in one"

PURPOSES = {
    "git": "may change the repository",
    "git add": "stages files for the next commit",
    "git am": "applies patches and commits them",
    "git apply": "changes files by a patch",
    "git checkout": "switches branches or overwrites files",
    "git cherry-pick": "applies commits again and commits",
    "git clean": "removes files that git does not track",
    "git clone": "copies a repository from elsewhere",
    "git commit": "records a commit",
    "git fetch": "fetches from another repository",
    "git init": "makes a repository",
    "git merge": "merges another branch into this one",
    "git mv": "moves files",
    "git pull": "fetches from another repository and merges",
    "git push": "sends commits to another repository",
    "git rebase": "rewrites commits",
    "git reset": "moves HEAD or the index, and may discard changes",
    "git restore": "overwrites files with another version",
    "git revert": "commits the reverse of a commit",
    "git rm": "removes files",
    "git stash": "puts changes away or brings them back",
    "git submodule": "fetches or changes submodules",
    "git switch": "switches branches",
    "git worktree": "adds or removes worktrees",
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "pip", "pip3", "pipx", "uv", "uv pip", "poetry", "pdm"), PACKAGES),
    **dict.fromkeys(("conda", "mamba", "gem", "bundle", "composer"), PACKAGES),
    **dict.fromkeys((f"{name} {verb}" for name in ("npm", "pnpm", "yarn", "bun") for verb in ("run", "start")), SCRIPT),
    **dict.fromkeys((f"{name} {verb}" for name in ("poetry", "uv", "pdm") for verb in ("run",)), PROGRAM),
    **dict.fromkeys((f"{name} test" for name in ("npm", "pnpm", "yarn", "bun", "cargo", "go", "dotnet")), TESTS),
    **dict.fromkeys((f"{name} exec" for name in ("npm", "pnpm", "yarn", "bundle")), PROGRAM),
    **dict.fromkeys((f"{name} publish" for name in ("npm", "pnpm", "yarn", "cargo", "uv", "poetry")), "publishes"),
    **dict.fromkeys(("npx", "pnpx", "bunx", "uvx", "pipx run", "pnpm dlx", "yarn dlx"), FETCHED),
    **dict.fromkeys(("make", "gmake", "just", "task", "ninja", "cmake", "meson", "bazel", "rake"), BUILD),
    **dict.fromkeys(("gradle", "mvn", "ant", "sbt", "cargo", "go", "dotnet"), BUILD),
    **dict.fromkeys(("cargo run", "go run", "dotnet run", "deno", "bun run"), PROGRAM),
    **dict.fromkeys(
        ("pytest", "py.test", "unittest", "tox", "nox", "jest", "vitest", "mocha", "rspec", "phpunit", "ctest"), TESTS
    ),
    **dict.fromkeys(("ruff", "black", "isort", "flake8", "mypy", "pyright", "basedpyright", "pylint", "ty"), CHECKS),
    **dict.fromkeys(("eslint", "prettier", "biome", "tsc", "rustfmt", "gofmt", "golangci-lint", "pre-commit"), CHECKS),
    **dict.fromkeys(
        ("python", "python3", "python2", "pypy3", "ipython", "node", "ruby", "perl", "php", "lua"), PROGRAM
    ),
    **dict.fromkeys(("java", "lua", "Rscript", "julia", "osascript", "tclsh"), PROGRAM),
    **dict.fromkeys(
        ("gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "javac", "ld"), "compiles and writes files"
    ),
    **dict.fromkeys(("curl", "wget", "http", "https", "xh", "nc", "ncat", "telnet", "ftp", "sftp", "ping"), NETWORK),
    **dict.fromkeys(("scp", "rsync"), "copies files, also to or from other machines"),
    **dict.fromkeys(("apt", "apt-get", "dnf", "yum", "apk", "pacman", "zypper", "brew", "snap", "dpkg"), SYSTEM),
    **dict.fromkeys(("systemctl", "service", "launchctl", "supervisorctl"), SERVICE),
    **dict.fromkeys(("psql", "mysql", "mariadb", "sqlite3", "redis-cli", "mongosh", "duckdb"), DATABASE),
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose", "podman-compose"), CONTAINER),
    **dict.fromkeys(("kubectl", "helm", "k9s", "oc"), CLUSTER),
    **dict.fromkeys(("aws", "gcloud", "az", "flyctl", "heroku", "vercel", "wrangler", "doctl"), CLOUD),
    **dict.fromkeys(("terraform", "tofu", "pulumi", "ansible", "ansible-playbook"), "changes infrastructure"),
    **dict.fromkeys(("gh", "glab", "hub"), "may change what is on the forge"),
}


def purpose(words: Sequence[str | None]) -> str:
    """What a command is for, by its program and the first two words that are no options; empty if that is not known."""
    name = words[0] if words else None
    if name is None or "/" in name:  # what a program by its path is for, its name does not say
        return ""
    if name.startswith("python") and words[1:2] == ["-m"]:
        return purpose(words[2:]) or PROGRAM
    plain = [word for word in words[1:] if word is None or not word.startswith("-")][:2]
    verbs = [word for word in plain if word is not None]
    candidates = [f"{name} {verb}" for verb in verbs] + [name]
    return next((PURPOSES[each] for each in candidates if each in PURPOSES), "")
