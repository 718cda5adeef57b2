"""llama.cpp's model through its Python binding, which is an extra of its own (bench-peer).

The only module that imports ``llama_cpp``, and only when a model is loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fimble.bench.llama_server import BATCH_TOKENS
from fimble.errors import LoadFailed, UsageError

__all__ = ["LlamaBinding"]

WINDOW_TOKENS = 16_384
_TOP_K, _TOP_P = 40, 0.90


class LlamaBinding:
    """A GGUF file's model with one KV cache; ``threads`` compute.

    What it says is the likeliest of what llama.vim's samplers (top-k, top-p, infill) leave,
    so that a run can be repeated.
    """

    window = WINDOW_TOKENS

    def __init__(self, gguf: Path, threads: int) -> None:
        self._cpp, self._internals = _import_binding()
        try:
            self._llama = self._cpp.Llama(
                model_path=str(gguf),
                n_ctx=WINDOW_TOKENS,
                n_batch=BATCH_TOKENS,
                n_ubatch=BATCH_TOKENS,
                n_threads=threads,
                n_threads_batch=threads,
                verbose=False,
            )
        except (ValueError, OSError) as error:
            raise LoadFailed(
                f"llama.cpp cannot load {gguf}: {error}.",
                next_step="Give the GGUF file of the model that fimble runs, with --gguf.",
            ) from error
        vocabulary = self._cpp.llama_model_get_vocab(self._llama.model)
        self._vocabulary = vocabulary
        self._memory = self._cpp.llama_get_memory(self._llama.ctx)
        self._controls = {
            "fim_prefix": self._cpp.llama_vocab_fim_pre(vocabulary),
            "fim_suffix": self._cpp.llama_vocab_fim_suf(vocabulary),
            "fim_middle": self._cpp.llama_vocab_fim_mid(vocabulary),
            "repo_name": self._cpp.llama_vocab_fim_rep(vocabulary),
            "file_sep": self._cpp.llama_vocab_fim_sep(vocabulary),
        }
        if min(self._controls.values()) < 0:
            raise LoadFailed(
                f"The model in {gguf} does not know fill-in-the-middle.",
                next_step="Give the GGUF file of the model that fimble runs, with --gguf.",
            )
        self._sampler = self._internals.LlamaSampler()
        self._sampler.add_top_k(_TOP_K)
        self._sampler.add_top_p(_TOP_P, 1)
        self._sampler.add_infill(self._llama._model)
        self._sampler.add_greedy()

    def control(self, name: str) -> int:
        return int(self._controls[name])

    def encode(self, text: str) -> list[int]:
        if not text:
            return []
        return list(self._llama.tokenize(text.encode("utf-8"), add_bos=False, special=False))

    def piece(self, token: int) -> bytes:
        return bytes(self._llama.detokenize([token], special=False))

    def is_end(self, token: int) -> bool:
        return bool(self._cpp.llama_vocab_is_eog(self._vocabulary, token))

    def remove(self, start: int, end: int) -> None:
        self._cpp.llama_memory_seq_rm(self._memory, 0, start, end)

    def shift(self, start: int, end: int, by: int) -> None:
        self._cpp.llama_memory_seq_add(self._memory, 0, start, end, by)

    def append(self, tokens: Sequence[int]) -> None:
        array = (self._cpp.llama_token * len(tokens))(*tokens)
        batch = self._cpp.llama_batch_get_one(
            ctypes.cast(array, ctypes.POINTER(self._cpp.llama_token)), len(tokens)
        )
        code = self._cpp.llama_decode(self._llama.ctx, batch)
        if code != 0:
            raise LoadFailed(f"llama.cpp failed to compute {len(tokens)} tokens (code {code}).")

    def sample(self) -> int:
        return int(self._sampler.sample(self._llama._ctx, -1))


def _import_binding() -> tuple[Any, Any]:
    try:
        import llama_cpp
        from llama_cpp import _internals
    except (ImportError, OSError) as error:
        raise UsageError(
            f"llama.cpp's Python binding cannot be used: {error}.",
            next_step="Install it with `pip install 'fimble[bench-peer]'`; "
            "it may be compiled for a while.",
        ) from error
    return llama_cpp, _internals
