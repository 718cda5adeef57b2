"""Turns a GGUF file of a Qwen2 model into a package that onnxruntime-genai runs.

Needs numpy, onnx, gguf and tokenizers; neither torch nor transformers. Knows nothing of
where the file came from or where packages are kept: the callers decide that.

reader.py        a GGUF file's header, checked before anything is believed
weights.py       its tensors as numbers, or repacked where a format fits exactly
architecture.py  the model's numbers, and the tensors that they imply
formats.py       how matrices lie in the package's data file
quantize.py      numbers to those formats
graph.py         the ONNX graph
data_file.py     the weights' file, written piece by piece, resumable
tokenizer.py     tokenizer.json and its companions
package.py       all of these, put together
convert.py       the way from a GGUF file to a package
"""

from __future__ import annotations

from fimble.models.gguf_import.architecture import Architecture, HeadKind, Precision
from fimble.models.gguf_import.convert import import_gguf
from fimble.models.gguf_import.package import Provenance, WeightSource, write_package
from fimble.models.gguf_import.tokenizer import TokenizerSource

__all__ = [
    "Architecture",
    "HeadKind",
    "Precision",
    "Provenance",
    "TokenizerSource",
    "WeightSource",
    "import_gguf",
    "write_package",
]
