"""A scan while files change: what the store knows in the end is what is on disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fimble_context.index.build import Builder
from fimble_context.index.store import Store, open_store
from fimble_context.index.store_layout import store_path
from fimble_context.workspace.ignore import Policy

NAMES = ("a.py", "b.py", "c.py")


def stored(store: Store, folder: Path) -> dict[str, list[str]]:
    """What is known to be defined in each file."""
    known = {name: store.facts(folder / name) for name in NAMES}
    return {
        name: [fact.name for fact in facts.definitions]
        for name, facts in known.items()
        if facts is not None
    }


@settings(max_examples=50)
@given(
    before=st.sets(st.sampled_from(NAMES)),
    changes=st.lists(st.tuples(st.integers(0, 8), st.sampled_from(NAMES), st.booleans())),
)
def test_what_changes_during_a_scan_is_known_as_it_is_after_it(
    before: set[str], changes: list[tuple[int, str, bool]]
) -> None:
    """Each change: at which step of the scan, of which file, and whether the file is there then."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "w"
        folder.mkdir()
        store = open_store(store_path(folder.parent / "cache", [folder]))
        builder = Builder(store, Policy([folder]))
        wanted = {}
        for number, file in enumerate(sorted(before)):
            (folder / file).write_text(f"def old{number}():\n    pass\n", encoding="utf-8")
            wanted[file] = [f"old{number}"]
            if number:
                builder.refresh(folder / file)
        scan = builder.scan()
        waiting = sorted(enumerate(changes), key=lambda item: item[1][0])
        for step in range(9):
            while waiting and waiting[0][1][0] == step:
                number, (_, file, there) = waiting.pop(0)
                if there:
                    text = f"def new{number}():\n    pass\n"
                    (folder / file).write_text(text, encoding="utf-8")
                    wanted[file] = [f"new{number}"]
                else:
                    (folder / file).unlink(missing_ok=True)
                    wanted.pop(file, None)
                builder.refresh(folder / file)
            next(scan, None)
        for _ in scan:
            pass
        assert stored(store, folder) == wanted
        store.close()
