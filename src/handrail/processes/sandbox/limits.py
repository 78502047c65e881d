"""What each sandbox method protects and what it does not, in words for users."""

from handrail.processes.sandbox.choose import Method

PROTECTS = {
    Method.BUBBLEWRAP: "Commands write only to the working folders and a temporary folder of their own, do not see "
    "your home folder, keys, sockets or other processes, and have no network but the allowed domains.",
    Method.LANDLOCK: "Commands write only below the working folders and to a temporary folder of their own, cannot "
    "read your home folder, keys or other processes' memory, and have no network at all.",
    Method.SEATBELT: "Commands write only to the working folders and a temporary folder of their own, cannot read "
    "your home folder or keys, and have no network.",
}
"""One sentence for each method."""

EVERYWHERE = (
    "What a command writes in a working folder can run later: scripts, Makefiles, programs in .venv/bin.",
    "Names are protected at the top of a working folder, not in folders below it.",
    "A bug in the kernel can open a way out; memory, processor time and disk space are not limited.",
)
LIMITS = {
    Method.BUBBLEWRAP: ("A domain that is allowed can be used to send data out.",),
    Method.LANDLOCK: (
        "Nothing new can be made directly in a working folder or in .git, so commits do not work.",
        "Allowed domains cannot be reached. Names and command lines of other processes can be seen.",
        "Processes that a command leaves behind are found by handrail, not ended by the kernel.",
    ),
    Method.SEATBELT: ("Allowed domains cannot be reached. The profile has not been tried on every version of macOS.",),
}
"""Beside what holds everywhere."""
