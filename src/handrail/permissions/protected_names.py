"""
The files and folders that run or decide something later without being called: one table for all programs.

Each row says which program reads the names, and where its manual says so. A name is one or more steps of a path, at
any depth; `*` stands for any text in the last step. `~/` begins a name that counts in the home folder only.

    PROJECT    in projects; in the sandbox they are read-only, and missing ones cannot be created
    IF_THERE   in projects; in the sandbox those that exist are read-only, because a folder in place of a missing one
               would break the program that looks for it
    BY_NAME    in projects; asked about if a call names them, and free in the sandbox, where package managers write them
    STARTUP    dot files of a home folder, which are kept elsewhere too; asked about everywhere, read-only at home
    HOME       below the home folder
"""

import re
from enum import Enum, auto
from functools import cache
from typing import NamedTuple


class Reach(Enum):
    """Where a name counts, and how the sandbox treats it."""

    PROJECT = auto()
    IF_THERE = auto()
    BY_NAME = auto()
    STARTUP = auto()
    HOME = auto()


class ProtectedRow(NamedTuple):
    """The names that one program reads."""

    program: str
    reach: Reach
    names: tuple[str, ...]
    source: str


def row(program: str, reach: Reach, names: str, source: str) -> ProtectedRow:
    return ProtectedRow(program, reach, tuple(names.split()), source)


