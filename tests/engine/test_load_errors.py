"""What the runtime and its providers say, and what a user is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble.engine.load_errors import (
    MEANINGS,
    OutOfMemory,
    explain_generation_error,
    explain_load_error,
    is_out_of_memory,
    meaning_of,
)
from fimble.errors import GenerationFailed

#: What is said (by onnxruntime-genai 0.11 to 0.18, its providers, and AMD's software), what
#: has to change, what it means, and what is in the next step.
SAID = [
    ("DML provider requested, but the installed GenAI has not been built with DML support.",
     "runtime", "this runtime has no DML provider", "onnxruntime-genai distribution"),
    ("Failed to create allocator for AMDGPU: No requested allocator available",
     "runtime", "AMDGPU plug-in is not registered", "AMDGPU_EP_PATH"),
    ("Failed to create allocator for WebGPU: No requested allocator available",
     "runtime", "no WebGPU provider, or found no device", "fimble doctor"),
    ("Unexpected failure to create device memory allocator for DML",
     "device", "DML provider offers no memory", "driver"),
    ("Failed to register RyzenAI execution provider library: Failed to load library "
     "/w/libonnxruntime_providers_ryzenai.so with error: cannot open shared object file",
     "runtime", "library of the RyzenAI provider is not installed", "Ryzen AI environment"),
    ("Failed to register Other execution provider library: no such file",
     "runtime", "library of the Other provider", "fimble doctor"),
    ("Unknown provider name 'RyzenAI'", "runtime", "no RyzenAI provider", "Ryzen AI environment"),
    ("Unknown provider name 'Nonsense'", "runtime", "no Nonsense provider", "another provider"),
    ("WebGPU execution provider is not supported in this build. ",
     "runtime", "no WebGPU provider of its own", "onnxruntime-ep-webgpu"),
    ("VitisAI execution provider is not supported in this build. ",
     "runtime", "no VitisAI provider", "another provider"),
    ("No RyzenAI devices detected", "device", "no RyzenAI device was found", "NPU driver"),
    ("No Other devices detected", "device", "no Other device was found", "driver"),
    ("Provider options not found for provider: DML", "config", "names the provider DML", "again"),
    ("Running a model with multiple providers is not supported. Encountered DML and cuda",
     "config", "several providers", "provider_options"),
    ("CPU execution provider does not support provider options. CPU is always available",
     "config", "options for the CPU provider", "Remove"),
    ("Continuous decoding is not supported on the selected device type (DML). Please recreate "
     "the generator instance to avoid using continuous decoding.",
     "device", "DML provider cannot go on", "report"),
    ("Fatal error: com.ryzenai:MatMulNBits(-1) is not a registered function/op",
     "runtime", "Ryzen AI runtime", "Ryzen AI environment"),
    ("flat version is not supported for matmulbias",
     "runtime", "another release", "Ryzen AI release"),
    ("Exception during initialization: invalid unordered_map<K, T> key",
     "runtime", "does not fit the installed release", "Ryzen AI release"),
    ("Failed to create context virtual (0xc01e0009): There was an error while creating context",
     "device", "NPU refused", "fimble doctor"),
    ("DRM_IOCTL_AMDXDNA_CREATE_HWCTX IOCTL failed (err=-22): Invalid argument",
     "device", "NPU refused", "fimble doctor"),
    ("This session contains graph nodes that are assigned to the default CPU EP, but fallback to "
     "CPU EP has been explicitly disabled by the user.",
     "runtime", "forbids the CPU", "another provider"),
    ("Non-zero status code returned while running GatherBlockQuantized node. Name:'embedding.out' "
     "Status Message: gather_block_quantized.cc:318 ComputeInternal scales and zero_points must "
     "have the same shape.", "device", "4-bit embedding", "--precision int8"),
    ("Non-zero status code returned while running Gather node. Name:'embedding.rows' Status "
     "Message: shader_helper.cc:416 GenerateSourceCode Program Gather requires f16 but the device "
     "does not support it.", "device", "half precision", "--precision int8"),
    ("Fatal error: com.example:Op(-1) is not a registered function/op",
     "runtime", "operators that this runtime does not know", "fimble doctor"),
    ('Failed to load library: Error loading "amdgpu-ep.dll" which depends on "x.dll" which is '
     "missing. (Error 126)", "runtime", "one that it depends on", "fimble doctor"),
    ("DRM_IOCTL_AMDXDNA_CREATE_BO IOCTL failed (err=-11): Resource temporarily unavailable",
     "memory", "locked memory", "memlock"),
    ("DmlGraphFusionHelper.cpp(1060)\\onnxruntime.dll!00007FFB: (caller: 0) Exception(2) "
     "tid(6454) 887A0005 The GPU device instance has been suspended.",
     "device", "stopped answering", "Update the graphics driver"),
    ("vkQueueSubmit failed with VK_ERROR_DEVICE_LOST", "device", "stopped answering", "driver"),
    ("bad allocation", "memory", "not enough memory", "--context-tokens"),
    ("std::bad_alloc", "memory", "not enough memory", "--context-tokens"),
    ("BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of size 805306",
     "memory", "not enough memory", "--context-tokens"),
    ("Available memory of 1024 is smaller than requested bytes of 4096",
     "memory", "not enough memory", "--context-tokens"),
    ("BucketizedBufferAllocator.cpp(122)\\x.dll!0: Exception(1) tid(4790) 8007000E Nicht genügend "
     "Arbeitsspeicherressourcen", "memory", "not enough memory", "Close other programs"),
    ("Not enough memory resources are available to complete this operation.",
     "memory", "not enough memory", "Close other programs"),
    ("HIP error: hipErrorOutOfMemory", "memory", "not enough memory", "Close other programs"),
    ("vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY",
     "memory", "not enough memory", "Close other programs"),
    ("CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED", "memory", "not enough memory", "smaller"),
    ("The paging file is too small for this operation to complete.",
     "memory", "not enough memory", "smaller model"),
    ("External data path does not exist: /p/model.onnx.data",
     "files", "weights file is missing", "Pull"),
    ("External data path escapes model directory", "files", "outside the folder", "Copy"),
    ("Config path must not contain path traversal (..): ../x.onnx",
     "files", "names a file outside the folder", "Do not use"),
    ("Load model from /p/m.onnx failed:Protobuf parsing failed.",
     "files", "Git LFS pointer", "git lfs pull"),
    ("[json.exception.parse_error.101] parse error at line 1, column 1",
     "files", "JSON file of it is damaged", "git lfs pull"),
    ("offset: 128, length: 4096 is out of bounds or can not be read in full",
     "files", "incomplete", "Pull"),
    ("Error opening C:\\m\\Upload Qwen2.5 ONNX files\\genai_config.json",
     "files", "C:\\m\\Upload Qwen2.5 ONNX files\\genai_config.json cannot be opened", "Pull"),
    ("Load model from /p/my model.onnx failed:Load model /p/my model.onnx failed. File doesn't "
     "exist", "files", "/p/my model.onnx is missing", "Pull"),
    ("max_length (40000) cannot be greater than model context_length (32768)",
     "config", "search.max_length (40000)", "Lower max_length"),
    ("model context_length is 0 or was not set. It must be greater than 0",
     "config", "how long its context is", "context_length"),
    ("Error encountered while parsing '/p/genai_config.json' JSON Error: "
     'Unknown value "config_entries" at line 9 index 12',
     "config", "setting config_entries", "remove the setting"),
    ("Unsupported model_type in config.json: qwen9", "config", "type qwen9", "newer"),
    ("Error encountered while parsing '/p/genai_config.json' JSON Error: Expecting { at line 1 "
     "index 1", "config", "byte order mark", "UTF-8"),
    ("Got invalid dimensions for output: logits for the following indices",
     "config", "last position only", "0.13"),
    ("input_ids size (30) + current sequence length (0) exceeds max length (20)",
     "request", "30 more tokens do not fit", "Shorten"),
    ("device input_ids + current sequence length exceeds max length",
     "request", "do not fit its window", "Shorten"),
    ("GenerateNextToken called with sequence length already at max_length",
     "request", "do not fit its window", "Shorten"),
    ("Session in Terminated state, exiting!", "request", "ended from outside", "Try again"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "kind", "meaning", "next_step"), SAID)
def test_what_is_said_is_explained(
    said: str, kind: str, meaning: str, next_step: str, tmp_path: Path
) -> None:
    found = meaning_of(said)
    assert found is not None and found[0].kind == kind
    error = explain_load_error(tmp_path, said)
    assert meaning in error.message and next_step in error.next_step
    assert str(tmp_path) in error.message and said.strip() in error.message
    working = explain_generation_error("The model failed", said)
    assert meaning in working.message and next_step in working.next_step
    assert isinstance(working, OutOfMemory) == is_out_of_memory(said) == (kind == "memory")


def test_every_row_of_the_table_is_reached() -> None:
    """A row that another one hides would never be read."""
    reached = {found[0].pattern for said, *_ in SAID if (found := meaning_of(said))}
    assert reached == {row.pattern for row in MEANINGS}


@pytest.mark.parametrize(
    "said", ["something quite new\nwith a second line", "x" * 2000, "Failed to tokenize"]
)
def test_what_nobody_knows_is_shown_whole_with_the_doctor(said: str, tmp_path: Path) -> None:
    whole = " ".join(said.split())
    for error in (explain_load_error(tmp_path, said), explain_generation_error("It failed", said)):
        assert whole in error.message
        assert "fimble doctor" in error.next_step
    assert not is_out_of_memory(said)


def test_no_word_at_all(tmp_path: Path) -> None:
    assert "no reason given" in explain_load_error(tmp_path, "").message
    error = explain_generation_error("It failed", "MemoryError", out_of_memory=True)
    assert isinstance(error, OutOfMemory) and "not enough memory" in error.message


def test_advice_for_the_package_takes_the_tables_place(tmp_path: Path) -> None:
    error = explain_load_error(tmp_path, "std::bad_alloc", memory_advice="Use the INT4 package.")
    assert error.next_step == "Use the INT4 package."
    other = explain_load_error(tmp_path, "Protobuf parsing failed.", memory_advice="Not this.")
    assert "Not this" not in other.next_step


def test_a_failure_while_working_is_one_of_the_engine() -> None:
    assert type(explain_generation_error("It failed", "anything")) is GenerationFailed
