"""The loggers of handrail: what they write holds no secret, neither in a message nor in a traceback."""

import logging
import os
from typing import TYPE_CHECKING

from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.conversation import redact
else:
    redact = lazy("handrail.conversation.redact")

FORMATTER = logging.Formatter()


def get_logger(name: str) -> logging.Logger:
    """The logger of a module. Filters of a logger see only its own records, so each module has one."""
    logger = logging.getLogger(name)  # noqa: TID251  # the only place
    if not logger.filters:
        logger.addFilter(remove_secrets)
    return logger


def remove_secrets(record: logging.LogRecord) -> bool:
    """Put texts without secrets in the place of the message and of the exception, which may hold them in any object."""
    redactor = redact.build_redactor(os.environ)
    record.msg, record.args = redactor.text(_message(record)), ()
    if record.exc_info:
        record.exc_text = redactor.text(FORMATTER.formatException(record.exc_info))
        record.exc_info = None
    return True


def _message(record: logging.LogRecord) -> str:
    """The message; without its values if one of them, such as a tool of the user, has no text."""
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001  # logging must not fail where a failure is logged
        return f"{record.msg} ({type(error).__name__}: its values cannot be shown)"
