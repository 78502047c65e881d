"""Benchmarks start programs of others only where nothing but loopback can be reached."""

import runpy
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "loopback.py"
loopback = SimpleNamespace(**runpy.run_path(str(FILE)))


def test_outside_of_a_namespace_of_its_own_a_benchmark_refuses_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loopback.MARK, "1")

    with pytest.raises(SystemExit, match="no other program is started"):
        loopback.enter_loopback("benchmarks.peer_programs_bench", [])


def test_an_address_that_answers_is_not_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not loopback.is_unreachable(server.getsockname())
