"""Where spellings lead, and that what was decided on is what is opened."""

import os
import posixpath
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import ToolError
from handrail.files import paths
from handrail.files.paths import FileKind, Place, locate, match_files, open_decided, real_path, resolve


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    real = tmp_path.resolve() / "proj"
    (real / "src").mkdir(parents=True)
    (real / "src" / "a.py").write_text("a")
    return real


def test_a_place_keeps_the_spelling_and_the_real_path(folder: Path) -> None:
    (folder / "link").symlink_to("src")

    assert resolve("src/../link/a.py", str(folder), "/home/x") == Place(
        "src/../link/a.py", f"{folder}/link/a.py", f"{folder}/src/a.py"
    )


def test_dots_are_followed_after_links(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "other" / "deep")

    place = resolve("link/../x", str(folder), "/home/x")

    assert (place.absolute, place.real) == (f"{folder}/x", f"{tmp_path.resolve()}/other/x")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these links")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/proc/self/cwd", True), ("/proc/self/cwd/x", True), ("/proc/self/root/etc", True),
        ("/proc/self/fd/9/x", True), ("/dev/fd/../cwd/x", True), ("/dev/fd/9/x", True), ("/dev/stdin/x", True),
        ("/dev/stdin/../x", True),
        ("link/x", True), ("/dev/stdin", False), ("/dev/fd/9", False), ("/proc/self/status", False), ("x/../y", False),
        ("loop/x", False),
    ],
)  # fmt: skip
def test_a_place_that_each_process_finds_elsewhere_is_marked(path: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc/thread-self/cwd")
    (tmp_path / "loop").symlink_to("loop")

    assert locate(path, str(tmp_path)).by_process is expected


@pytest.mark.parametrize(("spelling", "expected"), [("~", ""), ("~/", ""), ("~/a/b", "/a/b")])
def test_a_tilde_is_the_home_folder(spelling: str, expected: str, folder: Path) -> None:
    assert resolve(spelling, "/", str(folder)).real == f"{folder}{expected}"


def place_by_realpath(path: str, cwd: str) -> Place:
    """Where a path leads, by the functions of the standard library alone."""
    text = posixpath.join(cwd, path)
    absolute, real = posixpath.normpath(text), posixpath.realpath(text)
    try:
        status = Path(real).stat()
    except (FileNotFoundError, NotADirectoryError):
        kind = FileKind.LINK if posixpath.islink(text) else FileKind.MISSING
        return Place(path, absolute, real, False, kind, "", 0)
    is_file = stat.S_ISREG(status.st_mode)
    return Place(path, absolute, real, True, *((FileKind.FILE, "", status.st_nlink) if is_file else (FileKind.FOLDER,)))


def make_tree(folder: Path, links: Iterable[tuple[str, str]]) -> None:
    """A few files and folders, and these links, each with the text of its target. None is made outside."""
    for name in ("a", "a/b", "b"):
        (folder / name).mkdir()
    for name in ("f", "a/f", "a/b/f", "f (deleted)"):
        (folder / name).touch()
    os.link(folder / "f", folder / "a/twin")
    for name, target in links:
        parent = (folder / name).parent
        if parent.is_dir() and parent.resolve().is_relative_to(folder) and not (folder / name).is_symlink():
            with suppress(FileExistsError):
                (folder / name).symlink_to(target)


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "/", "a", "a/", "a/.", "a//b", "a/../a/b/f", "./f", "f", "f/", "f/.", "f/..", "f/../a", "a/twin"),
        *("none", "none/f", "none/../f", "a/none/../../f", "../", "../../..", "f (deleted)"),
        *("link", "link/", "link/f", "link/../f", "link/../../f", "to_file", "to_file/", "to_file/..", "broken"),
        *("broken/f", "b/up/f", "b/up/b/up/f", "here/f", "here/here/a", "a/f (deleted)", "absolute/b/f"),
    ],
)
def test_a_path_leads_where_the_standard_library_says(path: str, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "proj"
    folder.mkdir()
    links = {"link": "a/b", "to_file": "a/f", "broken": "none/at/all", "b/up": "..", "here": ".", "a/f (deleted)": "f"}
    make_tree(folder, (*links.items(), ("absolute", f"{folder}/a")))

    assert locate(path, str(folder)) == place_by_realpath(path, str(folder))
    assert locate(f"{folder}/{path}", "/") == place_by_realpath(f"{folder}/{path}", "/")


NAMES = ("a", "b", "f", "g", "f (deleted)")
PATHS = st.lists(st.sampled_from((*NAMES, "..", ".", "")), min_size=1, max_size=6).map("/".join)
LINKS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)


