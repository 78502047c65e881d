"""Archives and compressed files: the forms that list, test or print."""

from handrail.shell.tables.format import READ, TEXT, WRITE, Command

PACKER = Command(source="gzip(1), xz(1), bzip2(1), zstd(1)", plain=True, expression="archives.compressor")
CAT = Command(
    source="zcat(1), bzcat(1), xzcat(1), zstdcat(1)",
    flags="-f --force -q --quiet -v --verbose -h --help -V --version",
    rest=READ,
)
UNPACKS = Command(
    source="the manual page of each", effect={WRITE: "creates files or replaces its operands"}, plain=True, rest=READ
)
PACKS = UNPACKS._replace(rest=None, expression="archives.packer")
ZIPINFO = Command(
    # A listing, whatever else is given.
    source="Info-ZIP UnZip 6.00, zipinfo(1)",
    flags="-1 -2 -s -m -l -v -h -t -T -U -z -C",
    operands=(READ,),
    rest=TEXT,
    options_first=True,
)

COMMANDS: dict[str, Command] = {
    "tar": Command(source="GNU tar 1.34, tar(1); bsdtar(1)", plain=True, expression="archives.tar"),
    "bsdtar": Command(source="bsdtar(1)", plain=True, expression="archives.tar"),
    "gzip": PACKER,
    "xz": PACKER,
    "bzip2": PACKER,
    "zstd": PACKER,
    "gunzip": PACKER,
    "unxz": PACKER,
    "bunzip2": PACKER,
    "unzstd": PACKER,
    "zcat": CAT,
    "gzcat": CAT,
    "bzcat": CAT,
    "xzcat": CAT,
    "lzcat": CAT,
    "zstdcat": CAT,
    "unzip": Command(
        # The first operand ends the options; -T, -f, -u and no option at all change files.
        source="Info-ZIP UnZip 6.00, unzip(1)",
        flags="-l -v -t -p -c -z -q -C -1 -Z",
        only_with="-l -v -t -p -c -z -Z",
        operands=(READ,),
        rest=TEXT,
        options_first=True,
    ),
    "zipinfo": ZIPINFO,
    **dict.fromkeys("zip 7z 7za 7zr rar".split(), PACKS),
    **dict.fromkeys("cpio ar unrar compress uncompress lz4 lzma".split(), UNPACKS),
}
