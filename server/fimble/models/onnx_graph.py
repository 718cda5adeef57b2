"""What an ONNX graph says of itself, without reading its weights or running it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fimble.models.package_json import as_int

__all__ = ["GraphFacts", "read_graph"]

_LARGEST = 256 << 20
"""Graphs above this hold their weights in themselves, and are not read just to look."""

_QUANTISED_OP = "MatMulNBits"


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """``external`` maps each weights file to the size in bytes that it must have at least.

    ``kv_element_bytes`` is None where the graph does not show it; ``quantisation`` is empty
    then. ``domains`` are those of its operators ("" is ONNX's own). ``error`` is empty for a
    graph that could be read.
    """

    external: dict[str, int] = field(default_factory=dict)
    kv_element_bytes: int | None = None
    quantisation: str = ""
    domains: frozenset[str] = frozenset()
    error: str = ""


def read_graph(path: Path) -> GraphFacts:
    """The facts of one .onnx file; never raises, but says in ``error`` what is wrong."""
    # onnx takes a while to import, and listing models should not.
    import onnx

    try:
        size = path.stat().st_size
        if size > _LARGEST:
            return GraphFacts()
        model = onnx.ModelProto()
        model.ParseFromString(path.read_bytes())
    except OSError as error:
        return GraphFacts(error=f"cannot be read: {error.strerror or error}")
    except Exception:  # noqa: BLE001 - protobuf's DecodeError, whose module is not ours to name
        return GraphFacts(error="is not an ONNX model, or is cut short")
    if not model.graph.node:
        return GraphFacts(error="is not an ONNX model, or is empty")
    try:
        external = _external(model.graph)
    except ValueError as error:
        return GraphFacts(error=f"is damaged: {error}")
    return GraphFacts(
        external,
        _kv_element_bytes(model.graph),
        _quantisation(model.graph),
        frozenset(node.domain for node in model.graph.node),
    )


def _external(graph: Any) -> dict[str, int]:
    """Weights files and how long each must be. ValueError where an entry makes no sense."""
    from onnx import TensorProto, helper

    ends: dict[str, int] = {}
    for tensor in graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        entry = {pair.key: pair.value for pair in tensor.external_data}
        if not entry.get("location"):
            raise ValueError(f"the tensor {tensor.name} does not say where its data is")
        offset = as_int(entry.get("offset") or 0)
        if "length" in entry:
            length = as_int(entry["length"])
        else:
            try:
                item = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
            except KeyError as error:
                raise ValueError(f"the tensor {tensor.name} has an unknown type") from error
            length = math.prod(tensor.dims) * item
        if offset is None or length is None or length < 0:
            raise ValueError(f"the tensor {tensor.name} has an offset or length that is none")
        ends[entry["location"]] = max(ends.get(entry["location"], 0), offset + length)
    return ends


def _kv_element_bytes(graph: Any) -> int | None:
    from onnx import TensorProto

    sizes = {
        TensorProto.FLOAT: 4,
        TensorProto.FLOAT16: 2,
        TensorProto.BFLOAT16: 2,
        TensorProto.INT8: 1,
        TensorProto.UINT8: 1,
    }
    for value in graph.input:
        if value.name.startswith("past_key"):
            return sizes.get(value.type.tensor_type.elem_type)
    return None


def _quantisation(graph: Any) -> str:
    """The commonest kind of quantised matrix, as "int4, block 32"; "" where there is none."""
    kinds: Counter[tuple[int, int]] = Counter()
    for node in graph.node:
        if node.op_type == _QUANTISED_OP:
            numbers = {attribute.name: attribute.i for attribute in node.attribute}
            kinds[numbers.get("bits", 4), numbers.get("block_size", 0)] += 1
    if not kinds:
        return ""
    (bits, block), _count = kinds.most_common(1)[0]
    return f"int{bits}, block {block}"
