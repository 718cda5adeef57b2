"""Another user of the machine: has an engine of their own, and gets nothing from this one's."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from fimble import system
from fimble.engine import control
from fimble.engine.address import address_path, read_address, write_address
from fimble.engine.launcher import find_running, start_engine
from fimble.engine.options import EngineOptions
from fimble.errors import FimbleError
from tests.engine.process import RunningEngine, running_engine
from tests.support.other_user import USER, as_other_user, needs_root, public_folder
from tests.support.waiting import PATIENCE, until

pytestmark = needs_root

public = pytest.fixture(scope="module")(public_folder)


@pytest.fixture(scope="module")
def first(public: Path, tiny: Path) -> Iterator[RunningEngine]:
    """The first user's engine, in a home that everybody may enter."""
    home = public / "first"
    home.mkdir(mode=0o755)
    with running_engine(home, tiny) as engine:
        yield engine


@pytest.fixture
def home(public: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that the other user could prepare, since nobody has made it yet."""
    home = public / f"home-{len(list(public.iterdir()))}"
    monkeypatch.setenv("FIMBLE_HOME", str(home))
    yield home
    control.stop()


def said_by_the_other(
    code: str, *arguments: str, home: Path | None = None, engine: bool = False
) -> str:
    process = as_other_user(code, *arguments, home=home, engine=engine)
    said, failed = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, failed
    return said.strip()


TRY_ALL = """
home = Path(sys.argv[1])
refused, got = 0, []
for path in ("run", "run/engine.json", "run/engine.lock", "run/work", "logs", "logs/engine.log"):
    for attempt in (
        lambda path: path.read_bytes(),
        lambda path: list(path.iterdir()),
        lambda path: path.open("ab").close(),
        lambda path: path.with_name("planted").touch(),
        lambda path: path.rename(path.with_name("gone")),
        lambda path: path.unlink(),
        lambda path: path.chmod(0o777),
        lambda path: (path / "planted.so").touch(),
    ):
        try:
            attempt(home / path)
        except OSError:
            refused += 1
        else:
            got.append(path)
print(json.dumps([refused, got]))
"""


def test_what_lies_in_files_is_closed_to_them(first: RunningEngine) -> None:
    assert json.loads(said_by_the_other(TRY_ALL, str(first.home))) == [48, []]
    assert first.health()["state"] == "ready"


ASK = """
answers = set()
for secret in ("", "wrong", "x" * 43):
    for method, path in (("GET", "/health"), ("GET", "/metrics"), ("POST", "/v1/completions")):
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
        headers = {"Authorization": f"Bearer {secret}"}
        connection.request(method, path, b'{"prompt": "a"}', headers)
        answer = connection.getresponse()
        answers.add((answer.status, json.loads(answer.read())["error"]["code"]))
        connection.close()
found = fimble.engine.launcher.find_running()
print(json.dumps([sorted(answers), str(found)]))
"""


def test_the_port_is_of_no_use_without_the_secret(first: RunningEngine) -> None:
    # Also with the first user's home for their own.
    said = said_by_the_other(ASK, str(first.address.port), home=first.home, engine=True)
    assert json.loads(said) == [[[401, "unauthorized"]], "None"]


RUN = """
from fimble.engine.process import main
sys.exit(main(["--model", sys.argv[1]]))
"""


def test_they_have_an_engine_of_their_own(first: RunningEngine, public: Path, tiny: Path) -> None:
    home = public / "second"
    home.mkdir()
    shutil.chown(home, USER, USER)
    theirs = as_other_user(RUN, str(tiny), home=home, engine=True)
    try:
        path = home / "run" / "engine.json"
        until(lambda: theirs.poll() is not None or path.exists())
        assert theirs.poll() is None, theirs.stderr and theirs.stderr.read()
        found = path.stat()
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (USER, 0o600)
        data = json.loads(path.read_bytes())
        assert data["pid"] == theirs.pid
        assert data["port"] != first.address.port and data["secret"] != first.address.secret
        assert first.health()["pid"] == first.address.pid
    finally:
        theirs.terminate()
        theirs.communicate(timeout=PATIENCE)


# --- what they prepare ---------------------------------------------------------------------

PREPARE = """
home = Path(sys.argv[1])
os.umask(0)
(home / "run").mkdir(parents=True, mode=int(sys.argv[2], 8))
(home / "run" / "engine.json").write_text(sys.argv[3], encoding="utf-8")
"""


@pytest.mark.parametrize("mode", ["777", "700"])
def test_a_folder_that_they_made_is_not_used(home: Path, mode: str) -> None:
    said_by_the_other(PREPARE, str(home), mode, "{}")
    with pytest.raises(FimbleError, match="belongs to another user") as caught:
        start_engine(EngineOptions())
    assert str(home / "run") in str(caught.value) and "FIMBLE_HOME" in caught.value.next_step
    # The same for an engine that is started by hand.
    direct = subprocess.run(
        [sys.executable, "-m", "fimble.engine"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert direct.returncode != 0
    assert "belongs to another user" in direct.stderr and "Traceback" not in direct.stderr


PRETEND = """
from http.server import BaseHTTPRequestHandler, HTTPServer

class Pretender(BaseHTTPRequestHandler):
    def do_GET(self):
        print("heard", self.headers.get("Authorization"), flush=True)
        body = json.dumps({"pid": os.getpid(), "state": "ready", "models": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format, *args):
        return

server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Pretender)
print(json.dumps([os.getpid(), server.server_port]), flush=True)
server.serve_forever()
"""


def pretender(port: int) -> tuple[subprocess.Popen[str], int, int]:
    process = as_other_user(PRETEND, str(port))
    assert process.stdout is not None
    pid, port = json.loads(process.stdout.readline())
    return process, pid, port


def heard(process: subprocess.Popen[str]) -> str:
    process.kill()
    return process.communicate(timeout=PATIENCE)[0]


def test_an_engine_that_they_published_in_our_place_is_not_asked(
    home: Path, first: RunningEngine
) -> None:
    """In a home that is theirs, its folder for the engine taken away from us and replaced."""
    process, pid, port = pretender(0)
    theirs = replace(
        first.address, pid=pid, started_at=system.process_started_at(pid), port=port, secret="x"
    )
    write_address(theirs)
    assert find_running() == theirs, "as if it were ours, it would be believed"
    asked = "heard Bearer x"
    shutil.chown(address_path(), USER, USER)
    assert read_address() is None
    assert find_running() is None
    assert heard(process).strip() == asked


def test_a_port_that_they_took_over_hears_nothing(home: Path) -> None:
    ended = start_engine(EngineOptions())
    psutil.Process(ended.pid).kill()
    until(lambda: not system.is_alive(ended.pid))
    process, _, port = pretender(ended.port)
    assert port == ended.port
    assert json.loads(address_path().read_bytes()) == asdict(ended)
    assert find_running() is None
    assert start_engine(EngineOptions()).port != port
    assert heard(process) == ""


LISTEN = """
for option in (None, socket.SO_REUSEADDR, getattr(socket, "SO_REUSEPORT", socket.SO_REUSEADDR)):
    taker = socket.socket()
    if option is not None:
        taker.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        taker.bind((sys.argv[2], int(sys.argv[1])))
        taker.listen()
    except OSError:
        continue
    print("taken")
"""


def test_nobody_listens_beside_a_living_engine(first: RunningEngine) -> None:
    assert said_by_the_other(LISTEN, str(first.address.port), "127.0.0.1") == ""
