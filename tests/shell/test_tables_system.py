"""Facts, processes, the machine, archives, manuals and versions: what is read-only and what is not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.shell import CommandVerdict, Does, analyse
from tests.shell.test_tables_text import split

READ_ONLY = """
date | date -u +%F | date '+%Y-%m-%d %H:%M' | date -d '2 days ago' +%s | date --date=yesterday | date -Is | date -R
date --iso-8601=seconds | date -r f | hostname | hostname -f | hostname -I | id | id -u | id -Gn dev | groups
groups dev
whoami | logname | users | who | who -a | w | w -h dev | last -n 5 | last -5 | uname -a | uname -sr | arch | nproc
nproc --all | uptime -p | tty -s | locale | locale -a | getconf PAGE_SIZE | getconf -a | cal | cal 2024 | cal -3
cal -y 2024
ncal -b | seq 5 | seq -w 1 10 | seq -s, 1 2 9 | seq 10 -1 1 | yes | factor 12 | numfmt --to=iec 1024 | expr 1 + 2
expr length abc | sleep 1 | sleep 0.5 | bc | bc -l | bc <<< '1+2'
lsb_release -a | findmnt -t ext4 | ip r s | ip n s | bzip2 --version
ps | ps aux | ps -ef | ps -aux | ps auxww | ps -eo pid,cmd | ps -eo pid,ppid,cmd --sort=-pcpu | ps -p 1 -o comm=
ps axjf
ps -C node | ps -u dev | ps --forest | ps -efH | ps -eLf | ps ax -o pid,args | ps --pid=1 | ps -e --no-headers
ps -e -o pid,cmd
ps u 1
top -b -n 1 | top -bn1 | top -b -n 1 -o %MEM -u dev | pgrep node | pgrep -fl node | pgrep -u dev -x bash
pidof bash
pstree | pstree -p 1 | pstree -aps | lsof -i :3000 | lsof -iTCP:80 -sTCP:LISTEN | lsof -nP -i4 | lsof -p 1
lsof +D src
lsof -nPi tcp:80 | lsof f | lsof -t -i :80 | lsof -u dev -a -c node | free -h | free -m -s 1 -c 2 | vmstat 1 2
vmstat -s
iostat -x 1 2 | ip a | ip addr | ip addr show | ip -4 addr show dev eth0 | ip -br link | ip r
ip route show table main
ip route get 1.1.1.1 | ip -j a s | ip neigh | ip -s link show lo | ifconfig | ifconfig -a | ifconfig eth0
ss -tulpn | ss -s
ss -t state established | ss -lt sport = :ssh | ss -tan '( sport = :80 or dport = :443 )' | netstat -tulpn
netstat -rn
lscpu | lscpu -e | lscpu --json | lsblk -f | lsblk -o NAME,SIZE | lsusb | lsusb -t | lspci -nnk | lspci -s 00:1f.2
lsmod
dmesg | dmesg -T --level=err | dmesg -w | journalctl -u nginx -n 50 --no-pager | journalctl -xe
journalctl -b -1 -p err
journalctl --since '1 hour ago' -f | journalctl --list-boots | systemctl status nginx
systemctl list-units --failed
systemctl --user list-timers --all | systemctl is-active nginx | systemctl status nginx --no-pager -l
systemctl --version
tar tf a.tar | tar tvf a.tar | tar -tf a.tar | tar -tzf a.tgz src | tar tzvf a.tgz | tar --list --file=a.tar
tar -t -f a.tar
tar tfC a.tar src | tar -tJf a.txz --exclude='*.o' | tar --version | tar tf - | tar -tvzf a.tgz --wildcards '*.py'
zcat f.gz | xzcat f | bzcat f | zstdcat f | gzip -dc f | gzip -cd f | gzip -l f | gzip -t f | gunzip -c f | xz -dc f
xz -l f
bzip2 -dc f | bzip2 -t f | zstd -dc f | gzip --stdout f | unzip -l a.zip | unzip -lv a.zip
unzip -p a.zip x
unzip -Z1 a.zip | unzip -t a.zip | unzip -v | zipinfo a.zip | zipinfo -1 a.zip '*.py'
man ls | man 2 open | man -k printf | man -f ls | man -w ls | apropos -e ls | whatis ls | help cd
help -d cd | which -a ls | which node | type ls | type -a ls cd | whereis ls | whereis -b ls | info --version
python3 --version | python3 -V | python -VV | python3.12 --version | node -v | node --version | perl -v | ruby -v
ruby --version | php -v | lua -v | java -version | java --version | javac -version | gcc --version | gcc -v
gcc -dumpmachine | g++ --version | clang --version | make --version | make -v | cmake --version | ninja --version
openssl version | openssl version -a | sqlite3 --version | sqlite3 -version | curl --version | curl -V
wget --version
tmux -V | deno --version | bun --version | ruff --version | tsc --version | dc --version | nginx -v
psql -V
""".strip().replace("", "")


@pytest.mark.parametrize("line", split(READ_ONLY))
def test_telling_and_listing_is_read_only(line: str) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons


NOT_READ_ONLY = """
date -s now | date --set=now | date 01010000 | date -u 0101 | date +%s 0101 | date -us x | date --se=x | date $x
date "$x"
hostname x | hostname -F f | hostname --file=f | hostname -b x | who --lookup | last -d | last --dns
arch -x86_64 ls
arch ls | getconf -v x y | getconf -vx y | bc f | bc -e x | yes --nosuch | uname x | tty x
ps e | ps auxe | ps eww | ps -E | ps axe -o pid | ps -e -aux | ps -eHT | ps -e -u vax | ps -auxe | ps e -o cmd
ps -Eww
ps -o environ | ps -e -o pid,environ | ps e -o pid
ps "$x" | ps -o | ps -ef aux | ps --nosuch | top | top -n 1 | top -c | top -l 1 | pkill node | kill 1 | killall x
pgrep --signal
lsof -i @evil.example | lsof -i@evil.example:80 | lsof -i tcp@evil.example | lsof -D x | lsof +m x | lsof -Db
lsof -r
lsof -i $x | lsof -F | iostat -o JSON -f x | ip link set lo down | ip addr add 1.2.3.4 dev lo | ip a d x | ip -b f
ip netns exec x ls
ip -batch f | ip route add default via x | ip route get evil.example | ip -n x a | ip | ip x | ip addr flush dev lo
ip monitor
ip addr save | ip l s lo down | ip link s lo down | ifconfig -a down | ss -F f | bzip2 -V f | bzip2 --version f
man -L x ls | ip route save | ifconfig lo down | ifconfig lo up | ifconfig lo 1.2.3.4 | ss -K | ss -D out | ss -r
ss dst evil.example | ss -tK dport = :80 | ss --diag=out | ss -N x | ss --kill | netstat --nosuch | lspci -q
lspci -H1 | lspci -M
dmesg -c | dmesg -C | dmesg --clear | dmesg -n 1 | dmesg -D | dmesg -H | dmesg -Tc | journalctl --vacuum-time=1s
journalctl --vacuum-size 1M | journalctl --rotate | journalctl --flush | journalctl --cursor-file=f
journalctl --setup-keys
journalctl --vacuum-tim=1s | journalctl --sync | journalctl --root=/x | systemctl restart x | systemctl
systemctl stop x
systemctl -H h status | systemctl --host=h status | systemctl status -H h | systemctl enable x | systemctl cat x
systemctl show x | systemctl show-environment | systemctl edit x | systemctl kill x | systemctl daemon-reload
systemctl status --root=/x | systemctl set-default x | sysctl -w a=b | sysctl a=b | crontab -l | tput reset
getent hosts x
tar xf a.tar | tar cf a.tar f | tar tf a.tar --to-command=sh | tar tf a.tar -I x | tar tf h:a.tar
tar tf a.tar --checkpoint=1
tar tf a.tar --checkpoint-action=exec=x | tar tf a.tar -F x | tar tf a.tar --new-volume-script=x
tar tf a.tar --rmt-command=x
tar --use-compress-program=x -tf a | tar tfI a x | tar tf a --info-script x | tar -txf a.tar | tar txf a.tar | tar t
tar tf $x | tar tf a.tar --index-file=x | tar tgf x a | tar -tf a --rsh-command=x | tar t --file=h:x
tar tf a --delete
tar -tf a.tar --to-comm=x | tar -A a b | tar tMf a | tar | tar --list
gzip f | gzip -d f | gunzip f | xz f | xz -d f | xz -l -d f | xz -t -d f | bzip2 f | bzip2 -t -d f | zstd f
zstd -d f -o x
zstd --rm f | zstd -dc f -o x | xz -dc --files=x | gzip -r d | unzip a.zip | unzip -o a.zip | unzip a.zip -l
unzip -q a.zip
unzip -d x a.zip | unzip -T a.zip | unzip -lo a.zip | zip a.zip f | zip -T a.zip | cpio -i | cpio -t | ar x a
7z x a | zcat --nosuch
man -P x ls | man --pager=x ls | man --pag=x ls | man -Px ls | man -H ls | man -Hx ls | man --html=x ls | man -X ls
man -T ls
man -l f | man ./f | man /etc/x | man -t ls | man -C f ls | man -M d ls | man -p x ls | man -u ls | man -c ls
man $x
info ls | info --output=f ls | less +x f | less -o x f | less *.md | more +x f | most f | mandb | apropos -C f ls
python3 f | python3 -c x | python3 -m x | python3 | python3 -V f | python3 --version -c x | node f | node -e x
node --require x --version | node -p x | perl -e x | perl -v -e x | ruby -v f | ruby -e x | php -r x | php f | lua f
java -jar x -version | java Main | java -version Main | gcc f | gcc --version f | gcc @f | make | make -n
make --dry-run
make -v -f x | make --version x=y | openssl enc | openssl | openssl version -engine x | sqlite3 f
sqlite3 f '.shell x'
curl http://x | curl -V http://x | curl | wget x | wget -i f | ssh h | ssh -V h | ssh -oProxyCommand=x h | dc
dc -e '!x'
dc f | go version | cargo --version | rustc --version | yarn --version | vim f | vim -c x | nano f | ed f
psql -c x
scp a h: | nc h 1 | dig x | ping h | rm f | cp a b | mv a b | touch f | mkdir d | tee f | dd of=f | mktemp | split f
csplit f 1
truncate -s 0 f | shred f | ln -s a b | chmod +x f | chown a f | install a b | sync | reboot | mount a b | useradd x
logger x
""".strip()


@pytest.mark.parametrize("line", split(NOT_READ_ONLY))
def test_setting_running_reaching_out_and_unlisted_forms_are_not(line: str) -> None:
    assert analyse(line).verdict is not CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("ps auxe", Does.SECRET), ("printenv", Does.SECRET), ("printenv TOKEN", Does.SECRET),
        ("date -s now", Does.STATE),
        ("date 0101", Does.STATE), ("hostname -F f", Does.STATE), ("ss -D f", Does.WRITES), ("nc h 1", Does.NETWORK),
        ("rm f", Does.WRITES), ("ldd f", Does.STARTS), ("man -P x ls", Does.STARTS), ("most f", Does.STARTS),
        ("kill 1", Does.STATE), ("sort --compress-program=x f", Does.STARTS),
        ("journalctl --cursor-file=f", Does.WRITES),
    ],
)  # fmt: skip
def test_the_effect_is_named(line: str, does: Does) -> None:
    assert analyse(line).segments[0].does(does)


def test_pages_and_logs_say_that_no_pager_may_start() -> None:
    assert {need.name for need in analyse("man ls; journalctl").requires} == {"man-pager", "pager"}


PROGRAMS = "tar ps lsof ip xxd tree gzip xz ss unzip date man sed awk find file top"
WORDS = """
-t -f -tf tf -x x -e aux -ef -o pid,cmd -i :80 @h -4 addr show s link -l -L -r f g - -- + -Lo +D -c -d --list --file=a
-p 1 -n -P out -s '' $? * $(ls) --version -eo -aux -u dev
"""


@given(st.sampled_from(PROGRAMS.split()), st.lists(st.sampled_from(WORDS.split()), max_size=6))
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_any_words_get_an_answer(program: str, words: list[str]) -> None:
    analysis = analyse(" ".join([program, *words]))
    assert not [reason for reason in analysis.reasons if "internal error" in reason.text]
