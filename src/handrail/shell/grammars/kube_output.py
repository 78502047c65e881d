"""Values of kubectl's -o: names of formats, templates and paths given on the command line, not in a file."""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect

OUTPUT = re.compile(
    r"=?(?:json|yaml|kyaml|name|wide|plaintext|plaintext-openapiv2"  # -o=json is -o json
    r"|(?:go-template|jsonpath|jsonpath-as-json|custom-columns)=.*)\Z",
    re.DOTALL,
)


def read(text: str) -> tuple[Effect, ...]:
    if not OUTPUT.match(text):
        raise UnclearError(f"the output format {text!r} is not listed")
    return ()
