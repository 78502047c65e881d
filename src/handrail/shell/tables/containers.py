"""
Containers and clusters: docker, podman, kubectl, helm in the forms that only ask.

They reach a daemon or a cluster, the one that the user has set up: that is a requirement, not an effect. Naming
another host, socket or configuration is never read-only; neither is showing environments or secrets.
"""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import NETWORK, PROGRAM, READ, SECRET, STATE, TEXT, WRITE, Command, Grammar, Use

SOURCES = {
    "docker 28.2, docker --help": "docker",
    "docker compose 2.36, documentation": "docker-compose",
    "podman 4, documentation: the options of docker (not run here)": "podman",
    "kubectl 1.32, kubectl COMMAND --help": "kubectl",
    "helm 3, documentation (not run here)": "helm",
}

DAEMON = Requirement("container-daemon", "asking the container daemon that the user has set up is acceptable")
CLUSTER = Requirement("kube-cluster", "asking the cluster of the user's own configuration is acceptable")
COMPOSE = Requirement("compose-include", "the compose file includes nothing from another place")


def listing(flags: str = "", operands: bool = False) -> Command:
    """A command that lists, with the options most listings have."""
    return Command(
        flags=f"-q --quiet --no-trunc {flags}",
        values={"-f --filter --format": TEXT},
        rest=TEXT if operands else None,
        requires=(DAEMON,),
    )


def details(flags: str = "", values: str = "") -> Command:
    return Command(flags=flags, values={f"-f --format {values}": TEXT}, rest=TEXT, requires=(DAEMON,))


PS = listing("-a --all -l --latest -s --size")._replace(values={"-f --filter --format -n --last": TEXT})
IMAGES = listing("-a --all --digests --tree", operands=True)
LOGS = Command(
    flags="--details -f --follow -t --timestamps",
    values={"--since -n --tail --until": TEXT},
    operands=(TEXT,),
    requires=(DAEMON,),
)
HISTORY = Command(
    flags="-H --human --no-trunc -q --quiet", values={"--format --platform": TEXT}, operands=(TEXT,), requires=(DAEMON,)
)
# Without a format it shows the environment of a container.
INSPECT = Command(
    flags="-s --size",
    values={"-f --format": Grammar("services.docker_format"), "--type": TEXT},
    only_with="-f --format",
    rest=TEXT,
    requires=(DAEMON,),
)
ONE = Command(operands=(TEXT, TEXT), requires=(DAEMON,))
# Behind the container stand options of ps, also without a dash: `e` shows the environment.
TOP_OF = ONE._replace(operands=(TEXT,))
STATS = listing("-a --all --no-stream", operands=True)
EVENTS = Command(values={"-f --filter --format --since --until": TEXT}, requires=(DAEMON,))
INFO = Command(values={"-f --format": TEXT}, requires=(DAEMON,))
DISK_USE = Command(flags="-v --verbose", values={"--format": TEXT}, requires=(DAEMON,))
COMPOSED = Command(
    subcommands={
        "ps": listing("-a --all --services --orphans", operands=True)._replace(
            values={"--filter --format --status": TEXT}
        ),
        "ls": listing("-a --all")._replace(values={"--filter --format": TEXT}),
        "images": listing(operands=True)._replace(values={"--format": TEXT}),
        "logs": LOGS._replace(flags="-f --follow -t --timestamps --no-color --no-log-prefix", operands=(), rest=TEXT),
        "top": Command(rest=TEXT),
        "version": Command(flags="--short", values={"-f --format": TEXT}),
        "config": Command(
            flags="--services --volumes --images --networks --profiles -q --quiet",
            effect={SECRET: "shows the settings with the variables filled in"},
        ),
    },
    values={"-f --file --env-file": READ, "-p --project-name --profile --project-directory": TEXT},
    requires=(DAEMON, COMPOSE),
)

CONTAINER = {"ps": PS, "logs": LOGS, "top": TOP_OF, "port": ONE, "diff": ONE, "stats": STATS}
IMAGE = {"ls": IMAGES, "list": IMAGES, "history": HISTORY, "inspect": details("", "--platform")}
VOLUME = {"ls": listing("--cluster"), "list": listing("--cluster"), "inspect": details()}
NETWORKS = {"ls": listing(), "list": listing(), "inspect": details("-v --verbose")}
BOTH = {
    **CONTAINER,
    "images": IMAGES,
    "history": HISTORY,
    "inspect": INSPECT,
    **dict.fromkeys(("version", "info"), INFO),
    "events": EVENTS,
    "container": Command(subcommands={**CONTAINER, "ls": PS, "list": PS, "inspect": INSPECT}),
    "image": Command(subcommands=IMAGE),
    "volume": Command(subcommands=VOLUME),
    "network": Command(subcommands=NETWORKS),
    "system": Command(subcommands={"df": DISK_USE, "info": INFO, "events": EVENTS}),
}

