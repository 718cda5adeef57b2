"""``python -m tests.clients.vscode.stand_in_uv FOLDER ARGUMENTS``: a stand-in for uv.

It does of ``uv tool install --force WHEEL[EXTRAS]`` what needs no network: the wheel is unpacked,
and ``~/.local/bin/fimble`` runs the scripted server of ``FOLDER`` with the code of the wheel. As
long as there is a file ``FOLDER/full`` it fails as on a full disk, with advice behind the cause.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from tests.clients.vscode.conftest import write_program


def main(folder: Path, arguments: list[str]) -> int:
    *command, source = arguments
    wheel, extras = source.removesuffix("]").split("[")
    if command != ["tool", "install", "--force"] or extras != "cpu":
        sys.stderr.write(f"error: unexpected arguments {arguments}\n")
        return 2
    if (folder / "full").exists():
        sys.stderr.write("error: No space left on device\nhint: Free some space.\n")
        return 1
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "packages")
    program = Path.home() / ".local" / "bin" / "fimble"
    module = "tests.clients.vscode.scripted_server"
    write_program(program, ["-m", module, str(folder)], first=folder / "packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
