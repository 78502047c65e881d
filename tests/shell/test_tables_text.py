"""Programs that print, search, compare and dump files: what is read-only, what is not, and which files are named."""

import pytest

from handrail.shell import CommandVerdict, analyse, reads_outside

READ_ONLY = """
ls -la --color=auto src | dir -1 | vdir | ls -lhS --time-style=long-iso | ls -I '*.o' -w 80
cat -n a b | cat * | tac -s, f | nl -ba -w 3 f | head -c 10 f | tail -f f | tail -n +5 -q a b | wc -lw f
sort -t, -k2,2n -u f | sort -rnk 3 | sort --parallel=2 -S 1M f | sort -c f | sort --check=quiet f | sort -z f
uniq -c | uniq -cd f | uniq -f1 -w5 f | uniq --group=both f | uniq -3 f | uniq - | sort f | uniq -u
cut -d: -f1,3 f | cut -c1-80 f | cut --output-delimiter=, -f2- f | cut -d ' ' -f1 *
tr a-z A-Z | tr -d '\\n' | tr -s ' ' | tr -cd '[:alnum:]' | tr '\\0' '\\n'
paste -sd+ | paste -d, a b | join -t, -1 2 -2 1 a b | comm -12 a b | comm -3 --total a b | fold -sw 72 f
fold -80 f
fmt -w72 f | fmt -72 f | expand -t4 f | unexpand -a f | pr -2 -l 60 f | pr -o 4 f | pr -h title f | pr -n: f
shuf -n 5 f | shuf -i 1-10 | shuf -e a b c | tsort f | ptx f | ptx -A f
od -c f | od -A x -t x1z -v f | od -An -tx1 -N16 f | od -w16 f | base64 f | base64 -d f | base64 -w0 f | base32 f
basenc --base64url f | md5sum f | sha256sum *.txt | sha512sum -b f | b2sum -l 256 f | cksum f | cksum -a md5 f
sum f
shasum -a 256 f | stat f | stat -c '%s %n' f | stat -L --printf='%s' f | stat -f . | du -sh . | du -ah --max-depth=1
du -d 1 -h src | du --exclude='*.o' -c a b | df -h | df -hT . | df --output=source,size | basename a/b .c
basename -a a b | dirname a/b | realpath a | realpath --relative-to=. a | readlink -f a | printenv HOME
printenv USER SHELL
column -t -s, f | iconv -f latin1 -t utf8 f | column -J -N a,b f | rev f | tree -L 2 | tree -aI node_modules src
tree -aL 2 --dirsfirst -d
tree -P '*.py' --prune | tree -L2 | tree --du -h | tree -if --noreport src | file f | file -bi f
file --mime-type a b
hexdump -C f | hexdump -n 16 -e '16/1 "%02x"' f | hd f | xxd f | xxd -l 16 f | xxd -l16 -c 8 f | xxd -p
xxd -s -16 f
xxd -i f | xxd -ps -u f | strings -n 8 f | strings -a -t x f | strings -8 f | nm -D f | nm -C --defined-only f
objdump -d f
objdump -t -j .text f | readelf -a f | readelf -hW f | readelf -x .data f | size -A f
diff a b | diff -u a b | diff -ru a b | diff -U 5 a b | diff --brief -r a b | diff -y -W 120 a b
diff -x '*.o' -r a b
diff --color=always a b | diff -qr a b | diff --strip-trailing-cr -wB a b | diff <(ls a) <(ls b) | colordiff -u a b
cmp a b | cmp -s a b | cmp -l -n 10 a b 5 5 | diff3 a b c | diff3 -m a b c | sdiff -s a b | sdiff -w 80 a b
grep -rn foo src | grep -A3 -B3 foo f | grep --context=3 foo f | grep -rl foo . --include='*.py' | grep -c '' f
grep foo *
egrep 'a|b' f | fgrep -x a f | grep -e a -e b f | grep --color=never -oP '\\d+' f | zgrep -i error f.gz
grep -v '^#' f
find . | find a b -name x | find -L . -type f -size +1M | find . -not -path './a/*' -newermt 2024-01-01
find --version
find -E . -regex 'x' | find . -maxdepth 1 -type d -printf '%f\\n' | find . -exec wc -l {} +
find a b -exec grep -l x {} +
find . -type f \\( -name a -o -name b \\) -print0 | find . -samefile a -o -inum 5 -ls
find . -mmin -5 -perm /u+x -empty -quit
""".strip()


def split(table: str) -> list[str]:
    """Lines and the alternatives on them, which ` | ` separates where no line of ours uses it as a pipe."""
    return [line.strip() for row in table.splitlines() for line in row.split(" | ")]


@pytest.mark.parametrize("line", split(READ_ONLY))
def test_showing_is_read_only(line: str) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons


