"""Every error a user may meet, in one tree.

FimbleError
├── UsageError                a command or request that cannot be meant (exit code 2)
├── DocumentError             a file, position or document we cannot work on
├── SettingsError             a setting with a wrong type or value
├── StatisticsError           the numbers on disk are damaged or cannot be written
├── TemplateFailed            a prompt template that cannot be used
├── EditRefused               an edit that cannot be made, or an answer that must not become one
├── ModelError
│   ├── ModelNotFound         no package of that name or at that path
│   ├── PackageError          a package that is incomplete, damaged or of an unknown kind
│   ├── DownloadError         the files could not be fetched or are not the right ones
│   └── ImportFailed          a GGUF file that cannot become a package
└── EngineError
    ├── RuntimeMissing        no (or more than one) onnxruntime-genai distribution
    ├── LoadFailed            the runtime refused the package
    ├── EngineUnavailable     no engine answers and none could be started
    ├── RequestRejected       the engine refused a request as malformed or too large
    └── GenerationFailed      the model failed while it worked (out of memory, crash)
        └── ModelMisbehaved   it computes nonsense here: NaN, one token over and over

The text of an error names the thing, the cause and the next step, and is shown as it
stands; the log has the traceback. Nothing here imports another module of the package.
"""

from __future__ import annotations

__all__ = [
    "DocumentError",
    "DownloadError",
    "EditRefused",
    "EngineError",
    "EngineUnavailable",
    "FimbleError",
    "GenerationFailed",
    "ImportFailed",
    "LoadFailed",
    "ModelError",
    "ModelMisbehaved",
    "ModelNotFound",
    "PackageError",
    "RequestRejected",
    "RuntimeMissing",
    "SettingsError",
    "StatisticsError",
    "TemplateFailed",
    "UsageError",
]


class FimbleError(Exception):
    """What went wrong, in the user's terms, and what to do next.

    ``message`` is one sentence that names the thing and the cause. ``next_step`` is one
    sentence in the imperative, or empty where there is nothing that the user can do.
    """

    exit_code = 1

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".rstrip()


class UsageError(FimbleError):
    """The command or request cannot be meant as it stands."""

    exit_code = 2


class DocumentError(FimbleError):
    """A file, position or document that we cannot work on."""


class SettingsError(FimbleError):
    """A setting with a wrong type or value."""


class TemplateFailed(FimbleError):
    """A prompt template cannot be used: it is missing, wrong, or does too much."""


class EditRefused(FimbleError):
    """An edit that cannot be made; nothing was changed.

    ``name`` is for programs. ``answer`` is what the model said, if it was asked.
    """

    def __init__(
        self, message: str, *, next_step: str = "", name: str = "", answer: str = ""
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.name = name
        self.answer = answer


class StatisticsError(FimbleError):
    """The numbers that are kept on disk are damaged, or cannot be read or written."""


class ModelError(FimbleError):
    """A model package is missing or cannot be used."""


class ModelNotFound(ModelError):
    """No package of that name is installed, and nothing is at that path."""


class PackageError(ModelError):
    """A package is incomplete, damaged or of a kind that we do not know."""


class DownloadError(ModelError):
    """Files could not be fetched, or what came is not what was asked for."""


class ImportFailed(ModelError):
    """A GGUF file that cannot be turned into a package."""


class EngineError(FimbleError):
    """The engine process, or the model in it, failed."""


class RuntimeMissing(EngineError):
    """No onnxruntime-genai distribution is installed, or more than one."""


class LoadFailed(EngineError):
    """onnxruntime-genai refused to load the package."""


class EngineUnavailable(EngineError):
    """No engine answers, and none could be started."""


class EngineEnded(EngineUnavailable):
    """The engine was ended on purpose while it answered: stopped, or replaced by a newer one."""


class RequestRejected(EngineError):
    """The engine refused the request itself (malformed, too long, unknown model)."""


class GenerationFailed(EngineError):
    """The model failed while it worked."""


class ModelMisbehaved(GenerationFailed):
    """The model works and gives nonsense: package, provider and driver do not fit together."""
