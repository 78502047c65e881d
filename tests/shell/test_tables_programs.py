"""The tables against the programs themselves: every listed option exists and takes as many words as listed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.shell import tables

# Programs that answer --version wherever it stands among the options, unless an option took it for its value.
PROGRAMS = """
ls cat tac nl head tail wc sort uniq cut tr paste join comm fold fmt expand unexpand pr ptx shuf tsort od base64 basenc
md5sum b2sum cksum sum stat du df basename dirname realpath readlink printenv date id groups whoami logname users who
uname arch nproc hostid tty seq factor numfmt sleep grep diff cmp diff3 sdiff column rev hexdump strings nm objdump size
free vmstat lscpu lsblk pstree locale file last cp mv ln rm mkdir rmdir touch tee truncate split shred
"""
MAKERS = (b"GNU", b"util-linux", b"procps", b"PSmisc", b"file-5", b"hostname")
# Spellings of BSD and macOS and of newer versions, which others refuse, and options that answer at once.
ELSEWHERE = {
    "base64": {"-D"}, "id": {"-p", "-P", "-F", "-Z", "--context"}, "file": {"-I"}, "vmstat": {"-f", "--forks"},
    "factor": {"-h", "--exponents"},
}  # fmt: skip


def answer(folder: Path, *words: str) -> bytes:
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"}
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=20, cwd=folder, env=environment
    ).stdout


def wrong(program: str, version: bytes, folder: Path) -> Iterator[str]:
    for name, option in tables.options_of(tables.lookup(program) or pytest.fail(program)).by_name.items():
        if option.never or option.attached or name in ELSEWHERE.get(program, ()):
            continue
        found = answer(folder, program, name, "--version")
        if option.use is not None and not option.optional:
            if found == version:
                yield f"{program} {name} takes no value"
        elif found != version and not (found and found == answer(folder, program, name)):  # --help stops there
            yield f"{program} {name} takes a value, or is not known"


@pytest.mark.parametrize("program", [pytest.param(name, marks=pytest.mark.needs(name)) for name in PROGRAMS.split()])
def test_options_take_as_many_words_as_listed(program: str, tmp_path: Path) -> None:
    version = answer(tmp_path, program, "--version")
    if not any(maker in version for maker in MAKERS):
        pytest.skip(f"{program} is not the one the table was written from")
    assert list(wrong(program, version, tmp_path)) == []
