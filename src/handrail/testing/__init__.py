"""
Fakes for tests of agents and tools, ours and yours. Each implements a Protocol of the engine.

Names are loaded when they are first used, because pytest imports this package in every run, for its plugin.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.testing.approver import FixedApprover
    from handrail.testing.clock import VirtualTimeLoop, run_virtual
    from handrail.testing.gated import GatedTool
    from handrail.testing.model import ScriptedModel, gate, pause, say, use
    from handrail.testing.single_call import CallRules, call, call_sync

_HOME = {
    "approver": ("FixedApprover",),
    "clock": ("VirtualTimeLoop", "run_virtual"),
    "gated": ("GatedTool",),
    "model": ("ScriptedModel", "gate", "pause", "say", "use"),
    "single_call": ("CallRules", "call", "call_sync"),
}
_MODULE_OF = {name: f"handrail.testing.{module}" for module, names in _HOME.items() for name in names}

__all__ = [
    "CallRules",
    "FixedApprover",
    "GatedTool",
    "ScriptedModel",
    "VirtualTimeLoop",
    "call",
    "call_sync",
    "gate",
    "pause",
    "run_virtual",
    "say",
    "use",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'handrail.testing' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
