"""
Makes the folder that a cell works in: a copy of the task's folder or commit, and the task's own files.

It lies below the temporary folder, so that no settings, memory files or repository of the folders above it count. Links
are copied as links; nothing is ever written through one, neither before the agent works nor after.
"""

import asyncio
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from handrail.batch.tasks import BatchTask, Revision
from handrail.errors import HandrailError
from handrail.files.paths import open_subfolder
from handrail.processes.run import run as run_program

PREFIX = "handrail-batch-"
OWNER = "owner"
GIT_SECONDS = 600.0
MAX_GIT_OUTPUT = 100_000


@contextmanager
def open_work_folder(note: Path) -> Iterator[Path]:
    """
    A new private folder for working copies, removed at the end with all in it.

    `note` keeps its path, so that the next one finds and removes what a killed process left.
    """
    _remove_leftover(note)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    try:
        (folder / OWNER).write_text(str(note.resolve()))
        note.write_text(str(folder))
        yield folder
    finally:
        remove_copy(folder)
        note.unlink(missing_ok=True)


def _remove_leftover(note: Path) -> None:
    """Remove the folder that a note names, if it is one of ours and names the note: notes come with folders."""
    with suppress(OSError, ValueError):
        folder = Path(note.read_text())
        is_ours = folder.parent == Path(tempfile.gettempdir()).resolve() and folder.name.startswith(PREFIX)
        if is_ours and not folder.is_symlink() and (folder / OWNER).read_text() == str(note.resolve()):
            remove_copy(folder)


def remove_copy(folder: Path) -> None:
    """Remove a folder, also what was made read-only in it; what still resists stays."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.is_symlink():
        for inner, _, _ in os.walk(folder):
            with suppress(OSError):
                os.chmod(inner, 0o700)  # noqa: PTH101  # before it is entered
    shutil.rmtree(folder, ignore_errors=True)


async def make_copy(task: BatchTask, folder: Path) -> None:
    """Fill a new folder with what the task starts from; HandrailError or OSError if that cannot be had."""
    match task.folder:
        case Revision() as commit:
            await _check_out(commit, folder)
        case "":
            os.mkdir(folder)  # noqa: PTH102  # at once
        case source:
            await asyncio.to_thread(_copy_tree, Path(source), folder)
    write_files(folder, task.files)


def _copy_tree(source: Path, target: Path) -> None:
    try:
        shutil.copytree(source, target, symlinks=True, ignore=_special_files)
    except shutil.Error as error:
        name, _, reason = error.args[0][0]
        raise HandrailError(f"{name} cannot be copied: {reason}") from error


def _special_files(folder: str, names: list[str]) -> set[str]:
    """Pipes, sockets and devices, which cannot be copied."""
    modes = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}  # noqa: PTH118
    usual = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    return {name for name, mode in modes.items() if not any(is_kind(mode) for is_kind in usual)}


async def _check_out(commit: Revision, folder: Path) -> None:
    """Fetch the commit and what came before it, and nothing that came later: the solution may be there."""
    os.mkdir(folder)  # noqa: PTH102  # at once
    await _git(folder, "init", "--quiet")
    await _git(folder, "fetch", "--quiet", "--no-tags", commit.repository, await commit_of(commit))
    await _git(folder, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    (folder / ".git" / "FETCH_HEAD").unlink()  # it names the repository


async def commit_of(commit: Revision) -> str:
    """The full name of a commit; HandrailError if there is none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit.revision}^{{commit}}")
    return await _git(Path(commit.repository), *words)


async def _git(folder: Path, *words: str) -> str:
    usual = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = {**usual, "GIT_NO_LAZY_FETCH": "1"}  # a repository can name a program that fetches what it lacks
    done = await run_program(("git", *words), cwd=str(folder), env=env, timeout=GIT_SECONDS, max_bytes=MAX_GIT_OUTPUT)
    if done.code:
        said = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.code}"
        raise HandrailError(f"git {' '.join(words)} failed in {folder}: {said}")
    return done.stdout.decode("utf-8", "replace").strip()


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder, and nowhere else: a link or file in the way of a folder is replaced."""
    for name, text in files.items():
        *folders, last = PurePosixPath(name).parts
        inner = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for part in folders:
                outer, inner = inner, _enter(inner, part)
                os.close(outer)
            with suppress(FileNotFoundError):
                os.unlink(last, dir_fd=inner)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(last, flags, 0o666, dir_fd=inner), "wb") as file:
                file.write(text.encode())
        finally:
            os.close(inner)


def _enter(folder: int, name: str) -> int:
    try:
        return open_subfolder(folder, name)
    except NotADirectoryError:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
    os.mkdir(name, dir_fd=folder)
    return open_subfolder(folder, name)


async def content_digest(task: BatchTask) -> str:
    """The hash of what the task's folder holds: names, modes, links and bytes; of a commit, its name."""
    match task.folder:
        case Revision() as commit:
            return await commit_of(commit)
        case "":
            return ""
        case folder:
            return await asyncio.to_thread(tree_digest, folder)


def tree_digest(root: str) -> str:
    """The hash of what a folder holds, or of a file; OSError if something in it cannot be read."""
    sha = hashlib.sha256()
    if not os.path.isdir(root):  # noqa: PTH112
        _add_entry(sha, root, "")
        return sha.hexdigest()
    for folder, inner, names in os.walk(root, onerror=_reraise):
        inner.sort()
        for name in sorted([*inner, *names]):
            path = os.path.join(folder, name)  # noqa: PTH118
            _add_entry(sha, path, os.path.relpath(path, root))
    return sha.hexdigest()


def _add_entry(sha: "hashlib._Hash", path: str, name: str) -> None:
    mode = os.lstat(path).st_mode
    content = b""
    if stat.S_ISLNK(mode):
        content = os.fsencode(os.readlink(path))  # noqa: PTH115
    elif stat.S_ISREG(mode):
        with open(path, "rb") as file:  # noqa: PTH123
            content = hashlib.file_digest(file, "sha256").digest()
    shown = os.fsencode(name)
    sha.update(b"%d:%b%o:%d:%b" % (len(shown), shown, mode, len(content), content))


def _reraise(error: OSError) -> None:
    raise error
