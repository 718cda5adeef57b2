"""What must not leave its file: secret files by name or first bytes, and key-like tokens.

Knows names, bytes and text only; it opens nothing. ``ignore.Policy`` asks it about paths,
and whoever takes text from a file other than the one being edited passes it through
``mask_secrets``.

Names are compared without case on every system. An environment file that ends in
``.example``, ``.sample``, ``.template`` or ``.dist`` is allowed: such files are committed to
say which variables exist, and what looks like a key in them is still masked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import lru_cache
from math import log2
from pathlib import PurePath

__all__ = ["has_private_key", "mask_secrets", "secret_name"]

_HARMLESS_ENDINGS = (".example", ".sample", ".template", ".dist")

# On any component of a path: what is below such a folder is as secret as such a file.
_COMPONENTS = (
    # environment and deployment variables
    ".env", ".env.*", "*.env", ".envrc", ".dev.vars",
    "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.*",
    # keys, key stores and certificates
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx",
    "*.ppk", "*.jks", "*.keystore", "*.bks", "*.kdb", "*.kdbx", "*.agekey", "*.crt", "*.cer",
    "*.der", "*.csr", "*.p7b", "*.mobileprovision", "*.ovpn", "secring.*", "wallet.dat",
    # credential files
    ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", "pgpass.conf",
    ".my.cnf", ".mylogin.cnf", ".htpasswd", ".dockercfg", ".s3cfg", ".boto", ".vault_pass*",
    ".vault-token", ".terraformrc", "terraform.rc", "credentials.tfrc.json", "kubeconfig",
    "*.kubeconfig", "settings-security.xml", "local.settings.json",
    "application_default_credentials.json", "client_secret*.json", "service[-_]account*.json",
    "serviceaccount*.json", "*firebase-adminsdk*.json", "gcp-key*.json", "*.publishsettings",
    # secrets.yaml, secrets.prod.toml; not secrets.py
    *(f"{stem}{ending}"
      for stem in ("secret", "secrets", "secret.*", "secrets.*", "credentials", "credentials.*")
      for ending in (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf", ".properties",
                     ".xml", ".csv", ".txt", ".enc")),
    # what a shell or a console remembers
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history",
    ".node_repl_history", ".sqlite_history",
    # folders that hold nothing else
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".gcloud", ".password-store",
)  # fmt: skip

# On the last component only: a package may well be called "credentials".
_FILES = ("credentials", "secrets", "passwd", "shadow", "htpasswd")

# A folder and what is in it.
_PAIRS = (
    (".docker", "config.json"),
    (".m2", "settings.xml"),
    (".config", "gcloud"),
    (".vscode", "sftp.json"),
)

_COMPONENT = re.compile("|".join(translate(pattern) for pattern in _COMPONENTS))
_PRIVATE_KEY = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_HEAD = 4096


def secret_name(path: PurePath | str) -> str | None:
    """The component of ``path`` that makes it a secret file, or None.

    Both separators count on every system, since a path may come from another one.
    """
    return _secret_name(str(path))


@lru_cache(maxsize=8_192)
def _secret_name(path: str) -> str | None:
    parts = [part for part in re.split(r"[/\\]+", path) if part]
    lowered = [part.lower() for part in parts]
    if lowered and lowered[-1] in _FILES:
        return parts[-1]
    for index, part in enumerate(lowered):
        if tuple(lowered[index : index + 2]) in _PAIRS:
            return "/".join(parts[index : index + 2])
        if _COMPONENT.match(part) and not part.endswith(_HARMLESS_ENDINGS):
            return parts[index]
    return None


def has_private_key(head: bytes | str) -> bool:
    """Whether a file that begins with ``head`` is a private key, whatever its name.

    Only the first 4096 bytes are looked at: text before the header is allowed, as OpenSSL
    writes it. A key further down, in a test, is the masking's affair.
    """
    data = head[:_HEAD]
    if isinstance(data, str):
        data = data.encode("utf-8", "replace")
    match = _PRIVATE_KEY.search(data)
    if match is None:
        return False
    # Quoted, it is code about keys; a key file has the header at the start of a line.
    line = data[: match.start()].rpartition(b"\n")[2]
    return not line.strip(b"\xef\xbb\xbf \t")


# --- tokens inside allowed files ----------------------------------------------------------

# A token starts after something that is no part of a word; "\n" in a literal is no word.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"


def _entropy(text: str) -> float:
    """Shannon entropy in bits a character."""
    counts = [text.count(character) for character in set(text)]
    return -sum(count / len(text) * log2(count / len(text)) for count in counts)


def _is_random(token: str) -> bool:
    """Whether a token is no word made of words: digits, letters and little repetition."""
    digits = sum(character.isdigit() for character in token)
    return digits >= 2 and any(c.isalpha() for c in token) and _entropy(token) > 3.0


# (what the token starts with, the token, what stands for it, a check against ordinary words)
_Check = Callable[[str], bool]
_TOKENS: tuple[tuple[str, re.Pattern[str], str, _Check | None], ...] = tuple(
    (literal, re.compile(_START + pattern), f"<{label}>", check)
    for literal, pattern, label, check in (
        ("AKIA", r"AKIA[0-9A-Z]{16,}", "aws-key-id", None),
        ("ASIA", r"ASIA[0-9A-Z]{16,}", "aws-key-id", None),
        *(
            (f"gh{kind}_", rf"gh{kind}_[A-Za-z0-9]{{30,}}", "github-token", None)
            for kind in "pousr"
        ),
        ("github_pat_", r"github_pat_[A-Za-z0-9_]{22,}", "github-token", None),
        ("glpat-", r"glpat-[\w-]{20,}(?:\.[\w.-]+)?", "gitlab-token", None),
        ("sk-", r"sk-[A-Za-z0-9_-]{20,}", "api-key", _is_random),
        *(
            (f"{kind}k_live_", rf"{kind}k_live_[A-Za-z0-9]{{16,}}", "stripe-key", None)
            for kind in "srp"
        ),
        *(
            (f"{kind}k_test_", rf"{kind}k_test_[A-Za-z0-9]{{16,}}", "stripe-key", _is_random)
            for kind in "sr"
        ),
        ("whsec_", r"whsec_[A-Za-z0-9+/=]{20,}", "stripe-key", None),
        ("xox", r"xox[a-z]-[A-Za-z0-9-]{10,}", "slack-token", _is_random),
        ("xapp-", r"xapp-[A-Za-z0-9-]{20,}", "slack-token", _is_random),
        ("hooks.slack", r"hooks\.slack\.com/services/[A-Za-z0-9/_]{20,}", "slack-webhook", None),
        ("AIza", r"AIza[\w-]{35,}", "google-key", None),
        ("ya29.", r"ya29\.[\w-]{20,}", "google-token", None),
        ("GOCSPX-", r"GOCSPX-[\w-]{20,}", "google-secret", None),
        ("npm_", r"npm_[A-Za-z0-9]{36,}", "npm-token", None),
        ("pypi-", r"pypi-AgE[\w-]{50,}", "pypi-token", None),
        ("hf_", r"hf_[A-Za-z0-9]{30,}", "hugging-face-token", None),
        ("SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}", "sendgrid-key", None),
        ("hvs.", r"hvs\.[\w-]{20,}", "vault-token", None),
        *(
            (f"do{kind}_v1_", rf"do{kind}_v1_[a-f0-9]{{64}}", "digitalocean-token", None)
            for kind in "opr"
        ),
        ("dckr_pat_", r"dckr_pat_[\w-]{20,}", "docker-token", None),
        ("shpat_", r"shpat_[a-fA-F0-9]{32,}", "shopify-token", None),
        ("gsk_", r"gsk_[A-Za-z0-9]{40,}", "api-key", None),
        ("nvapi-", r"nvapi-[\w-]{40,}", "api-key", None),
        ("AGE-SECRET", r"AGE-SECRET-KEY-1[0-9A-Z]{40,}", "age-key", None),
        ("eyJ", r"(?<![_-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?", "json-web-token", None),
        # "-----BEGIN" in base64, as in Kubernetes files.
        ("LS0tLS1CRUdJTi", r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]{40,}", "key-block", None),
    )
)

# With or without its end; cut off, the block lasts as long as its lines look like base64.
_PEM = re.compile(
    r"-----BEGIN (?P<what>(?:[A-Z0-9]+ )*(?:PRIVATE KEY(?: BLOCK)?|CERTIFICATE))-----"
    r"(?:(?:(?!-----BEGIN )[^-]|-(?!----)){40,20000}?-----END (?P=what)-----"
    r"|(?:[\s\"'+,;#*/]|\\[nrt])*(?:[A-Za-z0-9+/=]{20,}(?:[\s\"'+,;#*]|\\[nrt])*)+)"
)
_URL = re.compile(
    r"(?P<before>://[^\s/:@'\"<>{}]{0,80}:)(?P<secret>[^\s@/'\"<>{}$%*]{3,200})(?=@[A-Za-z0-9\[])"
)
_BEARER = re.compile(
    r"(?P<before>(?:Bearer|Basic)\s{1,3})(?P<secret>[A-Za-z0-9+/._~-]{16,}={0,2})", re.IGNORECASE
)
_WORDS = (
    "passw", "pwd", "passphrase", "secret", "token", "api_key", "apikey", "api-key", "access_key",
    "accesskey", "access-key", "account_key", "accountkey", "account-key", "private_key",
    "privatekey", "private-key", "auth_key", "authkey", "auth-key", "credential", "encryption_key",
)  # fmt: skip
# name = "value", name: 'value', "name": "value", name => value, --name=value
_ASSIGNED = re.compile(
    r"(?P<before>(?:" + "|".join(_WORDS) + r")[\w-]{0,40}(?:\\?[\"'])?\]?\s{0,20}"
    r"(?::\s?[\w.\[\]|& ]{1,30}=|:=|=>|[=:])\s{0,20})"
    r"(?:(?P<quote>\\?[bru]{0,2}[\"'`])(?P<quoted>[^\"'`\s\\<>{}$%]{6,500})(?=\\?[\"'`])"
    r"|(?P<bare>[A-Za-z0-9+/_.~!@#^&*=-]{16,500})(?![A-Za-z0-9+/_.~!@#^&*=(\[{$-]))",
    re.IGNORECASE,
)


def mask_secrets(text: str) -> str:
    """``text`` with a named placeholder such as ``<github-token>`` for each key-like token.

    Idempotent. Line ends are kept, except that a PEM block becomes one line. Hashes, UUIDs,
    long identifiers and base64 data are left alone unless a known prefix, or the name they
    are assigned to, says that they are a secret.
    """
    for literal, pattern, label, check in _TOKENS:
        if literal in text:
            text = _replace(text, (literal,), pattern, _replacement(label, check))
    if "-----BEGIN " in text:
        text = _PEM.sub(lambda found: f"<{found['what'].lower().replace(' ', '-')}>", text)
    if "://" in text and "@" in text:
        text = _replace(text, ("://",), _URL, lambda found: f"{found['before']}<password>")
    text = _replace(text, ("bearer ", "basic "), _BEARER, _masked_bearer, ignore_case=True)
    return _replace(text, _WORDS, _ASSIGNED, _masked_assignment, ignore_case=True)


_Replacement = Callable[[re.Match[str]], str]


def _replace(
    text: str,
    starts: Iterable[str],
    pattern: re.Pattern[str],
    replacement: _Replacement,
    *,
    ignore_case: bool = False,
) -> str:
    """``pattern.sub(replacement, text)`` for a pattern that begins with one of ``starts``.

    Searching for literals is many times faster than the pattern itself.
    """
    searched = text.lower() if ignore_case else text
    if len(searched) != len(text):  # "İ".lower() is longer: places would not be the same
        return pattern.sub(replacement, text)
    present = [start for start in starts if start in searched]
    if not present:
        return text
    pieces: list[str] = []
    done = 0
    for place in sorted(place for start in present for place in _places(searched, start)):
        found = pattern.match(text, place) if place >= done else None
        if found is not None:
            pieces += (text[done:place], replacement(found))
            done = found.end()
    return "".join((*pieces, text[done:])) if pieces else text


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + len(word))


def _replacement(label: str, check: _Check | None) -> _Replacement:
    return lambda found: label if check is None or check(found[0]) else found[0]


def _masked_bearer(found: re.Match[str]) -> str:
    return f"{found['before']}<token>" if _is_random(found["secret"]) else found[0]


def _masked_assignment(found: re.Match[str]) -> str:
    quoted, bare = found["quoted"], found["bare"]
    if quoted is not None and _is_password(quoted):
        return f"{found['before']}{found['quote']}<secret>"
    if bare is not None and _is_bare_key(bare):
        return f"{found['before']}<secret>"
    return found[0]


def _is_password(literal: str) -> bool:
    """Whether a literal assigned to a secret's name is one, and not a name or a format."""
    if not any(character.isdigit() for character in literal) and not (
        len(literal) >= 20 and _entropy(literal) > 3.8 and literal.lower() != literal
    ):
        return False
    return _entropy(literal) > 2.3


def _is_bare_key(word: str) -> bool:
    """Whether an unquoted word is a key: it could also be an expression in code."""
    if re.match(r"[0-9a-f]{32}|[0-9A-F]{32}", word):
        return _entropy(word) > 2.5
    if sum(character.isdigit() for character in word) < 3 or _entropy(word) < 3.3:
        return False
    return any(c.isupper() for c in word) and any(c.islower() for c in word)
