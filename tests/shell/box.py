"""
A closed box in which bash may run lines: no program but bash itself, no network, an empty environment, a root that
cannot be written, and one empty folder that can.

Every name that is not a builtin ends in a recorder, which notes the arguments bash made and does nothing. Many lines
run in one process, each in a subshell of its own.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The recorder is what bash calls for a command it cannot find, and it can find none. Names in f fail, others succeed.
DRIVER = r"""
command_not_found_handle() {
  local IFS=' ' box_name=$1 box_words=("${@//=/=e}")
  box_words=("${box_words[@]//$'\n'/=n}")  # one line, so that it is written at once
  printf '%s\n' "$box_line ${box_words[*]// /=s}" >&250
  case $box_name in f*) return 1 ;; esac
}
exec 250>>/box/records
box_line=0
while IFS= read -r -d '' box_text; do
  ( ulimit -S -t 2 -v 400000; cd /box/work; eval "$box_text"; wait ) </dev/null >/dev/null 2>&1
  box_line=$((box_line + 1))
done </box/lines
echo end >&250
"""
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


@dataclass(frozen=True, slots=True)
class Ran:
    started: list[list[tuple[str, ...]]]  # for each line the argument vectors of what it started
    left_behind: tuple[str, ...]  # names in the folder that can be written


def run(lines: Sequence[str]) -> Ran:
    """Run each line with bash in the box. Only lines we made ourselves come here."""
    with tempfile.TemporaryDirectory(prefix="handrail-box-") as folder:
        box = Path(folder)
        (box / "work").mkdir()
        (box / "records").touch()
        (box / "driver").write_text(DRIVER)
        (box / "lines").write_bytes(b"".join(line.encode() + b"\0" for line in lines))
        subprocess.run(command(box), check=True, timeout=120, stdin=subprocess.DEVNULL, capture_output=True)
        started = read_records((box / "records").read_bytes(), len(lines))
        return Ran(started, tuple(sorted(path.name for path in (box / "work").iterdir())))


def command(box: Path) -> list[str]:
    bash = shutil.which("bash") or "bash"
    bound = [part for library in LIBRARIES if Path(library).exists() for part in ("--ro-bind", library, library)]
    return [
        "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", *bound,
        "--dev", "/dev", "--ro-bind", bash, "/box/bash", "--ro-bind", str(box / "driver"), "/box/driver",
        "--ro-bind", str(box / "lines"), "/box/lines", "--bind", str(box / "records"), "/box/records",
        "--bind", str(box / "work"), "/box/work", "--remount-ro", "/", "--chdir", "/box/work",
        "--setenv", "PATH", "/box/none", "--setenv", "HOME", "/box/work", "--setenv", "LC_ALL", "C.UTF-8",
        "/box/bash", "--norc", "--noprofile", "/box/driver",
    ]  # fmt: skip


def read_records(raw: bytes, count: int) -> list[list[tuple[str, ...]]]:
    started: list[list[tuple[str, ...]]] = [[] for _ in range(count)]
    records = raw.decode("utf-8", "surrogateescape").split("\n")
    assert "end" in records, f"the box stopped early: {records[-2:]}"
    for record in records:  # what a process substitution starts may come after the end
        if record in ("end", ""):
            continue
        line, *argv = record.split(" ")
        started[int(line)].append(tuple(unescape(word) for word in argv))
    return started


def unescape(word: str) -> str:
    return word.replace("=s", " ").replace("=n", "\n").replace("=e", "=")
