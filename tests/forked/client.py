"""
A start of the forked program: hand everything over, pass signals on, end as it ends.

The text of this file goes behind a line that sets SERVER, into a file that is started like any program. It imports
little: that it starts fast is its purpose.
"""

import array
import os
import signal
import socket
import sys

link = socket.socket(socket.AF_UNIX)
link.connect(SERVER)  # type: ignore[name-defined]  # noqa: F821  # in the line before
descriptors = array.array("i", [0, 1, 2, os.open(".", os.O_RDONLY)])
words = [os.fsencode(word) for word in sys.argv]
variables = [name + b"=" + value for name, value in os.environb.items()]
told = b"\0".join([b"%d" % len(words), *words, *variables])
link.sendmsg([len(told).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
link.sendall(told)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _frame: link.send(bytes([number])))
for descriptor in descriptors:
    os.close(descriptor)  # a reader that waits for their end must not wait for this process
status = int.from_bytes(link.recv(4), "big")
if os.WIFSIGNALED(status):
    if os.WTERMSIG(status) != signal.SIGKILL:
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.waitstatus_to_exitcode(status))
