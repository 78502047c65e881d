"""
Interpreters, compilers and tools that are read-only only when asked for their version.

Not here: what may download or switch versions first (go, cargo, rustc, rustup, yarn), what loads code of the project
before it answers (pytest, mvn, gradle), and what starts a server (bazel).
"""

from handrail.shell.tables.format import Command


def version(source: str, words: str) -> Command:
    """A program of which only these options are known; each makes it print and stop."""
    return Command(source=source, flags=words, only_with=words)


LONG = version("the manual page of each: --version prints and stops", "--version")
BOTH = version("the manual page of each: -V and --version print and stop", "-V --version")
SMALL = version("the manual page of each: -v and --version print and stop", "-v --version")
HELPS = version("the manual page of each: -h, --help and --version print and stop", "--version -h --help")
WORDS = Command(source="the manual page of each: -version and the like", plain=True, expression="system.version_words")

PYTHON = version("CPython 3.13, python(1)", "-V --version -h --help")
PYTHONS = ("python", "python2", "python3", *(f"python3.{minor}" for minor in range(8, 16)), "pypy3")

COMMANDS: dict[str, Command] = {
    **dict.fromkeys(PYTHONS, PYTHON),
    "node": version("Node.js 22, node(1)", "-v --version -h --help"),
    "nodejs": version("Node.js 22, node(1)", "-v --version -h --help"),
    "deno": BOTH,
    "bun": SMALL,
    "perl": version("Perl 5.36, perlrun(1)", "-v --version -h"),
    "ruby": version("Ruby 3.1, ruby(1)", "-v --version -h --help"),
    "php": version("PHP 8.2, php(1)", "-v --version -h --help"),
    "lua": version("Lua 5.4, lua(1)", "-v"),
    "luajit": version("LuaJIT 2.1, luajit(1)", "-v"),
    "make": version("GNU make 4.3, make(1); -n runs $(shell ...)", "-v --version -h --help"),
    "gmake": version("GNU make 4.3, make(1)", "-v --version -h --help"),
    "cmake": HELPS,
    "openssl": Command(
        source="OpenSSL 3.0, openssl-version(1)",
        subcommands={"version": Command(source="openssl-version(1)", flags="-a -v -b -o -f -p -d -e -m -r -c")},
    ),
    **dict.fromkeys("gcc g++ cc c++ cpp gfortran clang clang++ java javac sqlite3 ffmpeg ffprobe ocaml".split(), WORDS),
    **dict.fromkeys(
        "ld as ninja meson ghc Rscript R vim nvim emacs ed valgrind tsc prettier eslint ruff".split(), LONG
    ),
    **dict.fromkeys("black mypy autoconf automake".split(), LONG),
    **dict.fromkeys("curl wget psql mysql nano".split(), BOTH),
    "tmux": version("tmux(1)", "-V"),
    "redis-cli": SMALL,
    "nginx": version("nginx(8)", "-v -V"),
    "dc": BOTH,  # a program of dc may run commands: `!`
}
