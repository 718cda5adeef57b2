"""AMD's five packages rebuilt from what is published of them, with next to no weights.

Only as much as inspection reads: the configuration, the folder layout, the graph's inputs
and where its weights lie. None of them can be run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

__all__ = ["AMD_PACKAGES", "AmdPackage", "make_amd_package", "make_graph"]

_NESTED = "Upload Qwen2.5 ONNX files"


@dataclass(frozen=True)
class AmdPackage:
    """One row of the table; sizes as in the published configuration."""

    folder: str
    provider: str
    options: dict[str, str]
    layers_hidden_heads_kv_heads: tuple[int, int, int, int]
    graph: str
    data: str
    nested: bool
    search: dict[str, Any] = field(default_factory=dict)


_14B = (48, 5120, 40, 8)
_7B = (28, 3584, 28, 4)
_TEXT = ("text.onnx", "text.onnx.data")

AMD_PACKAGES = {
    "A": AmdPackage("Qwen2.5-14B-Instruct_gpuep_1.0_gpu_128", "dml", {}, _14B, *_TEXT, True),
    "B": AmdPackage(
        "Qwen2.5-Coder-14B-Instruct_gpuep_1.0_gpu_128",
        "AMDGPU",
        {"profile": "hip"},
        _14B,
        *_TEXT,
        True,
        {"chunk_size": 512},
    ),
    "C": AmdPackage(
        "Qwen2.5-14B-instruct-rtn-128gs-fp16-onnx-gpu",
        "dml",
        {},
        _14B,
        *_TEXT,
        True,
        {"max_length": 32768},
    ),
    "D": AmdPackage(
        "Qwen2.5-7B-Instruct_rai_1.7.1_hybrid",
        "RyzenAI",
        {
            "external_data_file": "model_jit.pb.bin",
            "hybrid_opt_free_after_prefill": "1",
            "hybrid_opt_max_seq_length": "4096",
        },
        _7B,
        "model_jit.onnx",
        "model_jit.pb.bin",
        False,
    ),
    "E": AmdPackage(
        "Qwen2.5-7B-Instruct_rai_1.7.1_npu_16K",
        "RyzenAI",
        {
            "hybrid_opt_token_backend": "npu",
            "hybrid_opt_chunk_context": "1",
            "hybrid_opt_max_seq_length": "16384",
            "max_length_for_kv_cache": "16384",
        },
        _7B,
        "model.onnx",
        "model.onnx.data",
        False,
    ),
}


def make_amd_package(folder: Path, letter: str, **search: Any) -> Path:
    """Builds a row's package below ``folder``; returns its outermost folder."""
    row = AMD_PACKAGES[letter]
    layers, hidden, heads, kv_heads = row.layers_hidden_heads_kv_heads
    outer = folder / row.folder
    inner = outer / _NESTED if row.nested else outer
    inner.mkdir(parents=True)
    config = {
        "model": {
            "type": "qwen2",
            "context_length": 32768,
            "decoder": {
                "session_options": {"provider_options": [{row.provider: row.options}]},
                "filename": row.graph,
                "head_size": 128,
                "hidden_size": hidden,
                "num_attention_heads": heads,
                "num_hidden_layers": layers,
                "num_key_value_heads": kv_heads,
            },
        },
        "search": {"past_present_share_buffer": True, **row.search, **search},
    }
    (inner / "genai_config.json").write_text(json.dumps(config, indent=4), encoding="utf-8")
    write_tokenizer(inner)
    make_graph(inner, row.graph, row.data)
    return outer


def write_tokenizer(folder: Path) -> None:
    """A tokenizer.json with the control tokens of every Qwen2.5 model."""
    names = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
    tokens = [{"id": 151643 + n, "content": name} for n, name in enumerate(names)]
    text = json.dumps({"added_tokens": tokens, "model": {}})
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")


def make_graph(folder: Path, graph: str, data: str, *, kv: int = TensorProto.FLOAT16) -> None:
    """A graph with one quantised matrix, 4,096 bytes of weights in ``data`` from 128 on."""
    weights = helper.make_tensor("weights", TensorProto.UINT8, [64, 64], bytes(4096), raw=True)
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    for key, value in (("location", data), ("offset", "128"), ("length", "4096")):
        weights.external_data.add(key=key, value=value)
    node = helper.make_node(
        "MatMulNBits", ["x", "weights"], ["y"], domain="com.microsoft", bits=4, block_size=128
    )
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, 64]),
        helper.make_tensor_value_info("past_key_values.0.key", kv, [1, 8, "n", 128]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [1, 64])]
    model = helper.make_model(helper.make_graph([node], "g", inputs, outputs, [weights]))
    (folder / graph).write_bytes(model.SerializeToString())
    (folder / data).write_bytes(bytes([1]) * (128 + 4096))
    assert onnx.load(folder / graph, load_external_data=False).graph.name == "g"
