"""Why a program could not be started, in words that say what helps."""

from errno import EAGAIN, EMFILE, ENFILE

TOO_MANY = {
    EAGAIN: "no more processes or threads are allowed (`ulimit -u` shows the limit)",
    EMFILE: "too many files are open (`ulimit -n` shows the limit)",
    ENFILE: "too many files are open on this machine",
}


def start_problem(error: OSError) -> str:
    """The reason and the next move."""
    if (problem := TOO_MANY.get(error.errno or 0)) is not None:
        return f"{problem}. Try again when other commands have ended, or ask the user to raise the limit."
    where = f": {error.filename!r}" if error.filename else ""
    return f"{error.strerror}{where}. Change it, or ask the user."