KUBE_VALUES = {
    "-n --namespace --context --request-timeout": TEXT,
    "--kubeconfig": PROGRAM,  # it may name programs for signing in
    "-s --server": NETWORK,
    "--cache-dir --profile-output": WRITE,
    "--token --password --username --user --as --as-group --cluster": STATE,
}
OUTPUT = Grammar("services.kube_output")
RESOURCES = "services.kube_resources"


def kube(flags: str = "", values: str = "", rest: Use | None = None, expression: str = "") -> Command:
    return Command(
        flags=flags,
        values={**KUBE_VALUES, **({values: TEXT} if values else {})},
        rest=rest,
        expression=expression,
        requires=(CLUSTER,),
    )


def with_output(entry: Command) -> Command:
    return entry._replace(values={**entry.values, "-o --output": OUTPUT})


GET = with_output(
    kube(
        "-A --all-namespaces --ignore-not-found --no-headers --output-watch-events --show-kind --show-labels "
        "--show-managed-fields -w --watch --watch-only",
        "--chunk-size --field-selector -L --label-columns -l --selector --sort-by --subresource",
        expression=RESOURCES,
    )
)
CONFIG = {
    "view": with_output(kube("--flatten --minify")),
    "get-contexts": with_output(kube("--no-headers", rest=TEXT)),
    "current-context": kube(),
    "get-clusters": kube(),
    "get-users": kube(),
}
TOP = kube("-A --all-namespaces --containers --no-headers --sum --show-capacity", "-l --selector --sort-by", rest=TEXT)
ROLLOUT = {
    "status": kube("", "--revision --timeout -l --selector", rest=TEXT),
    "history": with_output(kube("", "--revision -l --selector", rest=TEXT)),
}


def helm(flags: str = "", values: str = "", rest: Use | None = None) -> Command:
    given = {f"-n --namespace --kube-context {values}": TEXT, "--kubeconfig": PROGRAM, "--kube-apiserver": NETWORK}
    return Command(flags=flags, values=given, rest=rest, requires=(CLUSTER,))


COMMANDS: dict[str, Command] = {
    "docker": Command(
        flags="-v --version",
        only_with="-v --version",
        values={"-H --host": NETWORK, "--config --tlscacert --tlscert --tlskey": PROGRAM, "-c --context": STATE},
        subcommands={
            **BOTH,
            "context": Command(
                subcommands={"ls": Command(flags="-q --quiet", values={"--format": TEXT}), "show": Command()}
            ),
            "service": Command(subcommands={"ls": listing(), "ps": listing(operands=True)}),
            "node": Command(subcommands={"ls": listing()}),
            "stack": Command(subcommands={"ls": Command(values={"--format": TEXT})}),
            "plugin": Command(subcommands={"ls": listing()}),
            "compose": COMPOSED,
        },
    ),
    "docker-compose": COMPOSED._replace(flags="-v --version", only_with="-v --version"),
    "podman": Command(flags="-v --version", only_with="-v --version", subcommands=BOTH),
    "kubectl": Command(
        values=KUBE_VALUES,
        subcommands={
            "get": GET,
            "describe": kube("-A --all-namespaces", "--chunk-size -l --selector", expression=RESOURCES),
            "logs": kube(
                "--all-containers --all-pods -f --follow --ignore-errors --prefix -p --previous --timestamps",
                "-c --container --limit-bytes --max-log-requests --pod-running-timeout -l --selector --since "
                "--since-time --tail",
                rest=TEXT,
            ),
            "explain": with_output(kube("--recursive", "--api-version", rest=TEXT)),
            "api-resources": with_output(kube("--cached --no-headers", "--api-group --categories --sort-by --verbs")),
            "api-versions": kube(),
            "version": with_output(kube()._replace(optional={"--client": TEXT})),
            "cluster-info": kube(),
            "events": with_output(kube("-A --all-namespaces --no-headers -w --watch", "--for --types")),
            "top": Command(subcommands=dict.fromkeys("pod pods po node nodes no".split(), TOP)),
            "rollout": Command(subcommands=ROLLOUT),
            "config": Command(subcommands=CONFIG),
            "auth": Command(
                subcommands={
                    "can-i": kube("-A --all-namespaces --list --no-headers -q --quiet", "--subresource", rest=TEXT),
                    "whoami": with_output(kube()),
                }
            ),
        },
    ),
    "helm": Command(
        values={"-n --namespace --kube-context": TEXT, "--kubeconfig": PROGRAM, "--kube-apiserver": NETWORK},
        subcommands={
            "list": helm(
                "-A --all-namespaces -a --all -d --date --deployed --failed --pending -q --short -r --reverse",
                "-f --filter -m --max --offset -o --output -l --selector",
            ),
            "history": helm("", "--max -o --output", rest=TEXT),
            "version": helm("--short --client", "--template"),
            "repo": Command(subcommands={"list": helm("", "-o --output")}),
            "plugin": Command(subcommands={"list": helm()}),
            "search": Command(
                subcommands={"repo": helm("-l --versions --devel -r --regexp", "-o --output --version", rest=TEXT)}
            ),
            "status": helm("--show-desc", "-o --output --revision", rest=TEXT),
        },
    ),
}
