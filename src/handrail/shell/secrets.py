"""
Decides by name alone which paths hold secrets, and which are not ordinary files.

A list of names can only be a help: a secret in a file of another name is not seen.
"""

from functools import lru_cache

from handrail.shell.patterns import NamePattern

# Names of files and folders that hold keys, tokens, passwords or what a person typed.
COPIED = ".env .netrc .npmrc id_rsa id_ed25519".split()
COPIES = ("{}~", ".{}.swp", "{}.bak", "{}.old")  # the names under which editors and people keep a copy
NAMES = frozenset(copy.format(name) for copy in COPIES for name in COPIED) | frozenset(
    """
    .env .envrc .netrc _netrc .pgpass .my.cnf .npmrc .yarnrc.yml .pypirc .git-credentials .htpasswd .vault-token
    .ssh .gnupg .aws .azure .kube .docker .password-store .terraformrc .boto .s3cfg .dockercfg
    .bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .lesshst .viminfo
    id_rsa id_dsa id_ecdsa id_ed25519 credentials credentials.json secrets.json secrets.yml secrets.yaml
    shadow gshadow sudoers keyring keyrings .credentials.json oauth_creds.json application_default_credentials.json
    service-account.json service_account.json client_secret.json client_secrets.json kaggle.json .dockerconfigjson
    settings-security.xml auth.toml rclone.conf .mylogin.cnf .pg_service.conf .databrickscfg .cvspass .msmtprc
    .fetchmailrc .offlineimaprc .oci .aliyun .bluemix .snowsql .kaggle .huggingface .irb_history .rediscli_history
    .sqlite_history .histfile fish_history credentials.tfrc.json
    """.split()
)
ENDINGS = (
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".gpg",
    ".asc",
    ".tfstate",
    ".ppk",
    ".ovpn",
    ".agekey",
    ".keychain-db",
)
BELOW = (
    "/.config/gh/",
    "/.config/gcloud/",
    "/.config/op/",
    "/run/secrets/",
    "/.gem/credentials",
    "/.cargo/credentials",
    *(
        f"/.config/{name}"
        for name in "hub glab-cli/ doctl/ containers/auth rclone/ sops/ age/ github-copilot/ stripe/".split()
    ),
    *("/.config/netlify/", "/.config/configstore/", "/.codex/auth", "/.composer/auth", "/.subversion/auth/", "/.fly/"),
    *("/.cache/huggingface/token", "/.terraform.d/credentials"),
)
# `.env.production` is one, `.env.example` is made to be shown.
SHARED_ENV = frozenset(f".env.{kind}" for kind in ("example", "sample", "template", "dist", "defaults"))
# The same names as patterns that searches understand; a slash behind one says that it is a folder.
SECRET_PATTERNS = (
    *sorted(NAMES),
    *(f"{name}/" for name in sorted(NAMES | {"gh", "gcloud", "op"})),
    *(".config/", ".codex/", ".composer/", ".subversion/", ".fly/", ".terraform.d/"),
    *("credentials.toml", ".env.*", *(f"*{end}" for end in ENDINGS)),
)
WILD = frozenset("*?[")
NO_FILES = ("/proc/", "/dev/", "/sys/")
# What every program of the machine may know, and people ask for: no user, key, address or command line is in it.
SYSTEM_FACTS = frozenset(
    """
    /etc/os-release /usr/lib/os-release /etc/lsb-release /etc/debian_version /etc/redhat-release /etc/alpine-release
    /etc/issue /etc/shells /etc/timezone /proc/cpuinfo /proc/meminfo /proc/version /proc/loadavg /proc/uptime
    /proc/filesystems /proc/stat /proc/vmstat /proc/diskstats /proc/partitions /proc/swaps
    """.split()
)
# What is installed or kept for all users: the names of what lies below may be seen.
SYSTEM_FOLDERS = tuple(f"/{name}/" for name in "bin sbin lib lib64 usr opt etc".split())
HARMLESS_DEVICES = frozenset(("/dev/null", "/dev/zero", "/dev/stdin"))


def secret(path: str) -> bool:
    """True for an absolute path, or pattern of paths, that names a secret or no ordinary file."""
    if no_file(path):
        return True
    return any(map(f"{path}/".__contains__, BELOW)) or any(map(secret_name, path.split("/")))


def no_file(path: str) -> bool:
    """True for a path of the kernel or of a device that is not known to be harmless."""
    return f"{path}/".startswith(NO_FILES) and path not in HARMLESS_DEVICES | SYSTEM_FACTS


def may_be_listed(path: str) -> bool:
    """True for an absolute path whose name and size anyone may see, and the names of what lies in it."""
    return f"{path}/".startswith(SYSTEM_FOLDERS) and not secret(path)


@lru_cache(4096)
def secret_name(name: str) -> bool:
    """True for a name, or pattern of names, of files that hold secrets; folders of one tree repeat the same names."""
    plain = name.lower()
    if plain in NAMES or plain.endswith(ENDINGS) or (plain.startswith(".env.") and plain not in SHARED_ENV):
        return True
    # `.e*` can mean .env. A pattern that begins with a wildcard means everything here, not a secret.
    return not WILD.isdisjoint(plain) and plain[0] not in WILD and any(map(NamePattern(plain).may_match, NAMES))
