"""
Pretty formats of git (git-log(1), PRETTY FORMATS): built-in names and format strings of known placeholders.

UnclearError: `%G...`, which checks signatures with the configured program, placeholders that are not listed, and a
bare word that is not a built-in name, since it can be a `pretty.<name>` of the configuration that holds one.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect

BUILT_IN = frozenset("oneline short medium full fuller reference email mboxrd raw".split())
# After %: a line break, a byte, names of commits and trees, author and committer, texts, the reflog, colours, padding.
PLACEHOLDER = re.compile(
    r"""%(?:%|[-+\ ]?(?:  # behind a sign another % begins a placeholder
      [nmSesfbBNdDHhTtPp]
    | x[0-9A-Fa-f]{2}
    | [ac][nNeElLdDrtiIsh]
    | g[DdnNeEs]
    | C(?:red|green|blue|reset|\([^()%]*\))
    | w\([0-9, ]*\)
    | (?:<|<\||>|>\||>>|>>\||><)\([^()%]*\)
    | \((?:trailers|describe|decorate)(?::[^()]*)?\)
    ))""",
    re.VERBOSE,
)


def read(text: str) -> tuple[Effect, ...]:
    body = text.partition(":")[2] if text.startswith(("format:", "tformat:")) else text
    if body == text and text and "%" not in text and text not in BUILT_IN:
        raise UnclearError(f"{text!r} is not a built-in format")
    left = PLACEHOLDER.sub("", body)
    if "%G" in left or re.search("%[-+ ]G", left):
        raise UnclearError("%G checks signatures with the configured program")
    if "%" in left:
        raise UnclearError("a placeholder that is not listed")
    return ()
