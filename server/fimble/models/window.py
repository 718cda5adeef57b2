"""How many tokens a package can really hold: the smallest of the limits that it states.

Pure arithmetic on a configuration. Knows nothing of memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from fimble.models.config_values import ConfigValues
from fimble.models.genai_config import GenaiConfig

__all__ = ["Window", "real_window"]


@dataclass(frozen=True, slots=True)
class Window:
    """``tokens`` of prompt and answer together, and the key that sets it; (0, "") if none does.

    ``limits`` are all that count, by key. ``faults`` are sentences about limits that make no
    sense.
    """

    tokens: int
    limited_by: str
    limits: dict[str, int]
    faults: tuple[str, ...] = ()


def real_window(config: GenaiConfig) -> Window:
    """The smallest of the four limits."""
    values = ConfigValues()
    options = config.provider.options
    where = f"provider_options.{config.provider.name}"
    stated = {
        "context_length": config.context_length or None,
        "search.max_length": config.search.max_length,
        "max_length_for_kv_cache": values.digits(options, "max_length_for_kv_cache", where),
    }
    optimised = values.digits(options, "hybrid_opt_max_seq_length", where)
    # A hybrid package that takes its prompt in chunks is not bound to the length for which
    # it was optimised; both settings are needed for that.
    if not (options.get("hybrid_opt_chunk_context") == "1" and (config.search.chunk_size or 0) > 0):
        stated["hybrid_opt_max_seq_length"] = optimised
    limits = {key: tokens for key, tokens in stated.items() if tokens is not None}
    key = min(limits, key=lambda each: limits[each], default="")
    return Window(limits.get(key, 0), key, limits, tuple(values.faults))
