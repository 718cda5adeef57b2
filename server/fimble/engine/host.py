"""Which model is in memory: resolves names, loads, replaces, unloads. One at a time.

``ensure`` and ``unload`` are for the worker thread, which alone touches the runtime;
tokenizers may be had from any thread. Knows nothing of requests.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from fimble.engine.loaded import LoadedModel, load_model
from fimble.engine.metrics import Metrics
from fimble.engine.options import EngineOptions
from fimble.engine.package import PackageConfig, package_stamp, read_package_config
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import FimbleError, LoadFailed
from fimble.models.store import Store

__all__ = ["ModelHost", "State"]

_log = logging.getLogger(__name__)

State = Literal["idle", "loading", "ready", "failed"]

#: Typing into a package that cannot be loaded must not try it at every key.
_FAILURE_SECONDS = 10.0
_TOKENIZERS = 2


class ModelHost:
    """``options.model`` is what requests get that name no model."""

    def __init__(
        self,
        options: EngineOptions,
        metrics: Metrics,
        loader: Callable[..., LoadedModel] = load_model,
    ) -> None:
        self._options = options
        self._metrics = metrics
        self._load = loader
        self._lock = threading.Lock()
        self._tokenizers: dict[PackageConfig, PackageTokenizer] = {}
        self._resolved: dict[str, PackageConfig] = {}
        self._failed: dict[PackageConfig, tuple[float, FimbleError]] = {}
        self._used: str = ""
        self.loaded: LoadedModel | None = None
        self.state: State = "idle"

    # --- any thread ----------------------------------------------------------------------

    def config(self, model: str) -> PackageConfig:
        """The package that a request means: a name, a path, or "" for the current one.

        Raises ModelNotFound, PackageError or LoadFailed.
        """
        wanted = model or self._still_there(self._used) or self._options.model
        known = self._resolved.get(wanted)
        if known is not None and known.stamp == package_stamp(known.folder):
            return known
        package = Store().find(wanted) if wanted else Store().default()
        config = read_package_config(package.path, package.name)
        self._resolved[str(config.folder)] = config
        if wanted:  # which model is the default may change while we run
            self._resolved[wanted] = config
        return config

    @staticmethod
    def _still_there(folder: str) -> str:
        """A package may be removed while we run; then the default counts again."""
        return folder if folder and package_stamp(Path(folder)) else ""

    def tokenizer(self, config: PackageConfig) -> PackageTokenizer:
        """The package's tokenizer, which is there before the model is."""
        with self._lock:
            found = self._tokenizers.pop(config, None)
            if found is None:
                found = PackageTokenizer(config.folder / "tokenizer.json")
            # Most recent last; old ones go, they weigh 100 MB each.
            self._tokenizers[config] = found
            while len(self._tokenizers) > _TOKENIZERS:
                del self._tokenizers[next(iter(self._tokenizers))]
            return found

    # --- the worker ----------------------------------------------------------------------

    def ensure(self, model: str, *, again: bool = False) -> LoadedModel:
        """The loaded model; takes another one's place if need be.

        ``again`` tries a package that failed a moment ago once more. Raises ModelNotFound,
        PackageError, LoadFailed or RuntimeMissing.
        """
        if not model and self.loaded is not None:
            return self.loaded
        config = self.config(model)
        if self.loaded is not None and self.loaded.config == config:
            return self.loaded
        failed = self._failed.get(config)
        if failed is not None and not again and time.monotonic() - failed[0] < _FAILURE_SECONDS:
            raise failed[1]
        self.unload()
        return self._load_now(config)

    def unload(self) -> None:
        """Frees the model, if one is loaded."""
        loaded, self.loaded = self.loaded, None
        if loaded is not None:
            loaded.close()
            _log.info("unloaded %s", loaded.config.name)
        self.state = "idle"

    def _load_now(self, config: PackageConfig) -> LoadedModel:
        self.state = "loading"
        begun = time.perf_counter()
        try:
            loaded = self._load(
                config,
                self.tokenizer(config),
                context_tokens=self._options.context_tokens,
                threads=self._options.threads,
                slots=self._options.slots,
            )
        except FimbleError as error:
            self._note_failure(config, error)
            raise
        except Exception as error:
            _log.exception("loading %s failed", config.folder)
            failure = LoadFailed(
                f"The package {config.folder} cannot be loaded ({type(error).__name__}).",
                next_step="The engine's log has the details.",
            )
            self._note_failure(config, failure)
            raise failure from error
        self.loaded = loaded
        self._used = str(config.folder)
        self.state = "ready"
        self._metrics.loads += 1
        self._metrics.load_seconds = time.perf_counter() - begun
        _log.info("loaded %s in %.1f s", config.name, self._metrics.load_seconds)
        return loaded

    def _note_failure(self, config: PackageConfig, error: FimbleError) -> None:
        self.state = "failed"
        self._failed[config] = (time.monotonic(), error)
        _log.error("%s", error)
