"""
Every line of the corpus in every carrier.

A harmless line with an effect added, however it is added, is never read-only. A harmful line stays refused under every
rewriting that keeps its meaning. The lines are only analysed, never run.
"""

import re
import shlex
from collections.abc import Callable

import pytest

from handrail.shell import CommandVerdict, analyse
from tests.shell.corpus_report import Line, lines, runs_unasked

pytestmark = pytest.mark.no_cover  # the corpus itself is measured; rewriting it a hundred times shows no new line

Rewrite = Callable[[str], str | None]  # None where it does not apply

HARM = "touch pwned"
Q = shlex.quote


def one_line(line: str) -> bool:
    """More can be written behind it on the same line."""
    return "#" not in line and "<<" not in line and "\n" not in line


def behind(text: str) -> Rewrite:
    return lambda line: line + text if one_line(line) else None


def of_one_command(make: Callable[[str, str], str]) -> Rewrite:
    """For lines that begin with the name of a program: (name, rest)."""

    def rewrite(line: str) -> str | None:
        found = re.match(r"([a-z][a-z0-9]+)(?=[ \n]|\Z)(.*)\Z", line, re.DOTALL)
        keyword = found and found[1] in ("if", "for", "while", "until", "case", "select", "function", "time", "coproc")
        return make(found[1], found[2]) if found and not keyword else None

    return rewrite


ADDS_AN_EFFECT: dict[str, Rewrite] = {
    "then": lambda line: f"{line}\n{HARM}",
    "before": lambda line: f"{HARM}\n{line}",
    "before, on one line": lambda line: f"{HARM}; {line}",
    "before a list": lambda line: f"{HARM} && {line}",
    "into a pipe": behind(" | tee pwned"),
    "out of a pipe": lambda line: f"{HARM} | {line}",
    "and": behind(f" && {HARM}"),
    "or": behind(f" || {HARM}"),
    "in the background": behind(f" & {HARM}"),
    "without a blank": behind(f";{HARM}"),
    "behind a continued line": behind(f" \\\n; {HARM}"),
    "behind a comment": lambda line: f"{line} # it's {HARM}\n{HARM}",
    "in pieces": lambda line: f"{line}\nt''o\"u\"c\\h pwned",
    "by a variable": lambda line: f"{line}\nx=touch; $x pwned",
    "by its path": lambda line: f"{line}\n/usr/bin/{HARM}",
    "redirected": behind(" > pwned"),
    "redirected as a group": lambda line: f"{{ {line}\n}} > pwned",
    "redirected as a subshell": lambda line: f"( {line}\n) >> pwned",
    "substituted": lambda line: f"{line}\necho $({HARM})",
    "substituted in quotes": lambda line: f'{line}\necho "`{HARM}`"',
    "in a process substitution": lambda line: f"{line}\ncat <({HARM})",
    "inside its own substitution": lambda line: f'echo "$({line}\n{HARM}\n)"',
    "in a here-document": lambda line: f"{line}\ncat <<EOT\n$({HARM})\nEOT",
    "by an assignment": lambda line: f"x=$({HARM})\n{line}",
    "in a setting": of_one_command(lambda name, rest: f"x=$({HARM}) {name}{rest}"),
    "by the loader": of_one_command(lambda name, rest: f"LD_PRELOAD=./x.so {name}{rest}"),
    "by env": of_one_command(lambda name, rest: f"env PATH=. {name}{rest}"),
    "by the path": lambda line: f"PATH=.\n{line}",
    "as root": of_one_command(lambda name, rest: f"sudo {name}{rest}"),
    "outliving the shell": of_one_command(lambda name, rest: f"nohup {name}{rest}"),
    "in a function": lambda line: f"f() {{ {line}\n{HARM}\n}}; f",
    "in a function of its name": of_one_command(lambda name, rest: f"{name}() {{ {HARM}; }}; {name}{rest}"),
    "in an alias": of_one_command(lambda name, rest: f"shopt -s expand_aliases\nalias {name}='{HARM}'\n{name}{rest}"),
    "in a trap": lambda line: f"trap '{HARM}' EXIT\n{line}",
    "in eval": lambda line: f"eval {Q(line + chr(10) + HARM)}",
    "in an inner shell": lambda line: f"sh -c {Q(line + chr(10) + HARM)}",
    "in a wrapped inner shell": lambda line: f"timeout 5 nice bash -c {Q(HARM + chr(10) + line)}",
    "as a condition": lambda line: f"if {line}\nthen {HARM}; fi",
    "in a loop": lambda line: f"for x in a; do {line}\n{HARM}; done",
    "in a case": lambda line: f"case a in a) {line}\n{HARM};; esac",
    "in a co-process": lambda line: f"coproc {HARM}\n{line}",
    "with a file opened before": lambda line: f"exec 3> pwned\n{line}",
    "behind a carriage return": behind(f"\r{HARM}"),
    "behind an odd blank": behind(f"\u00a0{HARM}"),
    "behind a line separator": behind(f"\u2028{HARM}"),
    "behind a vertical tab": behind(f"\v{HARM}"),
    "behind NUL": behind(f"\0{HARM}"),
}