PROJECT, IF_THERE, BY_NAME, STARTUP, HOME = Reach
TABLE = (
    # agents: their settings allow tools, start servers and run hooks
    row("handrail", PROJECT, ".handrail", "docs/settings.md"),
    row("Claude Code", PROJECT, ".claude .mcp.json .claude.json", "https://code.claude.com/docs/en/settings"),
    row("Cursor", PROJECT, ".cursor .cursorrules", "https://cursor.com/docs/context/mcp"),
    row("Gemini CLI", PROJECT, ".gemini", "https://geminicli.com/docs/reference/configuration/"),
    row("Codex", PROJECT, ".codex", "https://developers.openai.com/codex/config-basic"),
    row("Qwen Code", PROJECT, ".qwen", "https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings/"),
    row("Kiro", PROJECT, ".kiro", "https://kiro.dev/docs/mcp/configuration/"),
    row("Roo Code", PROJECT, ".roo", "https://docs.roocode.com/features/mcp/using-mcp-in-roo"),
    row("Cline", PROJECT, ".clinerules", "https://docs.cline.bot/customization/hooks"),
    row("Kilo Code", PROJECT, ".kilocode", "https://kilo.ai/docs/automate/mcp/using-in-kilo-code"),
    row("Amazon Q", PROJECT, ".amazonq", "https://aws.github.io/amazon-q-developer-cli/agent-format.html"),
    row("OpenCode", PROJECT, ".opencode", "https://opencode.ai/docs/config/"),
    row("OpenCode", IF_THERE, "opencode.json opencode.jsonc", "https://opencode.ai/docs/config/"),
    row("Windsurf", PROJECT, ".windsurf .windsurfrules", "https://docs.windsurf.com/windsurf/cascade/hooks"),
    row("Continue", PROJECT, ".continue", "https://docs.continue.dev/reference"),
    row("Junie", PROJECT, ".junie", "https://junie.jetbrains.com/docs/junie-cli-configuration.html"),
    row("Augment", PROJECT, ".augment", "https://docs.augmentcode.com/cli/integrations"),
    row("Factory", PROJECT, ".factory", "https://docs.factory.ai/cli/configuration/settings"),
    row("Crush", IF_THERE, ".crush .crush.json crush.json", "https://github.com/charmbracelet/crush#configuration"),
    row("Aider", IF_THERE, ".aider.conf.yml", "https://aider.chat/docs/config/aider_conf.html"),
    row("Goose", IF_THERE, ".goosehints .goose", "https://block.github.io/goose/docs/guides/config-files/"),
    row("Trae", PROJECT, ".trae", "https://docs.trae.ai/ide/model-context-protocol"),
    row("agents", PROJECT, ".agents", "https://agentskills.io/client-implementation/adding-skills-support"),
    # editors: tasks, interpreters and settings that run when a folder or a file is opened
    row("VS Code", PROJECT, ".vscode", "https://code.visualstudio.com/docs/editing/workspaces/workspace-trust"),
    row("VS Code", IF_THERE, "*.code-workspace", "https://code.visualstudio.com/docs/editing/workspaces/workspaces"),
    row("JetBrains", PROJECT, ".idea", "https://www.jetbrains.com/help/idea/project-security.html"),
    row("JetBrains Fleet", PROJECT, ".fleet", "https://www.jetbrains.com/help/fleet/run-configurations.html"),
    row("Visual Studio", IF_THERE, ".vs *.suo", "https://learn.microsoft.com/visualstudio/ide/trust-settings"),
    row("Zed", PROJECT, ".zed", "https://zed.dev/docs/configuring-zed"),
    row("Vim", IF_THERE, ".exrc .vimrc .nvimrc .nvim.lua _exrc", "https://vimhelp.org/starting.txt.html#exrc"),
    row("Emacs", IF_THERE, ".dir-locals.el .dir-locals-2.el",
        "https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html"),
    row("Sublime Text", IF_THERE, "*.sublime-project *.sublime-build", "https://www.sublimetext.com/docs/projects.html"),
    row("Dev containers", PROJECT, ".devcontainer", "https://containers.dev/implementors/json_reference/"),
    row("Dev containers", IF_THERE, ".devcontainer.json", "https://containers.dev/implementors/spec/"),
    row("Gitpod", IF_THERE, ".gitpod.yml .ona", "https://www.gitpod.io/docs/references/gitpod-yml"),
    # version control, and what runs at its events
    row("git", PROJECT, ".git git~1 .gitmodules", "https://git-scm.com/docs/gitrepository-layout"),
    row("git", HOME, "~/.config/git", "https://git-scm.com/docs/git-config#FILES"),
    row("git", BY_NAME, ".config/git", "https://git-scm.com/docs/git-config#FILES"),
    row("Mercurial", PROJECT, ".hg/hgrc .hg/hgrc-not-shared", "https://www.mercurial-scm.org/help/topics/config"),
    row("Mercurial", STARTUP, ".hgrc", "https://www.mercurial-scm.org/help/topics/config"),
    row("Jujutsu", PROJECT, ".jj/repo/config.toml", "https://jj-vcs.github.io/jj/latest/config/"),
    row("Husky", PROJECT, ".husky", "https://typicode.github.io/husky/"),
    row("pre-commit", PROJECT, ".pre-commit-config.yaml .pre-commit-config.yml", "https://pre-commit.com/"),
    row("Lefthook", IF_THERE,
        "lefthook.yml lefthook.yaml lefthook.toml lefthook.json .lefthook.yml .lefthook.yaml .lefthook.toml "
        ".lefthook.json lefthook-local.* .lefthook-local.* .lefthook .lefthook-local",
        "https://lefthook.dev/configuration/"),
    row("Overcommit", IF_THERE, ".overcommit.yml .git-hooks", "https://github.com/sds/overcommit#configuration"),
    row("simple-git-hooks", IF_THERE, ".simple-git-hooks.*", "https://github.com/toplenboren/simple-git-hooks"),
    # forges: what runs on machines that hold other keys
    row("GitHub", PROJECT, ".github/workflows .github/actions", "https://docs.github.com/actions/reference/workflows-and-actions"),
    row("GitHub Copilot", PROJECT, ".github/hooks .github/copilot", "https://docs.github.com/copilot/reference/hooks-configuration"),
    row("Gitea, Forgejo", PROJECT, ".gitea/workflows .forgejo/workflows", "https://forgejo.org/docs/latest/user/actions/"),
    row("GitLab", IF_THERE, ".gitlab-ci.yml", "https://docs.gitlab.com/ci/yaml/"),
    row("CircleCI", PROJECT, ".circleci", "https://circleci.com/docs/configuration-reference/"),
    row("Buildkite", PROJECT, ".buildkite", "https://buildkite.com/docs/agent/hooks"),
    row("other CI", IF_THERE,
        ".travis.yml .drone.yml .woodpecker.yml .woodpecker .cirrus.yml azure-pipelines.yml bitbucket-pipelines.yml "
        "Jenkinsfile appveyor.yml .appveyor.yml",
        "https://docs.github.com/actions/tutorials/migrate-to-github-actions"),
    # shells and version managers that act when a folder is entered
    row("direnv", PROJECT, ".envrc", "https://direnv.net/man/direnv.1.html"),
    row("mise", IF_THERE,
        "mise.toml .mise.toml mise.*.toml .mise.*.toml .mise .config/mise .config/mise.toml .rtx.toml",
        "https://mise.jdx.dev/configuration.html"),
    row("asdf", IF_THERE, ".asdfrc", "https://asdf-vm.com/manage/configuration.html"),
    row("devenv, Devbox", IF_THERE, "devenv.nix devbox.json", "https://devenv.sh/automatic-shell-activation/"),
    # package managers and builds that run what these files name, whatever they are called for
    row("npm", PROJECT, ".npmrc", "https://docs.npmjs.com/cli/configuring-npm/npmrc"),
    row("pnpm", IF_THERE, ".pnpmfile.cjs .pnpmfile.mjs pnpmfile.js", "https://pnpm.io/pnpmfile"),
    row("Yarn", PROJECT, ".yarn .yarnrc .yarnrc.yml", "https://yarnpkg.com/configuration/yarnrc"),
    row("Yarn", BY_NAME, ".yarnrc*", "https://yarnpkg.com/configuration/yarnrc"),
    row("Yarn", IF_THERE, ".pnp.cjs .pnp.loader.mjs", "https://yarnpkg.com/features/pnp"),
    row("Bun", IF_THERE, "bunfig.toml .bunfig.toml", "https://bun.sh/docs/runtime/bunfig"),
    row("Cargo", PROJECT, ".cargo", "https://doc.rust-lang.org/cargo/reference/config.html"),
    row("Maven", PROJECT, ".mvn", "https://maven.apache.org/configure.html"),
    row("Bazel", IF_THERE, ".bazelrc .bazeliskrc tools/bazel user.bazelrc", "https://bazel.build/run/bazelrc"),
    row("Buck2", IF_THERE, ".buckconfig .buckconfig.local", "https://buck2.build/docs/concepts/buckconfig/"),
    row("Bundler", IF_THERE, ".bundle", "https://bundler.io/man/bundle-config.1.html"),
    row("debuggers", PROJECT, ".gdbinit .lldbinit", "https://sourceware.org/gdb/current/onlinedocs/gdb.html/Init-File-in-the-Current-Directory.html"),
    row("R, IRB, IPython", IF_THERE, ".Rprofile .irbrc .ipython", "https://rdrr.io/r/base/Startup.html"),
    row("virtual environments", BY_NAME,
        ".venv/bin venv/bin .venv/Scripts venv/Scripts .venv/pyvenv.cfg venv/pyvenv.cfg sitecustomize.py "
        "usercustomize.py site-packages/*.pth",
        "https://docs.python.org/3/library/site.html"),
    row("programs of packages", BY_NAME, "node_modules/.bin vendor/bin .direnv", "https://docs.npmjs.com/cli/configuring-npm/folders"),
    # shells and programs that start from a home folder
    row("shells", STARTUP,
        ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .login .inputrc .zshrc .zshenv "
        ".zprofile .zlogin .zlogout .cshrc .tcshrc .kshrc .xinitrc .xprofile .xsession .xsessionrc "
        ".pam_environment .direnvrc",
        "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html"),
    row("programs", STARTUP,
        ".pythonrc .pypirc .condarc .curlrc .wgetrc .netrc .gitconfig",
        "https://everything.curl.dev/cmdline/configfile.html"),
    row("keys", HOME, "~/.ssh ~/.gnupg ~/.aws ~/.kube ~/.docker", "https://man.openbsd.org/ssh_config"),
    row("sessions", HOME,
        "~/.local/bin ~/bin ~/.config/autostart ~/.config/systemd ~/.config/environment.d ~/.local/share/applications "
        "~/Library/LaunchAgents ~/.forward ~/.mailcap",
        "https://specifications.freedesktop.org/autostart-spec/latest/"),
    row("shells", HOME, "~/.config/fish ~/.local/share/fish", "https://fishshell.com/docs/current/language.html#configuration"),
    row("packages", HOME,
        "~/.local/lib ~/.config/pip ~/.pip ~/.m2 ~/.gradle ~/.bundle ~/.ipython ~/.config/mise",
        "https://pip.pypa.io/en/stable/topics/configuration/"),
    row("editors and terminals", HOME,
        "~/.vimrc ~/.vim ~/.config/nvim ~/.emacs ~/.emacs.d ~/.config/emacs ~/.tmux.conf ~/.config/tmux ~/.screenrc "
        "~/.config/zed ~/.config/Code/User ~/.vscode-server ~/.cursor-server",
        "https://vimhelp.org/starting.txt.html#vimrc"),
    row("projects", HOME,
        "~/.npmrc ~/.yarnrc ~/.yarnrc.yml ~/.envrc ~/.gitmodules ~/.mcp.json ~/.claude.json ~/.gdbinit ~/.lldbinit",
        "https://docs.npmjs.com/cli/configuring-npm/npmrc"),
    row("consoles", HOME, "~/.psqlrc ~/.sqliterc ~/.irbrc ~/.Rprofile ~/.octaverc", "https://www.postgresql.org/docs/current/app-psql.html"),
    row("agents", HOME,
        "~/.config/opencode ~/.config/goose ~/.config/crush ~/.config/amp ~/.config/github-copilot ~/.copilot "
        "~/.codeium ~/.cline",
        "https://opencode.ai/docs/config/"),
)  # fmt: skip

