"""A real engine process in a folder of its own, and short ways to ask it things."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fimble.engine import control
from fimble.engine.address import EngineAddress
from fimble.engine.launcher import find_running, start_engine
from fimble.engine.options import EngineOptions
from tests.support.waiting import PATIENCE

__all__ = ["RunningEngine", "running_engine"]


class RunningEngine:
    """``home`` is its FIMBLE_HOME. Bodies are what OpenAI's endpoints take."""

    def __init__(self, address: EngineAddress, home: Path) -> None:
        self.address = address
        self.home = home
        self.http = self.client()

    def client(self, **headers: str) -> httpx.Client:
        """A client with the secret and further headers."""
        return httpx.Client(
            base_url=self.address.url,
            headers={"Authorization": f"Bearer {self.address.secret}", **headers},
            trust_env=False,
            timeout=PATIENCE,
        )

    def complete(self, prompt: Any, **body: Any) -> dict[str, Any]:
        """The answer of /v1/completions, which must be 200."""
        body = {"prompt": prompt, "max_tokens": 8, **body}
        response = self.http.post("/v1/completions", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def text(self, prompt: Any, **body: Any) -> str:
        """The text of the only candidate."""
        text: str = self.complete(prompt, **body)["choices"][0]["text"]
        return text

    def events(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The events of a streamed answer, without the end mark, which must be there."""
        with self.http.stream("POST", path, json={**body, "stream": True}) as response:
            assert response.status_code == 200, response.read()
            lines = [line for line in response.iter_lines() if line]
        assert lines[-1] == "data: [DONE]"
        return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]

    def health(self) -> dict[str, Any]:
        """What /health says."""
        answer: dict[str, Any] = self.http.get("/health").json()
        return answer

    def metric(self, name: str) -> float:
        """One value of /metrics, by its full name with labels."""
        for line in self.http.get("/metrics").text.splitlines():
            if line.rpartition(" ")[0] == name:
                return float(line.rpartition(" ")[2])
        raise AssertionError(f"no metric {name}")


@contextlib.contextmanager
def running_engine(
    home: Path, package: Path | str, options: EngineOptions | None = None
) -> Iterator[RunningEngine]:
    """Starts an engine below ``home`` with the package loaded, and ends it afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIMBLE_HOME", str(home))
        engine = RunningEngine(start_engine(options or EngineOptions()), home)
        loaded = engine.http.post("/load", json={"model": str(package)})
        assert loaded.status_code == 200, loaded.text
    try:
        yield engine
    finally:
        engine.http.close()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FIMBLE_HOME", str(home))
            control.stop()
            assert find_running() is None
