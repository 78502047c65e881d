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

from handrail.named_tuples import NamedTuple


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
    row("Junie", PROJECT, ".junie", "https://www.jetbrains.com/help/junie/project-settings.html"),
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
    row("OpenHands", PROJECT, ".openhands", "https://docs.openhands.dev/openhands/usage/customization/repository"),
    row("Mistral Vibe", PROJECT, ".vibe", "https://docs.mistral.ai/mistral-vibe/terminal/configuration"),
    row("other agents", IF_THERE, ".amp .rovodev .tabnine .codebuddy .iflow", "https://ampcode.com/manual", UNREAD),
    # editors: tasks, interpreters and settings that run when a folder or a file is opened
    row("VS Code", PROJECT, ".vscode", "https://code.visualstudio.com/docs/editing/workspaces/workspace-trust"),
    row("VS Code", IF_THERE, "*.code-workspace",
        "https://eclipse-theia.github.io/theia/docs/next/variables/"
        "_theia_ai-ide.browser_workspace-task-provider.WORKSPACE_SCOPE_TOKEN.html"),
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
        "https://www.sublimetext.com/docs/build_systems.html", "*.sublime-project"),
    row("Dev containers", PROJECT, ".devcontainer", "https://containers.dev/glossary"),
    row("Dev containers", IF_THERE, ".devcontainer.json",
        "https://www.skills.sh/tyler-r-kendrick/agent-skills/devcontainer"),
    row("Gitpod", IF_THERE, ".gitpod.yml .ona",
        "https://gist.github.com/ghuntley/1914fd5d15aec638d6dbb8d32d00f1e5", ".ona"),
    row("other editors", IF_THERE, ".theia .nova .helix .lvimrc .ycm_extra_conf.py .replit .idx .codesandbox",
        "https://docs.replit.com/replit-workspace/configuring-repl", UNREAD),
    row("build servers", IF_THERE, ".bsp", "https://mill-build.org/api/latest/mill/bsp/BSP$.html"),
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
    row("git", IF_THERE, ".githooks", "https://docs.rs/crate/sagittarius/latest/source/scripts/install-hooks.sh"),
    row("other hooks", IF_THERE,
        "captainhook.json .captainhook.json grumphp.yml .rusty-hook.toml .cargo-husky .sl/config",
        "https://php.captainhook.info/configure.html", UNREAD),
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
    row("GitLab", IF_THERE, ".gitlab-ci.yml", "https://docs.gitlab.com/ci/yaml/"),
    row("CircleCI", PROJECT, ".circleci", "https://circleci.com/docs/configuration-reference/"),
    row("Buildkite", PROJECT, ".buildkite", "https://buildkite.com/docs/agent/hooks"),
    row("other CI", IF_THERE,
        ".drone.yml .woodpecker Jenkinsfile appveyor.yml .appveyor.yml",
        "https://docs.github.com/actions/tutorials/migrate-to-github-actions", UNREAD),
    row("Woodpecker", IF_THERE, ".woodpecker.yml", "https://woodpecker-ci.org/docs/1.0/intro"),
    row("Woodpecker", IF_THERE, ".woodpecker.yaml", "https://www.woodpecker-ci.org/docs/intro"),
    row("Cirrus CI", IF_THERE, ".cirrus.yml",
        "https://github.com/cirruslabs/cirrus-ci-docs/blob/758390f76aabd01f2e4ebbbe39ff818fef2f085f/docs/guide/quick-start.md"),
    row("Bitbucket", IF_THERE, "bitbucket-pipelines.yml",
        "https://confluence.atlassian.com/bitbucket/_pipelines_yml_basic_requirements-824345885.html"),
    row("Azure, Travis CI", IF_THERE, "azure-pipelines.yml .travis.yml",
        "https://gitlab.com/pclouds/git/blob/5c2b4ca06ee2803bd5329cb0ccfc12cfaa40afe7/ci/mount-fileshare.sh"),
    # shells and version managers that act when a folder is entered
    row("direnv", PROJECT, ".envrc", "https://nix.dev/guides/recipes/direnv"),
    row("mise", IF_THERE,
        "mise.toml .mise.toml mise.*.toml .mise.*.toml mise/config.* .mise .config/mise .config/mise.toml .rtx.toml",
        "https://mise.jdx.dev/configuration.html", ".rtx.toml"),
    row("asdf", IF_THERE, ".asdfrc", "https://github.com/asdf-vm/asdf/pull/434"),
    row("devenv", IF_THERE, "devenv.yaml devenv.nix", "https://devenv.sh/auto-activation/", "devenv.nix"),
    row("Devbox", IF_THERE, "devbox.json", "https://github.com/jetify-com/devbox/pull/93"),
    row("Flox", IF_THERE, ".flox", "https://flox.dev/docs/concepts/auto-activation"),
    row("rustup", IF_THERE, "rust-toolchain rust-toolchain.toml",
        "https://rust-lang.github.io/rustup/overrides.html", "rust-toolchain"),
    row("folders that are entered", IF_THERE, ".shadowenv.d .rvmrc .autoenv .autoenv.zsh",
        "https://shopify.github.io/shadowenv/", UNREAD),
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
    row("Bazel", IF_THERE, ".bazelrc .bazeliskrc user.bazelrc",
        "https://bazel.build/run/bazelrc", ".bazeliskrc user.bazelrc"),
    row("Bazelisk", IF_THERE, "tools/bazel tools/bazel.*", "https://docsearch.algolia.com/mcp/docs/repo/bazelbuild/bazelisk"),
    row("Buck2", IF_THERE, ".buckconfig .buckconfig.local",
        "https://buck2.build/docs/concepts/buckconfig", ".buckconfig.local"),
    row("Bundler", IF_THERE, ".bundle", "https://bundler.io/man/bundle-config.1.html"),
    row("GDB", PROJECT, ".gdbinit", "https://man7.org/linux/man-pages/man5/gdbinit.5.html"),
    row("LLDB", PROJECT, ".lldbinit", "https://reviews.llvm.org/D86242"),
    row("debuggers", HOME, "~/.config/gdb", "https://man7.org/linux/man-pages/man5/gdbinit.5.html"),
    row("R", IF_THERE, ".Rprofile", "https://rdocumentation.org/packages/startup/versions/0.22.0"),
    row("R", IF_THERE, ".Renviron", "https://stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html"),
    row("IRB", IF_THERE, ".irbrc irb.rc _irbrc", "https://ruby.github.io/irb/Configurations_md.html"),
    row("IPython", IF_THERE, ".ipython", "https://github.com/ipython/ipython/issues/6136"),
    row("pdb", IF_THERE, ".pdbrc", "https://github.com/python/cpython/pull/15085/files"),
    row("IEx", IF_THERE, ".iex.exs", "https://hex.pm/packages/lfe/2.1.5/files/bin/stuff/iex"),
    row("other consoles", IF_THERE, ".pryrc .ghci .ocamlinit .octaverc",
        "https://downloads.haskell.org/ghc/latest/docs/users_guide/ghci.html", UNREAD),
    row("virtual environments", BY_NAME,
        ".venv/bin venv/bin env/bin .env/bin .venv/Scripts venv/Scripts .venv/pyvenv.cfg venv/pyvenv.cfg "
        "sitecustomize.py usercustomize.py site-packages/*.pth",
        "https://docs.python.org/3/library/site.html",
        ".venv/bin venv/bin env/bin .env/bin .venv/Scripts venv/Scripts"),
    row("programs of packages", BY_NAME, "node_modules/.bin vendor/bin .direnv",
        "https://docs.npmjs.com/cli/configuring-npm/folders", "vendor/bin .direnv"),
    # shells and programs that start from a home folder
    row("bash", STARTUP, ".bashrc .bash_profile .bash_login .bash_logout .profile .inputrc",
        "https://man7.org/linux/man-pages/man1/bash.1.html"),
    row("shells", STARTUP,
        ".bash_aliases .kshrc .xprofile .direnvrc",
        "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html", UNREAD),
    row("zsh", STARTUP, ".zshrc .zshenv .zprofile .zlogin .zlogout", "https://zsh.sourceforge.io/Doc/Release/Files.html"),
    row("tcsh", STARTUP, ".login .cshrc .tcshrc",
        "https://www.ibm.com/support/knowledgecenter/en/SSLTBW_2.1.0/com.ibm.zos.v2r1.bpxa400/tcupro.htm"),
    row("X sessions", STARTUP, ".xinitrc .xserverrc", "https://man.openbsd.org/startx"),
    row("X sessions", STARTUP, ".xsession .xsessionrc",
        "https://manpages.debian.org/bookworm/x11-common/Xsession.5.en.html"),
    row("PAM", STARTUP, ".pam_environment", "https://man7.org/linux/man-pages/man8/pam_env.8.html"),
    row("curl, wget", STARTUP, ".curlrc .netrc .wgetrc", "https://curl.se/docs/manpage.html", ".wgetrc"),
    row("git", STARTUP, ".gitconfig", "https://git-scm.com/docs/git-config#FILES"),
    row("programs", STARTUP, ".pythonrc .pypirc .condarc",
        "https://packaging.python.org/specifications/pypirc/", UNREAD),
    row("keys", HOME, "~/.ssh ~/.gnupg ~/.aws ~/.docker", "https://man.openbsd.org/ssh_config",
        "~/.gnupg ~/.aws ~/.docker"),
    row("kubectl", HOME, "~/.kube", "https://github.com/plumber-cd/kubectl-credentials-helper"),
    row("systemd", HOME, "~/.config/systemd", "https://man7.org/linux/man-pages/man5/systemd.unit.5.html"),
    row("systemd", HOME, "~/.config/environment.d", "https://man7.org/linux/man-pages/man5/environment.d.5.html"),
    row("systemd", HOME, "~/.local/bin", "https://man7.org/linux/man-pages/man7/file-hierarchy.7.html"),
    row("sessions", HOME,
        "~/bin ~/.local/share/applications ~/.forward ~/.mailcap",
        "https://specifications.freedesktop.org/autostart-spec/latest/", UNREAD),
    row("sessions", HOME, "~/.config/autostart", "https://manpages.ubuntu.com/manpages/noble/man1/fbautostart.1.html"),
    row("launchd", HOME, "~/Library/LaunchAgents",
        "https://man.freebsd.org/cgi/man.cgi?manpath=Darwin&query=launchd&sektion=8"),
    row("shells", HOME, "~/.config/fish ~/.local/share/fish",
        "https://fishshell.com/docs/current/language.html#configuration", UNREAD),
    row("packages", HOME,
        "~/.config/pip ~/.pip ~/.m2 ~/.config/mise",
        "https://pip.pypa.io/en/stable/topics/configuration/", "~/.m2 ~/.config/mise"),
    row("Python", HOME, "~/.local/lib", "https://www.cnblogs.com/akxmhd/p/15449871.html"),
    row("Gradle", HOME, "~/.gradle",
        "https://docs.gradle.org/current/kotlin-dsl/gradle/org.gradle.tooling/-gradle-connector/use-gradle-user-home-dir.html"),
    row("Bundler", HOME, "~/.bundle", "https://bundler.io/man/bundle-config.1.html"),
    row("IPython", HOME, "~/.ipython", "https://github.com/ipython/ipython/issues/6136"),
    row("Vim", HOME, "~/.vimrc ~/.vim", "https://man7.org/linux/man-pages/man1/vim.1.html"),
    row("tmux", HOME, "~/.tmux.conf ~/.config/tmux", "https://man7.org/linux/man-pages/man1/tmux.1.html"),
    row("Emacs", HOME, "~/.emacs ~/.emacs.el ~/.emacs.d ~/.config/emacs",
        "https://gnu.org/software/emacs/manual/html_node/emacs/Init-File.html"),
    row("screen", HOME, "~/.screenrc", "https://gnu.org/software/screen/manual/html_node/Startup-Files.html"),
    row("editors and terminals", HOME,
        "~/.config/nvim ~/.config/zed ~/.config/Code/User ~/.vscode-server ~/.cursor-server",
        "https://vimhelp.org/starting.txt.html#vimrc", UNREAD),
    row("projects", HOME,
        "~/.yarnrc ~/.yarnrc.yml ~/.envrc ~/.gitmodules ~/.mcp.json ~/.claude.json ~/.gdbinit",
        "https://docs.npmjs.com/cli/configuring-npm/npmrc", UNREAD),
    row("npm", HOME, "~/.npmrc", "https://manpages.ubuntu.com/manpages/kinetic/man5/npmrc.5.html"),
    row("LLDB", HOME, "~/.lldbinit", "https://reviews.llvm.org/D86242"),
    row("psql", HOME, "~/.psqlrc", "https://www.postgresql.org/docs/current/app-psql.html"),
    row("sqlite3", HOME, "~/.sqliterc", "https://manpages.debian.org/bookworm/sqlite3/sqlite3.1.en.html"),
    row("IRB", HOME, "~/.irbrc", "https://ruby.github.io/irb/Configurations_md.html"),
    row("consoles", HOME, "~/.Rprofile ~/.octaverc", "https://rdrr.io/r/base/Startup.html", UNREAD),
    row("OpenCode", HOME, "~/.config/opencode", "https://opencode.ai/docs/plugins.md"),
    row("GitHub Copilot", HOME, "~/.copilot",
        "https://docs.github.com/en/enterprise-cloud@latest/copilot/reference/copilot-cli-reference"),
    row("Windsurf", HOME, "~/.codeium", "https://docs.rs/crate/lorum/latest/source/docs/tools/windsurf.md"),
    row("agents", HOME,
        "~/.config/goose ~/.config/crush ~/.config/kilo ~/.config/amp ~/.config/github-copilot ~/.cline",
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
