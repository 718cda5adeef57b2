"""``python -m fimble.engine``: the engine process, as the launcher starts it."""

from __future__ import annotations

import sys

from fimble.engine.process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
