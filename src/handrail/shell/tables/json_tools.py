"""Programs that read JSON, YAML and XML."""

from handrail.shell.tables.format import NAMES, READ, TEXT, WRITE, Command, version

SOURCES = {
    "jq 1.6 to 1.8": "jq",
    "mikefarah/yq 4.44 and kislyuk/yq 3.1, yq --help": "yq",
    "libxml2 2.9.14": "xmllint",
    "kislyuk/yq, tomlq --help": "tomlq",
    "two programs have this name": "xq",
    "dasel 2": "dasel",
    "the manual page of each": "jsonlint gron",
}

COMMANDS: dict[str, Command] = {
    "jq": Command(plain=True, expression="json_queries.jq_words"),
    "yq": Command(plain=True, expression="json_queries.yq_words"),
    "xmllint": Command(
        # Whatever loads entities, DTDs, includes or schemas reads other files and addresses.
        flags="--version --recover --huge --noenc --noout --nonet --nocompact --quiet --timing --html --xmlout "
        "--nodefdtd --nowarning --noblanks --nocdata --format --dropdtd --nsclean --nocatalogs --stream --sax1 "
        "--oldxml10",
        values={"--xpath --encode --pretty --maxmem --pattern": TEXT, "--output -o": WRITE},
        never={
            "--noent --valid --postvalid --xinclude --loaddtd --dtdattr --noxincludenode --c14n": "loads files and "
            "addresses that the document names",
            "--shell": "starts a shell of its own",
            "--catalogs": "reads catalogs named in the environment",
        },
        expression="files.local_files",
    ),
    "jsonlint": Command(flags="-q --quiet -c --compact", operands=(READ,)),
    "gron": Command(
        flags="-u --ungron -c --colorize -m --monochrome -s --stream -v --values", expression="files.local_files"
    ),
    "tomlq": version("--version"),
    "xq": version("--version"),
    "dasel": Command(only_with="--version", flags="--version", values={"-f --file": NAMES}),
}
