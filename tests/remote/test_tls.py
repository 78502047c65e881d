"""A server that others can reach: only with TLS and a token, under its own names, and never without."""

import asyncio
import json
import ssl
import subprocess
from pathlib import Path

import httpx2
import pytest

from handrail.conversation.blocks import Text
from handrail.testing.model_server import ModelServer, Reply
from tests.remote.serving import TOKENS, all_lines, served, start, write_config

pytestmark = [pytest.mark.anyio, pytest.mark.needs("openssl")]
NAME, ADDRESS = "runs.test", "127.0.0.2"


def make_certificate(folder: Path) -> tuple[Path, Path]:
    key, cert = folder / "key.pem", folder / "cert.pem"
    make = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={NAME}"
    where = ["-addext", f"subjectAltName=DNS:{NAME},IP:{ADDRESS}", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*make.split(), *where], check=True, capture_output=True, timeout=60)
    return cert, key


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ADDRESS])
async def test_runs_are_started_over_tls_at_an_address_that_is_not_the_usual_one(tmp_path: Path, host: str) -> None:
    cert, key = make_certificate(tmp_path)
    listen = {"host": host, "tlsCert": str(cert), "tlsKey": str(key), "names": [NAME]}
    ours = ssl.create_default_context(cafile=str(cert))
    async with (
        asyncio.timeout(60),
        ModelServer([Reply((Text("Fine."),))]) as model,
        served(model, tmp_path, write_config(tmp_path, listen=listen)) as server,
    ):
        port = server.url.rpartition(":")[2]
        token = {"Authorization": f"Bearer {TOKENS['ann']}"}
        base = f"https://{ADDRESS}:{port}"
        async with httpx2.AsyncClient(base_url=base, headers=token, verify=ours, timeout=30) as client:
            made = await start(client, "Hello.")
            lines = await all_lines(client, made["id"])
            named = await client.get("/v1", headers={"Host": f"{NAME}:{port}"}, extensions={"sni_hostname": NAME})
            others = [
                await client.get("/v1", headers={"Host": name})
                for name in (f"evil.test:{port}", f"{ADDRESS}:1", f"192.0.2.77:{port}", f"{NAME}.evil.test:{port}")
            ]
            foreign = await client.get("/v1", headers={"Origin": f"https://evil.test:{port}"})
            bare = await client.get("/v1", headers={"Authorization": ""})
        with pytest.raises(httpx2.ConnectError):  # no one without its certificate is spoken to
            async with httpx2.AsyncClient(base_url=base, headers=token) as stranger:
                await stranger.get("/v1")
        reader, writer = await asyncio.open_connection(ADDRESS, int(port))
        writer.write(f"GET /v1 HTTP/1.1\r\nHost: {ADDRESS}:{port}\r\nAuthorization: Bearer x\r\n\r\n".encode())
        plain = await reader.read(100)
        writer.close()

    assert lines[-1]["result"] == "Fine."
    assert json.loads(named.text)["client"] == "ann"
    assert [answer.status_code for answer in others] == [421] * 4
    assert (foreign.status_code, bare.status_code) == (403, 401)
    assert b"HTTP/1.1 200" not in plain