@given(st.lists(st.tuples(LINKS, PATHS), max_size=5), st.lists(PATHS, min_size=1, max_size=8))
def test_every_path_leads_where_the_standard_library_says(links: list[tuple[str, str]], texts: list[str]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make_tree(folder, ((path, target.lstrip("/") or ".") for path, target in links))
        for path in [text.lstrip("/") for text in texts]:
            place = locate(path, str(folder))

            if not place.problem:  # else its links lead in a circle
                assert place == place_by_realpath(path, str(folder))


def test_a_path_is_found_where_no_descriptor_tells_its_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "link").symlink_to("src")
    before = [locate(path, str(folder)) for path in ("src/a.py", "link/a.py", "none")]
    monkeypatch.setattr(paths, "O_PATH", 0)  # as on macOS

    assert [locate(path, str(folder)) for path in ("src/a.py", "link/a.py", "none")] == before


def test_a_path_that_is_known_to_be_one_is_taken_literally(folder: Path) -> None:
    assert locate("~", str(folder)).absolute == f"{folder}/~"
    assert locate("$x*", str(folder)).problem == ""


@pytest.mark.parametrize(
    "spelling", ["", " a", "https://x.org/a", "C:\\a", "//host/a", "~other/a", "$HOME/a", "`pwd`/a", "a\u200bb"]
)
def test_what_is_hardly_a_path_is_told_with_what_to_write_instead(spelling: str, folder: Path) -> None:
    what, _, instead = resolve(spelling, str(folder), "/home/x").problem.partition("; ")

    assert what
    assert instead


def test_each_kind_is_told(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "gone").symlink_to("nowhere")
    (folder / "round").symlink_to("round")
    kinds = {
        name: resolve(name, str(folder), "/").kind for name in ("src", "src/a.py", "pipe", "gone", "none", "/dev/null")
    }

    assert kinds == {
        "src": FileKind.FOLDER,
        "src/a.py": FileKind.FILE,
        "pipe": FileKind.PIPE,
        "gone": FileKind.LINK,
        "none": FileKind.MISSING,
        "/dev/null": FileKind.DEVICE,
    }
    assert "cannot be looked at" in resolve("round", str(folder), "/").problem
    assert "cannot be looked at" in locate("a\0b", str(folder)).problem


def test_a_dangling_link_leads_to_what_would_be_created(folder: Path, tmp_path: Path) -> None:
    (folder / "new").symlink_to(tmp_path / "outside")

    assert resolve("new", str(folder), "/").real == f"{tmp_path.resolve()}/outside"


def test_the_names_of_a_file_are_counted(folder: Path) -> None:
    os.link(folder / "src" / "a.py", folder / "twin")

    assert resolve("twin", str(folder), "/").links == 2


class Every:
    """Matches every name."""

    def may_match(self, name: str) -> bool:
        return True


class No:
    def may_match(self, name: str) -> bool:
        return False


def test_a_pattern_stands_for_all_files_that_its_parts_match(folder: Path) -> None:
    (folder / "src" / ".hidden").touch()
    (folder / "src" / "out").symlink_to("/etc")

    assert sorted(match_files(("src", Every()), str(folder)) or ()) == [
        f"{folder}/src/.hidden",
        f"{folder}/src/a.py",
        f"{folder}/src/out",
    ]
    assert match_files((Every(), Every(), ""), str(folder)) == (f"{folder}/src/out/",)
    assert match_files(("src", No()), str(folder)) == ()
    assert match_files(("", "etc", ""), str(folder)) == ("/etc/",)


@given(st.text())
def test_every_text_has_a_place(spelling: str) -> None:
    place = resolve(spelling, "/nowhere", "/home/nobody")

    assert place.spelling == spelling
    assert place.absolute.startswith("/")
    assert place.real.startswith("/")


