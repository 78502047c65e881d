"""rg, fd, ag, ack, bat: forms that search and show, and forms that start programs."""

import subprocess
from pathlib import Path

import pytest

from handrail.builtin.support.ripgrep import packaged_rg
from handrail.shell import analyse, tables
from tests.shell.corpus_report import runs_unasked

READ_ONLY = r"""
rg TODO
rg -n 'def main' src
rg -i error -g '!node_modules' -g '*.py'
rg -C 3 -A2 -B 2 'fn main' crates
rg --json foo src
rg --files -g '*.toml'
rg --files src
rg -e foo -e bar src tests
rg -uu --hidden foo .
rg -lw foo --sort path
rg -c foo -t py -T js
rg --type-list
rg -U 'a\nb' --multiline-dotall
rg -o -r '$1' 'v(\d+)' CHANGELOG.md
rg -P '(?<=v)\d+' --max-count=1 -M 200
rg --no-config -F 'a.b(' src/*.py
rg --stats --no-messages foo 2>/dev/null
rg -- --pre src
rg 'foo|bar' | head -20
rg --version
fd
fd -e py test src
fd -H -I -t f '\.env' .
fd --extension md --max-depth 2 --exclude node_modules
fdfind -0 foo
fd --changed-within 2weeks -t d
ag foo
ag -i --py 'def main' src
ag -l foo -G '\.py$' src
ag -C3 foo
ack foo
ack -i --python 'def main' lib
ack -l --type=js foo
bat README.md
batcat -n -l py --style=plain src/main.py
bat --list-languages
exa -la --git
eza -T -L 2 src
shellcheck -f json scripts/*.sh
tokei src
""".strip().splitlines()

NOT_READ_ONLY = r"""
rg --pre=sh . script
rg --pre sh . script
rg --engine --pre=./x foo
rg --pre-glob '*.pdf' --pre pdftotext foo
rg --hostname-bin=./x foo
rg --hyperlink-format=default foo
rg -z foo
rg --search-zip foo
rg -iz foo
rg foo /etc
rg foo ..
rg -f /etc/passwd
rg --ignore-file=/etc/passwd foo
rg --files /
rg -e foo /etc/passwd
rg "$x" src
rg foo $(ls)
rg foo *
rg --colou=never foo
rg --no-such foo
ls | xargs rg foo
fd -x rm
fd -X rm
fd --exec rm
fd -e py -x rm {}
fd --exec-batch=rm
fd -l foo
fd foo /etc
fd --base-directory=/etc foo
fd --search-path / foo
fd . ~
ag --pager=./x foo
ag --pager ./x foo
ag -p ../x foo
ag -A foo src
ag foo /etc
ack --pager=./x foo
ack --output='$1' foo
ack --ackrc=./x foo
ack --files-from=x foo
ack -x foo
ack foo /etc
bat --pager=./x README.md
bat --paging=always README.md
bat cache --build
bat cache --clear
bat /etc/passwd
exa /
shellcheck -x a.sh
shellcheck -a a.sh
shellcheck --norc --check-sourced a.sh
shellcheck /etc/profile
fzf
fzf --preview 'cat {}'
""".strip().splitlines()


@pytest.mark.parametrize("line", READ_ONLY)
def test_searches_run_unasked(line: str) -> None:
    assert runs_unasked(line), analyse(line).reasons


@pytest.mark.parametrize("line", NOT_READ_ONLY)
def test_programs_started_and_files_elsewhere_are_asked_for(line: str) -> None:
    assert not runs_unasked(line)


@pytest.mark.parametrize(
    ("program", "evil"),
    [
        pytest.param(packaged_rg(), ("--pre={}", "foo", "f.txt"), id="rg"),
        pytest.param("fdfind", ("--exec={}", "f"), marks=pytest.mark.needs("fdfind")),
        pytest.param("ag", ("--pager={}", "foo", "f.txt"), marks=pytest.mark.needs("ag")),
        pytest.param("batcat", ("--pager={}", "--paging=always", "f.txt"), marks=pytest.mark.needs("batcat")),
    ],
)
def test_an_option_with_a_value_never_leaves_a_harmful_option_behind(
    tmp_path: Path, program: str, evil: tuple[str, ...]
) -> None:
    """If the real program did not take the word behind it as its value, `--opt --pre=x` would run x."""
    mark, script = tmp_path / "mark", tmp_path / "x.sh"
    script.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    script.chmod(0o755)
    (tmp_path / "f.txt").write_text("foo\n")
    words = [word.format(script) for word in evil]

    def runs(*before: str) -> bool:
        mark.unlink(missing_ok=True)
        subprocess.run(
            [program, *before, *words], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=20,
            check=False,
        )  # fmt: skip
        return mark.exists()

    assert runs(), "the harmful option does nothing by itself"
    entry = tables.lookup(Path(program).name)
    assert entry is not None
    listed = [
        option.name
        for option in tables.options_of(entry).by_name.values()
        if option.use is not None and not option.attached and not option.optional
    ]
    refused = {"--pager", "--exec", "--pre"}
    assert [name for name in listed if name not in refused and runs(name)] == []
