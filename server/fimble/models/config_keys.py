"""Which keys of genai_config.json onnxruntime-genai knows, and what it does with others.

It refuses a key that it does not know, except that it reads over plain values beside its
sections, and hands every text among a session's options on to the session. The tables are
those of a text model; sections of other kinds of models are not looked into.
"""

from __future__ import annotations

from typing import Any

from fimble.models.package_json import as_table

__all__ = ["KNOWN_UP_TO", "SESSION_KEYS", "sort_keys"]

KNOWN_UP_TO = (0, 18)
"""The release of onnxruntime-genai whose keys these are; a later one may know more."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TOP_KEYS = _words("model search speculative engine")
_MODEL_KEYS = _words("""
    type tokenizer_dir vocab_size context_length pad_token_id eos_token_id bos_token_id
    decoder_start_token_id sep_token_id image_token_id audio_token_id boa_token_id
    video_token_id vision_start_token_id num_mels fft_size hop_length win_length preemph
    log_eps norm_eps subsampling_factor left_context conv_context pre_encode_cache_size
    sample_rate chunk_samples blank_id max_symbols_per_step left_context_samples
    right_context_samples bot_token_id eot_token_id bor_token_id eor_token_id tdt_durations
    encoder decoder draft vision embedding speech joiner vad mtp
""")
_DECODER_KEYS = _words("""
    filename hidden_size num_attention_heads num_hidden_layers num_key_value_heads head_size
    conv_cache_size session_options run_options inputs outputs sliding_window pipeline
    layer_types shared_initializers
""")
SESSION_KEYS = _words("""
    log_id enable_profiling intra_op_num_threads inter_op_num_threads log_severity_level
    log_verbosity_level enable_cpu_mem_arena enable_mem_pattern graph_optimization_level
    custom_ops_library provider_options
""")
_SEARCH_KEYS = _words("""
    min_length max_length batch_size num_beams num_return_sequences top_k top_p temperature
    repetition_penalty length_penalty no_repeat_ngram_size diversity_penalty random_seed
    chunk_size do_sample past_present_share_buffer early_stopping blank_penalty
""")


def sort_keys(data: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the keys that are not known: (the refused, the ignored), by their full names."""
    model = as_table(data.get("model"))
    decoder = as_table(model.get("decoder"))
    session = as_table(decoder.get("session_options"))
    refused = {key for key, value in data.items() if key not in _TOP_KEYS and _is_section(value)}
    ignored = {key for key in data if key not in _TOP_KEYS} - refused
    for table, known, prefix in (
        (model, _MODEL_KEYS, "model."),
        (decoder, _DECODER_KEYS, "model.decoder."),
        (as_table(data.get("search")), _SEARCH_KEYS, "search."),
    ):
        refused |= {prefix + key for key in table if key not in known}
    refused |= {
        f"model.decoder.session_options.{key}"
        for key, value in session.items()
        if key not in SESSION_KEYS and not isinstance(value, str)
    }
    return _listed(refused), _listed(ignored)


def _is_section(value: object) -> bool:
    return isinstance(value, dict | list)


def _listed(keys: set[str]) -> tuple[str, ...]:
    return tuple(key if len(key) <= 80 else f"{key[:79]}…" for key in sorted(keys))
