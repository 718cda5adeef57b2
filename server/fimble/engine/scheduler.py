"""The one thread that owns the runtime, and whose turn it is.

Requests are stepped between tokens and prefill slices: the most urgent first (completion,
warm-up, chat). Among equals the one that has begun is ended first, then it is the turn of the
client that was served the longest ago, and of its oldest request. So that typing without pause
does not keep chats waiting for ever, a chat has one step after each more urgent request that
ended, where that makes nobody compute a prompt again. A newer request for the same document
replaces an older one. Knows nothing of HTTP: answers go to each job's ``deliver``, called on this
thread.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from fimble.engine.generation import Generation
from fimble.engine.host import ModelHost
from fimble.engine.loaded import LoadedModel
from fimble.engine.metrics import Metrics
from fimble.engine.protocol import CompletionChunk, CompletionRequest, Priority
from fimble.errors import FimbleError, GenerationFailed, RequestRejected

__all__ = ["Done", "Event", "Job", "Scheduler", "TooManyRequests"]

_log = logging.getLogger(__name__)

_RANK: dict[Priority, int] = {"completion": 0, "warmup": 1, "chat": 2}
QUEUE_LIMIT = 64
#: Of these one client may have so many; the rest is for others.
CLIENT_LIMIT = 32
#: A step longer than this has kept the event loop waiting; give it a little time.
_LONG_STEP_S = 0.05
_BREATH_S = 0.001


class TooManyRequests(RequestRejected):
    """The queue is full, or the client's share of it."""


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of a job that did not fail."""


#: What is given back: everything, for nobody asked for long; or, since memory is short, the KV
#: caches or the models.
Freed = Literal["idle", "slots", "models"]
#: What a job delivers: chunks, then Done or an error.
Event = CompletionChunk | Done | FimbleError


@dataclass(eq=False)
class Job:
    """A request on its way. Without a ``request`` it only loads ``model``.

    ``provider`` is what ``model`` is to be loaded on; empty leaves it to the host. ``client``
    is who asks; all that do not say so are one.
    """

    model: str
    request: CompletionRequest | None
    deliver: Callable[[Event], None]
    provider: str = ""
    client: str = ""
    submitted: float = field(default_factory=time.perf_counter)
    sequence: int = 0
    cancelled: bool = False
    generation: Generation | None = None
    steps: Iterator[None] | None = None
    loaded: LoadedModel | None = None

    @property
    def rank(self) -> int:
        """Lower is more urgent."""
        return 0 if self.request is None else _RANK[self.request.priority]

    def replaces(self, other: Job) -> bool:
        """Whether ``other`` has become pointless: an older one for the same document."""
        mine, its = self.request, other.request
        return (
            mine is not None
            and its is not None
            and mine.document != ""
            and mine.priority != "chat"
            and (mine.document, mine.priority) == (its.document, its.priority)
        )


class Scheduler:
    """Starts its thread at once; ``close`` ends it."""

    def __init__(self, host: ModelHost, metrics: Metrics) -> None:
        self._host = host
        self._metrics = metrics
        self._jobs: list[Job] = []
        self._numbers = itertools.count(1)
        # By client that waits for something: which of all turns was its last.
        self._turns: dict[str, int] = {}
        self._turn_numbers = itertools.count(1)
        self._change = threading.Condition()
        # Whether a chat may have a step before the next more urgent request begins.
        self._chats_turn = False
        # The job that the worker is stepping now; nobody else may end it.
        self._current: Job | None = None
        self._closing = False
        # What is to be freed as soon as there is no work.
        self._free: Freed | None = None
        self._last_active = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="fimble-model", daemon=True)
        self._thread.start()

    # --- any thread ----------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Queues a job. Raises TooManyRequests."""
        with self._change:
            own = sum(other.client == job.client for other in self._jobs)
            if len(self._jobs) >= QUEUE_LIMIT or own >= CLIENT_LIMIT:
                raise TooManyRequests(
                    f"{len(self._jobs)} requests wait already, {own} of them of this client.",
                    next_step="Wait for answers, or close connections that nobody reads.",
                )
            job.sequence = next(self._numbers)
            for other in self._jobs:
                if job.replaces(other):
                    other.cancelled = True
            self._jobs.append(job)
            self._drop_waiting()
            self._change.notify()

    def cancel(self, job: Job) -> None:
        """Ends a job at its next step; at once if it had not begun."""
        with self._change:
            job.cancelled = True
            self._drop_waiting()
            self._change.notify()

    def unload_when_idle(self) -> None:
        """Frees the models unless there is work."""
        self._free_unless_busy("idle")

    def free_when_idle(self, what: Literal["slots", "models"]) -> None:
        """Frees them for others, since the machine runs short of memory, unless there is work."""
        self._free_unless_busy(what)

    def _free_unless_busy(self, what: Freed) -> None:
        with self._change:
            self._free = what
            self._change.notify()

    @property
    def waiting(self) -> int:
        """Requests that are queued or at work."""
        return len(self._jobs)

    @property
    def idle_seconds(self) -> float:
        """Since the last request ended; 0 while there is one."""
        return 0.0 if self._jobs else time.monotonic() - self._last_active

    def close(self, patience: float = 10.0) -> None:
        """Cancels everything, frees the model and ends the thread."""
        with self._change:
            self._closing = True
            for job in self._jobs:
                job.cancelled = True
            self._change.notify()
        self._thread.join(patience)

    # --- the worker ----------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._change:
                while not (self._jobs or self._closing or self._free):
                    self._change.wait()
                free, self._free = None if self._jobs else self._free, None
                job = self._current = self._next()
            if free:
                self._give_back(free)
            if job is not None:
                begun = time.perf_counter()
                self._step(job)
                # The event loop needs the interpreter for more than one turn.
                long = time.perf_counter() - begun > _LONG_STEP_S
                time.sleep(_BREATH_S if long else 0)
            elif self._closing:
                self._give_back("idle")
                return

    def _next(self) -> Job | None:
        """The job to step now. The lock is held."""
        first = min(self._jobs, key=self._place, default=None)
        if first is None or first.generation is not None or not self._chats_turn:
            return first
        self._chats_turn = False
        chats = [job for job in self._jobs if job.rank == _RANK["chat"]]
        chat = min(chats, key=self._place, default=None)
        return first if chat is None or not self._costs_one_step(chat) else chat

    def _costs_one_step(self, job: Job) -> bool:
        """Whether a step of the job is a small one: nothing is loaded, the prompt is computed in
        slices, and there is a slot that the requests between its steps can leave to it.
        """
        model = job.loaded or self._host.in_memory(job.model, job.provider)
        return (
            model is not None
            and model.pool is not None
            and model.slice_tokens > 0
            and model.pool.spares(job.generation)
        )

    def _place(self, job: Job) -> tuple[int, bool, int, int]:
        """What jobs are ordered by, the next one first. The lock is held."""
        waits = job.generation is None
        return job.rank, waits, self._turns.get(job.client, 0) if waits else 0, job.sequence

    def _give_back(self, what: Freed) -> None:
        try:
            if what == "slots":
                self._host.free_slots()
            else:
                self._host.unload(short_of_memory=what == "models")
        except Exception:  # noqa: BLE001
            # The worker must outlive whatever the runtime does here.
            _log.exception("memory could not be given back")

    def _step(self, job: Job) -> None:
        try:
            self._end_cancelled()
            if job.cancelled:
                return
            model = self._model_for(job)
            if job.request is None:
                self._end(job, Done())
                return
            if job.generation is None:
                self._turns[job.client] = next(self._turn_numbers)
                queued = time.perf_counter() - job.submitted
                job.generation = Generation(
                    job.request, job.deliver, self._metrics, self._may_evict_for(job), queued
                )
                job.steps = job.generation.steps()
            job.generation.use_model(model)
            assert job.steps is not None
            next(job.steps)
        except StopIteration:
            self._end(job, Done())
        except FimbleError as error:
            if isinstance(error, GenerationFailed):
                _log.warning("a request failed: %s", error)
            self._end(job, error)
        except Exception as error:  # noqa: BLE001
            # A bug of ours or the runtime's: the log has it, the other requests go on.
            _log.exception("a request failed")
            self._end(
                job,
                GenerationFailed(
                    f"The engine failed while it worked ({type(error).__name__}).",
                    next_step="Try again; the engine's log has the details.",
                ),
            )

    def _model_for(self, job: Job) -> LoadedModel:
        """The job's model, loaded again if another one took its place in between."""
        if job.loaded is None or not self._host.holds(job.loaded):
            job.loaded = self._host.ensure(job.model, job.provider, again=job.request is None)
            # What "" meant when the job began is what it means until its end.
            job.model = str(job.loaded.config.folder)
        return job.loaded

    def _end_cancelled(self) -> None:
        for job in [each for each in self._jobs if each.cancelled]:
            self._end(job, Done())

    def _may_evict_for(self, job: Job) -> Callable[[object], bool]:
        def may_evict(holder: object) -> bool:
            return any(other.generation is holder and other.rank > job.rank for other in self._jobs)

        return may_evict

    def _end(self, job: Job, event: Event) -> None:
        with self._change:
            if job not in self._jobs:
                return
            self._jobs.remove(job)
            if not any(other.client == job.client for other in self._jobs):
                self._turns.pop(job.client, None)
            if job.generation is not None and job.rank < _RANK["chat"]:
                self._chats_turn = True
            self._last_active = time.monotonic()
        if job.steps is not None:
            close = getattr(job.steps, "close", None)
            if close is not None:
                close()
        self._report(job, event)

    def _drop_waiting(self) -> None:
        """Answers cancelled jobs that have not begun, without waiting for the worker,
        which may be in a call of many seconds. The lock is held.
        """
        for job in [each for each in self._jobs if each.cancelled]:
            if job.generation is None and job is not self._current:
                self._jobs.remove(job)
                self._report(job, Done())

    def _report(self, job: Job, event: Event) -> None:
        generation = job.generation
        if isinstance(event, FimbleError):
            self._metrics.requests["error"] += 1
        elif job.cancelled and job.request is not None:
            self._metrics.requests["cancelled"] += 1
            nothing = CompletionChunk("", finish_reason="cancelled")
            job.deliver(nothing if generation is None else generation.cancelled())
        elif generation is not None:
            self._metrics.requests[generation.finish_reason] += 1
        job.deliver(event)
