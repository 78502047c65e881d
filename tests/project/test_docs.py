"""
README and docs/ say what is true: examples run, outputs are exact, links lead somewhere, targets exist.

    ```python     all blocks of a page make one program, run in an empty folder
    ```console    `$ command`, then its exact output; a line `...` stands for any lines; run in the same folder
    <!-- not run -->   on the line above a console block: a picture of something that cannot be repeated
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.forked import program as program_of_handrail
from tests.forked import unmeasured

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").glob("**/*.md"))
PAGES = [ROOT / "README.md", *DOCS]
ALL_MARKDOWN = [*sorted(ROOT.glob("*.md")), *DOCS]
OF_FRAMEWORKS = ("'asyncio.iscoroutinefunction' is deprecated", "'asyncio.get_event_loop_policy' is deprecated")
"""What frameworks that have adapters do on Python 3.14."""
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = Path(sys.executable).parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    line: int
    not_run: bool


def blocks(text: str) -> list[Block]:
    return [
        Block(
            language=found[1],
            text=found[2],
            line=text.count("\n", 0, found.start(2)) + 1,
            not_run=text[: found.start()].rstrip().endswith("<!-- not run -->"),
        )
        for found in FENCE.finditer(text)
    ]


def program(found: list[Block]) -> str:
    """The Python blocks as one source, each at the line it has on the page, so that tracebacks point there."""
    lines: list[str] = []
    for block in found:
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines)


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """(command, lines of its output) of a console block."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"line {block.line}: a console block starts with '$ command', not with {line!r}")
    return found


def fits(expected: list[str], actual: list[str]) -> bool:
    pattern = "".join("(?:.*\n)*" if line == "..." else re.escape(line) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in actual)) is not None


def run(command: list[str], folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **unmeasured(),
        "PATH": os.pathsep.join((str(programs), str(PROGRAMS), os.environ["PATH"])),
        "HOME": str(folder),
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONWARNINGS": ",".join(("error", *(f"ignore:{text}:DeprecationWarning" for text in OF_FRAMEWORKS))),
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )


def check_page(page: Path, folder: Path, programs: Path) -> None:
    found = blocks(page.read_text("utf-8"))
    script = folder / f"{page.stem}.py"
    if source := program(found):
        script.write_text(source, "utf-8")
        done = run([sys.executable, script.name], folder, programs)
        assert done.returncode == 0, f"{page.name} (line numbers are those of the page)\n{done.stdout}"
        script.unlink()
    for block in found:
        if block.language != "console" or block.not_run:
            continue
        for command, expected in commands(block):
            actual = run(["sh", "-c", command], folder, programs).stdout.splitlines()
            assert fits(expected, actual), f"{page.name}:{block.line}: $ {command}\n" + "\n".join(actual)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_examples_of_a_page_run_and_show_their_output(page: Path, tmp_path: Path) -> None:
    check_page(page, tmp_path, PROGRAMS if page.name == "README.md" else program_of_handrail().parent)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_only_pictures_of_a_terminal_are_left_out_of_the_run(page: Path) -> None:
    left_out = [block for block in blocks(page.read_text("utf-8")) if block.not_run]

    assert [block for block in left_out if block.language not in {"console", "text"}] == []


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL_MARKDOWN, ids=name_of)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text("utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), f"{link} leaves the repository"
        assert target.exists(), f"{link}: there is no {path}"
        assert not anchor or anchor in anchors(target), f"{link}: there is no heading for #{anchor}"


def test_every_page_of_docs_is_linked_from_the_readme_or_the_index() -> None:
    entrances = [page for page in (ROOT / "README.md", ROOT / "docs" / "index.md") if page.exists()]
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in entrances
        for link in LINK.findall(page.read_text("utf-8"))
    }

    assert [name_of(page) for page in DOCS if page not in linked and page.name != "index.md"] == []


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    code = re.compile(r"`(?:[A-Z]+=\S+ )?make ([a-z-]+)`|^(?:\$ )?make ([a-z-]+)", re.MULTILINE)
    named = {a or b for page in ALL_MARKDOWN for a, b in code.findall(page.read_text("utf-8"))}

    assert named - targets == set()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 150


PAGE = """
```python
word = "hello"
```
and later, in the same program:
```python
print({expression})
```
<!-- not run -->
```console
$ false-command-of-a-picture
```
```console
$ printf 'one\\ntwo\\nthree\\n'
{output}
three
```
"""


def test_a_page_is_one_program_and_its_console_output_is_exact(tmp_path: Path) -> None:
    page = tmp_path / "page.md"

    page.write_text(PAGE.format(expression="word", output="one\ntwo"))
    check_page(page, tmp_path, PROGRAMS if page.name == "README.md" else program_of_handrail().parent)
    page.write_text(PAGE.format(expression="word", output="..."))
    check_page(page, tmp_path, PROGRAMS if page.name == "README.md" else program_of_handrail().parent)
    page.write_text(PAGE.format(expression="word", output="one\n2"))
    with pytest.raises(AssertionError, match=r"page\.md:14: \$ printf"):
        check_page(page, tmp_path, PROGRAMS if page.name == "README.md" else program_of_handrail().parent)
    page.write_text(PAGE.format(expression="unknown", output="..."))
    with pytest.raises(AssertionError, match=r'page\.py", line 7'):
        check_page(page, tmp_path, PROGRAMS if page.name == "README.md" else program_of_handrail().parent)