NOT_READ_ONLY = """
sort -o out f | sort -oout f | sort -uo out f | sort --output=out f | sort --output out f | sort --outpu=out f
sort f -o f | sort -T /tmp f | sort --temporary-directory=/tmp f | sort --compress-program=sh f
sort --compress-program sh f | sort --files0-from=f | sort --files0-from f | sort * | sort $(ls) | xargs sort
uniq in out | uniq -c in out | uniq -- in out | uniq in -c out | uniq * | uniq a $(ls) | uniq {a,b}
shuf -o out f | shuf --output=out f | shuf -eo out a b | ptx f out | ptx -G f out | ptx --traditional f
base64 -o out f | base64 -oout f | base64 --output=out f | base64 * | sha256sum -c f | sha1sum --check f
md5sum -cw f
shasum -c f | cksum --check f | b2sum -c f | wc --files0-from=f | du --files0-from=f | df --sync | printenv
printenv TOKEN | printenv HOME TOKEN | printenv $x | printenv -0 | tail --foll f | head --line=5 f
tree -o out | tree -Lo 2 out | tree -ao out | tree -oout | tree -R -H . -L 1 | tree -RL 1 | tree *
tree --fromfile f
tree --output=x | file -C -m f | file --compile -m f | file -bC | file -f f | file -z f | file -p f | file -bp f
file --files-from=f
file -S f
xxd -r f | xxd -r f out | xxd f out | xxd -p f out | xxd -revert f | xxd --r f | xxd -pr f | xxd -x f | xxd *
xxd -l 16 f out | xxd "$(ls)" | strings @f | strings -n @f f | nm @f | nm --plugin x f | nm --plugin=x f | nm -l f
objdump -S f | objdump -l f | objdump @f | objdump --dwarf f | readelf -w f | readelf @f | readelf --debug-dump f
size @f
iconv -o out f | iconv --output=out f | ldd f | ldd -v f | strings * | hexdump -f | column --nosuch f
diff -l a b | diff --paginate a b | diff -ul a b | diff --output=x a b | diff --outpu x | diff *
diff3 --diff-program=x a b c | diff3 --diff-program x a b c | sdiff -o x a b | sdiff --output=x a b
sdiff -so x a b
sdiff --diff-program=x a b | cmp a b c d e | patch -p1 | patch --dry-run -p1 f | patch f
grep --context foo f | grep --nosuch foo f | zgrep -f x f | zgrep --nosuch x f
find . -delete | find . -name x -delete | find . -exec rm {} + | find . -exec sh -c x {} \\; | find . -ok ls {} \\;
find . -execdir ls \\; | find . -okdir ls \\; | find . -fprint x | find . -fprint0 x | find . -fls x
find . -fprintf x %p
find -files0-from f | find . -files0-from f | find -D exec . | find -f . | find . -nosuch | find . -exec {} \\;
find $x
find . -name *.py | find . -exec grep x {} \\; -exec touch y \\; | find . -exec xargs rm \\; | find -- .
find . -name x -exec
""".strip()


@pytest.mark.parametrize("line", split(NOT_READ_ONLY))
def test_writing_running_and_unlisted_forms_are_not(line: str) -> None:
    assert analyse(line).verdict is not CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("sort -o out f", ["out"]), ("sort -T d f", ["d"]), ("uniq a b", ["b"]), ("shuf -o out f", ["out"]),
        ("tree -o out", ["out"]), ("xxd f out", ["out"]), ("sdiff -o out a b", ["out"]), ("sed -i p f", ["p", "f"]),
        ("find . -fprintf out x", ["out"]), ("rm -rf a b", ["a", "b"]), ("cp -r a b", ["b"]), ("mv a b", ["b"]),
        ("tee -a a b", ["a", "b"]), ("touch -r x a", ["a"]), ("mkdir -p a", ["a"]), ("truncate -s 0 a", ["a"]),
        ("chmod +x a", ["a"]), ("cp -t d a", ["d", "a"]), ("ln -s a b", ["b"]), ("install -m 755 a b", ["b"]),
    ],
)  # fmt: skip
def test_written_files_are_named(line: str, written: list[str]) -> None:
    assert [str(word) for segment in analyse(line).segments for word in segment.writes] == written


@pytest.mark.parametrize(
    ("line", "outside"),
    [
        ("du -X /etc/x .", ["/etc/x"]), ("shuf --random-source=/etc/x f", ["/etc/x"]), ("sort --random-source /etc/x f",
        ["/etc/x"]),
        ("sed 'r /etc/x' f", ["/etc/x"]), ("sed -n p /etc/x", ["/etc/x"]), ("awk 1 /etc/x", ["/etc/x"]),
        ("diff --from-file=/etc/x a", ["/etc/x"]), ("diff -X /etc/x a b", ["/etc/x"]), ("ptx -i /etc/x f", ["/etc/x"]),
        ("file -m /etc/x f", ["/etc/x"]), ("hexdump -f /etc/x f", ["/etc/x"]), ("tree --gitfile /etc/x", ["/etc/x"]),
        ("xxd /etc/x", ["/etc/x"]), ("tree /srv", ["/srv"]), ("strings /etc/x", ["/etc/x"]), ("date -f /etc/x",
        ["/etc/x"]),
        ("find a /srv -exec cat {} +", ["/srv", "/srv/{}"]),
        ("find a /etc -exec cat {} +", ["/etc/{}"]), ("realpath --relative-to /srv a", ["/srv"]),
        ("dmesg -F /etc/x", ["/etc/x"]), ("tar tf /etc/x", ["/etc/x"]), ("gzip -dc /etc/x", ["/etc/x"]),
        ("unzip -l /etc/x", ["/etc/x"]), ("lsof /srv/x", ["/srv/x"]), ("cut -f1 < /etc/x", ["/etc/x"]),
    ],
)  # fmt: skip
def test_files_read_by_options_are_named(line: str, outside: list[str]) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons
    assert [str(word) for _, word in reads_outside(analysis, cwd="/w", roots=("/w",), home="/h")] == outside
