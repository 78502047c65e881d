"""
Settings given with `git -c NAME=VALUE` (git-config(1)) that can only make a command quieter or plainer.

Any other setting may name a program, a file or a transport.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect

SWITCH = "(true|false|yes|no|on|off|0|1)?"
WORD = "[A-Za-z0-9,_.-]*"
SETTINGS = {
    # Nothing but how things look
    r"color\.[a-z.-]+": WORD + r"( [A-Za-z0-9# ]*)?",
    r"core\.(quotepath|precomposeunicode|ignorecase|preloadindex|filemode)": SWITCH,
    r"core\.abbrev": WORD,
    r"(column|advice)\.[a-z]+": WORD,
    r"diff\.(noprefix|mnemonicprefix|renames|renamelimit|algorithm|context|interhunkcontext|colormoved|wserrorhighlight"
    r"|indentheuristic|suppressblankempty|dirstat|autorefreshindex|statgraphwidth|relative)": WORD,
    r"log\.(date|decorate|abbrevcommit|follow|mailmap|showroot)": r"[A-Za-z0-9:%_. -]*",
    r"(log\.showsignature|core\.fsmonitor|core\.untrackedcache|core\.usebuiltinfsmonitor)": "(false|no|off|0|)",
    r"log\.diffmerges": "(off|none|first-parent|separate|combined|dense-combined)",
    r"status\.(?!submodulesummary)[a-z]+": WORD,
    r"i18n\.logoutputencoding": WORD,
    r"grep\.(linenumber|column|patterntype|extendedregexp|fullname|threads)": WORD,
    r"blame\.(blankboundary|coloring|date|showemail|showroot)": WORD,
    # Switching helpers off
    r"core\.pager": "(cat|)",
    r"pager\.[a-z-]+": "(false|no|off|0|cat)",
    r"core\.hookspath": "/dev/null",
    r"diff\.external": "",
    r"diff\.submodule": "short",
    r"status\.submodulesummary": "(false|no|off|0)",
    r"safe\.barerepository": "explicit",
    r"gc\.auto": "0",
    r"maintenance\.auto": "(false|0)",
    r"protocol\.([a-z]+\.)?allow": "never",
    r"gpg\.((openpgp|x509|ssh)\.)?program": "false",
    r"credential\.helper": "",
}
HARMLESS = re.compile("|".join(f"(?:{name}={value})" for name, value in SETTINGS.items()))


def read(text: str) -> tuple[Effect, ...]:
    name, equals, value = text.partition("=")  # without "=" the setting is true
    if not HARMLESS.fullmatch(f"{name.lower()}{equals}{value}"):
        raise UnclearError(f"the setting {name!r} may make git run or read something else")
    return ()
