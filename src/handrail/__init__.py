"""The tool system for AI agents: hands for the model, rails for the people."""

__version__ = "0.1.0"

__all__ = ["__version__"]
