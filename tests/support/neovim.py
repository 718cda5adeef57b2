"""A real Neovim with an attached user interface: keys go in, the screen comes out.

Speaks Neovim's own msgpack-RPC on its standard streams. The screen is what a person would see:
ghost text is on it, though no buffer holds it.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.grid_picture import BLANK, Cell, grid_as_svg
from tests.support.waiting import PATIENCE

__all__ = ["Neovim", "NeovimError"]

_REQUEST, _RESPONSE, _NOTIFICATION = 0, 1, 2


class NeovimError(Exception):
    """What Neovim answered to a request that failed."""


class Neovim:
    """``argv`` starts Neovim; ``--embed`` is added. Lines and columns count from 0."""

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, columns: int = 80
    ) -> None:
        # Of the extra e2e, so it may be missing where these tests are skipped.
        self._msgpack = importlib.import_module("msgpack")
        self._process = subprocess.Popen(
            [argv[0], "--embed", *argv[1:]],
            env={**os.environ, **env},
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        self._ids = itertools.count(1)
        self._answers: dict[int, tuple[Any, Any]] = {}
        self._changed = threading.Condition()
        self._grids: dict[int, list[list[Cell]]] = {}
        self._cursor = (0, 0)
        self._styles: dict[int, dict[str, Any]] = {0: {}}
        self._flushed: list[list[Cell]] = []
        self._closed = False
        threading.Thread(target=self._read, daemon=True).start()
        self.request("nvim_ui_attach", columns, 30, {"rgb": True, "ext_linegrid": True})

    # --- asking --------------------------------------------------------------------------

    def request(self, method: str, *arguments: Any) -> Any:
        """The result of an API function. Raises NeovimError."""
        number = next(self._ids)
        self._send([_REQUEST, number, method, list(arguments)])
        with self._changed:
            there = self._changed.wait_for(
                lambda: number in self._answers or self._closed, timeout=PATIENCE
            )
            assert there, f"{method}: no answer\n{self.screen_text}"
            assert number in self._answers, f"Neovim has ended\n{self.screen_text}"
            error, result = self._answers.pop(number)
        if error is not None:
            raise NeovimError(error[1] if isinstance(error, list) else error)
        return result

    def lua(self, code: str, *arguments: Any) -> Any:
        """What ``code`` returns; it sees its arguments as ``...``."""
        return self.request("nvim_exec_lua", code, list(arguments))

    def command(self, command: str) -> None:
        self.request("nvim_command", command)

    def keys(self, keys: str) -> None:
        """Types keys, such as ``ihello<Esc>``, and waits until they have been taken in."""
        while keys:
            taken = self.request("nvim_input", keys)
            keys = keys.encode()[taken:].decode()
        self.request("nvim_get_mode")

    # --- what there is --------------------------------------------------------------------

    @property
    def lines(self) -> list[str]:
        """The current buffer."""
        found: list[str] = self.request("nvim_buf_get_lines", 0, 0, -1, True)
        return found

    @property
    def cursor(self) -> tuple[int, int]:
        """Row from 1, byte column from 0, as Neovim has it."""
        row, column = self.request("nvim_win_get_cursor", 0)
        return row, column

    @property
    def mode(self) -> str:
        found: str = self.request("nvim_get_mode")["mode"]
        return found

    @property
    def screen(self) -> list[str]:
        """The screen's lines as of the last redraw, without blanks at their ends."""
        with self._changed:
            return ["".join(cell.text for cell in row).rstrip() for row in self._flushed]

    @property
    def screen_text(self) -> str:
        return "\n".join(self.screen)

    def picture(self) -> str:
        """The screen as of the last redraw, with its colours, as SVG."""
        with self._changed:
            return grid_as_svg(self._flushed, self._styles, self._cursor)

    def until(self, holds: Callable[[], Any]) -> Any:
        """Waits for ``holds()`` to be true, and gives it; fails with the screen."""
        deadline = time.monotonic() + PATIENCE
        while not (found := holds()):
            if time.monotonic() > deadline:
                raise AssertionError(f"it did not come about; the screen:\n{self.screen_text}")
            time.sleep(0.02)
        return found

    def sees(self, text: str) -> None:
        """Waits until ``text`` is on the screen."""
        self.until(lambda: any(text in line for line in self.screen))

    def sees_no(self, text: str) -> None:
        """Waits until ``text`` is not on the screen."""
        self.until(lambda: not any(text in line for line in self.screen))

    def close(self) -> None:
        """Quits as a user does; ends the process if that does not help."""
        if not self._closed:
            with contextlib.suppress(OSError, ValueError):
                self._send([_NOTIFICATION, "nvim_command", ["qall!"]])
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    # --- the wire ------------------------------------------------------------------------

    def _send(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(self._msgpack.packb(message))

    def _read(self) -> None:
        assert self._process.stdout is not None
        unpacker = self._msgpack.Unpacker(raw=False, unicode_errors="surrogateescape")
        while data := os.read(self._process.stdout.fileno(), 1 << 16):
            unpacker.feed(data)
            for message in unpacker:
                with self._changed:
                    self._take(message)
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self, message: list[Any]) -> None:
        if message[0] == _RESPONSE:
            self._answers[message[1]] = (message[2], message[3])
        elif message[0] == _NOTIFICATION and message[1] == "redraw":
            for name, *calls in message[2]:
                for call in calls:
                    self._redraw(name, call)

    def _redraw(self, name: str, call: list[Any]) -> None:
        if name == "grid_resize":
            grid, width, height = call
            self._grids[grid] = [[BLANK] * width for _ in range(height)]
        elif name == "grid_clear":
            for row in self._grids[call[0]]:
                row[:] = [BLANK] * len(row)
        elif name == "grid_line":
            self._draw_line(self._grids[call[0]], call[1], call[2], call[3])
        elif name == "grid_scroll":
            self._scroll(self._grids[call[0]], *call[1:6])
        elif name == "hl_attr_define":
            self._styles[call[0]] = call[1]
        elif name == "default_colors_set":
            self._styles[0] = {"foreground": call[0], "background": call[1]}
        elif name == "grid_cursor_goto":
            self._cursor = (call[1], call[2])
        elif name == "flush":
            self._flushed = [list(row) for row in self._grids.get(1, [])]

    def _draw_line(self, grid: list[list[Cell]], row: int, column: int, cells: list[Any]) -> None:
        style = 0
        for cell in cells:
            style = cell[1] if len(cell) > 1 else style
            for _ in range(cell[2] if len(cell) > 2 else 1):
                grid[row][column] = Cell(cell[0], style)
                column += 1

    def _scroll(
        self, grid: list[list[Cell]], top: int, bottom: int, left: int, right: int, rows: int
    ) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            grid[row][left:right] = grid[row + rows][left:right]


@contextlib.contextmanager
def started(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, columns: int = 80
) -> Iterator[Neovim]:
    """A Neovim that is closed after the block."""
    editor = Neovim(argv, env=env, cwd=cwd, columns=columns)
    try:
        yield editor
    finally:
        editor.close()
