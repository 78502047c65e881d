"""
The words of a command that may name a program it runs, where no table entry says what each word is.

For rules that deny or ask: it errs on the side of too much and is never a ground to allow.
"""

from collections.abc import Iterator
from itertools import pairwise

from handrail.lazy import lazy_pattern
from handrail.shell import tables
from handrail.shell.model import HARMLESS, Does, Effect, Segment, Word

# The value of these options is a program; that of -wrapper has its words between commas.
PROGRAM_OPTIONS: dict[str, tuple[str, ...]] = {
    name: tuple(options.split())
    for names, options in {
        "scp sftp": "-S",
        "install": "--strip-program",
        "gcc g++ cc c++ gfortran clang clang++": "-wrapper",
        "tar gtar bsdtar star": "-I --use-compress-program -F --info-script --new-volume-script --to-command "
        "--rsh-command --rmt-command --checkpoint-action",
        "cpio": "--rsh-command",
        "nano pico": "-s --speller",
        "wget": "--use-askpass",
        "gpg gpg2": "--photo-viewer --agent-program --dirmngr-program --keyboxd-program --gpg-agent-program",
        "go": "-toolexec -vettool -exec",
        "man": "-H --html -P --pager",
        "pip pip3": "--python",
        "virtualenv": "-p --python",
        "cargo": "--config",
        "npm pnpm yarn": "--script-shell --shell --editor --viewer --git",
        "mail mailx s-nail": "-S",
        "git": "--exec --upload-pack --receive-pack --extcmd --smtp-server --to-cmd --cc-cmd",
        "docker podman nerdctl": "--entrypoint --health-cmd",
        "rsync": "-e --rsh --rsync-path",
        "sort": "--compress-program",
        "split": "--filter",
        "rg": "--pre --hostname-bin",
        "snap": "--shell",
        "csplit zip": "-TT --unzip-command",
        "mysql mariadb psql": "--pager",
        "ansible ansible-playbook": "--ssh-executable --sftp-extra-args -e",
        "aria2c": "--on-download-complete --on-download-start --on-download-error --on-download-stop",
        "screen": "-s",
        "ctest": "--build-and-test --test-command",
    }.items()
    for name in names.split()
}
# They run none of their words, whatever their options: these are files, numbers, names of processes or users.
RUNS_NOTHING = frozenset(
    """
    cp mv ln rm rmdir shred unlink srm wipe trash trash-put rimraf safe-rm mkdir touch tee truncate mktemp mkfifo mknod
    dd link sponge chmod chown chgrp chattr setfacl sync stty reset mount umount swapon swapoff useradd userdel usermod
    groupadd groupdel passwd logger wall write mesg ping ping6 traceroute tracepath dig host nslookup whois
    kill pkill killall patch
    """.split()
)
RUN_NOTHING_FAMILIES = frozenset(("builtins", "coreutils", "facts", "compare", "viewers", "processes", "json_tools"))
# Their operands are packages, targets, scripts, services or addresses: only the value of an option may be a program.
OPERANDS_ARE_DATA = frozenset(
    """
    pip pip3 uv pipx npm pnpm yarn bun deno gem conda apt apt-get apt-cache apt-mark dpkg rpm pacman brew snap cargo
    rustup go composer mvn gradle sbt gh glab docker docker-compose podman nerdctl kubectl oc helm systemctl service
    launchctl journalctl make gmake cmake ninja meson ctest curl wget http https aria2c tar bsdtar gtar zip unzip 7z git
    python python2 python3 node nodejs ruby php perl lua java javac gcc g++ cc c++ clang clang++ terraform aws gcloud az
    """.split()
)
# Known from use to take files, names and addresses, and no command, where the tables have no entry for them.
DEVELOPER_TOOLS = frozenset(
    """
    pytest py.test tox nox ruff mypy pyright black isort flake8 pylint bandit vulture coverage sphinx-build pre-commit
    tsc eslint prettier jest vitest mocha vite webpack rollup esbuild next playwright cypress storybook turbo nx lerna
    terraform tofu pulumi packer vault consul nomad ansible-playbook ansible-lint aws gcloud az doctl flyctl vercel
    netlify firebase supabase wrangler dotnet msbuild nuget swift xcodebuild flutter dart adb gradlew mvnw ant lein mix
    rails rake rspec rubocop phpunit artisan composer symfony protoc buf grpcurl sqlfluff alembic flask django-admin
    uvicorn gunicorn celery jupyter streamlit convert magick ffmpeg ffprobe sox pandoc pdftotext qpdf exiftool
    hadolint trivy syft grype cosign skopeo buildah minikube kind k3d kustomize argocd flux istioctl eksctl
    createdb dropdb pg_dump pg_restore mysqldump mongosh mongodump redis-cli sqlcmd influx open xdg-open code
    cypress lighthouse svgo hugo jekyll mkdocs gofmt goimports golangci-lint staticcheck clippy-driver wasm-pack
    ssh-keygen ssh-keyscan ssh-copy-id age sops gpg openssl base58 hash uuidgen say osascript pbcopy notify-send
    """.split()
)
# The value of these options is a message or data, never a command.
MESSAGE = lazy_pattern(
    r"-[a-zA-Z]*[mbdtHFAu]\Z|--(?:message|body|title|notes|description|desc|data[\w-]*|json|header|label|form|user-agent)\b"
)
PYTHON = lazy_pattern(r"python[0-9.]*\Z")
NO_PROGRAM = lazy_pattern(r"[\s;&|`$(]")
CLUSTER = lazy_pattern(r"-[A-Za-z][\w./]+\Z")
MAX_WORDS = 40


