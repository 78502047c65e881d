"""
Interpreters, compilers and tools that are read-only only when asked for their version.

Not here: what may download or switch versions first (go, cargo, rustc, rustup, yarn), what loads code of the project
before it answers (pytest, mvn, gradle), what starts a server (bazel), and ansible, which runs the cowpath of
./ansible.cfg.
"""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import READ, TEXT, WRITE, Command, Grammar, version
from handrail.shell.tables.packages import PIP

PYTHON_3 = " ".join(("python3", *(f"python3.{minor}" for minor in range(8, 16))))
PYTHONS = f"python python2 pypy3 {PYTHON_3}"

SOURCES = {
    "CPython 3.13": PYTHONS,
    "Node.js 22": "node nodejs",
    "Perl 5.36, perlrun(1)": "perl",
    "Ruby 3.1": "ruby",
    "PHP 8.2": "php",
    "Lua 5.4": "lua",
    "LuaJIT 2.1": "luajit",
    "GNU make 4.3": "make gmake",
    "OpenSSL 3.0": "openssl",
    "the manual page or --help of each": "*",
}

ONE_VERSION = Command(plain=True, expression="system.version_words")
OWN_MODULES = Requirement("python-modules", "no file in the folder takes the place of a module of Python")
SAFE_PATH = Requirement("python-safe-path", "Python does not look for modules in the working folder (from 3.11 on)")
JSON_TOOL = Command(
    flags="--sort-keys --no-ensure-ascii --json-lines --tab --no-indent --compact -h --help",
    values={"--indent": TEXT},
    operands=(READ, WRITE),
)
PYTHON = version("-V --version -h --help")
WITH_MODULES = Command(
    plain=True,
    subcommands={
        "*": PYTHON,
        "-c": Command(plain=True, operands=(Grammar("python.printing"),), rest=TEXT, requires=(OWN_MODULES,)),
        "-m": Command(
            plain=True,
            subcommands={"json.tool": JSON_TOOL, "pip": PIP._replace(requires=(*PIP.requires, SAFE_PATH))},
            requires=(OWN_MODULES,),
        ),
    },
)

# Each of the options makes the programs behind it print and stop. Not make -n, which runs $(shell ...).
PRINTS_AND_STOPS = {
    "-v --version -h --help": "node nodejs ruby php make gmake",
    "-v --version -h": "perl",
    "-v --version": "bun redis-cli",
    "-V --version": "deno curl wget psql mysql nano dc",
    "-v -V": "nginx",
    "-v": "lua luajit",
    "-V": "tmux",
    "--version -h --help": "cmake",
    "--version": "ld as ninja meson ghc Rscript R vim nvim emacs ed valgrind tsc prettier eslint ruff black mypy "
    "autoconf automake ctest lldb pkg-config ccache bison flex m4 clang-format clang-tidy gpg shfmt pg_dump isort "
    "pyright aws pre-commit virtualenv",
}

COMMANDS: dict[str, Command] = {
    PYTHON_3: WITH_MODULES,
    "python python2 pypy3": PYTHON,
    **{name: version(options) for options, names in PRINTS_AND_STOPS.items() for name in names.split()},
    "gcc g++ cc c++ cpp gfortran clang clang++ java javac sqlite3 ffmpeg ffprobe ocaml": ONE_VERSION,
    "openssl": Command(
        subcommands={
            "version": Command(flags="-a -v -b -o -f -p -d -e -m -r -c"),
            "x509": Command(plain=True, expression="system.certificate"),
        }
    ),
}
