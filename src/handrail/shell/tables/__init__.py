"""
What programs do, as data: one module per family, each with `COMMANDS: dict[str, Command]`.

`FAMILIES` says which module knows a program; a module is imported when one of its programs is first met.

How to write an entry
---------------------
Take the manual page, name it in `source`, and list what you have read there. What you do not list is refused, so
a short entry is a safe entry:

    "head": Command(
        source="GNU coreutils 9.4, head(1)",
        flags="-q --quiet --silent -v --verbose -z --zero-terminated",
        values={"-c --bytes -n --lines": TEXT},
        number=True,                      # head -5
        rest=READ,                        # every operand is a file that is read
        harmless_options=True,            # see below
    ),

1. Options without effect go into `flags`, with a value into `values` (the role says what becomes of the value), with
   an attached optional value into `optional`. All spellings in one string. Abbreviations are refused by design.
   Arity is what attacks live on: if the manual shows only `--opt=VALUE`, or you are not sure that `--opt VALUE` is
   read as option and value, use `attached`, which refuses the bare option.
2. An option that writes, runs, connects: if it takes a value, `values={"-o --output": WRITE}`: the file is reported
   and the command is not read-only. If it takes none, `never={"-i --in-place": "edits files in place"}`. Leaving it
   out is as safe, but the explanation is poorer and deny rules do not see the file.
3. Operands: `operands=(TEXT,)` for leading ones with their own role, `rest` for all others, nothing for none.
   `Unless(TEXT, "-e --regexp")` is an operand that disappears when an option stands in for it. `default="."` when
   the program reads the working folder if no operand names another.
4. `READ` or `LOOK`? LOOK only when no byte of the file's contents can be printed (ls, stat, wc, test -f).
5. `harmless_options=True` only after reading *every* option in the manual: none writes, runs, connects or sets. It
   lets `cmd *` and `xargs cmd` pass. When in doubt leave it out. `lists_paths=True` if the output is nothing but
   paths found at or under the operands: it lets `cmd | xargs wc -l` pass.
6. A program that runs another command: role COMMAND as an operand (timeout, nice, xargs) with `options_first=True`,
   role SHELL for a text given to a shell (`sh -c`). The inner command gets its own segment, judged by its own entry.
   `assigns=True` when NAME=VALUE words may stand before it (env), `moves="-C --chdir"` for options whose value is the
   folder the command works in. Names handed from a listing to xargs are whole and inside the listed folder only when
   both sides agree on NUL: `ends_names_with_nul="-z"` for the listing. `passes_with="-n"` lists the options with
   which a filter prints lines of its input unchanged, so that `cmd | head -n 5 | xargs wc` still counts as a listing.
7. A word in a small language: `Grammar("git.pretty")`, read by `pretty(text)` in `handrail.shell.grammars.git`,
   which returns effects and raises UnclearError for anything outside its closed grammar. When all operands together are
   the language (find, test): `expression="files.find"`, read by `find(words)` in `grammars.files`.
8. Sub-commands: `subcommands={"status": Command(...)}`; the outer entry then holds the global options. The name "*"
   stands for the form without a listed sub-command (git remote -v): it gets all words. Whatever is
   true outside the command line and decides whether it is safe (configured helpers): `requires=(Requirement(...),)`.

How to test it
--------------
Add lines to `tests/shell/tables/test_<family>.py`: a table of read-only lines, and a table of lines that must not be
(every option the manual gives an effect, in each spelling: `-oX`, `-o X`, `--output=X`, inside a cluster). Then
`python -m tests.shell.misses` prints the corpus lines that are judged too loosely or too strictly, by class.
"""

from functools import cache
from importlib import import_module

from handrail.shell.tables.format import Command, Options

