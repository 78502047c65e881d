"""
Interpreters, compilers and tools that are read-only only when asked for their version.

Not here: what may download or switch versions first (go, cargo, rustc, rustup, yarn), what loads code of the project
before it answers (pytest, mvn, gradle), and what starts a server (bazel).
"""

from handrail.shell.tables.format import Command, version

LONG = version("--version")
BOTH = version("-V --version")
SMALL = version("-v --version")
HELPS = version("--version -h --help")
WORDS = Command(plain=True, expression="system.version_words")

PYTHON = version("-V --version -h --help")
PYTHONS = ("python", "python2", "python3", *(f"python3.{minor}" for minor in range(8, 16)), "pypy3")

SOURCES = {
    "CPython 3.13": " ".join(PYTHONS),
    "Node.js 22": "node nodejs",
    "Perl 5.36, perlrun(1)": "perl",
    "Ruby 3.1": "ruby",
    "PHP 8.2": "php",
    "Lua 5.4": "lua",
    "LuaJIT 2.1": "luajit",
    "GNU make 4.3": "make gmake",
    "OpenSSL 3.0": "openssl",
    "the manual page of each: these options print and stop": "*",
}

COMMANDS: dict[str, Command] = {
    **dict.fromkeys(PYTHONS, PYTHON),
    "node": version("-v --version -h --help"),
    "nodejs": version("-v --version -h --help"),
    "deno": BOTH,
    "bun": SMALL,
    "perl": version("-v --version -h"),
    "ruby": version("-v --version -h --help"),
    "php": version("-v --version -h --help"),
    "lua": version("-v"),
    "luajit": version("-v"),
    # Not -n, which runs $(shell ...).
    **dict.fromkeys(("make", "gmake"), version("-v --version -h --help")),
    "cmake": HELPS,
    "openssl": Command(subcommands={"version": Command(flags="-a -v -b -o -f -p -d -e -m -r -c")}),
    **dict.fromkeys("gcc g++ cc c++ cpp gfortran clang clang++ java javac sqlite3 ffmpeg ffprobe ocaml".split(), WORDS),
    **dict.fromkeys(
        "ld as ninja meson ghc Rscript R vim nvim emacs ed valgrind tsc prettier eslint ruff".split(), LONG
    ),
    **dict.fromkeys("black mypy autoconf automake".split(), LONG),
    **dict.fromkeys("curl wget psql mysql nano".split(), BOTH),
    "tmux": version("-V"),
    "redis-cli": SMALL,
    "nginx": version("-v -V"),
    "dc": BOTH,  # a program of dc may run commands: `!`
}
