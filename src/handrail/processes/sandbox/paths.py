"""Paths that a sandbox always treats specially, whatever the settings say. Names only; nothing is looked up here."""

# Below the home folder: keys, tokens, passwords, and what a person typed. Hidden even where the home folder is shown.
SECRETS = tuple(
    """
    .ssh .gnupg .aws .azure .kube .docker .netrc .pypirc .npmrc .git-credentials .config/git/credentials
    .password-store .config/gh .config/glab-cli .config/hub .config/gcloud .config/op .config/rclone .config/sops
    .config/containers .config/google-chrome .config/chromium .config/BraveSoftware .mozilla .thunderbird .pki
    .local/share/keyrings .local/share/kwalletd .vault-token .terraform.d .terraformrc .boto .s3cfg .dockercfg
    .pgpass .my.cnf .gem/credentials .cargo/credentials .cargo/credentials.toml .m2/settings.xml
    .gradle/gradle.properties .composer/auth.json .databrickscfg .bash_history .zsh_history .python_history
    .node_repl_history .psql_history .mysql_history .sqlite_history .lesshst .viminfo .local/share/fish
    .local/state/bash .Xauthority .ICEauthority .dbus .bitcoin .ethereum .electrum Library/Keychains
    Library/Cookies Library/Messages Library/Mail
    """.split()
)

# Below the home folder: what programs need to run at all. Readable although the rest of the home folder is not.
TOOLCHAINS = tuple(
    """
    .pyenv .nvm .rustup .cargo/bin .local/bin .local/lib .local/pipx .local/share/uv .local/share/mise
    .local/share/fnm .local/share/pipx .asdf .rbenv .jenv .goenv .nodenv .sdkman/candidates .volta .fnm .bun/bin
    .deno/bin .ghcup/bin go/bin miniconda3 anaconda3 miniforge3 mambaforge .linuxbrew .nix-profile .gitconfig
    .config/git/config .config/git/ignore .config/git/attributes
    """.split()
)

# Keys of the machine, and sockets of programs that do things for others: containers, buses, agents.
SYSTEM = (
    "/run", "/var/run", "/home", "/root", "/Users",
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh",
    "/etc/krb5.keytab", "/etc/ssl/private", "/etc/NetworkManager/system-connections", "/etc/wireguard",
    "/etc/kubernetes", "/var/lib/docker", "/var/lib/containerd", "/var/lib/lxd", "/var/lib/incus", "/var/lib/kubelet",
    "/var/lib/rancher", "/var/spool/cron", "/var/mail", "/var/spool/mail", "/var/backups", "/var/db/dslocal",
)  # fmt: skip
# What lies in a hidden folder and is needed all the same.
SYSTEM_SHOWN = ("/run/current-system", "/home/linuxbrew", "/Users/Shared")
TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - names of what is replaced, nothing is written there

# In a git folder: what git runs or follows. `commondir` sends git to another folder for its configuration.
GIT_GUARDED = ("hooks", "config", "config.worktree", "commondir", "modules", "worktrees")
# What git takes for absent, so that a name can be kept occupied.
GIT_NEUTRAL = {"commondir": b".\n", "config.worktree": b""}

# Variables that lead to sockets and agents which are not there.
DROPPED_VARIABLES = (
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS",
    "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DOCKER_HOST", "CONTAINER_HOST", "TMUX", "STY",
    "GNOME_KEYRING_CONTROL", "PULSE_SERVER", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "KRB5CCNAME",
)  # fmt: skip
