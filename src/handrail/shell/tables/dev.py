"""Developer tools that check, count or show files of a project."""

from handrail.shell.tables.format import PROGRAM, READ, TEXT, Command

SOURCES = {
    "shellcheck 0.9": "shellcheck",
    "tokei 12, tokei --help (not run here)": "tokei",
    "scc 3, scc --help (not run here)": "scc",
    "bat 0.22, bat --help": "bat batcat",
    "exa 0.10, exa --help": "eza exa",
}

COMMANDS: dict[str, Command] = {
    "shellcheck": Command(
        # -x follows `source` into other files, and so does a .shellcheckrc; -a shows what is in them.
        flags="--list-optional --norc -V --version",
        never={"-a --check-sourced": "shows lines of files that a script names"},
        optional={"-C --color": TEXT},
        values={
            "-f --format -e --exclude -i --include -o --enable -s --shell -S --severity -W --wiki-link-count": TEXT
        },
        rest=READ,
    ),
    "tokei": Command(
        flags="-f --files --hidden -l --languages --no-ignore --no-ignore-parent --no-ignore-vcs -C --compact -V "
        "--version",
        values={"-e --exclude -o --output -s --sort -t --type -c --columns": TEXT},
        rest=READ,
        default=".",
    ),
    "scc": Command(
        flags="--by-file --no-cocomo --no-complexity --no-duplicates -w --wide --ci -l --languages --version",
        values={"-i --include-ext --exclude-dir -s --sort": TEXT},
        rest=READ,
        default=".",
    ),
    "bat batcat": Command(
        # `cache` is a sub-command that writes; its output goes to a pager only on a terminal.
        flags="-A --show-all -p --plain -n --number -d --diff -L --list-languages --list-themes -u --unbuffered -V "
        "--version --diagnostic",
        values={
            "-l --language -H --highlight-line --diff-context --tabs --wrap --terminal-width --color --italic-text "
            "--decorations -m --map-syntax --theme --style -r --line-range --file-name": TEXT,
            "--pager": PROGRAM,
        },
        never={"--paging": "may start the pager"},
        expression="files.bat_files",
    ),
    "eza exa": Command(
        flags="-1 --oneline -l --long -G --grid -x --across -R --recurse -T --tree -F --classify --icons "
        "--no-icons -a --all -d --list-dirs -r --reverse --group-directories-first -D --only-dirs "
        "--git-ignore -b --binary -B --bytes -g --group -h --header -H --links -i --inode -m --modified "
        "-n --numeric -S --blocks -u --accessed -U --created --git --no-git --no-permissions "
        "--octal-permissions --no-filesize --no-user --no-time -@ --extended -v --version",
        values={"-L --level -s --sort -I --ignore-glob -t --time": TEXT},
        attached={"--time-style --color --colour": TEXT},
        rest=READ,
        default=".",
    ),
}
