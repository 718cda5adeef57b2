"""AMD's five packages rebuilt from what is published of them, with next to no weights.

Configuration, names, folder layout and companion files have the published values; the graph
has its inputs, one quantised matrix and the place of its weights, or is a tiny model's where it
is to be loaded. ``com.ryzenai`` operators are in the Ryzen AI graphs, as in the real ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

__all__ = [
    "AMD_PACKAGES",
    "KIB",
    "MIB",
    "NESTED",
    "AmdPackage",
    "make_amd_package",
    "make_graph",
    "make_large_file",
    "make_loadable_amd_package",
]

KIB = 1 << 10
MIB = 1 << 20
NESTED = "Upload Qwen2.5 ONNX files"


@dataclass(frozen=True)
class AmdPackage:
    """One row of the table; sizes as in the published configuration.

    ``weights`` is about what the real weights take, for plans of memory. The expected values
    beside it: ``window`` in tokens and the key that sets it, KV cache in KiB a token and MiB
    when full, and whether it fills in the middle.
    """

    folder: str
    title: str
    provider: str
    options: dict[str, str]
    shape: tuple[int, int, int, int, int]  # layers, hidden, heads, KV heads, MLP width
    graph: str
    data: str
    nested: bool
    weights: int
    window: tuple[int, str]
    kv: tuple[int, int]
    fim: bool = False
    session: dict[str, str] = field(default_factory=dict)
    search: dict[str, Any] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)
    extra_files: dict[str, str] = field(default_factory=dict)
    domain: str = "com.microsoft"
    release: str = ""

    @property
    def repo(self) -> str:
        """On the hub."""
        return f"amd/{self.folder}"

    @property
    def share_buffer(self) -> bool:
        """D's published configuration says nothing of it."""
        return bool(self.search.get("past_present_share_buffer", False))


_14B = (48, 5120, 40, 8, 13824)
_7B = (28, 3584, 28, 4, 18944)
_TEXT = ("text.onnx", "text.onnx.data")
_SHARED = {"past_present_share_buffer": True}
_SAMPLED = {"temperature": 0.7, "top_k": 20, "top_p": 0.8}

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

AMD_PACKAGES = {
    "A": AmdPackage(
        "Qwen2.5-14B-Instruct_gpuep_1.0_gpu_128",
        "Qwen2.5 14B Instruct",
        "dml",
        {},
        _14B,
        *_TEXT,
        True,
        weights=9_000 * MIB,
        window=(32768, "context_length"),
        kv=(192, 6144),
        search=_SHARED,
        sampling=_SAMPLED | {"repetition_penalty": 1.05},
    ),
    "B": AmdPackage(
        "Qwen2.5-Coder-14B-Instruct_gpuep_1.0_gpu_128",
        "Qwen2.5-Coder 14B Instruct",
        "AMDGPU",
        {"profile": "hip"},
        _14B,
        *_TEXT,
        True,
        weights=9_000 * MIB,
        window=(32768, "context_length"),
        kv=(192, 6144),
        fim=True,
        session={"session.disable_cpu_ep_fallback": "1"},
        search=_SHARED | {"chunk_size": 512, "num_beams": 1},
        sampling=_SAMPLED | {"repetition_penalty": 1.05},
        extra_files={
            "chat_template.jinja": CHAT_TEMPLATE,
            "model_config.json": json.dumps({"model_type": "qwen2", "group_size": 128}),
        },
    ),
    "C": AmdPackage(
        "Qwen2.5-14B-instruct-rtn-128gs-fp16-onnx-gpu",
        "Qwen2.5 14B Instruct",
        "dml",
        {},
        _14B,
        *_TEXT,
        True,
        weights=9_000 * MIB,
        window=(32768, "context_length"),
        kv=(192, 6144),
        search=_SHARED | {"max_length": 32768, "num_beams": 1},
    ),
    "D": AmdPackage(
        "Qwen2.5-7B-Instruct_rai_1.7.1_hybrid",
        "Qwen2.5 7B Instruct",
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
        weights=4_900 * MIB,
        window=(4096, "hybrid_opt_max_seq_length"),
        kv=(56, 224),
        domain="com.ryzenai",
        release="1.7.1",
    ),
    "E": AmdPackage(
        "Qwen2.5-7B-Instruct_rai_1.7.1_npu_16K",
        "Qwen2.5 7B Instruct",
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
        weights=5_100 * MIB,
        window=(16384, "max_length_for_kv_cache"),
        kv=(56, 896),
        search=_SHARED,
        sampling=_SAMPLED | {"repetition_penalty": 1.0},
        extra_files={"cache/model_meta.json": "{}"},
        domain="com.ryzenai",
        release="1.7.1",
    ),
}


