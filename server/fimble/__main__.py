"""``python -m fimble``: the command line, for where the script is not on PATH."""

import sys

from fimble.cli import main

if __name__ == "__main__":
    sys.exit(main())