NOT_PROTECTED = ((".claude", "worktrees"), (".handrail", "worktrees"))
"""Folders that are judged by what is in them."""


@cache
def names_of(*reaches: Reach) -> tuple[str, ...]:
    """The names of the table that have one of these reaches, in order."""
    return tuple(dict.fromkeys(name for each in TABLE if each.reach in reaches for name in each.names))


@cache
def _exact_names() -> tuple[dict[tuple[str, ...], str], int]:
    """The names without a pattern by their steps in small letters, and the most steps of any."""
    names = names_of(PROJECT, IF_THERE, BY_NAME, STARTUP)
    split = {tuple(name.casefold().split("/")): name for name in names if "*" not in name}
    return split, max(map(len, split))


@cache
def _patterns() -> re.Pattern[str]:
    """One expression for the names with a pattern."""
    names = [name for name in names_of(PROJECT, IF_THERE, BY_NAME, STARTUP) if "*" in name]
    return re.compile("/(" + "|".join(re.escape(name.casefold()).replace(r"\*", "[^/]*") for name in names) + ")/")


def find_protected(steps: list[str]) -> str:
    """The protected name in the steps of a path, which are folded; an empty text if there is none."""
    exact, longest = _exact_names()
    for at in range(len(steps)):
        if tuple(steps[at : at + 2]) in NOT_PROTECTED:
            continue
        for length in range(1, longest + 1):
            if name := exact.get(tuple(steps[at : at + length])):
                return name
    found = _patterns().search(f"/{'/'.join(steps)}/")
    return found[1] if found else ""


@cache
def _home_names() -> dict[str, str]:
    return {name.removeprefix("~").casefold(): name for name in names_of(HOME)}


def find_at_home(path: str) -> str:
    """The protected name that a path below the home folder is or lies in, given as `/.ssh/config`; else empty."""
    names, end = _home_names(), 0
    while end >= 0:
        end = path.find("/", end + 1)
        if name := names.get(path[:end] if end >= 0 else path):
            return name
    return ""
