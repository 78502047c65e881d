"""What the servers of a session get from it: folders, questions to the person, files, the sandbox, a memory."""

import hashlib
import mimetypes
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.builtin.services import ToolServices
from handrail.errors import McpError
from handrail.files.private_folder import make_private_folder
from handrail.hooks.runner import Hooks
from handrail.lazy import lazy, once
from handrail.mcp.content import RESULT_CHARS
from handrail.mcp.eras import EraMemory
from handrail.mcp.host import ClientHost, Elicitation, ElicitationAnswer
from handrail.mcp.open_peer import ServerParts
from handrail.processes.sandbox_contract import Sandbox
from handrail.records import record
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.spec import SessionHost
from handrail.session.tools import CHARS_PER_TOKEN
from handrail.tools.context import RunContext

if TYPE_CHECKING:
    from handrail.dispatch.approval import sdk
    from handrail.session.servers import elicitation
else:  # few servers ask
    sdk = lazy("handrail.dispatch.approval.sdk")
    elicitation = lazy("handrail.session.servers.elicitation")


@record
class SessionDoors:
    """The parts of a session that its servers use."""

    hooks: Hooks
    results: Path
    """The folder for what is too big for the conversation."""
    services: Callable[[], ToolServices]
    run: Callable[[], RunContext]


def server_parts(host: SessionHost, settings: SessionSettings, doors: SessionDoors) -> ServerParts:
    """What all servers of a session share."""

    @once
    def elicitor() -> "elicitation.Elicitor":
        handler = sdk.CallbackHandler(host.can_use_tool) if host.can_use_tool else host.handler
        return elicitation.Elicitor(doors.hooks, handler, doors.run)

    async def elicit(question: Elicitation) -> ElicitationAnswer:
        return await elicitor().elicit(question)

    return ServerParts(
        host=ClientHost(lambda: tuple(map(Path, settings.folders())), elicit),
        sandbox=partial(_sandbox, doors),
        eras=EraMemory(settings.places.state / "mcp-eras.json"),
        save=partial(save_file, doors.results),
        result_chars=result_chars(settings.loaded.env),
    )


def result_chars(env: Mapping[str, str]) -> int:
    """The most characters of a server's result, by the variable that counts tokens."""
    tokens = env.get("MAX_MCP_OUTPUT_TOKENS", "")
    return int(tokens) * CHARS_PER_TOKEN if tokens.isdecimal() and int(tokens) else RESULT_CHARS


def save_file(folder: Path, data: bytes, kind: str) -> str:
    """Store what a server sent and no model reads; the file's path. The same bytes have the same file."""
    ending = mimetypes.guess_extension(kind.partition(";")[0].strip()) or ".bin"
    file = folder / f"mcp-{hashlib.sha256(data).hexdigest()[:24]}{ending}"
    make_private_folder(folder)
    new = file.with_suffix(f"{ending}.new")
    new.unlink(missing_ok=True)  # a link planted here must not lead the bytes elsewhere
    with new.open("xb") as stream:
        stream.write(data)
    new.chmod(0o600)
    new.replace(file)
    return str(file)


def _sandbox(doors: SessionDoors) -> Sandbox:
    sandbox = doors.services().sandbox
    if sandbox is None:
        raise McpError("its entry wants a sandbox, and there is none here.")
    return sandbox
