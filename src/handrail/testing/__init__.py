"""Fakes for tests of agents and tools: ours and yours. Each stands behind a Protocol of the engine."""

from handrail.testing.approver import FixedApprover
from handrail.testing.clock import VirtualTimeLoop, run_virtual
from handrail.testing.gated import GatedTool
from handrail.testing.model import ScriptedModel, gate, pause, say, use

__all__ = [
    "FixedApprover",
    "GatedTool",
    "ScriptedModel",
    "VirtualTimeLoop",
    "gate",
    "pause",
    "run_virtual",
    "say",
    "use",
]
