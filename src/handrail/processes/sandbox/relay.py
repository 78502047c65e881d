"""
Inside a sandbox: passes connections to a port of the loopback on to the proxy's socket, and becomes the command.

Run as a script: `relay.py SOCKET PORT COMMAND...`. It has few imports because every command waits for them, and ends
with the sandbox, because the first process of a process namespace takes all others with it.
"""

import os
import select
import signal
import socket
import sys


def pump(near: socket.socket, far: socket.socket) -> None:
    """Bytes both ways until both sides have said all."""
    poll = select.poll()
    other = {near.fileno(): (near, far), far.fileno(): (far, near)}
    for number in other:
        poll.register(number, select.POLLIN)
    while other:
        for number, _ in poll.poll():
            source, target = other[number]
            data = source.recv(65536)
            if data:
                target.sendall(data)
                continue
            poll.unregister(number)
            del other[number]
            target.shutdown(socket.SHUT_WR)


def serve(listener: socket.socket, path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        near, _ = listener.accept()
        if os.fork() == 0:
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(path)
                pump(near, far)
            except OSError:
                os._exit(1)
            os._exit(0)
        near.close()


def main(path: str, port: int, command: list[str]) -> None:
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    if os.fork() == 0:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(silent, number)
        serve(listener, path)
    os.execvp(command[0], command)  # noqa: S606 - that is what it is for


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
