"""Manual pages, where programs are found, and the pagers, which start shells and editors."""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import LOOK, NAMES, PROGRAM, STATE, TEXT, Command, Grammar, always, version

SOURCES = {
    "man-db 2.11": "man mandb apropos whatis",
    "bash 5.2": "help type",
    "Texinfo 6.8": "info",
    "debianutils 5.7 and GNU which": "which",
    "util-linux 2.38": "whereis",
    "the manual page of each": "less more most pg",
}

PAGER = Requirement("man-pager", "output is not a terminal, or MANPAGER and PAGER name a plain pager")
PLAIN_PAGER = Requirement("plain-pager", "no variable names an input filter or key bindings for the pager")
# Where pages are searched, and how they are made into text, is left as it is.
ELSEWHERE = {"-C --config-file -M --manpath -m --systems -L --locale -E --encoding": NAMES}


COMMANDS: dict[str, Command] = {
    "man": Command(
        flags="-d --debug -f --whatis -k --apropos -K --global-apropos -w --where --path --location -i --ignore-case "
        "-I --match-case --regex --wildcard --names-only -a --all --no-subpages -7 --ascii --no-hyphenation --nh "
        "--no-justification --nj --help --usage -V --version",
        values={
            "-S -s --sections -e --extension": TEXT,
            "-P --pager": PROGRAM,
            "-p --preprocessor": PROGRAM,
            **ELSEWHERE,
        },
        never={
            "-H --html": "starts a browser",
            "-X --gxditview -t --troff -T --troff-device -Z --ditroff": "starts other programs to show the page",
            "-l --local-file": "formats a file with whatever it asks for",
            "-c --catman -u --update": "writes formatted pages or the index",
        },
        rest=Grammar("system.man_page"),
        requires=(PAGER,),
    ),
    "apropos whatis": Command(
        flags="-d --debug -v --verbose -e --exact -r --regex -w --wildcard -a --and -l --long --help --usage -V "
        "--version",
        values={"-s --sections --section": TEXT, **ELSEWHERE},
        rest=TEXT,
    ),
    "help": Command(flags="-d -m -s", rest=TEXT),
    "info": version("-h --help --version"),
    "which": Command(flags="-a -s --all", rest=TEXT),
    "type": Command(flags="-a -f -P -p -t", rest=TEXT),
    "whereis": Command(
        # -B, -M and -S take folders up to -f.
        flags="-b -m -s -u -l -h --help -V --version",
        rest=TEXT,
    ),
    "mandb": Command(effect={STATE: "writes the index of pages"}, plain=True, rest=LOOK),
    # Where the output is no terminal they print the files and stop; LESSSECURE keeps input filters away.
    "less more": Command(
        flags="-e -E -f -F -i -I -m -M -n -N -q -Q -r -R -s -S -u -X -l -p --help --version -V",
        expression="files.paged_files",
        requires=(PLAIN_PAGER,),
    ),
    "most pg": always(PROGRAM, "a pager starts shells, editors and input filters"),
}
