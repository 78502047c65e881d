"""The socket of a session's questions."""

import socket
from pathlib import Path

import pytest

from handrail.session.live.socket import bind_socket, connect_socket


def test_a_socket_has_its_name_only_once_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    class SlowSocket(socket.socket):
        """One whose thread is held up between `bind` and `listen`."""

        def listen(self, backlog: int = 16, /) -> None:
            seen.append([path.name for path in tmp_path.glob("*.sock")])
            super().listen(backlog)

    monkeypatch.setattr(socket, "socket", SlowSocket)
    with bind_socket(tmp_path, "a.sock"):
        assert seen == [[]]
        assert [path.name for path in tmp_path.iterdir()] == ["a.sock"]
        connect_socket(tmp_path, "a.sock").close()
    with bind_socket(tmp_path, "a.sock"):  # what was left is replaced
        connect_socket(tmp_path, "a.sock").close()
