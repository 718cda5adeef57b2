"""Whether an engine runs, and how it is doing. Starts none."""

from __future__ import annotations

from dataclasses import dataclass

import fimble
from fimble import system
from fimble.doctor.checks import Check
from fimble.engine import control
from fimble.engine.address import read_address
from fimble.engine.launcher import log_path
from fimble.engine.protocol import PROTOCOL_VERSION
from fimble.errors import FimbleError

__all__ = ["EngineFacts", "engine_check", "look_at_engine"]


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """``left_over``: there is a crashed engine's file. ``error`` is why a living one cannot
    be asked.
    """

    status: control.EngineStatus | None = None
    left_over: bool = False
    error: FimbleError | None = None


def look_at_engine() -> EngineFacts:
    """Asks the running engine, if there is one."""
    try:
        status = control.status()
    except FimbleError as error:
        return EngineFacts(error=error)
    address = read_address()
    dead = address is not None and not system.is_alive(address.pid, address.started_at)
    return EngineFacts(status, left_over=dead)


def engine_check(facts: EngineFacts, log: str = "") -> Check:
    """``log`` is the path of the engine's log, for who must look further."""
    log = log or str(log_path())
    if facts.error is not None:
        step = facts.error.next_step or "Run `fimble engine stop`."
        return Check("engine", "fail", facts.error.message, step)
    status = facts.status
    if status is None:
        if facts.left_over:
            step = f"Nothing need be done: the next request starts it. {log} says why it ended."
            return Check("engine", "warn", "not running; the last one ended without a word", step)
        return Check("engine", "ok", "not running; it is started when it is needed")
    shown = f"version {status.version}, process {status.pid}, {status.state}"
    if status.version != fimble.__version__:
        shown += f"; fimble is {fimble.__version__}"
    if status.protocol > PROTOCOL_VERSION:
        step = "Update this fimble too, or run `fimble engine stop`."
        return Check("engine", "warn", f"{shown} and does not understand it", step)
    if status.protocol < PROTOCOL_VERSION:
        step = "Nothing need be done: the next request replaces it."
        return Check("engine", "warn", shown, step)
    if status.state == "failed":
        step = f"Run `fimble engine start` to try again; {log} says what went wrong."
        return Check("engine", "warn", f"{shown}: the last model could not be loaded", step)
    notices = [str(model["notice"]) for model in status.models if model.get("notice")]
    if notices:
        return Check("engine", "warn", notices[0], "Restart it when there is more memory.")
    models = ", ".join(
        f"{model['name']} on {model['provider']} ({model['window']} tokens)"
        for model in status.models
    )
    return Check("engine", "ok", f"{shown}, {models or 'no model loaded'}")