def option_programs(segment: Segment) -> list[str]:
    """The programs that options of a command name: `scp -S rm`, `install --strip-program=rm`."""
    options, words = PROGRAM_OPTIONS.get(segment.name, ()), [str(word) for word in segment.argv[1:]]
    found: list[str] = []
    for option in options:
        glued = [word.removeprefix(option).removeprefix("=") for word in words if word.startswith(option)]
        found += [*filter(None, glued), *(value for before, value in pairwise(words) if before == option)]
    return found


def possible_programs(segment: Segment) -> Iterator[list[str]]:
    """The words from each that may be a program, up to the end: `nano -s rm`, `cmake -D CMAKE_C_COMPILER=rm`."""
    if not may_name_program(segment):
        return
    words = [str(word) for word in segment.argv[1 : MAX_WORDS + 1]]
    only_values = is_data_program(segment.name)
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        only_values = only_values and before not in ("config", "set")  # `npm config set shell rm`
        if CLUSTER.match(word):
            yield [word[2:], *words[at + 1 :]]
        elif not word.startswith("-") and (not only_values or (before.startswith("-") and before != "--")):
            value = word.rpartition("=")[2].strip("'\"")
            if value and not NO_PROGRAM.search(value):
                yield [value, *words[at + 1 :]]


def option_texts(segment: Segment) -> list[Word]:
    """The texts that a command whose words are not understood may run: `snap run --shell x -c 'rm x'`."""
    if not may_name_program(segment) or segment.name in ("curl", "wget", "http", "https", "gh", "glab", "git"):
        return []
    words = segment.argv[: MAX_WORDS + 1]
    return [word for before, word in pairwise(words) if not MESSAGE.match(str(before))]


def is_data_program(name: str) -> bool:
    return name in OPERANDS_ARE_DATA or PYTHON.match(name) is not None


def may_name_program(segment: Segment) -> bool:
    """Whether the tables know the command and leave open what its words are; an unknown one is looked at elsewhere."""
    name = segment.name
    if tables.lookup(name) is None or name in RUNS_NOTHING or tables.family_of()[name] in RUN_NOTHING_FAMILIES:
        return False
    return any(is_open(effect) for effect in segment.effects)


def is_open(effect: Effect) -> bool:
    """Whether it comes from a word that is not listed, or from the program whatever its words are."""
    return effect.does in (Does.UNLISTED, Does.UNKNOWN) or (effect.does not in HARMLESS and effect.word is None)
