"""A window of a VS Code workbench in headless Chromium, driven as a person drives it: by keys.

What is waited for is a state, with a generous deadline; what a test asserts on is a saved file or
the server's state, since the text of an editor's lines has ghost text in it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import FrameLocator, Locator, Page, TimeoutError, sync_playwright

__all__ = ["Browser", "Workbench", "chromium", "running_browser", "until"]

#: Seconds. A window opens in 10 on a quiet machine.
PATIENCE = 180.0


def chromium() -> str | None:
    """The system's Chromium; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def until(holds: Callable[[], Any], what: str, *, patience: float = PATIENCE) -> Any:
    """What ``holds`` gives once it is true; fails with ``what`` after ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


class Workbench:
    """One window."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.keys = page.keyboard

    # --- what is there -------------------------------------------------------------------

    @property
    def status(self) -> str:
        """What the extension's item in the status bar says to a screen reader."""
        return self._status.get_attribute("aria-label") or ""

    @property
    def _status(self) -> Locator:
        return self.page.locator('[id="fimble.fimble.fimble.status"] a').first

    @property
    def ghost_text(self) -> Locator:
        return self.page.locator(".ghost-text-decoration, .ghost-text").first

    def line(self, text: str) -> Locator:
        """A line of an editor that has ``text``, ghost text included."""
        # Each of its words may be an element, and each space one that breaks no line.
        shown = re.compile(r"\s".join(map(re.escape, text.split(" "))))
        return self.page.locator(".monaco-editor .view-line", has_text=shown).first

    @property
    def notifications(self) -> Locator:
        return self.page.locator(".notifications-toasts .notification-list-item")

    def wait_for_notification(self, words: str) -> Locator:
        found = self.notifications.filter(has_text=words).first
        found.wait_for()
        return found

    def tab(self, label: str, *, active: bool = False) -> Locator:
        """The tab of that name, which a screen reader says with more behind it."""
        chosen = ".active" * active
        said = (f'="{label}"', f'^="{label},"', f'^="{label} ("')
        return self.page.locator(",".join(f".tab{chosen}[aria-label{each}]" for each in said))

    def wait_for_status(self, words: str) -> None:
        """Waits until the extension says ``words``."""
        self._status.wait_for()
        until(lambda: words in self.status, f"{words!r} in the status, not {self.status!r}")

    # --- what a person does --------------------------------------------------------------

    def open_file(self, name: str) -> None:
        """Opens a file of the folder from the explorer, with the cursor at its beginning."""
        # The search of quick open may not know of a file that was made a moment ago.
        rows = self.page.locator(".explorer-folders-view .monaco-list-row")
        rows.filter(has_text=name).first.dblclick()
        # The same editor had another file a moment ago: keys would go there.
        self.page.locator(f'.monaco-editor.focused[data-uri$="/{name}"]').first.wait_for()

    def run(self, command: str) -> None:
        """Runs a command by its title, from the palette."""
        self._pick("F1", f">{command}")

    def _pick(self, key: str, text: str) -> None:
        """Types into the quick input that ``key`` opens, and takes the first entry."""
        self.keys.press(key)
        self.type_in_quick_input(text)
        label = text.removeprefix(">")
        # Enter takes the focused one; the list may still be that of another text.
        entries = self.page.locator(".quick-input-widget .monaco-list-row.focused")
        entries.filter(has_text=re.compile(re.escape(label), re.IGNORECASE)).first.wait_for()
        self.keys.press("Enter")

    def type_in_quick_input(self, text: str) -> None:
        """Replaces what the quick input has."""
        field = self.page.locator(".quick-input-widget:visible input.input").first
        field.wait_for()
        field.fill(text)

    def go_to(self, label: str) -> None:
        """Goes to the editor whose tab says ``label``."""
        self.tab(label).click()
        self.tab(label, active=True).wait_for()
        self.page.locator(".editor-group-container.active .monaco-editor.focused").wait_for()

    def choose_from_context_menu(self, word: str, *labels: str) -> None:
        """Opens the menu on a word of the text, and goes from label to label."""
        self.page.locator(".monaco-editor.focused .view-line span", has_text=word).last.click(
            button="right"
        )
        for label in labels:
            entry = self.page.locator(".monaco-menu .action-item", has_text=label).last
            entry.hover()
        entry.click()

    def choose_action(self, label: str, opened: Callable[[], None]) -> None:
        """Takes an entry of the menu of code actions, which ``opened`` opens for a selection.

        One that was opened before the server was heard has only the editor's own: it is opened
        again, by which time nothing is selected.
        """
        entry = self.page.locator(".action-widget .action", has_text=label)

        def is_there() -> bool:
            opened()
            with contextlib.suppress(TimeoutError):
                entry.wait_for(timeout=10_000)
                return True
            self.keys.press("Escape")
            return False

        until(is_there, f"the code action {label!r}")
        entry.click()

    def answer(self, title: str, text: str) -> None:
        """Types ``text`` into the input box of that title, once it is there, and Enter."""
        self.page.locator(".quick-input-widget:visible", has_text=title).wait_for()
        self.type_in_quick_input(text)
        self.keys.press("Enter")

    def new_document(self) -> None:
        """A document without a file, in a window that has none open."""
        self.page.locator(".editor-group-container.empty").dblclick()
        self.page.locator(".editor-group-container.active .monaco-editor.focused").wait_for()

    def leave(self) -> None:
        """Closes the window, as far as it can know."""
        self.page.goto("about:blank")

    def type(self, text: str) -> None:
        """Types into whatever has the focus."""
        self.keys.type(text)

    def save(self) -> None:
        self.keys.press("Control+s")

    def frame(self) -> FrameLocator:
        """The page inside the webview that is shown."""
        return self.page.frame_locator("iframe.webview.ready").frame_locator("iframe#active-frame")

    def screenshot(self, name: str) -> None:
        """Keeps a picture for people, where FIMBLE_TEST_SCREENSHOTS names a folder for them."""
        folder = os.environ.get("FIMBLE_TEST_SCREENSHOTS")
        if folder:
            self.notifications.first.wait_for(state="hidden")
            self.page.screenshot(
                path=str(Path(folder) / f"{name}.png"),
                clip={"x": 0.0, "y": 0.0, "width": 1200.0, "height": 260.0},
            )

    def picture(self, file: Path) -> None:
        self.page.screenshot(path=str(file))


class Browser:
    """Opens windows on a code-server."""

    def __init__(self, browser: Any, url: str, pictures: Path) -> None:
        self._browser = browser
        self._url = url
        self._pictures = pictures

    @contextlib.contextmanager
    def window(self, folder: Path, *, ready: str = "fimble: ready") -> Iterator[Workbench]:
        """A window on a folder or a workspace's file, once the extension says ``ready``.

        A picture of its end is kept.
        """
        context = self._browser.new_context(viewport={"width": 1200, "height": 760})
        context.set_default_timeout(PATIENCE * 1000)
        page = context.new_page()
        workbench = Workbench(page)
        try:
            kind = "workspace" if folder.suffix == ".code-workspace" else "folder"
            page.goto(f"{self._url}/?{kind}={quote(str(folder))}")
            page.locator(".part.statusbar").wait_for()
            workbench.wait_for_status(ready)
            yield workbench
        finally:
            with contextlib.suppress(Exception):
                workbench.picture(self._pictures / f"{folder.parent.name}.png")
            context.close()


@contextlib.contextmanager
def running_browser(url: str, pictures: Path) -> Iterator[Browser]:
    """A headless Chromium for the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield Browser(browser, url, pictures)
        finally:
            browser.close()
