"""Arithmetic and arrays run unasked where their variables are known, and never evaluate a text that runs a command."""

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.shell import CommandVerdict, analyse

READ_ONLY = [
    "n=5; echo $((n * 2))",
    "n=5; echo $(($n * -2 + 1))",
    'n=5 ; m=$((n % 2)); echo "$((m <= n))"',
    "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i + 1)); done",
    "t=0; for n in 1 2; do t=$((t + n)); done; echo $t",
    "i=1; if [ -f a ]; then i=2; fi; echo $((i))",
    'f=(a b); cat "${f[@]}"',
    'f=(a b); for x in "${f[@]}"; do wc "$x"; done',
    'f=(a b); cat "${f[1]}"; echo "${#f[@]}"',
    '[ "$(wc -l < a)" -gt 3 ]',
    "head -n $((1 + 2)) a",
]
ASKED = [
    "echo $((HOME))",
    "n='a[$(touch m)]'; echo $((n))",
    "n=5; n='a[$(touch m)]' m=$((n)); echo $m",
    "n=1; echo $((x$n))",
    "n=1; echo $((n=2))",
    "n=1; echo $((n++))",
    "n=1; echo $((n[0]))",
    "read n < a; echo $((n))",
    "n=5; while ls; do echo $((n)); n=$(cat a); done",
    "n=5; for n in $(cat a); do echo $((n)); done",
    "n=5; while ls; do echo $((n)); read n; n=$((n)); done",
    "n=5; export n=x; echo $((n))",
    "n=5 bash -c 'echo $((n))'",
    "a=(['b[$(touch m)]']=v)",
    "a=(b)#; touch m",
    "a=()#c; touch m",
    "a=(b)\\\n#; touch m",
    'a=($x); cat "${a[@]}"',
    'a=(b c); a=d; cat "${a[@]}"',
    'cat "${a[@]}"',
    "a=(b); cat ${a[@]}",
    'a=(b); cat x"${a[@]}"',
    'a=(b); if ls; then a=(c); fi; cat "${a[@]}"',
    "PATH=(a); ls",
    "a=(b) ls",
    "a=(b); a+=(c)",
    'a=(b); cat "${a[x]}"',
    'a=(rm -r c); "${a[@]}"',
    "[[ $(cat a) -gt 3 ]]",
    "sh -c '[ \"$(cat a)\" -gt 3 ]'",
]
# A text that touches the marker where bash evaluates it.
EVIL = "'b[$(touch marker)]'"
STATEMENTS = [
    "{x}=5",
    "{x}=-3",
    f"{{x}}={EVIL}",
    "{x}=$(cat evil)",
    "{x}=$(({y} + 1))",
    "{x}=$(({x} + {y}))",
    "{x}=${y}",
    f"{{x}}={EVIL} {{y}}=$(({{x}}))",
    "echo $(({x}))",
    "echo $((1{x}))",
    "echo $(({x}${y}))",
    "echo $((${x} * 2))",
    "read {x} < evil",
    "for {x} in 1 2; do {y}=$(({x})); done",
    "for {x} in $(cat evil); do :; done",
    f"for z in 1 2; do echo $(({{x}})); {{x}}={EVIL}; done",
    "for z in 1 2; do {x}=$(({x} + {y})); done",
    "for z in 1 2; do for {x} in 1 2; do {x}=$(cat evil); done; {y}=$(({x})); done",
    "export {x}=5",
    f"export {{x}}={EVIL}",
    "if [ -f none ]; then {x}=5; fi",
    f"if [ -f evil ]; then {{x}}={EVIL}; fi",
    f"false || {{x}}={EVIL}",
    "{x}=(5 6)",
    f"{{x}}=({EVIL} 5)",
    "echo $(({x}))",
    '{y}="${{{x}[1]}}"',
    "{x}=7",
    'echo "${{{x}[@]}}"',
    '[ "${x}" -gt 3 ]',
    '[ "$(cat evil)" -gt 3 ]',
    f"{{x}}=([{EVIL}]=1)",
    f"readonly {{x}}={EVIL}",
    "( {x}=5 )",
    f"{{x}}={EVIL} | cat",
]
statements = st.builds(
    lambda text, x, y: text.format(x=x, y=y), st.sampled_from(STATEMENTS), st.sampled_from("nm"), st.sampled_from("nm")
)


@pytest.mark.proves("X24")
@pytest.mark.parametrize("line", READ_ONLY)
def test_what_is_known_is_read_only(line: str) -> None:
    analysis = analyse(line)

    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons


@pytest.mark.parametrize("line", ASKED)
def test_what_may_hold_a_command_is_not_read_only(line: str) -> None:
    assert analyse(line).verdict is not CommandVerdict.READ_ONLY


@pytest.mark.proves("X24")
@given(st.lists(statements, min_size=1, max_size=5))
@settings(max_examples=120, deadline=None)
def test_bash_runs_nothing_that_a_variable_holds(parts: list[str]) -> None:
    line = "; ".join(parts)
    if analyse(line).verdict is not CommandVerdict.READ_ONLY:
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "evil").write_text(EVIL.strip("'"))
        subprocess.run(["/bin/bash", "-c", line], cwd=folder, input=b"", capture_output=True, check=False, timeout=20)

        assert not Path(folder, "marker").exists(), line


def test_a_long_text_in_arithmetic_is_refused_at_once() -> None:
    assert analyse("echo $((" + "a" * 5000 + "!").verdict is CommandVerdict.NOT_UNDERSTOOD


@pytest.mark.parametrize("behind", [chr(code) for code in range(32, 127)])
def test_what_stands_directly_behind_an_array_hides_no_command(behind: str, tmp_path: Path) -> None:
    for line in (f"a=(b){behind}; touch m", f"a=(b){behind}c; touch m", f"a=(b){behind}touch m"):
        analysis = analyse(line)
        subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        if (tmp_path / "m").exists():
            assert analysis.verdict is not CommandVerdict.READ_ONLY, line
            (tmp_path / "m").unlink()
