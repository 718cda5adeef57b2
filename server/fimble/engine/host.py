"""Which models are in memory: resolves names, loads, replaces, unloads.

One for completion and one for chat may be there at once, where the memory planner says that
both fit; else the one that was asked for last takes the other's place, and says so.

``ensure`` and ``unload`` are for the worker thread, which alone touches the runtime;
tokenizers may be had from any thread. Knows nothing of requests.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from fimble.engine.loaded import LoadedModel, Stage, load_model
from fimble.engine.memory_room import fits_beside
from fimble.engine.metrics import Metrics
from fimble.engine.options import EngineOptions
from fimble.engine.package import PackageConfig, package_stamp, read_package_config
from fimble.engine.provider_choice import choose_provider, inspection_of
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import FimbleError, LoadFailed, ModelNotFound
from fimble.models.genai_config import canonical_provider
from fimble.models.store import Store

__all__ = ["ModelHost", "State"]

_log = logging.getLogger(__name__)

State = Literal["idle", "loading", "ready", "failed"]

#: Typing into a package that cannot be loaded must not try it at every key.
_FAILURE_SECONDS = 10.0
_TOKENIZERS = 2
#: One for completion, one for chat and edits.
_MODELS = 2


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
        self._failed: dict[tuple[PackageConfig, str], tuple[float, FimbleError]] = {}
        self._used: str = ""
        # By folder, what the request asked for that loaded the package the last time.
        self._provider_asked: dict[Path, str] = {}
        # Folders of models that were unloaded since the machine ran short of memory.
        self._gone_for_memory: set[Path] = set()
        # By folder, the one that was used last at the end. Replaced, never changed: other
        # threads look at it.
        self._models: tuple[LoadedModel, ...] = ()
        self.state: State = "idle"
        #: What loading is at, while there is a load.
        self.stage: Stage | None = None

    @property
    def loaded(self) -> LoadedModel | None:
        """The model that was used last; None where none is in memory."""
        models = self._models
        return models[-1] if models else None

    @property
    def models(self) -> tuple[LoadedModel, ...]:
        """All models in memory, the one that was used last at the end."""
        return self._models

    # --- any thread ----------------------------------------------------------------------

    def config(self, model: str) -> PackageConfig:
        """The package that a request means: a name, a path, or "" for the current one.

        Raises ModelNotFound, PackageError or LoadFailed.
        """
        wanted = model or self._still_there(self._used) or self._options.model
        known = self._resolved.get(wanted)
        if known is not None and known.stamp == package_stamp(known.folder):
            return known
        folder, name = self._installed(wanted)
        config = read_package_config(folder, name)
        self._resolved[str(config.folder)] = config
        if wanted:  # which model is the default may change while we run
            self._resolved[wanted] = config
        return config

    def _installed(self, wanted: str) -> tuple[Path, str]:
        """The folder and the name of a package that is in the store or at a path; or that is
        loaded, under the name that /v1/models lists it by.
        """
        try:
            package = Store().find(wanted) if wanted else Store().default()
        except ModelNotFound:
            for loaded in reversed(self._models):
                if loaded.config.name == wanted:
                    return loaded.config.folder, wanted
            raise
        return package.path, package.name

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

    def ensure(self, model: str, provider: str = "", *, again: bool = False) -> LoadedModel:
        """The loaded model; takes another one's place if need be.

        ``provider`` is what computes; empty leaves a model where it is, and loads one as the
        engine's options say. ``again`` tries a package that failed a moment ago once more.
        Where loading fails, what had to go for it is loaded again.
        Raises ModelNotFound, PackageError, LoadFailed or RuntimeMissing.
        """
        wanted = canonical_provider(provider) if provider else ""
        if not model and not wanted and self.loaded is not None:
            return self.loaded
        config = self.config(model)
        present = self._present(config, wanted)
        if present is not None:
            self._use(present)
            return present
        failed = self._failed.get((config, wanted))
        if failed is not None and not again and time.monotonic() - failed[0] < _FAILURE_SECONDS:
            raise failed[1]
        options = self._options_for(wanted)
        before = self._models
        self._make_room(config, options)
        away = [each for each in before if not self.holds(each)]
        try:
            loaded = self._load_now(config, wanted, options)
        except FimbleError:
            self._bring_back(away)
            raise
        gone = [each.config.name for each in away if each.config.folder != config.folder]
        if gone:
            loaded.note(
                f"{' and '.join(gone)} was unloaded: there is not memory enough for it beside "
                f"{config.name}, as far as is known."
            )
        return loaded

    def in_memory(self, model: str, provider: str = "") -> LoadedModel | None:
        """What ``ensure`` would give, if it need not load it."""
        wanted = canonical_provider(provider) if provider else ""
        if not model and not wanted:
            return self.loaded
        try:
            return self._present(self.config(model), wanted)
        except FimbleError:
            return None

    def _present(self, config: PackageConfig, provider: str) -> LoadedModel | None:
        for loaded in self._models:
            if loaded.config == config and provider in ("", loaded.provider):
                return loaded
        return None

    def holds(self, loaded: LoadedModel) -> bool:
        """Whether the model is still in memory."""
        return any(each is loaded for each in self._models)

    def unload(self, *, short_of_memory: bool = False) -> None:
        """Frees all models. Where that is because the machine is ``short_of_memory``, each says
        so when it is back.
        """
        for loaded in self._models:
            if short_of_memory:
                self._gone_for_memory.add(loaded.config.folder)
                self._metrics.freed["models"] += 1
            self._drop(loaded)
        self.state = "idle"

    def free_slots(self) -> None:
        """Frees all KV caches, since the machine is short of memory."""
        for loaded in self._models:
            self._metrics.freed["slots"] += loaded.free_slots()

    def _options_for(self, provider: str) -> EngineOptions:
        """The engine's options; a provider's own settings do not hold for another one."""
        if not provider or provider == canonical_provider(self._options.provider):
            return self._options
        return replace(self._options, provider=provider, provider_options=(), provider_library="")

    def _use(self, loaded: LoadedModel) -> None:
        others = tuple(each for each in self._models if each is not loaded)
        self._models = (*others, loaded)
        self._used = str(loaded.config.folder)

    def _drop(self, loaded: LoadedModel) -> None:
        self._models = tuple(each for each in self._models if each is not loaded)
        loaded.close()
        _log.info("unloaded %s", loaded.config.name)

    def _make_room(self, config: PackageConfig, options: EngineOptions) -> None:
        """Unloads what cannot stay beside ``config``."""
        found = inspection_of(config)
        try:
            choice = choose_provider(
                config,
                found,
                setting=options.provider,
                library=options.provider_library,
            )
        except FimbleError:
            return  # it cannot be loaded at all: no reason for another one to go
        for loaded in self._models:
            if loaded.config.folder == config.folder:
                self._drop(loaded)  # another package of the same name, or another provider
        if self._models and (
            len(self._models) >= _MODELS or not fits_beside(found, choice, options)
        ):
            for loaded in self._models:
                self._drop(loaded)

    def _bring_back(self, away: Sequence[LoadedModel]) -> None:
        """Loads again what had to go for a model that then failed."""
        for former in away:
            config = former.config
            if package_stamp(config.folder) != config.stamp:
                continue  # what is there now is another package
            wanted = self._provider_asked.get(config.folder, "")
            try:
                self._load_now(config, wanted, self._options_for(wanted))
            except FimbleError:
                _log.warning("%s did not come back", config.name)

    def _load_now(
        self, config: PackageConfig, provider: str, options: EngineOptions
    ) -> LoadedModel:
        self.state = "loading"
        begun = time.perf_counter()
        try:
            loaded = self._load(
                config,
                self.tokenizer(config),
                options=options,
                stage=self._note_stage,
            )
        except FimbleError as error:
            self._note_failure(config, provider, error)
            raise
        except Exception as error:
            _log.exception("loading %s failed", config.folder)
            failure = LoadFailed(
                f"The package {config.folder} cannot be loaded ({type(error).__name__}).",
                next_step="The engine's log has the details.",
            )
            self._note_failure(config, provider, failure)
            raise failure from error
        self._use(loaded)
        if config.folder in self._gone_for_memory:
            self._gone_for_memory.discard(config.folder)
            loaded.note(
                f"{config.name} was unloaded meanwhile and is loaded again: this machine ran short "
                "of memory. Close other programs, or take a smaller model."
            )
        self._provider_asked[config.folder] = provider
        self.state, self.stage = "ready", None
        self._metrics.loads += 1
        self._metrics.load_seconds = time.perf_counter() - begun
        _log.info("loaded %s in %.1f s", config.name, self._metrics.load_seconds)
        return loaded

    def _note_stage(self, stage: Stage) -> None:
        self.stage = stage
        _log.info("loading: %s", stage)

    def _note_failure(self, config: PackageConfig, provider: str, error: FimbleError) -> None:
        # The other model goes on, if there is one.
        self.state, self.stage = ("ready" if self._models else "failed"), None
        self._failed[config, provider] = (time.monotonic(), error)
        _log.error("%s", error)