KEEPS_THE_MEANING: dict[str, Rewrite] = {
    "group": lambda line: f"{{ {line}\n}}",
    "subshell": lambda line: f"( {line}\n)",
    "after something harmless": lambda line: f"true\n{line}",
    "before something harmless": lambda line: f"{line}\ntrue",
    "condition": lambda line: f"if true; then {line}\nfi",
    "loop": lambda line: f"for x in a; do {line}\ndone",
    "substitution": lambda line: f'echo "$({line}\n)"',
    "inner shell": lambda line: f"bash -c {Q(line)}",
    "two inner shells": lambda line: f"sh -c {Q('bash -c ' + Q(line))}",
    "wrapped inner shell": lambda line: f"timeout 5 env bash -c {Q(line)}",
    "eval": lambda line: f"eval {Q(line)}",
    "a comment": lambda line: f"# harmless\n{line}\n# indeed",
    "blanks": lambda line: f"  \t{line} \n\n",
    "quoted name": of_one_command(lambda name, rest: f"'{name}'{rest}"),
    "name in pieces": of_one_command(lambda name, rest: f"{name[0]}''{name[1:]}{rest}"),
    "escaped name": of_one_command(lambda name, rest: f"{name[0]}\\{name[1:]}{rest}"),
    "name in escapes": of_one_command(lambda name, rest: "$'" + "".join(f"\\x{ord(c):x}" for c in name) + f"'{rest}"),
    "name over two lines": of_one_command(lambda name, rest: f"{name[0]}\\\n{name[1:]}{rest}"),
    "name in a variable": of_one_command(lambda name, rest: f"c={name}\n$c{rest}"),
    "name in two variables": of_one_command(lambda name, rest: f"a={name[0]} b={name[1:]}\n$a$b{rest}"),
    "name by its path": of_one_command(lambda name, rest: f"/usr/bin/{name}{rest}"),
    "more blanks": of_one_command(lambda name, rest: f"{name}{rest.replace(' ', '  ', 1)}"),
    "a tab": of_one_command(lambda name, rest: f"{name}{rest.replace(' ', chr(9), 1)}"),
    "command": of_one_command(lambda name, rest: f"command {name}{rest}"),
    "env": of_one_command(lambda name, rest: f"env {name}{rest}"),
    "nice": of_one_command(lambda name, rest: f"nice -n 1 {name}{rest}"),
    "exec": of_one_command(lambda name, rest: f"exec {name}{rest}"),
    "time": of_one_command(lambda name, rest: f"time {name}{rest}"),
    "negation": of_one_command(lambda name, rest: f"! {name}{rest}"),
    "harmless setting": of_one_command(lambda name, rest: f"LC_ALL=C {name}{rest}"),
}

BENIGN = [line for line in lines() if line.expect == "allow_read_only"]
ATTACKS = [line for line in lines() if line.expect == "deny_or_ask"]


def share(found: list[Line], name: str) -> list[Line]:
    """Every third line, others for other names: each line meets many rewrites and each rewrite all kinds of lines."""
    return found[len(name) % 3 :: 3]


def rewritten(rewrite: Rewrite, found: list[Line]) -> list[str]:
    return [text for line in found if (text := rewrite(line.command)) is not None]


@pytest.mark.parametrize("carrier", ADDS_AN_EFFECT)
def test_an_added_effect_is_never_read_only(carrier: str) -> None:
    lines = share(BENIGN, carrier)
    carried = rewritten(ADDS_AN_EFFECT[carrier], lines)
    assert len(carried) > len(lines) / 2
    assert [text for text in carried if analyse(text).verdict is CommandVerdict.READ_ONLY] == []


@pytest.mark.parametrize("way", KEEPS_THE_MEANING)
def test_an_attack_stays_refused_however_it_is_written(way: str) -> None:
    lines = share(ATTACKS, way)
    carried = rewritten(KEEPS_THE_MEANING[way], lines)
    assert len(carried) > len(lines) / 4
    assert [text for text in carried if runs_unasked(text)] == []


NEUTRAL = ("group", "subshell", "after something harmless", "condition", "inner shell", "blanks", "quoted name", "time")


@pytest.mark.parametrize("way", NEUTRAL)
def test_a_harmless_line_mostly_stays_harmless_in_a_harmless_carrier(way: str) -> None:
    """Without this a parser that refuses every carrier would do."""
    before = [
        line for line in share(BENIGN, way) if runs_unasked(line.command) and KEEPS_THE_MEANING[way](line.command)
    ]
    after = [text for text in rewritten(KEEPS_THE_MEANING[way], before) if runs_unasked(text)]
    assert len(after) / len(before) > 0.9
