"""The peer's server, over a scripted binding (a fake) that keeps a cache by positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import pytest

from fimble.bench.llama_server import LlamaServer
from fimble.bench.llama_vim import Chunk, InfillRequest

CONTROLS = {"fim_prefix": 301, "fim_suffix": 302, "fim_middle": 303, "repo_name": 304,
            "file_sep": 305}  # fmt: skip
END = 300


class FakeBinding:
    """A byte is a token, and the answers are scripted. The cache is checked at every step."""

    window = 4096

    def __init__(self, *answers: str) -> None:
        self._answers = iter(answers)
        self._left: Iterator[int] = iter(())
        self.cache: dict[int, int] = {}
        self.appended = 0

    def control(self, name: str) -> int:
        return CONTROLS[name]

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def piece(self, token: int) -> bytes:
        return bytes([token])

    def is_end(self, token: int) -> bool:
        return token == END

    def remove(self, start: int, end: int) -> None:
        gone = [at for at in self.cache if at >= start and (end < 0 or at < end)]
        for at in gone:
            del self.cache[at]

    def shift(self, start: int, end: int, by: int) -> None:
        moved = {at + by: self.cache.pop(at) for at in range(start, end)}
        assert not moved.keys() & self.cache.keys(), "two tokens at one position"
        self.cache |= moved

    def append(self, tokens: Sequence[int]) -> None:
        assert sorted(self.cache) == list(range(len(self.cache))), "a hole in the cache"
        if len(tokens) > 1 or tokens[0] > 255:
            self._left = iter(())
        for token in tokens:
            self.cache[len(self.cache)] = token
        self.appended += len(tokens)

    def sample(self) -> int:
        if self.tokens[-1] == CONTROLS["fim_middle"]:
            self._left = iter([*next(self._answers).encode(), END])
        return next(self._left)

    @property
    def tokens(self) -> list[int]:
        return [self.cache[at] for at in sorted(self.cache)]


def request(prefix: str, middle: str = "", suffix: str = "\n") -> InfillRequest:
    return InfillRequest(prefix, middle, suffix)


def spelled(tokens: Sequence[int]) -> str:
    names = {number: f"<{name}>" for name, number in CONTROLS.items()}
    return "".join(names.get(token) or chr(token) for token in tokens)


def test_the_layout() -> None:
    chunk = Chunk("b.py", ("b = 1",))
    prompt = LlamaServer(FakeBinding()).prompt(InfillRequest("p\n", "mid", "\ns\n", (chunk,)))
    assert spelled(prompt) == (
        "<repo_name>myproject\n<file_sep>b.py\nb = 1\n<file_sep>filename\n"
        "<fim_prefix>p\nmid<fim_suffix>\ns\n<fim_middle>"
    )


def test_prefix_and_suffix_have_their_shares_of_a_batch() -> None:
    prompt = LlamaServer(FakeBinding()).prompt(request("p" * 2000, "middle", "s" * 2000))
    assert spelled(prompt).count("p" * 768) == 1
    assert prompt.count(ord("s")) == 256 - 2 - len("middle")


def test_only_what_follows_the_first_difference_is_computed() -> None:
    model = FakeBinding("x", "y", "z")
    server = LlamaServer(model)
    whole = server.answer(request("prefix\n", "a", "\nsuffix\n"))
    assert whole.computed_tokens == len(server.prompt(request("prefix\n", "a", "\nsuffix\n")))
    typed = server.answer(request("prefix\n", "ab", "\nsuffix\n"))
    # The typed character and everything behind it.
    assert typed.computed_tokens == len("b") + 1 + len("\nsuffix\n") + 1
    again = server.answer(request("prefix\n", "ab", "\nsuffix\n"))
    assert (again.content, again.computed_tokens) == ("z", 1)


def test_long_runs_are_shifted() -> None:
    lines = "".join(f"{n:03}\n" for n in range(300))
    model = FakeBinding("x", "y")
    server = LlamaServer(model)
    server.answer(request(lines))
    moved = request(lines + "new\n")  # pushes a line out of the window
    answer = server.answer(moved)
    assert answer.computed_tokens == len("new\n") + 3
    assert model.tokens[: len(server.prompt(moved))] == server.prompt(moved)
    assert answer.content == "y"


@pytest.mark.parametrize(
    ("said", "asked", "content"),
    [
        ("one\ntwo", request(""), "one\ntwo"),
        ("abcdef", InfillRequest("", "", "\n", most_tokens=3), "abc"),
        # Cut at the line that is indented too little, behind its indentation.
        ("one\n    two\n  three", InfillRequest("", "", "\n", indent=4), "one\n    two\n  "),
    ],
    ids=["by itself", "tokens", "indentation"],
)
def test_ends(said: str, asked: InfillRequest, content: str) -> None:
    assert LlamaServer(FakeBinding(said)).answer(asked).content == content


def test_the_time_limit_waits_for_a_line_end() -> None:
    ticks = count()
    server = LlamaServer(FakeBinding("ab\ncd\nef\n"), clock=lambda: next(ticks) / 1000)
    answer = server.answer(InfillRequest("", "", "\n", predict_ms=4))
    assert answer.content == "ab\ncd\n"


def test_a_warm_up_says_nothing() -> None:
    model = FakeBinding()
    answer = LlamaServer(model).answer(InfillRequest("", "", "", most_tokens=0))
    assert (answer.content, answer.computed_tokens) == ("", model.appended)
