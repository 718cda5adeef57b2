"""A small workspace for chats, with things in it that no prompt may hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fimble.assist.chat.pieces import Attachment
from fimble_context.syntax import Document
from tests.assist.places import MARK

TREE = {
    "pyproject.toml": "[project]\nname = 'shop'\n",
    ".gitignore": "private.py\n",
    ".env": "TOKEN=hidden-one\n",
    "private.py": "hidden_two = 1\n",
    "shop/cart.py": '"""Carts."""\n\n\nclass Cart:\n    """What is bought."""\n\n'
    "    def total(self, tax: float) -> float:\n"
    "        return sum(self.prices) * tax\n",
    "shop/order.py": "from shop.cart import Cart\n\n\ndef place_order(cart: Cart) -> float:\n"
    "    return cart.total(1.19)\n",
    "my notes.txt": "Prices are in cents.\n",
    "key.py": f'key = "ghp_{"a1B2" * 10}"\n',
}


def tree(root: Path, content: Mapping[str, str] = TREE) -> Path:
    for name, text in content.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
    return root


def selected(marked: str, path: Path | None = None, language: str = "python") -> Attachment:
    """The selection between two marks; one mark is a cursor."""
    before, _, rest = marked.partition(MARK)
    middle, _, after = rest.rpartition(MARK) if MARK in rest else ("", "", rest)
    document = Document(
        before + middle + after, path=str(path) if path else "", language=language, version=3
    )
    return Attachment(
        "selection",
        document=document,
        source=f"uri:{path}",
        start=len(before),
        end=len(before) + len(middle),
        path=path,
    )
