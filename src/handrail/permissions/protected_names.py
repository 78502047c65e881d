"""
The files and folders that run or decide something later without being called: one table for all programs.

Each row says which program reads the names, and where its manual says so. A name is one or more steps of a path, at
any depth; `*` stands for any text in the last step. `~/` begins a name that counts in the home folder only. `unseen`
names those that were not found in the text of the source: they are known from use only (UNREAD: the text was not read).

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
    unseen: tuple[str, ...] = ()


UNREAD = "*"


def row(program: str, reach: Reach, names: str, source: str, unseen: str = "") -> ProtectedRow:
    given = tuple(names.split())
    return ProtectedRow(program, reach, given, source, given if unseen == UNREAD else tuple(unseen.split()))


PROJECT, IF_THERE, BY_NAME, STARTUP, HOME = Reach
TABLE = (
    # agents: their settings allow tools, start servers and run hooks
    row("handrail", PROJECT, ".handrail", "docs/settings.md"),
    row("Claude Code", PROJECT, ".claude .mcp.json .claude.json", "https://code.claude.com/docs/en/settings"),
    row("Cursor", PROJECT, ".cursor", "https://cursor.com/docs/mcp"),
    row("Cursor", PROJECT, ".cursorrules", "https://docs.cline.bot/customization/cline-rules"),
    row("Gemini CLI", PROJECT, ".gemini", "https://geminicli.com/docs/cli/configuration"),
    row("Codex", PROJECT, ".codex", "https://developers.openai.com/codex/config-basic"),
    row("Qwen Code", PROJECT, ".qwen", "https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings"),
    row("Kiro", PROJECT, ".kiro", "https://kiro.dev/docs/mcp/configuration"),
    row("Roo Code", PROJECT, ".roo", "https://docs.roocode.com/features/mcp/using-mcp-in-roo"),
    row("Cline", PROJECT, ".clinerules", "https://docs.cline.bot/customization/cline-rules"),
    row("Kilo Code", PROJECT, ".kilo", "https://kilo.ai/docs/automate/mcp/using-in-kilo-code"),
    row("Kilo Code", IF_THERE, "kilo.json kilo.jsonc", "https://kilo.ai/docs/automate/mcp/using-in-kilo-code"),
    row("Kilo Code", PROJECT, ".kilocode", "https://kilo.ai/docs/zh-CN/features/mcp/using-mcp-in-kilo-code"),
    row("Amazon Q", PROJECT, ".amazonq", "https://aws.github.io/amazon-q-developer-cli/print.html", ".amazonq"),
    row("OpenCode", PROJECT, ".opencode", "https://opencode.ai/docs/config/"),
    row("OpenCode", IF_THERE, "opencode.json opencode.jsonc", "https://opencode.ai/docs/config/"),
    row("Windsurf", PROJECT, ".windsurf .windsurfrules", "https://docs.cline.bot/features/cline-rules/overview"),
    row("Continue", PROJECT, ".continue", "https://docs.continue.dev/customize/deep-dives/mcp"),
    row("Junie", PROJECT, ".junie", "https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html", ".junie"),
    row("Augment", PROJECT, ".augment", "https://docs.augmentcode.com/cli/v0/reference"),
    row("Factory", PROJECT, ".factory", "https://docs.factory.ai/reference/hooks-reference"),
    row("Crush", IF_THERE, ".crushrc crushrc .crush.json crush.json .crush",
        "https://github.com/charmbracelet/crush/blob/main/docs/config/README.md", ".crush"),
    row("Aider", IF_THERE, ".aider.conf.yml", "https://aider.chat/docs/config/aider_conf.html"),
    row("Goose", IF_THERE, ".goosehints .goose",
        "https://dev.to/lymah/using-goosehints-files-with-goose-304m", ".goose"),
    row("Trae", PROJECT, ".trae", "https://docs.rs/crate/lorum/latest/source/src/adapters/trae.rs"),
    row("Antigravity and others", PROJECT, ".agents .agent",
        "https://github.com/stbenjam/skillsaw/blob/main/docs/rules/antigravity-mcp-valid.md"),
    row("Antigravity", IF_THERE, "_agents _agent",
        "https://github.com/stbenjam/skillsaw/blob/main/docs/rules/antigravity-mcp-valid.md"),
    # editors: tasks, interpreters and settings that run when a folder or a file is opened
    row("VS Code", PROJECT, ".vscode", "https://code.visualstudio.com/docs/editing/workspaces/workspace-trust"),
    row("VS Code", IF_THERE, "*.code-workspace",
        "https://code.visualstudio.com/docs/editing/workspaces/workspaces", UNREAD),
    row("JetBrains", PROJECT, ".idea", "https://www.jetbrains.com/help/idea/project-security.html", ".idea"),
    row("JetBrains Fleet", PROJECT, ".fleet", "https://www.jetbrains.com/help/fleet/run-configurations.html", UNREAD),
    row("Visual Studio", IF_THERE, ".vs *.suo", "https://learn.microsoft.com/visualstudio/ide/trust-settings", UNREAD),
    row("Zed", PROJECT, ".zed", "https://zed.dev/docs/worktree-trust"),
    row("Vim", IF_THERE, ".exrc .vimrc .gvimrc _exrc _vimrc",
        "https://deno.land/x/denops_std@v6.5.1/option/mod.ts?s=exrc", "_exrc _vimrc"),
    row("Neovim", IF_THERE, ".nvim.lua .nvimrc", "https://github.com/jedrzejboczar/exrc.nvim"),
    row("Emacs", IF_THERE, ".dir-locals.el .dir-locals-2.el",
        "https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html"),
    row("Sublime Text", IF_THERE, "*.sublime-project *.sublime-build",
        "https://www.sublimetext.com/docs/projects.html", UNREAD),
    row("Dev containers", PROJECT, ".devcontainer", "https://containers.dev/glossary"),
    row("Dev containers", IF_THERE, ".devcontainer.json",
        "https://www.skills.sh/tyler-r-kendrick/agent-skills/devcontainer"),
    row("Gitpod", IF_THERE, ".gitpod.yml .ona", "https://www.gitpod.io/docs/references/gitpod-yml", UNREAD),
    # version control, and what runs at its events
    row("git", PROJECT, ".git git~1", "https://git-scm.com/docs/gitrepository-layout", "git~1"),
    row("git", PROJECT, ".gitmodules", "https://git-scm.com/docs/gitmodules"),
    row("git", HOME, "~/.config/git", "https://git-scm.com/docs/git-config#FILES"),
    row("git", BY_NAME, ".config/git", "https://git-scm.com/docs/git-config#FILES"),
    row("Mercurial", PROJECT, ".hg/hgrc .hg/hgrc-not-shared",
        "https://mercurial-scm.org/doc/hgrc.5.html", ".hg/hgrc-not-shared"),
    row("Mercurial", STARTUP, ".hgrc", "https://mercurial-scm.org/doc/hgrc.5.html"),
    row("Jujutsu", PROJECT, ".jj/repo/config.toml .jj/repo/config-id .jj/workspace-config.toml .jj/workspace-config-id",
        "https://github.com/jj-vcs/jj/blob/main/docs/design/secure-config.md"),
    row("Jujutsu", HOME, "~/.config/jj", "https://github.com/jj-vcs/jj/blob/main/docs/design/secure-config.md"),
    row("Husky", PROJECT, ".husky", "https://www.greptile.com/grepository/husky"),
    row("pre-commit", PROJECT, ".pre-commit-config.yaml .pre-commit-config.yml",
        "https://pre-commit.com/", ".pre-commit-config.yml"),
    row("Lefthook", IF_THERE,
        "lefthook.yml lefthook.yaml lefthook.toml lefthook.json lefthook.jsonc .lefthook.yml .lefthook.yaml "
        ".lefthook.toml .lefthook.json .lefthook.jsonc lefthook-local.* .lefthook-local.* .config/lefthook.* "
        ".config/lefthook-local.* .lefthook .lefthook-local",
        "https://lefthook.dev/configuration", ".lefthook .lefthook-local"),
    row("Overcommit", IF_THERE, ".overcommit.yml .git-hooks",
        "https://github.com/sds/overcommit#configuration", ".git-hooks"),
    row("simple-git-hooks", IF_THERE,
        ".simple-git-hooks.* simple-git-hooks.cjs simple-git-hooks.js simple-git-hooks.mjs simple-git-hooks.json",
        "https://app.unpkg.com/simple-git-hooks@2.13.1/files/simple-git-hooks.js"),
    # forges: what runs on machines that hold other keys
    row("GitHub", PROJECT, ".github/workflows .github/actions",
        "https://docs.github.com/actions/reference/workflows-and-actions", ".github/actions"),
    row("GitHub Copilot", PROJECT, ".github/hooks .github/copilot",
        "https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-hooks-reference", ".github/copilot"),
    row("Gitea, Forgejo", PROJECT, ".gitea/workflows .forgejo/workflows",
        "https://forgejo.org/docs/latest/user/actions/overview", ".gitea/workflows"),
    row("GitLab", IF_THERE, ".gitlab-ci.yml", "https://docs.gitlab.com/ci/yaml/", UNREAD),
    row("CircleCI", PROJECT, ".circleci", "https://circleci.com/docs/configuration-reference/"),
    row("Buildkite", PROJECT, ".buildkite", "https://buildkite.com/docs/agent/hooks"),
    row("other CI", IF_THERE,
        ".travis.yml .drone.yml .woodpecker.yml .woodpecker .cirrus.yml azure-pipelines.yml bitbucket-pipelines.yml "
        "Jenkinsfile appveyor.yml .appveyor.yml",
        "https://docs.github.com/actions/tutorials/migrate-to-github-actions", UNREAD),
    # shells and version managers that act when a folder is entered
    row("direnv", PROJECT, ".envrc", "https://nix.dev/guides/recipes/direnv"),
    row("mise", IF_THERE,
        "mise.toml .mise.toml mise.*.toml .mise.*.toml mise/config.* .mise .config/mise .config/mise.toml .rtx.toml",
        "https://mise.jdx.dev/configuration.html", ".rtx.toml"),
    row("asdf", IF_THERE, ".asdfrc", "https://asdf-vm.com/manage/configuration.html", UNREAD),
    row("devenv", IF_THERE, "devenv.yaml devenv.nix", "https://devenv.sh/auto-activation/", "devenv.nix"),
    row("Devbox", IF_THERE, "devbox.json", "https://github.com/jetify-com/devbox/pull/93"),
    # package managers and builds that run what these files name, whatever they are called for
    row("npm", PROJECT, ".npmrc", "https://docs.npmjs.com/cli/configuring-npm/npmrc"),
    row("pnpm", IF_THERE, ".pnpmfile.cjs .pnpmfile.mjs pnpmfile.js",
        "https://pnpm.io/pnpmfile", ".pnpmfile.mjs pnpmfile.js"),
    row("Yarn", PROJECT, ".yarn .yarnrc .yarnrc.yml", "https://www.cnblogs.com/bq-med/articles/19136383"),
    row("Yarn", BY_NAME, ".yarnrc*", "https://yarnpkg.com/configuration/yarnrc", UNREAD),
    row("Yarn", IF_THERE, ".pnp.cjs .pnp.loader.mjs", "https://www.volcengine.com/article/2229095"),
    row("Bun", IF_THERE, "bunfig.toml .bunfig.toml", "https://bun.sh/docs/runtime/bunfig"),
    row("Cargo", PROJECT, ".cargo", "https://rustwiki.org/en/cargo/reference/config.html"),
    row("Maven", PROJECT, ".mvn", "https://maven.apache.org/configure.html"),
    row("Bazel", IF_THERE, ".bazelrc .bazeliskrc tools/bazel user.bazelrc",
        "https://bazel.build/run/bazelrc", ".bazeliskrc tools/bazel user.bazelrc"),
    row("Buck2", IF_THERE, ".buckconfig .buckconfig.local",
        "https://buck2.build/docs/concepts/buckconfig", ".buckconfig.local"),
    row("Bundler", IF_THERE, ".bundle", "https://bundler.io/man/bundle-config.1.html", UNREAD),
    row("debuggers", PROJECT, ".gdbinit .lldbinit",
        "https://man7.org/linux/man-pages/man5/gdbinit.5.html", ".lldbinit"),
    row("debuggers", HOME, "~/.config/gdb", "https://man7.org/linux/man-pages/man5/gdbinit.5.html"),
    row("R, IRB, IPython", IF_THERE, ".Rprofile .irbrc .ipython", "https://rdrr.io/r/base/Startup.html", UNREAD),
    row("virtual environments", BY_NAME,
        ".venv/bin venv/bin .venv/Scripts venv/Scripts .venv/pyvenv.cfg venv/pyvenv.cfg sitecustomize.py "
        "usercustomize.py site-packages/*.pth",
        "https://docs.python.org/3/library/site.html", ".venv/bin venv/bin .venv/Scripts venv/Scripts"),
    row("programs of packages", BY_NAME, "node_modules/.bin vendor/bin .direnv",
        "https://docs.npmjs.com/cli/configuring-npm/folders", "vendor/bin .direnv"),
    # shells and programs that start from a home folder
    row("bash", STARTUP, ".bashrc .bash_profile .bash_login .bash_logout .profile .inputrc",
        "https://man7.org/linux/man-pages/man1/bash.1.html"),
    row("shells", STARTUP,
        ".bash_aliases .login .zshrc .zshenv .zprofile .zlogin .zlogout .cshrc .tcshrc .kshrc .xinitrc .xprofile "
        ".direnvrc",
        "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html", UNREAD),
    row("X sessions", STARTUP, ".xsession .xsessionrc",
        "https://manpages.debian.org/bookworm/x11-common/Xsession.5.en.html"),
    row("PAM", STARTUP, ".pam_environment", "https://man7.org/linux/man-pages/man8/pam_env.8.html"),
    row("curl, wget", STARTUP, ".curlrc .netrc .wgetrc", "https://curl.se/docs/manpage.html", ".wgetrc"),
    row("git", STARTUP, ".gitconfig", "https://git-scm.com/docs/git-config#FILES"),
    row("programs", STARTUP, ".pythonrc .pypirc .condarc",
        "https://packaging.python.org/specifications/pypirc/", UNREAD),
    row("keys", HOME, "~/.ssh ~/.gnupg ~/.aws ~/.kube ~/.docker", "https://man.openbsd.org/ssh_config",
        "~/.gnupg ~/.aws ~/.kube ~/.docker"),
    row("systemd", HOME, "~/.config/systemd", "https://man7.org/linux/man-pages/man5/systemd.unit.5.html"),
    row("systemd", HOME, "~/.config/environment.d", "https://man7.org/linux/man-pages/man5/environment.d.5.html"),
    row("systemd", HOME, "~/.local/bin", "https://man7.org/linux/man-pages/man7/file-hierarchy.7.html"),
    row("sessions", HOME,
        "~/bin ~/.config/autostart ~/.local/share/applications ~/Library/LaunchAgents ~/.forward ~/.mailcap",
        "https://specifications.freedesktop.org/autostart-spec/latest/", UNREAD),
    row("shells", HOME, "~/.config/fish ~/.local/share/fish",
        "https://fishshell.com/docs/current/language.html#configuration", UNREAD),
    row("packages", HOME,
        "~/.local/lib ~/.config/pip ~/.pip ~/.m2 ~/.gradle ~/.bundle ~/.ipython ~/.config/mise",
        "https://pip.pypa.io/en/stable/topics/configuration/",
        "~/.local/lib ~/.m2 ~/.gradle ~/.bundle ~/.ipython ~/.config/mise"),
    row("Vim", HOME, "~/.vimrc ~/.vim", "https://man7.org/linux/man-pages/man1/vim.1.html"),
    row("tmux", HOME, "~/.tmux.conf ~/.config/tmux", "https://man7.org/linux/man-pages/man1/tmux.1.html"),
    row("editors and terminals", HOME,
        "~/.config/nvim ~/.emacs ~/.emacs.d ~/.config/emacs ~/.screenrc "
        "~/.config/zed ~/.config/Code/User ~/.vscode-server ~/.cursor-server",
        "https://vimhelp.org/starting.txt.html#vimrc", UNREAD),
    row("projects", HOME,
        "~/.npmrc ~/.yarnrc ~/.yarnrc.yml ~/.envrc ~/.gitmodules ~/.mcp.json ~/.claude.json ~/.gdbinit ~/.lldbinit",
        "https://docs.npmjs.com/cli/configuring-npm/npmrc", UNREAD),
    row("psql", HOME, "~/.psqlrc", "https://www.postgresql.org/docs/current/app-psql.html"),
    row("sqlite3", HOME, "~/.sqliterc", "https://manpages.debian.org/bookworm/sqlite3/sqlite3.1.en.html"),
    row("consoles", HOME, "~/.irbrc ~/.Rprofile ~/.octaverc", "https://rdrr.io/r/base/Startup.html", UNREAD),
    row("agents", HOME,
        "~/.config/opencode ~/.config/goose ~/.config/crush ~/.config/kilo ~/.config/amp ~/.config/github-copilot "
        "~/.copilot "
        "~/.codeium ~/.cline",
        "https://opencode.ai/docs/config/", UNREAD),
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