def test_what_was_decided_is_opened(folder: Path) -> None:
    (folder / "link").symlink_to("src")
    place = resolve("link/a.py", str(folder), "/")

    descriptor = open_decided(place)

    assert os.read(descriptor, 10) == b"a"
    os.close(descriptor)


def test_a_new_file_is_created_where_it_was_decided(folder: Path) -> None:
    os.close(open_decided(resolve("src/new", str(folder), "/"), os.O_WRONLY | os.O_CREAT | os.O_EXCL))

    assert (folder / "src" / "new").exists()


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_what_was_swapped_for_a_link_is_not_opened(swapped: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.py").write_text("secret")
    place = resolve("src/a.py", str(folder), "/")
    if swapped == "file":
        (folder / "src" / "a.py").unlink()
        (folder / "src" / "a.py").symlink_to(tmp_path / "secret" / "a.py")
    else:
        (folder / "src").rename(folder / "moved")
        (folder / "src").symlink_to(tmp_path / "secret")

    with pytest.raises(ToolError, match="is a link now"):
        open_decided(place)


def free_descriptor() -> int:
    """The next one that is given."""
    descriptor = os.open("/", os.O_RDONLY)
    os.close(descriptor)
    return descriptor


@pytest.mark.parametrize("system", ["Linux", "another"])
@pytest.mark.parametrize("part", ["a", "a/b", "a/b/c", "a/b/c/f"])
def test_no_part_of_a_decided_path_may_become_a_link(
    part: str, system: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if system == "another":
        monkeypatch.setattr(paths, "O_PATH", 0)
    (folder / "a/b/c").mkdir(parents=True)
    (folder / "a/b/c/f").write_text("f")
    place = resolve("a/b/c/f", str(folder), "/")
    (folder / part).rename(folder / "moved")
    (folder / part).symlink_to(folder / "moved")  # to the same file: what counts is the way
    free = free_descriptor()

    with pytest.raises(ToolError, match="is a link now"):
        open_decided(place)

    assert free_descriptor() == free


@given(st.lists(st.sampled_from(("a", "a/b", "a/b/f")), unique=True), st.booleans())
def test_what_is_opened_lies_at_the_decided_path(parts: list[str], back: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "a/b").mkdir(parents=True)
        (folder / "a/b/f").write_text("f")
        place = locate("a/b/f", str(folder))
        for number, part in enumerate(parts):
            (folder / part).rename(folder / f"moved{number}")
            (folder / part).symlink_to(folder / f"moved{number}")
            if back:
                (folder / part).unlink()
                (folder / f"moved{number}").rename(folder / part)
        try:
            descriptor = open_decided(place)
        except ToolError:
            assert parts
            assert not back
        else:
            assert back or not parts
            assert os.read(descriptor, 10) == b"f"
            os.close(descriptor)


def test_a_file_that_is_gone_is_the_systems_error(folder: Path) -> None:
    place = resolve("src/a.py", str(folder), "/")
    (folder / "src" / "a.py").unlink()

    with pytest.raises(FileNotFoundError):
        open_decided(place)


# Following links as far as there is something


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("real/file", "real/file"),
        ("link/file", "real/file"),
        ("link/../real/./file", "real/file"),
        ("not/there", "not/there"),
        ("link/new", "real/new"),
        ("loop", "loop"),
        ("loop/x", "loop/x"),
        ("", "."),
        (".", "."),
    ],
)
def test_links_are_followed_as_far_as_there_is_something(tree: Path, path: str, leads_to: str) -> None:
    assert real_path(tree, path) == Path(os.path.realpath(tree)) / leads_to


def test_an_absolute_path_leaves_the_working_folder(tree: Path) -> None:
    assert real_path(tree, "/") == Path("/")


@given(st.text())
def test_any_text_leads_somewhere(text: str) -> None:
    assert real_path(Path("/nowhere"), text).is_absolute()


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "a/\udfff/b", "x" * 5_000])
def test_what_cannot_be_a_path_stays_where_it_is_spelled(text: str) -> None:
    assert real_path(Path("/nowhere"), text) == Path("/nowhere", text)
