"""The ONNX graph of a Qwen2 decoder, for onnxruntime-genai.

Builds nodes from an Architecture and tells which tensors the data file must hold. It never
sees a weight: the graph is complete before the first one is read.

Inputs and outputs are float32 in every precision: the CPU provider computes in float32
anyway, and half-precision inputs would cost it a cast around each node. With fp16 the
weights are stored in half precision and widened when the session loads, which takes four
times the file's size in memory: good for comparing, not for daily use on a CPU.

By default two things are done for the last token only, not for each token of the prompt:
the LM head, and everything in the last layer that comes after its keys and values are
stored. The logits are then [batch, 1, vocab]. onnxruntime-genai 0.11 insists on logits for
each token and gets another graph over the same weights.

The operators' sources: onnxruntime's docs/ContribOperators.md and the graphs of
onnxruntime-genai's own model builder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import helper

from fimble.models.gguf_import.architecture import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    Architecture,
    HeadKind,
    layer,
)
from fimble.models.gguf_import.formats import (
    Format,
    Slot,
    TensorSpec,
    matrix_slot,
    vector_slot,
)

__all__ = [
    "ALL_LOGITS_FILE",
    "DATA_FILE",
    "MODEL_FILE",
    "ROPE_COS",
    "ROPE_SIN",
    "Graph",
    "build_graph",
    "model_proto",
]

MODEL_FILE = "model.onnx"
ALL_LOGITS_FILE = "model_all_logits.onnx"
DATA_FILE = "model.onnx.data"
ROPE_COS = "rope.cos"
ROPE_SIN = "rope.sin"

# Opset 17 has every standard operator used here, and each runtime still in use knows it.
_OPSET = 17
_IR_VERSION = 8
_MS = "com.microsoft"
_INT8_ACTIVATIONS = 4  # MatMulNBits' accuracy_level: activations in 8 bits, the fastest on CPU


@dataclass(slots=True)
class Graph:
    """A graph in the making: its nodes, its small constants and its slots in the data file.

    ``views`` are initializers that show a slot's tensor in another shape.
    """

    arch: Architecture
    format: Format
    block: int
    all_logits: bool = False
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    views: list[tuple[str, TensorSpec, tuple[int, ...]]] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: str | Sequence[str],
        *,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """Append a node and return the name of its first output."""
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        self.nodes.append(
            helper.make_node(op, list(inputs), names, name=names[0], domain=domain, **attributes)
        )
        return names[0]

    def integer(self, value: int, *, vector: bool = False) -> str:
        """An int64 constant, as a scalar or as a vector of one element."""
        name = f"const.{'vector' if vector else 'scalar'}.{value}"
        if name not in self.constants:
            dims = [1] if vector else []
            self.constants[name] = helper.make_tensor(name, onnx.TensorProto.INT64, dims, [value])
        return name

    def vector(self, name: str, *sources: tuple[str, int]) -> str:
        """A float32 vector that joins the sources, each (GGUF name, length)."""
        slot = vector_slot(name, tuple(s for s, _ in sources), tuple(n for _, n in sources))
        self.slots.append(slot)
        return name

    def linear(
        self,
        name: str,
        root: str,
        columns: int,
        *sources: tuple[str, int],
        format: Format | None = None,
    ) -> str:
        """``root`` [batch, seq, columns] times the joined rows of the sources, transposed.

        In the graph's format, unless another is given.
        """
        slot = matrix_slot(
            name,
            tuple(s for s, _ in sources),
            tuple(n for _, n in sources),
            columns,
            format or self.format,
            self.block,
        )
        self.slots.append(slot)
        return self.multiply(slot, root, f"{name}.out")

    def multiply(self, slot: Slot, root: str, output: str) -> str:
        """``root`` [batch, seq, columns] times a slot's matrix, giving [batch, seq, rows]."""
        if slot.format in ("q4", "q8"):
            return self.node(
                "MatMulNBits",
                [root, *(t.name for t in slot.tensors)],
                output,
                domain=_MS,
                K=slot.columns,
                N=slot.rows,
                bits=4 if slot.format == "q4" else 8,
                block_size=slot.block,
                accuracy_level=_INT8_ACTIVATIONS,
            )
        # Both nodes work on constants, so the session does them once, as it loads.
        stored = slot.tensors[0].name
        widened = self.node("Cast", [stored], f"{output}.wide", to=onnx.TensorProto.FLOAT)
        turned = self.node("Transpose", [widened], f"{output}.turned", perm=[1, 0])
        return self.node("MatMul", [root, turned], output)


