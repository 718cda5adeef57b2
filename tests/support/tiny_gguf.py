"""A tiny GGUF file of a Qwen2 model, for tests that import or pull one for real."""

from __future__ import annotations

from pathlib import Path

import gguf

from fimble.models.gguf_import import Architecture, TokenizerSource
from tests.support.tiny import RandomWeights, tiny_architecture, tiny_tokenizer

__all__ = ["add_metadata", "make_tiny_gguf"]


def make_tiny_gguf(path: Path, *, seed: int = 0, name: str = "Tiny Coder") -> Path:
    """Writes a float32 GGUF file of about 0.5 MB to ``path`` and returns it."""
    arch, tokenizer = tiny_architecture(), tiny_tokenizer()
    weights = RandomWeights(arch, list(tokenizer.types), seed=seed, tied=False)
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_name(name)
    add_metadata(writer, arch, tokenizer)
    for tensor, values in weights.tensors.items():
        writer.add_tensor(tensor, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_metadata(
    writer: gguf.GGUFWriter,
    arch: Architecture,
    tokenizer: TokenizerSource,
    *,
    model: str = "gpt2",
    pre_tokenizer: str = "qwen2",
) -> None:
    """The metadata that every Qwen2 file has: the model's numbers and its tokenizer."""
    writer.add_block_count(arch.layers)
    writer.add_context_length(arch.context_length)
    writer.add_embedding_length(arch.hidden)
    writer.add_feed_forward_length(arch.ffn)
    writer.add_head_count(arch.heads)
    writer.add_head_count_kv(arch.kv_heads)
    writer.add_layer_norm_rms_eps(arch.rms_eps)
    writer.add_rope_freq_base(arch.rope_theta)
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre_tokenizer)
    writer.add_token_list(list(tokenizer.tokens))
    writer.add_token_types(list(tokenizer.types))
    writer.add_token_merges(list(tokenizer.merges))
    writer.add_eos_token_id(tokenizer.eos)
    writer.add_pad_token_id(tokenizer.pad)
