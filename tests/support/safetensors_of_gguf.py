"""Writes a GGUF file of Qwen2 as the folder that vLLM loads; run by an environment with vLLM.

    python safetensors_of_gguf.py GGUF FOLDER

By gguf's own reader and arithmetic, not by ours: what vLLM computes is then a second opinion.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import torch  # type: ignore[import-not-found,unused-ignore]
from gguf import GGUFReader, dequantize  # type: ignore[import-not-found,unused-ignore]
from safetensors.torch import save_file  # type: ignore[import-not-found,unused-ignore]
from transformers import AutoTokenizer, Qwen2Config  # type: ignore[import-not-found,unused-ignore]

LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}


def name_of(name: str) -> str | None:
    """The tensor's name in a Qwen2 checkpoint; None for the head, which is the embedding again."""
    found = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if found:
        return f"model.layers.{found[1]}.{LAYER[found[2]]}.{found[3]}"
    return TOP.get(name)


def main(gguf: Path, folder: Path) -> None:
    reader = GGUFReader(gguf)

    def number(key: str) -> object:
        return reader.fields[f"qwen2.{key}"].contents()

    tensors = {}
    for tensor in reader.tensors:
        name = name_of(tensor.name)
        if name is not None:
            values = np.array(dequantize(tensor.data, tensor.tensor_type))
            tensors[name] = torch.from_numpy(values).to(torch.bfloat16)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    Qwen2Config(
        vocab_size=len(tensors[TOP["token_embd.weight"]]),
        hidden_size=number("embedding_length"),
        intermediate_size=number("feed_forward_length"),
        num_hidden_layers=number("block_count"),
        num_attention_heads=number("attention.head_count"),
        num_key_value_heads=number("attention.head_count_kv"),
        max_position_embeddings=number("context_length"),
        rms_norm_eps=number("attention.layer_norm_rms_epsilon"),
        rope_theta=number("rope.freq_base"),
        tie_word_embeddings=True,
        architectures=["Qwen2ForCausalLM"],
        dtype="bfloat16",
    ).save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