def build_graph(
    arch: Architecture, format: Format, head: HeadKind, block: int, *, all_logits: bool = False
) -> Graph:
    """The decoder's nodes and slots, in the order in which the slots are laid out.

    ``block`` weights share a scale where the format is quantised. ``all_logits`` asks for
    [batch, sequence, vocab] in place of the last token's; the slots are the same either way.
    """
    graph = Graph(arch, format, block, all_logits)
    seqlens, total = _sequence_lengths(graph)
    graph.slots.append(_rope_slot("cos_cache", ROPE_COS, arch))
    graph.slots.append(_rope_slot("sin_cache", ROPE_SIN, arch))
    hidden, embedding = _embedding(graph, head)
    skip = ""
    for index in range(arch.layers):
        hidden, skip = _layer(graph, index, hidden, skip, seqlens, total)
    _head(graph, hidden, skip, embedding if head == "shared" else None)
    return graph


def _rope_slot(name: str, source: str, arch: Architecture) -> Slot:
    return matrix_slot(name, (source,), (arch.context_length,), arch.head_size // 2, "f32")


def _sequence_lengths(graph: Graph) -> tuple[str, str]:
    """The attention's two counts, from the mask: the last position and the length, int32."""
    mask = "attention_mask"
    summed = graph.node("ReduceSum", [mask, graph.integer(1, vector=True)], "mask.sum", keepdims=0)
    last = graph.node("Sub", [summed, graph.integer(1, vector=True)], "mask.last")
    seqlens = graph.node("Cast", [last], "mask.seqlens", to=onnx.TensorProto.INT32)
    shape = graph.node("Shape", [mask], "mask.shape")
    length = graph.node("Gather", [shape, graph.integer(1)], "mask.length", axis=0)
    total = graph.node("Cast", [length], "mask.total", to=onnx.TensorProto.INT32)
    return seqlens, total


def _embedding(graph: Graph, head: HeadKind) -> tuple[str, Slot]:
    """Looks the tokens up; a shared matrix is stored as the head needs it, once."""
    arch = graph.arch
    source = HEAD if head == "shared" else EMBEDDING
    slot = matrix_slot(
        "embedding", (source,), (arch.vocab,), arch.hidden, graph.format, graph.block
    )
    graph.slots.append(slot)
    ids = "input_ids"
    if graph.format == "f16":
        rows = graph.node("Gather", [slot.tensors[0].name, ids], "embedding.rows", axis=0)
        return graph.node("Cast", [rows], "embedding.out", to=onnx.TensorProto.FLOAT), slot
    # MatMulNBits wants [rows, blocks, bytes], the lookup [rows, bytes]: the same bytes, so
    # a second initializer at the same place in the file, not a second copy.
    data = slot.tensors[0]
    view = f"{data.name}.flat"
    graph.views.append((view, data, (data.shape[0], data.row_bytes)))
    scales_and_zeros = [t.name for t in slot.tensors[1:]]
    out = graph.node(
        "GatherBlockQuantized",
        [view, ids, *scales_and_zeros],
        "embedding.out",
        domain=_MS,
        bits=4 if graph.format == "q4" else 8,
        block_size=slot.block,
        gather_axis=0,
        quantize_axis=1,
    )
    return out, slot


def _norm(graph: Graph, name: str, source: str, hidden: str, skip: str) -> tuple[str, str]:
    """RMS norm of hidden + skip; gives the normed and the summed (the residual's next)."""
    weight = graph.vector(name, (source, graph.arch.hidden))
    eps = graph.arch.rms_eps
    if not skip:
        normed = graph.node(
            "SimplifiedLayerNormalization",
            [hidden, weight],
            f"{name}.out",
            axis=-1,
            epsilon=eps,
            stash_type=1,
        )
        return normed, hidden
    outputs = [f"{name}.out", "", "", f"{name}.sum"]
    normed = graph.node(
        "SkipSimplifiedLayerNormalization",
        [hidden, skip, weight],
        outputs,
        domain=_MS,
        epsilon=eps,
    )
    return normed, outputs[3]


def _layer(
    graph: Graph, index: int, hidden: str, skip: str, seqlens: str, total: str
) -> tuple[str, str]:
    """One decoder layer; gives its residual and its last output, summed by the next norm."""
    arch = graph.arch
    name = f"layers.{index}"
    normed, residual = _norm(
        graph, f"{name}.attn_norm", layer(index, "attn_norm.weight"), hidden, skip
    )
    attended = _attention(graph, index, normed, seqlens, total)
    if index == arch.layers - 1 and not graph.all_logits:
        attended = _last_token(graph, attended, f"{name}.attn.last")
        residual = _last_token(graph, residual, f"{name}.residual.last")
    attn_out = graph.linear(
        f"{name}.attn_out",
        attended,
        arch.hidden,
        (layer(index, "attn_output.weight"), arch.hidden),
        format=_attention_format(graph),
    )
    normed, residual = _norm(
        graph, f"{name}.ffn_norm", layer(index, "ffn_norm.weight"), residual, attn_out
    )
    gate = graph.linear(
        f"{name}.gate", normed, arch.hidden, (layer(index, "ffn_gate.weight"), arch.ffn)
    )
    up = graph.linear(f"{name}.up", normed, arch.hidden, (layer(index, "ffn_up.weight"), arch.ffn))
    # SiLU, in the form that the runtime recognises and fuses into one kernel.
    sigmoid = graph.node("Sigmoid", [gate], f"{name}.sigmoid")
    silu = graph.node("Mul", [gate, sigmoid], f"{name}.silu")
    gated = graph.node("Mul", [silu, up], f"{name}.gated")
    down = graph.linear(
        f"{name}.down", gated, arch.ffn, (layer(index, "ffn_down.weight"), arch.hidden)
    )
    return residual, down


def _attention_format(graph: Graph) -> Format:
    """8 bits where the rest has 4: Qwen2 suffers most where the attention is rounded.

    In blocks of 64 the 0.5B diverges from float32 by 0.047 nats with all four matrices in
    8 bits, by 0.056 with q, k and v alone.
    """
    return "q8" if graph.format == "q4" else graph.format


def _attention(graph: Graph, index: int, normed: str, seqlens: str, total: str) -> str:
    arch = graph.arch
    name = f"layers.{index}"
    widths = (("attn_q", arch.hidden), ("attn_k", arch.kv_width), ("attn_v", arch.kv_width))
    product = graph.linear(
        f"{name}.qkv",
        normed,
        arch.hidden,
        *((layer(index, f"{part}.weight"), width) for part, width in widths),
        format=_attention_format(graph),
    )
    bias = graph.vector(
        f"{name}.qkv_bias", *((layer(index, f"{part}.bias"), width) for part, width in widths)
    )
    qkv = graph.node("Add", [product, bias], f"{name}.qkv.biased")
    inputs = [
        qkv,
        "",
        "",
        f"past_key_values.{index}.key",
        f"past_key_values.{index}.value",
        seqlens,
        total,
        "cos_cache",
        "sin_cache",
    ]
    outputs = [f"{name}.attn.out", f"present.{index}.key", f"present.{index}.value"]
    return graph.node(
        "GroupQueryAttention",
        inputs,
        outputs,
        domain=_MS,
        num_heads=arch.heads,
        kv_num_heads=arch.kv_heads,
        scale=arch.head_size**-0.5,
        do_rotary=1,
        rotary_interleaved=0,
        local_window_size=-1,
    )


def _last_token(graph: Graph, root: str, name: str) -> str:
    """[batch, seq, n] to [batch, 1, n]; a vector index keeps the axis."""
    return graph.node("Gather", [root, graph.integer(-1, vector=True)], name, axis=1)


def _head(graph: Graph, hidden: str, skip: str, shared: Slot | None) -> None:
    arch = graph.arch
    normed, _ = _norm(graph, "final_norm", FINAL_NORM, hidden, skip)
    if shared is None:
        shared = matrix_slot("head", (HEAD,), (arch.vocab,), arch.hidden, graph.format, graph.block)
        graph.slots.append(shared)
    graph.multiply(shared, normed, "logits")


def model_proto(graph: Graph, offsets: dict[str, int], producer_version: str) -> onnx.ModelProto:
    """The finished model, whose weights lie in DATA_FILE at ``offsets`` (tensor name: byte)."""
    arch = graph.arch
    proto = onnx.TensorProto
    cache: list[str | int | None] = [
        "batch_size",
        arch.kv_heads,
        "past_sequence_length",
        arch.head_size,
    ]
    present = [*cache[:2], "total_sequence_length", arch.head_size]
    info = helper.make_tensor_value_info
    inputs = [
        info("input_ids", proto.INT64, ["batch_size", "sequence_length"]),
        info("attention_mask", proto.INT64, ["batch_size", "total_sequence_length"]),
    ]
    positions: str | int = "sequence_length" if graph.all_logits else 1
    outputs = [info("logits", proto.FLOAT, ["batch_size", positions, arch.vocab])]
    for index in range(arch.layers):
        for part in ("key", "value"):
            inputs.append(info(f"past_key_values.{index}.{part}", proto.FLOAT, cache))
            outputs.append(info(f"present.{index}.{part}", proto.FLOAT, present))
    initializers = list(graph.constants.values())
    for slot in graph.slots:
        for spec in slot.tensors:
            initializers.append(_external(spec.name, spec, spec.shape, offsets[spec.name]))
    for name, spec, shape in graph.views:
        initializers.append(_external(name, spec, shape, offsets[spec.name]))
    return helper.make_model(
        helper.make_graph(graph.nodes, "qwen2", inputs, outputs, initializers),
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_MS, 1)],
        ir_version=_IR_VERSION,
        producer_name="fimble",
        producer_version=producer_version,
    )


def _external(name: str, spec: TensorSpec, shape: tuple[int, ...], offset: int) -> onnx.TensorProto:
    tensor = onnx.TensorProto(name=name, data_type=spec.dtype, dims=shape)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (
        ("location", DATA_FILE),
        ("offset", str(offset)),
        ("length", str(spec.nbytes)),
    ):
        tensor.external_data.add(key=key, value=value)
    return tensor