FAMILIES: dict[str, str] = {
    **dict.fromkeys(
        "true false : echo printf pwd ls dir vdir cat tac nl head tail wc sort uniq cut tr paste join comm fold fmt "
        "expand unexpand pr ptx shuf tsort od base64 base32 basenc md5sum sha1sum sha224sum sha256sum sha384sum "
        "sha512sum b2sum cksum sum shasum stat du df basename dirname realpath readlink printenv".split(),
        "coreutils",
    ),
    **dict.fromkeys(
        "date hostname id groups whoami logname users who w last uname arch nproc hostid lsb_release sw_vers uptime "
        "tty locale getconf cal ncal seq yes factor numfmt expr sleep bc".split(),
        "facts",
    ),
    **dict.fromkeys("column iconv rev tree file hexdump hd xxd strings nm objdump readelf size ldd".split(), "viewers"),
    **dict.fromkeys("diff colordiff cmp diff3 sdiff patch".split(), "compare"),
    **dict.fromkeys("sed awk gawk mawk nawk original-awk".split(), "streams"),
    **dict.fromkeys(
        "tar bsdtar gzip xz bzip2 zstd gunzip unxz bunzip2 unzstd zcat gzcat bzcat xzcat lzcat zstdcat unzip zipinfo "
        "zip cpio ar 7z 7za 7zr rar unrar compress uncompress lz4 lzma".split(),
        "archives",
    ),
    **dict.fromkeys(
        "ps top pgrep pidof pstree lsof free vmstat iostat kill pkill killall".split(),
        "processes",
    ),
    **dict.fromkeys(
        "ip ifconfig ss netstat lscpu lsblk lsusb lspci findmnt lsmod dmesg journalctl systemctl sysctl crontab "
        "tput getent".split(),
        "machine",
    ),
    **dict.fromkeys(
        "man apropos whatis help info which type whereis mandb less more most pg".split(),
        "manuals",
    ),
    **dict.fromkeys(
        "python python2 python3 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13 python3.14 python3.15 "
        "pypy3 node nodejs deno bun perl ruby php lua luajit make gmake cmake openssl gcc g++ cc c++ cpp gfortran "
        "clang clang++ java javac sqlite3 ffmpeg ffprobe ocaml ld as ninja meson ghc Rscript R vim nvim emacs "
        "ed valgrind tsc prettier eslint ruff black mypy autoconf automake curl wget psql mysql nano "
        "tmux redis-cli nginx dc".split(),
        "versions",
    ),
    **dict.fromkeys(
        "rsync srm wipe trash trash-put rimraf safe-rm "
        "cp mv ln install rm rmdir mkdir touch tee truncate mktemp mkfifo mknod split csplit dd shred unlink link "
        "sponge chmod chown chgrp chattr setfacl sync stty reset reboot shutdown halt poweroff init telinit mount "
        "umount swapon swapoff mkfs fdisk parted insmod rmmod modprobe losetup useradd userdel usermod groupadd "
        "groupdel passwd chpasswd visudo chsh logger wall write mesg service launchctl scp sftp ftp telnet nc ncat "
        "netcat socat nmap ping ping6 traceroute tracepath dig host nslookup whois aria2c http https mail sendmail ex "
        "view vimdiff pico".split(),
        "changes",
    ),
    **dict.fromkeys("grep egrep fgrep zgrep zegrep zfgrep find".split(), "search"),
    **dict.fromkeys(
        "timeout env xargs sh bash dash eval command nice nohup rbash ash zsh ksh mksh fish su runuser sudo doas "
        "pkexec stdbuf setsid ionice chrt taskset flock chroot unshare nsenter setpriv prlimit setarch linux32 linux64 "
        "watch script unbuffer strace ltrace perf parallel entr busybox toybox fakeroot firejail caffeinate catchsegv "
        "dbus-run-session xvfb-run systemd-run torsocks torify proxychains rlwrap noglob nocorrect builtin exec ssh "
        "trap mapfile readarray jobs".split(),
        "wrappers",
    ),
    **dict.fromkeys(
        "cd read [ [[ test source . alias unalias exit return break continue shift set shopt export declare typeset "
        "local readonly unset let hash wait disown bg fg suspend logout umask ulimit times dirs pushd "
        "popd getopts history fc enable bind complete compgen compopt caller".split(),
        "builtins",
    ),
    "git": "git",
    **dict.fromkeys("rg fd fdfind ag ack".split(), "search_tools"),
    **dict.fromkeys("jq yq xmllint jsonlint gron tomlq xq dasel".split(), "json_tools"),
    **dict.fromkeys("docker docker-compose podman kubectl helm".split(), "containers"),
    **dict.fromkeys("gh glab".split(), "forge"),
    **dict.fromkeys(
        "pip pip3 uv pipx npm gem conda apt apt-cache apt-get apt-mark dpkg dpkg-query rpm pacman brew snap cargo "
        "rustc rustup rustdoc go gofmt yarn pnpm corepack npx pnpx bunx mvn gradle sbt bundle bundler composer poetry "
        "pdm hatch pipenv".split(),
        "packages",
    ),
    **dict.fromkeys(
        "ctest lldb pkg-config ccache bison flex m4 clang-format clang-tidy gpg shfmt pg_dump isort pyright aws "
        "pre-commit virtualenv shellcheck tokei scc bat batcat eza exa".split(),
        "dev",
    ),
}


@cache
def lookup(name: str) -> Command | None:
    """The entry of a program by its bare name."""
    family = FAMILIES.get(name)
    if family is None:
        return None
    commands: dict[str, Command] = import_module(f"handrail.shell.tables.{family}").COMMANDS
    return commands[name]


_options: dict[int, tuple[Command, Options]] = {}


def options_of(entry: Command) -> Options:
    """The option index of an entry, built on first use (entries are few and live as long as the program)."""
    known = _options.get(id(entry))
    if known is None:
        known = _options[id(entry)] = (entry, Options(entry))
    return known[1]
