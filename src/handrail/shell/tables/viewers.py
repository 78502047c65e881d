"""Programs that show files in another shape: columns, trees, kinds, dumps of bytes and of object files."""

from handrail.shell.tables.format import NAMES, PROGRAM, READ, STATE, TEXT, WRITE, Command, Grammar

SOURCES = {
    "util-linux 2.38": "column rev hexdump hd",
    "GNU libc 2.36": "iconv ldd",
    "tree 2.1": "tree",
    "file 5.44": "file",
    "vim 9.0": "xxd",
    "GNU binutils 2.40": "strings nm objdump readelf size",
}

# Any word `@file` stands for options in that file.
PLAIN = Grammar("files.at_file_text")


COMMANDS: dict[str, Command] = {
    "column": Command(
        flags="-t --table -d --table-noheadings -e --table-header-repeat -L --keep-empty-lines -J --json -x --fillrows "
        "-h --help -V --version",
        values={
            "-n --table-name -O --table-order -N --table-columns -l --table-columns-limit -E --table-noextreme -H "
            "--table-hide -R --table-right -T --table-truncate -W --table-wrap -r --tree -i --tree-id -p "
            "--tree-parent -c --output-width -o --output-separator -s --separator": TEXT
        },
        rest=READ,
        harmless_options=True,
    ),
    "iconv": Command(
        flags="-l --list -c -s --silent --verbose --help --usage -V --version",
        values={"-f --from-code -t --to-code": TEXT, "-o --output": WRITE},
        rest=READ,
    ),
    "rev": Command(flags="-h --help -V --version", rest=READ, harmless_options=True),
    "tree": Command(plain=True, expression="files.tree"),
    "file": Command(
        # -z and -Z start decompressors.
        flags="-b --brief -i --mime --apple --extension --mime-type --mime-encoding -I -k --keep-going -l --list -L "
        "--dereference -h --no-dereference -n --no-buffer -N --no-pad -0 --print0 -r --raw -v --version --help",
        values={
            "-e --exclude --exclude-quiet -F --separator -P --parameter": TEXT,
            "-m --magic-file": READ,
            "-f --files-from": NAMES,
        },
        never={
            "-C --compile": "writes a compiled magic file",
            "-z --uncompress -Z --uncompress-noreport": "starts decompressors",
            "-p --preserve-date": "sets the times of the files it has read",
            "-S --no-sandbox": "takes away its own confinement",
        },
        rest=READ,
    ),
    "hexdump hd": Command(
        flags="-b --one-byte-octal -c --one-byte-char -C --canonical -d --two-bytes-decimal -o --two-bytes-octal -x "
        "--two-bytes-hex -v --no-squeezing -h --help -V --version",
        values={"-e --format -n --length -s --skip": TEXT, "-f --format-file": READ},
        optional={"-L --color": TEXT},
        rest=READ,
    ),
    "xxd": Command(plain=True, expression="files.xxd"),
    "strings": Command(
        flags="-a --all -d --data -f --print-file-name -w --include-all-whitespace -o -h --help -v -V --version",
        values={"-n --bytes -t --radix -T --target -e --encoding -s --output-separator": PLAIN},
        number=True,
        expression="files.at_file",
    ),
    "nm": Command(
        # -l reads source files and may fetch debugging information; --plugin loads code.
        flags="-a --debug-syms -A --print-file-name -B --no-demangle -D --dynamic -g --extern-only -j --just-symbols "
        "-n --numeric-sort -o -p --no-sort -P --portability -r --reverse-sort -S --print-size -s --print-armap "
        "--quiet --size-sort --special-syms --synthetic -u --undefined-only --defined-only -W --no-weak "
        "--with-symbol-versions -h --help -V --version",
        values={"-f --format -t --radix --target": PLAIN, "--plugin": PROGRAM},
        optional={"-C --demangle": PLAIN},
        never={"-l --line-numbers": "may fetch debugging information"},
        expression="files.at_file",
    ),
    "objdump": Command(
        # -S and -l read source files and may fetch debugging information.
        flags="-a --archive-headers -f --file-headers -p --private-headers -h --headers --section-headers -x "
        "--all-headers -d --disassemble-all -D -s --full-contents -t --syms -T --dynamic-syms -r --reloc -R "
        "--dynamic-reloc -w --wide -z --disassemble-zeroes --no-show-raw-insn --show-raw-insn -i --info -H --help "
        "-v --version",
        values={
            "-j --section -m --architecture -M --disassembler-options -b --target --start-address --stop-address": PLAIN
        },
        optional={"-C --demangle --disassemble": PLAIN},
        expression="files.at_file",
    ),
    "readelf": Command(
        # Not -w, -P and --debug-dump, which may follow links to other files and fetch debugging information.
        flags="-a --all -h --file-header -l --program-headers --segments -S --section-headers --sections -g "
        "--section-groups -t --section-details -e --headers -s --syms --symbols --dyn-syms --lto-syms -n --notes -r "
        "--relocs -u --unwind -d --dynamic -V --version-info -A --arch-specific -c --archive-index -D --use-dynamic "
        "-I --histogram -W --wide -T --silent-truncation -H --help -v --version",
        values={"-x --hex-dump -p --string-dump -R --relocated-dump": PLAIN},
        optional={"-C --demangle": PLAIN},
        expression="files.at_file",
    ),
    "size": Command(
        flags="-A -B -G -o -d -x -t --totals -f --common --help -v -V --version",
        values={"--format --radix --target": PLAIN},
        expression="files.at_file",
    ),
    # The page itself: "you should never employ ldd on an untrusted executable".
    "ldd": Command(effect={STATE: "may run the program it looks at"}, plain=True, rest=PROGRAM),
}
