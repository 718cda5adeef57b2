"""What a server for a whole team needs, worked out from the memory plan: no measurement.

    python benchmarks/team_sizing.py

prints the tables of docs/team-server.md. Change the assumptions to those of your team: how many
type at the same moment, how often they ask, and how long prompts are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fimble.models.memory_plan import MemoryNeed, kv_bytes

GIB = 1 << 30


@dataclass(frozen=True)
class Model:
    """``parameters`` in thousands of millions; KV heads have 128 numbers of 16 bits."""

    name: str
    parameters: float
    layers: int
    kv_heads: int

    @property
    def kv_per_token(self) -> int:
        """Bytes: keys and values of all layers."""
        return 2 * self.layers * self.kv_heads * 128 * 2

    def weights(self, bits: int) -> int:
        """Bytes."""
        return int(self.parameters * 1e9 * bits / 8)


@dataclass(frozen=True)
class Habits:
    """Of a team at its busiest. Shares are of its people, lengths in tokens."""

    typing: float = 0.10
    chatting: float = 0.03
    requests_a_minute: int = 60  # of one who types, who cancels most of them
    computed: int = 400  # of a prompt, behind what a server's prefix cache holds
    generated: int = 12
    completion_prompt: int = 2048
    chat_prompt: int = 8192
    chat_speed: int = 20  # tokens a second, about as fast as people read


MODELS = (
    Model("Qwen2.5-Coder 7B", 7.6, 28, 4),
    Model("Qwen2.5-Coder 14B", 14.8, 48, 8),
    Model("Qwen2.5-Coder 32B", 32.8, 64, 8),
)
TEAMS = (10, 100, 1000)


def load_table(habits: Habits) -> list[str]:
    """What a team asks for."""
    lines = [
        "| team | typing | chatting | prompt tokens a second | generated tokens a second |",
        "| --- | --- | --- | --- | --- |",
    ]
    for people in TEAMS:
        typing, chatting = _at_once(people, habits)
        a_second = typing * habits.requests_a_minute / 60
        prompt = a_second * habits.computed
        generated = a_second * habits.generated + chatting * habits.chat_speed
        lines.append(f"| {people:,} | {typing} | {chatting} | {prompt:,.0f} | {generated:,.0f} |")
    return lines


def memory_table(habits: Habits) -> list[str]:
    """What each model takes for each team."""
    lines = [
        "| model | weights, 16 and 4 bits | KV a token | "
        + " | ".join(f"KV for {people:,}" for people in TEAMS)
        + " |",
        "| --- | --- | --- | " + " | ".join("---" for _ in TEAMS) + " |",
    ]
    for model in MODELS:
        need = MemoryNeed(model.weights(16), model.kv_per_token, 32768, share_buffer=True)
        held = []
        for people in TEAMS:
            typing, chatting = _at_once(people, habits)
            held.append(
                kv_bytes(need, habits.completion_prompt, typing)
                + kv_bytes(need, habits.chat_prompt, chatting)
            )
        lines.append(
            f"| {model.name} | {_gib(model.weights(16))}, {_gib(model.weights(4))} "
            f"| {model.kv_per_token >> 10} KiB | " + " | ".join(map(_gib, held)) + " |"
        )
    return lines


def _at_once(people: int, habits: Habits) -> tuple[int, int]:
    return math.ceil(people * habits.typing), math.ceil(people * habits.chatting)


def _gib(count: int) -> str:
    size = count / GIB
    return f"{size:.1f} GiB" if size < 100 else f"{size:,.0f} GiB"


if __name__ == "__main__":
    print("\n".join([*load_table(Habits()), "", *memory_table(Habits())]))
