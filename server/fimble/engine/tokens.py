"""Text to token ids and back, for one package's tokenizer.json.

Text is always text: the added tokens are taken out of the tokenizer that reads the user's
text, so that no spelling in a file becomes a control token; control tokens come in by name
only. Ids become text through bytes, since a token may hold a part of a character.

Knows nothing of prompts' layouts, of models or of requests. Safe to use from any thread.
"""

from __future__ import annotations

import codecs
import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from fimble.engine.package import read_json
from fimble.engine.protocol import CONTROL_TOKENS, Prompt, Text
from fimble.errors import LoadFailed, RequestRejected

__all__ = ["Decoder", "PackageTokenizer", "byte_of_char"]

_CACHE_BYTES = 32_000_000
#: Beyond its text and ids, what an entry of the cache costs.
_ENTRY_BYTES = 200
_ID_BYTES = 8


def byte_of_char() -> dict[str, int]:
    """Byte-level BPE's alphabet: the character that stands for each byte, reversed.

    Printable Latin-1 characters stand for themselves, the other 68 bytes for the
    characters from U+0100 on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    mapping = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if chr(byte) not in mapping]
    mapping.update({chr(0x100 + place): byte for place, byte in enumerate(others)})
    return mapping


class PackageTokenizer:
    """The tokenizer of one package. Raises LoadFailed when its file cannot be used."""

    def __init__(self, path: Path, *, cache_bytes: int = _CACHE_BYTES) -> None:
        data = read_json(path)
        try:
            added = {token["content"]: token for token in data.get("added_tokens") or ()}
            data["added_tokens"] = []
            self._vocabulary: dict[str, int] = dict(data["model"]["vocab"])
            # Some files list the added tokens here as well.
            data["model"]["vocab"] = {
                spelling: token
                for spelling, token in self._vocabulary.items()
                if spelling not in added
            }
            # A post-processor may name added tokens, and would only add them to the text.
            data["post_processor"] = None
            self._text = tokenizers.Tokenizer.from_str(json.dumps(data))
        except Exception as error:
            # tokenizers raises Exception itself for whatever it finds wrong.
            raise LoadFailed(
                f"{path} is not a tokenizer that can be used: {str(error)[:300]}",
                next_step="Pull or import the package again.",
            ) from error
        self._text.encode_special_tokens = True
        self._text.no_padding()
        self._text.no_truncation()
        self._added = {content: int(token["id"]) for content, token in added.items()}
        self._special = {
            int(token["id"]) for token in added.values() if token.get("special", False)
        }
        highest = max([*self._vocabulary.values(), *self._added.values()], default=-1)
        #: Ids from 0 to ``size - 1`` may occur in prompts and answers.
        self.size = highest + 1
        self._cache: OrderedDict[str, tuple[int, ...]] = OrderedDict()
        self._cache_limit = cache_bytes
        self._cache_used = 0
        self._cache_lock = threading.Lock()

    # --- to ids --------------------------------------------------------------------------

    def control(self, name: str) -> int | None:
        """The id of a control token by its name in ``CONTROL_TOKENS``; None if unknown here."""
        spelling = CONTROL_TOKENS[name]
        found = self._added.get(spelling)
        return self._vocabulary.get(spelling) if found is None else found

    def control_id_of(self, spelling: str) -> int | None:
        """The id of any added token by its spelling, as chat templates have them."""
        return self._added.get(spelling)

    @property
    def added_spellings(self) -> tuple[str, ...]:
        """The spellings of all added tokens."""
        return tuple(self._added)

    @property
    def added_ids(self) -> frozenset[int]:
        """The ids of all added tokens; no text of a user's is ever cut into them."""
        return frozenset(self._added.values())

    @cached_property
    def stop_ids(self) -> frozenset[int]:
        """Control tokens: an answer ends at any of them and none is ever shown."""
        named = (self.control(name) for name in CONTROL_TOKENS)
        return frozenset(self._special | {each for each in named if each is not None})

    @property
    def has_fim(self) -> bool:
        """Whether the three fill-in-the-middle tokens exist."""
        names = ("fim_prefix", "fim_suffix", "fim_middle")
        return all(self.control(name) is not None for name in names)

    def encode_text(self, text: str, *, remember: bool = True) -> tuple[int, ...]:
        """The ids of ``text`` taken as text; NUL and control token spellings included.

        A lone surrogate, which JSON can carry, becomes U+FFFD. ``remember`` keeps the answer
        for the next time.
        """
        if not text:
            return ()
        with self._cache_lock:
            found = self._cache.get(text)
            if found is not None:
                self._cache.move_to_end(text)
                return found
        try:
            ids = tuple(self._text.encode(text, add_special_tokens=False).ids)
        except (UnicodeEncodeError, TypeError):
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            ids = tuple(self._text.encode(whole, add_special_tokens=False).ids)
        if remember:
            self._remember(text, ids)
        return ids

    def encode_prompt(self, prompt: Prompt) -> list[int]:
        """The ids of a prompt. Raises RequestRejected for ids and controls that the model
        does not have; an empty prompt is the start of a new document.
        """
        if isinstance(prompt, str):
            ids = list(self.encode_text(prompt))
        else:
            ids = []
            for part in prompt:
                if isinstance(part, Text):
                    ids.extend(self.encode_text(part.text))
                elif isinstance(part, int):
                    ids.append(self._checked(part))
                else:
                    ids.append(self._control_or_reject(part.name))
        return ids or [self._control_or_reject("endoftext")]

    def _checked(self, token: int) -> int:
        if not 0 <= token < self.size:
            raise RequestRejected(
                f"The prompt has token id {token}; this model's ids are 0 to {self.size - 1}.",
                next_step="Use ids of this model's own tokenizer.",
            )
        return token

    def _control_or_reject(self, name: str) -> int:
        found = self.control(name)
        if found is None:
            raise RequestRejected(
                f"This model has no control token {name}.",
                next_step="Use a Qwen2.5-Coder package for fill-in-the-middle prompts.",
            )
        return found

    def _remember(self, text: str, ids: tuple[int, ...]) -> None:
        cost = _cost(text, ids)
        if cost > self._cache_limit // 4:
            return
        with self._cache_lock:
            if text in self._cache:
                return
            self._cache[text] = ids
            self._cache_used += cost
            while self._cache_used > self._cache_limit:
                old_text, old_ids = self._cache.popitem(last=False)
                self._cache_used -= _cost(old_text, old_ids)

    @property
    def cache_bytes(self) -> int:
        """What the cache of segments holds, estimated."""
        return self._cache_used

    # --- to text -------------------------------------------------------------------------

    @cached_property
    def token_bytes(self) -> tuple[bytes, ...]:
        """The bytes of each id; control tokens and holes in the vocabulary have none."""
        table = [b""] * self.size
        alphabet = byte_of_char()
        for spelling, token in self._vocabulary.items():
            try:
                table[token] = bytes(alphabet[char] for char in spelling)
            except KeyError:
                # Not byte-level spelling: a token that was added as it is.
                table[token] = spelling.encode("utf-8", "replace")
        for spelling, token in self._added.items():
            table[token] = b"" if token in self.stop_ids else spelling.encode("utf-8", "replace")
        return tuple(table)

    def decoder(self) -> Decoder:
        """A new decoder for one answer."""
        return Decoder(self.token_bytes)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``; U+FFFD where bytes are no UTF-8."""
        return b"".join(self.token_bytes[token] for token in ids).decode("utf-8", "replace")


class Decoder:
    """Turns ids into text one at a time, holding back a character until it is whole.

    Bytes that can never become a character give U+FFFD, and what follows them is kept.
    """

    def __init__(self, table: Sequence[bytes]) -> None:
        self._table = table
        self._utf8: Any = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that is complete with this token; may be empty."""
        return self.push_bytes(self._table[token])

    def push_bytes(self, data: bytes) -> str:
        """The text that is complete with these bytes; may be empty."""
        text: str = self._utf8.decode(data)
        return text

    def finish(self) -> str:
        """What an incomplete character at the end amounts to: U+FFFD, or nothing."""
        text: str = self._utf8.decode(b"", final=True)
        return text


def _cost(text: str, ids: Sequence[int]) -> int:
    return len(text) * 4 + len(ids) * _ID_BYTES + _ENTRY_BYTES
