"""Why a program could not be started, and what helps."""

import errno
import os

import pytest

from handrail.processes.start_problem import start_problem


@pytest.mark.parametrize(
    ("number", "file", "says"),
    [
        (
            errno.EAGAIN,
            "/bin/bash",
            "no more processes or threads are allowed (`ulimit -u` shows the limit).",
        ),
        (errno.EMFILE, None, "too many files are open (`ulimit -n` shows the limit). Try again"),
        (errno.ENOENT, "/no", "No such file or directory: '/no'. Change it, or ask the user."),
        (errno.EPERM, None, "Operation not permitted. Change it, or ask the user."),
    ],
)
def test_limits_are_named_and_other_reasons_as_the_system_names_them(number: int, file: str | None, says: str) -> None:
    assert start_problem(OSError(number, os.strerror(number), file)).startswith(says)
