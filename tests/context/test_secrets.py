"""Secret files by name and first bytes; key-like tokens masked in text of other files."""

from __future__ import annotations

import base64
import string
import sysconfig
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble_context.workspace import has_private_key, mask_secrets
from fimble_context.workspace.secrets import secret_name

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "app/.env.production",
        "app/.ENV.Local",
        "deploy/prod.env",
        "home/.ssh/config",
        "home/.aws/credentials",
        "home/.kube/config",
        "home/.docker/config.json",
        "C:\\Users\\me\\.ssh\\known_hosts",
        "id_rsa",
        "keys/ID_RSA.old",
        "tls/server.pem",
        "tls/Server.KEY",
        "release.jks",
        "passwords.kdbx",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "credentials",
        "config/credentials.json",
        "config/secrets.yaml",
        "config/secrets.prod.yml",
        "infra/prod.tfvars",
        "infra/terraform.tfstate.backup",
        "gcp/service-account-prod.json",
        "app-firebase-adminsdk-x1.json",
    ],
)
def test_secret_by_name(path: str) -> None:
    assert secret_name(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        "app/.env.sample",
        "prod.tfvars.template",
        "src/secrets.py",
        "src/credentials.py",
        "src/credentials/store.go",
        "src/environment.ts",
        "src/keys.rs",
        "src/token.c",
        "docs/keynote.md",
        "config/settings.xml",
        "package.json",
    ],
)
def test_ordinary_names(path: str) -> None:
    assert secret_name(path) is None


