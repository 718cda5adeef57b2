"""AMD's packages under the real runtime: what this machine can and cannot do with them.

No machine of ours has their providers. So with their own provider they must be refused in
words, and with the provider taken away the same package must answer on the CPU, which shows
that layout, names and settings are read right.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from fimble.engine.loaded import load_model
from fimble.engine.options import EngineOptions
from fimble.engine.package import read_package_config
from fimble.engine.runtime import Model
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import LoadFailed
from fimble.models.store import Store
from tests.support.amd_packages import AMD_PACKAGES, make_loadable_amd_package

LOADABLE = [letter for letter, row in AMD_PACKAGES.items() if row.domain == "com.microsoft"]


def folder_of(outer: Path) -> Path:
    """The nested folder, found as the command line finds it."""
    return Store(outer.parent / "no-store").find(str(outer)).path


@pytest.mark.skipif(importlib.util.find_spec("winreg") is not None, reason="has the providers")
@pytest.mark.parametrize("letter", LOADABLE)
def test_with_its_own_provider_the_runtime_here_refuses_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    monkeypatch.chdir(tmp_path)  # where the runtime would look for a provider's library
    config = read_package_config(folder_of(make_loadable_amd_package(tmp_path, letter)))
    with pytest.raises(LoadFailed) as caught:
        Model(config)
    assert AMD_PACKAGES[letter].provider.lower() in caught.value.message.lower()
    assert caught.value.next_step


@pytest.mark.parametrize("letter", LOADABLE)
def test_on_the_cpu_as_a_stand_in_it_completes(tmp_path: Path, letter: str) -> None:
    outer = make_loadable_amd_package(tmp_path / "größe 1", letter, on_cpu=True)
    config = read_package_config(folder_of(outer))
    assert (config.context_length, config.providers) == (32768, ())
    tokenizer = PackageTokenizer(config.folder / "tokenizer.json")
    loaded = load_model(
        config, tokenizer, options=EngineOptions(context_tokens=8192, threads=1, slots=2)
    )
    try:
        assert (loaded.window, loaded.info.continuation) == (8192, True)
        assert loaded.info.fim == (letter == "B"), "the only Coder model of them"
        assert loaded.pool is not None
        prompt = tokenizer.encode_text("def f(n):\n    return ")
        slot = loaded.pool.take(prompt, "", object(), lambda holder: False)
        assert slot is not None
        assert sum(slot.seek(prompt, 32)) == len(prompt)
        slot.push(int(slot.session.logits().argmax()))
        assert slot.session.length == len(prompt) + 1
    finally:
        loaded.close()
