"""Standard output for messages alone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_output() -> Iterator[int]:
    """A descriptor of standard output for messages alone: what anything else prints goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield kept
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
