"""The stock of a small shop: what `fimble demo` types new methods into."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Item:
    """Something that the shop sells; ``price`` is in cents."""

    name: str
    price: int
    quantity: int = 0


@dataclass
class Inventory:
    """All items of the shop, by name."""

    items: dict[str, Item] = field(default_factory=dict)

    def add(self, item: Item) -> None:
        """Adds an item, or its quantity where the shop has it already."""
        known = self.items.get(item.name)
        if known is None:
            self.items[item.name] = item
        else:
            known.quantity += item.quantity

    def remove(self, name: str) -> Item:
        """Takes an item out of the shop. Raises KeyError for an unknown name."""
        return self.items.pop(name)
