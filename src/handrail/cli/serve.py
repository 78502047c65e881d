"""`handrail serve`: start governed runs for other machines and programs, until it is stopped."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.cli.permission_flags import rule_problems, settings_flags, warn, without_effect
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError
from handrail.lazy import lazy
from handrail.serve.guard import new_token, token_digest
from handrail.serve.listen import BindAddress, bind, check_endpoint, check_installed
from handrail.session.state_folder import state_folder

if TYPE_CHECKING:
    from handrail.cli import serve_config, serve_http
    from handrail.remote.config import ServeConfig
else:
    serve_config = lazy("handrail.cli.serve_config")
    serve_http = lazy("handrail.cli.serve_http")  # needs the extra `serve`

PERMISSION_FLAGS = ("settings", "setting_sources", "permission_mode", "allowed", "disallowed", "add_dir", "trust")


def run(chosen: argparse.Namespace) -> int:
    """0 when it was stopped, or had only something to print."""
    if chosen.new_token:
        token = new_token()
        shown = {"token": token, "tokenSha256": token_digest(token)}
        print(plain_json(shown) if chosen.json else "\n".join(f"{name}: {value}" for name, value in shown.items()))
        return 0
    token = "" if chosen.config else new_token()
    config = _config(chosen, token)
    endpoint = _endpoint(chosen, config)
    check_endpoint(endpoint, token=True)
    if chosen.check and chosen.json:
        print(plain_json(serve_config.about_value(config)))
        return 0
    if chosen.check:
        for line in serve_config.about(config):
            print(plain(line))
        return 0
    check_installed()
    listener = bind(endpoint)
    return asyncio.run(
        serve_http.serve_runs(config, endpoint, listener, state_folder(os.environ), token, as_json=chosen.json)
    )


def _config(chosen: argparse.Namespace, token: str) -> "ServeConfig":
    given = [name for name in PERMISSION_FLAGS if getattr(chosen, name)]
    if chosen.config:
        if chosen.folders or given:
            flag = "folder" if chosen.folders else given[0]
            raise HandrailError(f"--{flag.replace('_', '-')} does not go with --config, which names folders and rules.")
        return serve_config.read_config(Path(chosen.config))
    if not chosen.folders:
        raise HandrailError(
            "no folder is listed, so nothing could be started. Give --config FILE, or --folder shop=/srv/shop."
        )
    if forbidding := rule_problems(chosen)[0]:
        raise HandrailError(f"--disallowedTools: {forbidding[0]}")  # a limit would be lost
    for warning in without_effect(chosen):
        warn(warning)
    if chosen.dangerously_skip_permissions or chosen.permission_mode == "bypassPermissions":
        raise HandrailError("runs from elsewhere cannot skip permissions. Allow what they need with --allowedTools.")
    return serve_config.config_of_flags(chosen.folders, settings_flags(chosen), token_digest(token))


def _endpoint(chosen: argparse.Namespace, config: "ServeConfig") -> BindAddress:
    listen = config.listen
    certificate, key = chosen.tls_cert or listen.tlsCert, chosen.tls_key or listen.tlsKey
    return BindAddress(
        chosen.host or listen.host,
        listen.port if chosen.port is None else chosen.port,
        Path(certificate) if certificate else None,
        Path(key) if key else None,
    )
