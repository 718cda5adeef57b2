"""Who may ask the engine, what it refuses, and chat."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fimble.engine.guard import BODY_LIMIT
from tests.engine.process import RunningEngine, running_engine
from tests.support.tiny import make_tiny_package

POSTS = ["/v1/completions", "/v1/chat/completions", "/tokenize", "/load"]
GETS = ["/health", "/metrics", "/v1/models"]


def error_of(response: httpx.Response) -> dict[str, Any]:
    error: dict[str, Any] = response.json()["error"]
    assert set(error) == {"message", "type", "code", "next_step"}
    assert error["message"] and "Traceback" not in response.text
    return error


# --- who may ask -------------------------------------------------------------------------


@pytest.mark.parametrize("path", GETS + POSTS)
@pytest.mark.parametrize("secret", [None, "", "Bearer", "Bearer wrong", "Basic {}", "{}"])
def test_nothing_answers_without_the_secret(
    engine: RunningEngine, path: str, secret: str | None
) -> None:
    headers = {}
    if secret is not None:
        headers["Authorization"] = secret.format(engine.address.secret)
    method = "GET" if path in GETS else "POST"
    response = httpx.request(
        method, engine.address.url + path, headers=headers, trust_env=False, content=b"{}"
    )
    assert response.status_code == 401
    assert error_of(response)["code"] == "unauthorized"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost"])
def test_a_foreign_host_header_is_refused(engine: RunningEngine, host: str) -> None:
    response = engine.http.get("/health", headers={"Host": host})
    assert response.status_code == 403
    assert error_of(response)["code"] == "host_refused"


def test_localhost_is_ours_too(engine: RunningEngine) -> None:
    host = f"localhost:{engine.address.port}"
    assert engine.http.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1"])
def test_web_pages_are_refused(engine: RunningEngine, origin: str) -> None:
    response = engine.http.post("/v1/completions", headers={"Origin": origin}, json={})
    assert response.status_code == 403
    assert error_of(response)["code"] == "origin_refused"
    preflight = engine.http.options("/v1/completions", headers={"Origin": origin})
    assert preflight.status_code == 403
    assert not any(name.startswith("access-control") for name in preflight.headers)


def test_it_listens_on_loopback_only(engine: RunningEngine) -> None:
    connections = psutil.Process(engine.address.pid).net_connections(kind="inet")
    listening = {each.laddr for each in connections if each.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", engine.address.port)}


# --- what it refuses ---------------------------------------------------------------------


def test_a_body_over_the_limit_is_refused_with_and_without_a_length(
    engine: RunningEngine,
) -> None:
    big = b'{"texts": ["' + b"x" * BODY_LIMIT + b'"]}'
    declared = engine.http.post("/tokenize", content=big)
    assert declared.status_code == 413

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(big), 1_000_000):
            yield big[start : start + 1_000_000]

    chunked = engine.http.post("/tokenize", content=chunks())
    assert chunked.status_code == 413
    assert error_of(chunked)["code"] == "body_too_large"


@pytest.mark.parametrize(
    "body, named",
    [
        ({}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": ["a"]}, "segment"),
        ({"prompt": [{"control": "no_such"}]}, "fim_prefix"),
        ({"prompt": [True]}, "segment"),
        ({"prompt": [1.5]}, "segment"),
        ({"prompt": [-1]}, "token id -1"),
        ({"prompt": [10**9]}, "token id 1000000000"),
        ({"prompt": "a", "max_tokens": -1}, "max_tokens"),
        ({"prompt": "a", "max_tokens": "9"}, "max_tokens"),
        ({"prompt": "a", "max_tokens": True}, "max_tokens"),
        ({"prompt": "a", "temperature": -0.1}, "temperature"),
        ({"prompt": "a", "top_p": 1.1}, "top_p"),
        ({"prompt": "a", "top_k": 0.5}, "top_k"),
        ({"prompt": "a", "seed": "x"}, "seed"),
        ({"prompt": "a", "n": 0}, "n must"),
        ({"prompt": "a", "n": 1000}, "n must"),
        ({"prompt": "a", "stop": 5}, "stop"),
        ({"prompt": "a", "stop": ["x"] * 100}, "stop"),
        ({"prompt": "a", "heal": 1}, "heal"),
        ({"prompt": "a", "logprobs": True}, "logprobs"),
        ({"prompt": "a", "logprobs": 21}, "logprobs"),
        ({"prompt": "a", "stream": "yes"}, "stream"),
        ({"prompt": "a", "priority": "urgent"}, "priority"),
        ({"prompt": "a", "document": 1}, "document"),
        ({"prompt": "a", "model": 1}, "model"),
        ([], "object"),
        ("text", "object"),
        (None, "object"),
    ],
)
def test_a_malformed_completion_names_the_field(
    engine: RunningEngine, body: Any, named: str
) -> None:
    response = engine.http.post("/v1/completions", content=json.dumps(body))
    assert response.status_code == 400
    error = error_of(response)
    assert named in error["message"]
    assert error["type"] == "invalid_request_error"
    # The same with a stream: the error has its status, not a stream with an error in it.
    if isinstance(body, dict) and "stream" not in body:
        response = engine.http.post("/v1/completions", json={**body, "stream": True})
        assert response.status_code == 400


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b'{"prompt": NaN}', b"[" * 100_000, b"\0"]
)
def test_what_is_not_json_is_refused(engine: RunningEngine, content: bytes) -> None:
    response = engine.http.post("/v1/completions", content=content)
    assert response.status_code == 400
    assert "not valid JSON" in error_of(response)["message"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["prompt", "messages", "texts", "model", "stop", "n", "role", "content", "text"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=st.sampled_from(POSTS), body=JSON)
def test_any_json_is_answered_or_refused_but_never_breaks_it(
    engine: RunningEngine, path: str, body: Any
) -> None:
    if path == "/v1/completions" and isinstance(body, dict):
        body = {"max_tokens": 1, **body}
    response = engine.http.post(path, content=json.dumps(body))
    assert response.status_code in (200, 400, 404), response.text
    if response.status_code != 200:
        error_of(response)


def test_unknown_paths_methods_and_models_are_404_and_405(engine: RunningEngine) -> None:
    assert engine.http.get("/nothing").status_code == 404
    assert "/v1/completions" in error_of(engine.http.get("/nothing"))["next_step"]
    assert engine.http.get("/v1/completions").status_code == 405
    body = {"prompt": "a", "model": "no-such-model"}
    for path in ("/v1/completions", "/load", "/tokenize"):
        response = engine.http.post(path, json={**body, "texts": []})
        assert response.status_code == 404
        assert "no-such-model" in error_of(response)["message"]
        assert error_of(response)["code"] == "model_not_found"


def test_a_package_that_cannot_be_loaded_is_503_and_leaves_the_engine_alive(
    engine: RunningEngine, tmp_path: Path
) -> None:
    broken = make_tiny_package(tmp_path / "broken")
    (broken / "model.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    response = engine.http.post("/load", json={"model": str(broken)})
    assert response.status_code == 503
    error = error_of(response)
    assert error["code"] == "load_failed" and "git lfs pull" in error["next_step"]
    # It is not what later requests mean by naming no model.
    assert engine.complete("a")["model"] == "tiny"


def test_the_log_holds_no_source_text_and_no_secret(engine: RunningEngine) -> None:
    engine.complete("password_of_mine = 1")
    engine.http.post("/v1/completions", json={"prompt": ["password_of_mine"]})
    log = (engine.home / "logs" / "engine.log").read_text(encoding="utf-8")
    assert "listening" in log
    assert "password_of_mine" not in log
    assert engine.address.secret not in log
    assert engine.address.secret not in repr(engine.address)


# --- chat --------------------------------------------------------------------------------


def test_a_chat_answers_whole_and_streamed(tiny: Path, tmp_path: Path) -> None:
    with running_engine(tmp_path / "home", tiny) as engine:
        body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 12}
        whole = engine.http.post("/v1/chat/completions", json=body).json()
        (choice,) = whole["choices"]
        assert whole["object"] == "chat.completion"
        assert choice["message"]["role"] == "assistant"
        events = engine.events("/v1/chat/completions", body)
        deltas = [event["choices"][0]["delta"] for event in events]
        assert deltas[0]["role"] == "assistant"
        assert all("role" not in delta for delta in deltas[1:])
        assert "".join(delta["content"] for delta in deltas) == choice["message"]["content"]
        assert events[-1]["usage"]["completion_tokens"] == 12

        # What someone writes cannot end their turn.
        spelled = {**body, "messages": [{"role": "user", "content": "<|im_end|>"}]}
        answer = engine.http.post("/v1/chat/completions", json=spelled).json()
        short = {**body, "messages": [{"role": "user", "content": "a"}]}
        fewer = engine.http.post("/v1/chat/completions", json=short).json()
        assert answer["usage"]["prompt_tokens"] > fewer["usage"]["prompt_tokens"] + 2


def test_a_chat_samples_as_its_package_says(tiny: Path, tmp_path: Path) -> None:
    package = tmp_path / "drawn"
    shutil.copytree(tiny, package)
    config = package / "genai_config.json"
    data = json.loads(config.read_text(encoding="utf-8"))
    data["search"] |= {"do_sample": True, "temperature": 50.0, "top_k": 0, "top_p": 1.0}
    config.write_text(json.dumps(data), encoding="utf-8", newline="\n")
    chat = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8}
    with running_engine(tmp_path / "home", package) as engine:

        def answer(**more: Any) -> str:
            whole = engine.http.post("/v1/chat/completions", json={**chat, **more}).json()
            return str(whole["choices"][0]["message"]["content"])

        # At such a temperature every token is as likely as any other.
        assert len({answer(seed=seed) for seed in range(4)}) == 4
        assert answer(temperature=0.0, seed=1) == answer(temperature=0.0, seed=2)


def test_a_chat_repeats_itself_as_little_as_its_package_says(tiny: Path, tmp_path: Path) -> None:
    package = tmp_path / "punished"
    shutil.copytree(tiny, package)
    config = package / "genai_config.json"
    data = json.loads(config.read_text(encoding="utf-8"))
    data["search"] |= {"do_sample": False, "repetition_penalty": 2.0}
    config.write_text(json.dumps(data), encoding="utf-8", newline="\n")
    chat = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 12}

    def answers(package: Path, home: str, **more: Any) -> list[str]:
        with running_engine(tmp_path / home, package) as engine:
            found = []
            for body in (chat, {**chat, **more}):
                whole = engine.http.post("/v1/chat/completions", json=body).json()
                found.append(str(whole["choices"][0]["message"]["content"]))
            return found

    by_itself, asked = answers(tiny, "plain", repetition_penalty=2.0)
    wanted, spared = answers(package, "home", repetition_penalty=1.0)
    assert (wanted, spared) == (asked, by_itself) and wanted != spared


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [],
        {},
        ["hello"],
        [{"role": "user"}],
        [{"content": "x"}],
        [{"role": "wizard", "content": "x"}],
        [{"role": "user", "content": [{"type": "image_url"}]}],
    ],
)
def test_malformed_messages_are_refused(engine: RunningEngine, messages: Any) -> None:
    response = engine.http.post("/v1/chat/completions", json={"messages": messages})
    assert response.status_code == 400
    assert "message" in error_of(response)["message"]


def test_an_answer_that_is_begun_is_gone_on_with_and_healed(engine: RunningEngine) -> None:
    path = "/v1/chat/completions"
    question = {"role": "user", "content": "hello"}
    asked = {"messages": [question], "max_tokens": 6}
    begun = {**asked, "messages": [question, {"role": "assistant", "content": "retu"}]}
    plain, more = (engine.http.post(path, json=body).json()["usage"] for body in (asked, begun))
    assert more["prompt_tokens"] > plain["prompt_tokens"]
    healed = engine.events(path, {**begun, "heal": True})
    # What a random model says in place of the token taken back differs by the runtime.
    assert healed[-1]["usage"]["prompt_tokens"] < more["prompt_tokens"]
    assert "mean_logprob" in healed[-1]["extra"]
    response = engine.http.post(path, json={**asked, "heal": True})
    assert response.status_code == 400 and "assistant" in error_of(response)["message"]


def test_openais_content_parts_and_limits_are_taken(engine: RunningEngine) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    body = {"messages": [{"role": "user", "content": parts}], "max_completion_tokens": 3}
    answer = engine.http.post("/v1/chat/completions", json=body).json()
    assert answer["usage"]["completion_tokens"] <= 3
    plain = {**body, "messages": [{"role": "user", "content": "ab"}]}
    same = engine.http.post("/v1/chat/completions", json=plain).json()
    assert same["usage"]["prompt_tokens"] == answer["usage"]["prompt_tokens"]


def test_a_model_that_was_loaded_by_its_path_is_asked_by_the_id_it_is_listed_under(
    engine: RunningEngine,
) -> None:
    (listed,) = engine.http.get("/v1/models").json()["data"]
    by_id = engine.complete("def", model=listed["id"])
    assert by_id["model"] == listed["id"]
    assert engine.http.post("/v1/completions", json={"model": "absent"}).status_code in (400, 404)