def make_amd_package(folder: Path, letter: str, **search: Any) -> Path:
    """Builds a row's package below ``folder``; returns its outermost folder."""
    row = AMD_PACKAGES[letter]
    outer = folder / row.folder
    inner = outer / NESTED if row.nested else outer
    inner.mkdir(parents=True)
    _write_json(inner / "genai_config.json", genai_config(row, search))
    _write_json(inner / "config.json", _hf_config(row))
    if row.sampling:
        # max_length is transformers' own default, and no limit here.
        _write_json(inner / "generation_config.json", {"max_length": 20, **row.sampling})
    for name, content in row.extra_files.items():
        (inner / name).parent.mkdir(exist_ok=True)
        (inner / name).write_text(content, encoding="utf-8", newline="\n")
    write_tokenizer(inner)
    make_graph(inner, row.graph, row.data, domain=row.domain)
    return outer


def genai_config(row: AmdPackage, search: dict[str, Any]) -> dict[str, Any]:
    """The row's genai_config.json; ``search`` is added to its own."""
    layers, hidden, heads, kv_heads, _ = row.shape
    return {
        "model": {
            "bos_token_id": 151643,
            "context_length": 32768,
            "decoder": {
                "session_options": {
                    "log_id": "onnxruntime-genai",
                    "provider_options": [{row.provider: row.options}],
                    **row.session,
                },
                "filename": row.graph,
                "head_size": 128,
                "hidden_size": hidden,
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
                "num_attention_heads": heads,
                "num_hidden_layers": layers,
                "num_key_value_heads": kv_heads,
            },
            "eos_token_id": [151645, 151643],
            "pad_token_id": 151643,
            "type": "qwen2",
            "vocab_size": 152064,
        },
        "search": {**row.search, **search},
    }


def _hf_config(row: AmdPackage) -> dict[str, Any]:
    layers, hidden, heads, kv_heads, width = row.shape
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "hidden_size": hidden,
        "intermediate_size": width,
        "max_position_embeddings": 32768,
        "model_type": "qwen2",
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "vocab_size": 152064,
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=4) + "\n", encoding="utf-8", newline="\n")


def write_tokenizer(folder: Path) -> None:
    """A tokenizer.json with the control tokens of every Qwen2.5 model."""
    names = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
    tokens = [{"id": 151643 + n, "content": name} for n, name in enumerate(names)]
    text = json.dumps({"added_tokens": tokens, "model": {}})
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    config = json.dumps({"model_max_length": 131072, "chat_template": CHAT_TEMPLATE})
    (folder / "tokenizer_config.json").write_text(config, encoding="utf-8")


def make_graph(
    folder: Path,
    graph: str,
    data: str,
    *,
    kv: int = TensorProto.FLOAT16,
    domain: str = "com.microsoft",
) -> None:
    """A graph with one quantised matrix, 4,096 bytes of weights in ``data`` from 128 on."""
    weights = helper.make_tensor("weights", TensorProto.UINT8, [64, 64], bytes(4096), raw=True)
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    for key, value in (("location", data), ("offset", "128"), ("length", "4096")):
        weights.external_data.add(key=key, value=value)
    node = helper.make_node(
        "MatMulNBits", ["x", "weights"], ["y"], domain=domain, bits=4, block_size=128
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


def make_large_file(path: Path, size: int) -> None:
    """Makes a file as large as real weights are, without writing that much: with a hole."""
    with path.open("r+b") as stream:
        stream.truncate(size)


def make_loadable_amd_package(folder: Path, letter: str, *, on_cpu: bool = False) -> Path:
    """The row's layout, names, provider, operators and settings around a tiny model.

    A's, B's and C's can be run; the quantised matrices of D and E are AMD's own operators, as
    published. ``on_cpu`` takes the provider away and allows the CPU, as a stand-in for it would.
    """
    from tests.support.tiny import make_tiny_package

    row = AMD_PACKAGES[letter]
    outer = folder / row.folder
    inner = outer / NESTED if row.nested else outer
    made = {"model.onnx": row.graph, "model_all_logits.onnx": _all_logits(row.graph)}
    make_tiny_package(inner, context_length=32768)
    graphs = [
        (inner / name, onnx.load(inner / name, load_external_data=False), inner / made[name])
        for name in made
    ]
    for source, _, _ in graphs:
        source.unlink()
    (inner / "model.onnx.data").rename(inner / row.data)
    for _, model, target in graphs:
        _name_data(model, row.data)
        _take_operators_from(model, row.domain)
        target.write_bytes(model.SerializeToString())
    # No note of the tiny model's origin: what the row's own name says counts.
    (inner / "fimble_package.json").unlink()
    path = inner / "genai_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["model"]["decoder"]["filename"] = row.graph
    if not on_cpu:
        published = genai_config(row, {})["model"]["decoder"]["session_options"]
        config["model"]["decoder"]["session_options"] = published
    config["search"] = {"max_length": 32768, **row.search, **row.sampling}
    _write_json(path, config)
    return outer


def _all_logits(graph: str) -> str:
    return f"{Path(graph).stem}_all_logits.onnx"


def _name_data(model: onnx.ModelProto, data: str) -> None:
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = data


def _take_operators_from(model: onnx.ModelProto, domain: str) -> None:
    """The quantised matrices become that domain's."""
    if domain not in {each.domain for each in model.opset_import}:
        model.opset_import.append(helper.make_opsetid(domain, 1))
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            node.domain = domain
