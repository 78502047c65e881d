"""Archives and compressed files: the forms that list, test or print."""

from handrail.shell.tables.format import READ, TEXT, WRITE, Command

SOURCES = {
    "GNU tar 1.34 and bsdtar": "tar bsdtar",
    "Info-ZIP UnZip 6.00": "unzip zipinfo",
    "the manual page of each": "*",
}

UNPACKS = Command(effect={WRITE: "creates files or replaces its operands"}, plain=True, rest=READ)

COMMANDS: dict[str, Command] = {
    "tar bsdtar": Command(plain=True, expression="archives.tar"),
    "gzip xz bzip2 zstd gunzip unxz bunzip2 unzstd": Command(plain=True, expression="archives.compressor"),
    "zcat gzcat bzcat xzcat lzcat zstdcat": Command(
        flags="-f --force -q --quiet -v --verbose -h --help -V --version", rest=READ
    ),
    "unzip": Command(
        # The first operand ends the options; -T, -f, -u and no option at all change files.
        flags="-l -v -t -p -c -z -q -C -1 -Z",
        only_with="-l -v -t -p -c -z -Z",
        operands=(READ,),
        rest=TEXT,
        options_first=True,
    ),
    "zipinfo": Command(
        # A listing, whatever else is given.
        flags="-1 -2 -s -m -l -v -h -t -T -U -z -C",
        operands=(READ,),
        rest=TEXT,
        options_first=True,
    ),
    "zip 7z 7za 7zr rar": UNPACKS._replace(rest=None, expression="archives.packer"),
    "cpio ar unrar compress uncompress lz4 lzma": UNPACKS,
}
