"""Programs for `python3 -c` that only read and print run unasked; what does more, or could, does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from handrail.shell import CommandVerdict, Does, analyse

READ_ONLY = {
    "print(1 + 1)": "2",
    "import sys; print(sys.version_info >= (3, 8))": "True",
    "import json; print(json.load(open('a.json'))['version'])": "1.2",
    "import json,sys; print(json.load(sys.stdin)['version'])": "1.2",
    "import json\nd = json.load(open('a.json'))\nprint(json.dumps(d, indent=2, sort_keys=True))": "1.2",
    "for line in open('a.txt'): print(line.strip())": "b",
    "print(len(open('a.txt').read().splitlines()))": "2",
    "with open('a.txt') as f: print(f.read().count('a'))": "1",
    "print([x * 2 for x in range(3) if x])": "[2, 4]",
    "print({k: v for k, v in [('a', 1)]}['a'])": "1",
    "print(f'{3.14159:.2f} {1!r}')": "3.14",
    "import math; print(math.sqrt(2) > 1 and 'yes' or 'no')": "yes",
    "import hashlib; print(hashlib.sha256(open('a.txt', 'rb').read()).hexdigest()[:4])": "",
    "import base64; print(base64.b64decode('aGk=').decode())": "hi",
    "import collections; print(collections.Counter('aab').most_common(1))": "('a', 2)",
    "import os; print(os.getcwd())": "",
    "x = 3\nif x > 2: print('big')": "big",
    "print('a' if 1 else 'b', 'x'.upper(), sep='-')": "a-X",
    "print(sorted(set('cab'), reverse=True))": "['c', 'b', 'a']",
}
# Each writes, starts, reaches or hides something, or is not surely understood.
MORE = """
open('ran', 'w')
open('ran', mode='w')
open('ran', 'x').read()
open(file='ran', mode='w')
open('a.txt', 'r+').read()
open(1, 'w')
open(0)
open('a' + '.txt')
print('x', file=open('ran', 'w'))
f = open; f('ran', 'w')
o = [open][0]('ran', 'w')
print = open; print('ran', 'w')
import os; os.system('touch ran')
import os; os.mkdir('ran')
import os; os.environ
import os; print(os.environ['HOME'])
import os as sys; sys.system('touch ran')
from os import system
import subprocess
import json; json.os
import json; json.decoder.scanner
import json; x = json; x.codecs.open('ran', 'w')
import sys; sys.modules['os'].system('touch ran')
import sys; sys.stdout.write('x')
import sys; sys.stdin.buffer
import sys; sys.path.insert(0, '.')
import sys; sys.path = []
import sys; sys.exit()
__import__('os').system('touch ran')
eval('1')
exec('1')
compile('1', '', 'eval')
getattr(1, 'x')
globals()
().__class__
(1).__class__.__bases__
''.__class__.__mro__[1].__subclasses__()
print.__self__
print(print)
map(print, [1])
sorted([1], key=print)
(lambda: 1)()
def f(): pass
class A: pass
x = y = 1
x: int = 1
x += 1
del x
[x := 1]
a = [1]; a[0] = 2
for open in [1]: pass
for x.y in [1]: pass
for a[0] in [1]: pass
[0 for open in [1]]
import json; json.dump({}, open('ran', 'w'))
import json; json.loads('1', cls=print)
import json; json.loads('1', object_hook=print)
import json; json.dumps(1, default=print)
while True: pass
try: pass⏎except: pass
assert 1
raise 1
with open('a.txt') as f, open('ran', 'w') as g: pass
with open('ran', 'w') as f: pass
import pathlib; pathlib.Path('ran').touch()
import platform; platform.processor()
import math; math.__loader__
'{0.__class__}'.format(1)
print(open('a.txt').buffer)
open('a.txt').close()
open('a.txt').truncate()
async def f(): await x
match 1:⏎  case _: pass
[exec for exec in []]; print(exec)
import textwrap⏎[0 for exec in []]⏎textwrap.indent('open("ran", "w")', '', exec)
import textwrap⏎for exec in []: pass⏎textwrap.indent('open("ran", "w")', '', exec)
import textwrap⏎if 0: exec = 1⏎textwrap.indent('open("ran", "w")', '', exec)
import textwrap⏎for a, (b, eval) in []: pass⏎textwrap.indent('open("ran", "w")', '', eval)
import textwrap⏎{0: 0 for input in []}⏎textwrap.indent('a', '', input)
[0 for help in []]; print(help)
import json; print(json.loads)
import os; f = os.getcwd
import textwrap, json; textwrap.indent('1', '', json.loads)
f = open('a.txt').read
import textwrap; textwrap.indent('1', '', 'a'.join)
import antigravity
import this
print(1
""".strip().splitlines()


def line(program: str) -> str:
    quoted = program.replace("'", "'\\''")
    return f"python3 -c '{quoted}'"


@pytest.mark.parametrize("program", READ_ONLY)
def test_a_program_that_reads_and_prints_is_read_only(program: str, tmp_path: Path) -> None:
    analysis = analyse(line(program))
    (tmp_path / "a.txt").write_text("a\nb\n")
    (tmp_path / "a.json").write_text('{"version": "1.2"}')
    before = sorted(tmp_path.iterdir())

    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        input='{"version": "1.2"}',
        capture_output=True,
        text=True,
        check=True,
    )

    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons
    assert [need.name for need in analysis.requires] == ["python-modules"]
    assert READ_ONLY[program] in ran.stdout
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("program", MORE)
def test_any_other_program_is_not(program: str) -> None:
    for text in (line(program.replace("⏎", "\n")), line("print(1)\n" + program.replace("⏎", "\n"))):
        assert analyse(text).verdict is not CommandVerdict.READ_ONLY


def test_files_that_it_opens_are_told() -> None:
    [segment] = analyse('python3 -c \'print(open(".env").read(), open("/etc/passwd", "rb"))\'').segments

    assert [str(word) for word in segment.words(Does.READS)] == [".env", "/etc/passwd"]


@pytest.mark.parametrize(
    "text",
    ['python3 -c "print($x)"', "python3 -ic 'print(1)'", "python3 -m x -c 'print(1)'",
     "python3 -c 'print(1)' | sh", "PYTHONPATH=. python3 -c 'import json'", "python -c 'print(1)'"],
)  # fmt: skip
def test_what_stands_around_a_program_counts(text: str) -> None:
    assert analyse(text).verdict is not CommandVerdict.READ_ONLY
