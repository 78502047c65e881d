"""Allow rules that allow far more than they seem to: the programs behind a wildcard, and what these can do."""

from collections.abc import Iterable, Iterator

from handrail.permissions.rules import EDIT, READ, WEB_FETCH, Rule

# A rule for the bare name would allow any program: shells, interpreters, and commands that run others.
RUN_ANYTHING = frozenset(
    (
        "sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "csh", "tcsh", "busybox", "pwsh", "cmd",
        "python", "python2", "python3", "pypy", "pypy3", "node", "nodejs", "deno", "bun", "ruby", "perl", "php", "lua",
        "java", "Rscript", "R", "osascript", "awk", "gawk", "mawk", "sed", "ed", "vim", "vi", "nvim", "emacs", "make",
        "sudo", "su", "doas", "pkexec", "env", "xargs", "find", "exec", "eval", "source", ".", "command", "builtin",
        "time", "timeout", "nice", "nohup", "stdbuf", "setsid", "watch", "flock", "ionice", "parallel", "entr",
        "script", "ssh", "npx", "pnpx", "bunx", "uvx", "pipx", "docker", "podman", "kubectl", "gdb", "strace", "ltrace",
        "tmux", "screen", "trap", "curl", "wget", "dd", "chroot", "unshare", "nsenter", "tar", "rsync", "scp",
    )
)  # fmt: skip

# Programs whose second word names the action.
SUB_COMMANDS = frozenset(
    (
        "git", "npm", "yarn", "pnpm", "bun", "pip", "pip3", "uv", "poetry", "cargo", "go", "docker", "podman",
        "kubectl", "gh", "glab", "brew", "apt", "apt-get", "gem", "bundle", "composer", "mvn", "gradle", "dotnet",
        "nox", "helm", "systemctl", "pre-commit", "conda", "make", "just", "rustup", "rails", "hatch", "tox",
    )
)  # fmt: skip


def _table(reasons: dict[str, str]) -> dict[str, str]:
    return {name.strip(): reason for names, reason in reasons.items() for name in names.split(",")}


OPENS = "opens every file, even ~/.ssh; reading in the working folders needs no rule"
WRITES = "writes any file"
RUNS = "runs any program that it is given"
SCRIPTS = "runs whatever the project's own files say, and the agent may edit them"
INSTALLS = "runs the code of any package, from any address"
SERVER = "can do everything there that your login can"
# The words that a rule begins with before its *, and what such a rule allows.
WIDE = _table(
    {
        "git": "discards work, sends it anywhere, and runs the programs that the repository configures",
        "git difftool, git mergetool, git submodule": "runs the programs that the repository configures",
        "uv run, poetry run, pipenv run, pdm run, hatch run, rye run, conda run, mamba run, pixi run": RUNS,
        "uv, poetry, pipenv, pdm, hatch, rye, conda, mamba, pixi": "runs any program: its sub-command run does",
        "npm exec, yarn exec, yarn dlx, pnpm exec, pnpm dlx, bun x, bun run, bundle exec, nix run, nix-shell": RUNS,
        "npm, pnpm, yarn": "runs any program: its sub-command exec does",
        "bundle, nix, direnv, mise, asdf, devbox, rustup, tsx, ts-node, expect, socat, at, batch, crontab": RUNS,
        "direnv exec, mise exec, devbox run, rustup run, docker run, docker exec, podman run, podman exec": RUNS,
        "docker compose, kubectl exec, xcrun, cmake, ninja, meson, bazel, ant, sbt, lein": RUNS,
        "cargo": "runs any program: build scripts, run, and installed sub-commands",
        "cargo run, go run, go generate, dotnet run, mix run, rails runner, swift run, zig run": RUNS,
        "go, dotnet, mix, rails, rake, swift, zig": "runs any code: its sub-command run does",
        "just, make, task, invoke, nox, tox, gradle, ./gradlew, mvn, ./mvnw, pre-commit": SCRIPTS,
        "pip, pip3, python -m pip, python3 -m pip, uv pip, gem, brew, apt, apt-get, dnf, yum, apk, pacman": INSTALLS,
        "pip install, pip3 install, uv pip install, python -m pip install, python3 -m pip install": INSTALLS,
        "pipx install, npm install, npm i, pnpm add, pnpm install, yarn add, gem install, cargo install": INSTALLS,
        "go install, conda install, brew install, apt install, apt-get install, uv add, poetry add": INSTALLS,
        "tee, cp, mv, ln, install, truncate, patch, unzip, 7z": WRITES,
        "cat, bat, head, tail, grep, egrep, fgrep, rg, ag, strings, xxd, od, hexdump, base64, sort, diff": OPENS,
        "less, more, man": "opens every file and runs any program: !command",
        "gh, gh api, gh alias, gh extension, glab, glab api": SERVER,
        "aws, gcloud, az, terraform, tofu, pulumi, ansible, ansible-playbook, helm, heroku, fly": SERVER,
        "psql, mysql, sqlite3, mongosh, redis-cli": "runs any query, and some run programs",
        "nc, ncat, telnet, ftp, sftp": "sends anything to any host",
        "systemctl, service, launchctl, chmod, chown": "changes what runs later, or who may do what",
    }
)
EVERYWHERE = ("**", "//**", "//", "~", "~/**", "*", "/**", "./**")
READERS = ("Read", "Grep", "Glob", "LSP")
"""The tools that show files. Allowing one by its bare name does not open files that are named like secrets."""


def wide_command(words: Iterable[str]) -> str:
    """What a rule allows that begins with these words and ends with `*`; empty if that is no more than it says."""
    first, *others = words
    plain = (first if first.startswith("./") else first.rpartition("/")[2], *others)
    if reason := WIDE.get(" ".join(plain)):
        return f"{' '.join(plain)} {reason}"
    if plain[0] in RUN_ANYTHING and all(word.startswith("-") for word in others):
        return f"{plain[0]} can run any program or change any file"
    return ""


def wide_tool(rule: Rule) -> Iterator[tuple[str, str]]:
    """Remarks about an allow rule for a whole tool."""
    match rule.tool:
        case "Bash" | "PowerShell" | "Monitor":
            yield "wide", "this allows every command"
        case "REPL":
            yield "wide", "this allows every program"
        case "Edit":
            yield "mistake", "this does not allow Write; add Write, or a path: Edit(src/**)"
        case "Write" | "NotebookEdit":
            yield "wide", "this writes files anywhere; name a folder: Edit(src/**)"
        case "WebFetch":
            yield "wide", "this allows every host; name one: WebFetch(domain:example.com)"
        case name if name in READERS:
            kept = "but not what is named like a secret (.env, ~/.ssh), which needs a rule with its path"
            yield "wide", f"this opens files anywhere on this machine, {kept}. Name a folder: Read(~/notes/**)"


def wide_content(rule: Rule, spec: str) -> Iterator[tuple[str, str]]:
    """Remarks about the content of an allow rule that is not about commands."""
    if rule.tool in (READ, EDIT) and spec in EVERYWHERE:
        yield "wide", "this covers everything there"
    if rule.tool == WEB_FETCH and spec == "domain:*":
        yield "wide", "this allows every host"