@pytest.mark.parametrize("what", ["", "RSA ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_whatever_its_name(what: str) -> None:
    key = f"-----BEGIN {what}PRIVATE KEY-----\nMIIE...\n"
    assert has_private_key(key)
    assert has_private_key(f"\ufeffBag Attributes\n    friendlyName: x\n{key}")


def test_code_about_keys_is_no_key() -> None:
    assert not has_private_key('HEADER = "-----BEGIN PRIVATE KEY-----"\n')
    assert not has_private_key(b"\x00\xff" * 100)


# --- masking ------------------------------------------------------------------------------


def token(alphabet: str, length: int) -> st.SearchStrategy[str]:
    """Characters drawn evenly, as in real ones; with the digits and cases these nearly all have."""
    drawn = st.integers(0, 2**64).map(
        lambda seed: "".join(Random(seed).choices(alphabet, k=length))
    )
    return drawn.filter(
        lambda text: (
            sum(c.isdigit() for c in text) > 2
            and any(c.isupper() for c in text) >= (alphabet is ALNUM)
            and any(c.islower() for c in text) >= (alphabet is ALNUM)
        )
    )


def encoded(header: str, body: bytes) -> str:
    return base64.urlsafe_b64encode(header.encode() + body).decode().rstrip("=")


BYTES = st.binary(min_size=30, max_size=60)
PEM_BODY = st.binary(min_size=120, max_size=300).map(base64.encodebytes).map(bytes.decode)

#: (what of it must not survive, the text with it)
PLANTED = st.one_of(
    token(string.ascii_uppercase + string.digits, 16).map(lambda t: (t, f"AKIA{t}")),
    token(ALNUM, 36).map(lambda t: (t, f"ghp_{t}")),
    token(ALNUM, 36).map(lambda t: (t, f"url = 'https://gho_{t}@github.com/x'")),
    token(ALNUM, 60).map(lambda t: (t, f"github_pat_{t}")),
    token(ALNUM, 20).map(lambda t: (t, f"glpat-{t}")),
    token(ALNUM, 48).map(lambda t: (t, f"sk-{t}")),
    token(ALNUM, 40).map(lambda t: (t, f"sk-ant-api03-{t}")),
    token(ALNUM, 24).map(lambda t: (t, f"sk_live_{t}")),
    token(ALNUM, 24).map(lambda t: (t, f"xoxb-123456789012-{t}")),
    token(ALNUM, 35).map(lambda t: (t, f"AIza{t}")),
    token(ALNUM, 34).map(lambda t: (t, f"hf_{t}")),
    token(ALNUM, 36).map(lambda t: (t, f"npm_{t}")),
    st.tuples(BYTES, BYTES).map(
        lambda parts: (
            encoded('{"sub":', parts[0]),
            f"{encoded(chr(123) + chr(34), parts[1])}.{encoded(chr(123) + chr(34), b'x' * 9)}"
            f".{encoded(chr(123) + chr(34) + 'sub', parts[0])}",
        )
    ),
    PEM_BODY.map(
        lambda body: (
            body.splitlines()[1],
            f"-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----",
        )
    ),
    PEM_BODY.map(lambda body: (body.splitlines()[1], f"-----BEGIN PRIVATE KEY-----\n{body}")),
    token(ALNUM, 20).map(lambda t: (t, f'password = "{t}"')),
    token(ALNUM, 24).map(lambda t: (t, f'"api_key": "{t}",')),
    token(ALNUM, 24).map(lambda t: (t, f"  clientSecret: '{t}'")),
    token(ALNUM, 40).map(lambda t: (t, f"aws_secret_access_key = {t}")),
    token(HEX, 40).map(lambda t: (t, f"export AUTH_TOKEN={t}")),
    token(ALNUM, 24).map(lambda t: (t, f'const accessToken: string = "{t}";')),
    token(ALNUM, 24).map(lambda t: (t, f'os.environ["DB_PASSWORD"] = "{t}"')),
    token(ALNUM, 24).map(lambda t: (t, f"curl -H 'Authorization: Bearer {t}'")),
    token(ALNUM, 16).map(lambda t: (t, f"postgres://admin:{t}@db.example.org/x")),
    token(ALNUM, 40).map(lambda t: (t, f"AccountKey={t};EndpointSuffix=core")),
)
AROUND = st.sampled_from(["", "\n", " ", '"', "'", "(", "x = ", "İ\n", "\\n", "# ", "\r\n", "漢 "])


@given(PLANTED, AROUND, AROUND.filter(lambda text: text not in ("x = ", "(")))
@settings(max_examples=400, deadline=None)
def test_a_planted_secret_never_survives(planted: tuple[str, str], before: str, after: str) -> None:
    secret, text = planted
    masked = mask_secrets(f"{before}{text}{after}")
    assert secret not in masked
    assert mask_secrets(masked) == masked


@given(st.lists(st.one_of(PLANTED.map(lambda p: p[1]), AROUND, st.text(max_size=20))))
@settings(max_examples=200, deadline=None)
def test_masking_twice_is_masking_once(pieces: list[str]) -> None:
    masked = mask_secrets("".join(pieces))
    assert mask_secrets(masked) == masked


def test_the_placeholder_says_what_was_there() -> None:
    masked = mask_secrets(f'TOKEN = "ghp_{"a1B2" * 9}"\npassword: "tr0ub4dor&3"\n')
    assert masked == 'TOKEN = "<github-token>"\npassword: "<secret>"\n'


@pytest.mark.parametrize(
    "line",
    [
        '    "integrity": "sha512-n5M855fKb2SsfMIiFFoVrABHJC8QtHwVx+mHWP3QcEqBHYienj5dHSgjbx",',
        'checksum = "0ea22880d78093b0cbe17c89f64a7d457941e65759157ec6cb31a31d652b05e5"',
        'COMMIT = "3beb13f1e0d2c1a4b5968778695a4b3c2d1e0f9a"',
        'ID = "123e4567-e89b-12d3-a456-426614174000"',
        '<img src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQ">',
        "token = self.next_token_of_expression_v2(stream)",
        "if password == other_password: raise ValueError",
        "API_KEY = os.environ['API_KEY']",
        'password = f"{user}-{salt}"',
        'secret: "${{ secrets.DEPLOY_TOKEN }}"',
        "url = f'https://{user}:{password}@{host}'",
        ".sk-toggleable__content-arrow-down-large { color: red }",
        "func (t *TokenStream) PeekToken(accessTokenTTL time.Duration) {}",
    ],
)
def test_ordinary_lines_stay(line: str) -> None:
    assert mask_secrets(line) == line


def test_the_standard_library_stays_as_it_is() -> None:
    lines = changed = 0
    for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        text = file.read_text(encoding="utf-8")
        before, after = Counter(text.splitlines()), Counter(mask_secrets(text).splitlines())
        lines += before.total()
        changed += (before - after).total()
    assert lines > 50_000
    assert changed < lines / 1000
