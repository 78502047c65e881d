"""Connections that tests leave open are closed after them."""

from tests.providers.conftest import close_connections

__all__ = ["close_connections"]
