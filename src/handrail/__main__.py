"""The `handrail` command."""

import sys

from handrail import __version__


def main() -> int:
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"handrail {__version__}\n")
        return 0
    sys.stderr.write("handrail: only --version works so far\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
